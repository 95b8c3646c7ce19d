import SyncModel

extension TableAccess {
  /// Whether the edits in the log gave a local key to a row, and no row had it
  /// before them.
  func isGiven(_ key: Int64) throws -> Bool {
    typealias Entry = CaptureTriggers.Entry
    guard table.identity == .surrogate else {
      // The log knows these rows by their declared columns.
      let match = table.keyColumns.enumerated().map { "l.k\($0) = p.\(quoted($1))" }
      let insertion = try statement(
        "SELECT 1 FROM \(table.quotedName) AS p JOIN \(table.logName) AS l "
          + "ON \(match.joined(separator: " AND ")) WHERE l.op = \(Entry.insert.rawValue) "
          + "AND p.\(quoted(table.localKey ?? "rowid")) = ?")
      insertion.bind(key, at: 1)
      defer { insertion.reset() }
      return try insertion.step()
    }
    // Updates by a cascade come before the insertion that a changed key is.
    let first = try statement(
      "SELECT op FROM \(table.logName) WHERE k0 = ? AND op <> \(Entry.update.rawValue) "
        + "ORDER BY seq LIMIT 1")
    first.bind(key, at: 1)
    guard try first.step() else { return false }
    defer { first.reset() }
    return first.integer(at: 0) == Entry.insert.rawValue
  }
}
