import SyncModel

/// The changes of keys in a table's log, so that a deletion can name the row's new identity.
struct KeyMoves {
  private let access: TableAccess
  private let collations: [KeyCollation]
  /// The new keys, by the key before the change, in the order of the log.
  private var destinations: [RowIdentity: [Change]] = [:]

  private struct Change {
    /// The position of the change in the log.
    var sequence: Int64
    var key: [Value]
  }

  init(access: TableAccess) throws {
    self.access = access
    let table = access.table
    collations =
      table.identity == .surrogate
      ? [.binary] : table.identityPositions.map { table.columns[$0].keyCollation }
    guard table.isReferred else { return }
    let count = table.keyColumns.count
    let names =
      (0..<count).map { "k\($0)" } + (0..<count).map(CaptureTriggers.Column.destination)
    let statement = try access.statement(
      "SELECT seq, \(names.joined(separator: ", ")) FROM \(table.logName) "
        + "WHERE \(CaptureTriggers.Column.destination(0)) IS NOT NULL "
        + "AND op <> \(CaptureTriggers.Entry.leaving.rawValue) ORDER BY seq")
    while try statement.step() {
      let old = (0..<count).map { statement.value(at: 1 + $0) }
      let new = (0..<count).map { statement.value(at: 1 + count + $0) }
      destinations[canonical(old), default: []].append(
        Change(sequence: statement.integer(at: 0), key: new))
    }
  }

  private func canonical(_ key: [Value]) -> RowIdentity {
    IdentityEncoding.encode(key, collations: collations)
  }

  /// Returns whether the row that had a key was given another one.
  func hasMoved(from key: [Value]) -> Bool {
    !destinations.isEmpty && destinations[canonical(key)] != nil
  }

  /// Returns the new identity of the row that had a key first, which is the key that other devices
  /// know; `nil` if the row did not move or is gone.
  ///
  /// - Parameter last: The number of an entry in the log. Only later changes count, for a key that
  ///   another row had before.
  func destination(of key: [Value], after last: Int64 = .min) throws -> RowIdentity? {
    guard !destinations.isEmpty else { return nil }
    var next = canonical(key)
    var found: [Value]?
    var sequence = last
    // A key can pass to another row, whose key is then changed as well.
    while let change = destinations[next]?.first(where: { $0.sequence > sequence }) {
      found = change.key
      next = canonical(change.key)
      sequence = change.sequence
    }
    guard let found, try access.row(found) != nil else { return nil }
    return try access.identity(ofKey: found)
  }
}
