import GRDB
import SyncModel

/// The local keys in a table's log that no longer lead to a row.
struct LoggedKeys {
  /// Keys that rows had before the edits, if the edits may have removed them.
  var gone: Set<Int64>
  /// Keys of rows that were inserted and removed again: change sets do not mention these rows.
  var unseen: Set<Int64>
}

extension StoreSession {
  /// Gives new rows the identities that were drawn when they were inserted.
  func assignLoggedIdentities(_ table: TableSchema) throws {
    try database.execute(
      sql: "INSERT OR IGNORE INTO \(table.identityName) (key, identity) "
        + Self.loggedIdentities(table))
  }

  /// Returns a query of the numbers of new rows and of the identities that were drawn when these were
  /// inserted. A row is new if its first entry in the log is an insert, apart from updates by a
  /// cascade, which come before the insert that records a changed key. All other rows keep their
  /// identities: rows that REPLACE has written, and rows that were deleted too often to be new, since
  /// the trigger of a foreign key may insert a row under a key that has changed before the log
  /// records the change.
  private static func loggedIdentities(_ table: TableSchema) -> String {
    typealias Entry = CaptureTriggers.Entry
    return """
      SELECT k0, identity FROM \
      (SELECT k0, identity, op, min(seq), \
      sum(op = \(Entry.insert.rawValue)) - sum(op = \(Entry.delete.rawValue)) AS balance \
      FROM \(table.logName) WHERE op <> \(Entry.update.rawValue) GROUP BY k0) \
      WHERE op = \(Entry.insert.rawValue) AND (balance > 0 OR (balance = 0 AND NOT EXISTS \
      (SELECT 1 FROM \(table.quotedName) AS t WHERE t.\(quoted(table.keyColumns[0])) = k0)))
      """
  }

  /// Returns a query of the numbers of rows that triggers saw come and go equally often, and come
  /// first. If a row has such a number, either it was there before, or it came unseen.
  static func numbersOfTransientRows(_ table: TableSchema) -> String {
    typealias Entry = CaptureTriggers.Entry
    return """
      SELECT k0 FROM (SELECT k0, op, min(seq), \
      sum(op = \(Entry.insert.rawValue)) - sum(op = \(Entry.delete.rawValue)) AS balance \
      FROM \(table.logName) WHERE op <> \(Entry.update.rawValue) GROUP BY k0) \
      WHERE op = \(Entry.insert.rawValue) AND balance = 0
      """
  }

  /// Returns the identities that the next sealing gives to new rows, of those that have some keys.
  func identitiesToAssign(
    to keys: Set<Int64>, _ access: TableAccess
  ) throws -> [Int64: RowIdentity] {
    guard !keys.isEmpty else { return [:] }
    return try identitiesToAssign(access, to: keys.contains)
  }

  /// Returns the identities that the next sealing gives to the new rows of a table.
  func identitiesToAssign(
    _ access: TableAccess, to isWanted: (Int64) -> Bool = { _ in true }
  ) throws -> [Int64: RowIdentity] {
    var found: [Int64: RowIdentity] = [:]
    let reading = try SQLStatement(Self.loggedIdentities(access.table), on: database)
    while try reading.step() {
      let key = reading.integer(at: 0)
      guard isWanted(key), try access.explicitIdentity(of: key) == nil else { continue }
      found[key] = RowIdentity(bytes: reading.bytes(at: 1))
    }
    return found
  }
}
