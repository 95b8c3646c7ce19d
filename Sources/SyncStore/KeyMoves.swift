import SyncModel

/// The changes of keys that a table's log tells of, so that a deletion can
/// say where the row lives on.
struct KeyMoves {
  private let access: TableAccess
  private let collations: [KeyCollation]
  /// The key after the change, by the key before it.
  private var destinations: [RowIdentity: [Value]] = [:]

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
      "SELECT \(names.joined(separator: ", ")) FROM \(table.logName) "
        + "WHERE \(CaptureTriggers.Column.destination(0)) IS NOT NULL ORDER BY seq")
    while try statement.step() {
      let old = (0..<count).map { statement.value(at: $0) }
      destinations[canonical(old)] = (0..<count).map { statement.value(at: count + $0) }
    }
  }

  private func canonical(_ key: [Value]) -> RowIdentity {
    IdentityEncoding.encode(key, collations: collations)
  }

  /// The identity under which the row lives on that had a key; `nil` if it
  /// does not.
  func destination(of key: [Value]) throws -> RowIdentity? {
    guard !destinations.isEmpty else { return nil }
    var next = canonical(key)
    var seen = Set([next])
    var found: [Value]?
    while let key = destinations[next] {
      found = key
      next = canonical(key)
      guard seen.insert(next).inserted else { return nil }
    }
    guard let found, try access.row(found) != nil else { return nil }
    return try access.identity(ofKey: found)
  }
}
