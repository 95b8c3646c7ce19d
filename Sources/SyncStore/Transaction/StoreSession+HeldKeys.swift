import GRDB
import SyncModel

/// Integer keys that stand for deleted rows until remade tables are compared
/// (``RemadeTables/heldKeys``).
///
/// The deletions are sealed before that, and rows of the remade tables may still contain the keys:
/// nothing else would tell which rows they mean.
extension StoreSession {
  /// Holds the key of a deleted row, if a row contains it and the table of that row is to be
  /// compared.
  ///
  /// - Returns: Whether the key is held.
  func holdsKey(_ key: Int64, of row: RowKey) throws -> Bool {
    let access = try access(row.table)
    guard try isReferredToUncompared(key, of: row.table),
      try access.stamps.state(of: access.fingerprint(row.identity))?.existence == .deleted,
      try [nil, row.identity].contains(access.explicitIdentity(of: key))
    else { return false }
    try access.setIdentity(row.identity, of: key)
    try hold(key, of: row)
    return true
  }

  /// Holds the keys of rows with declared columns whose deletion is in the log, as far as rows of
  /// tables that are to be compared contain these keys.
  func holdDeclaredKeys() throws {
    guard try !tablesToCompare().isEmpty else { return }
    for table in schema.tables {
      guard case .columns = table.identity else { continue }
      let access = try access(table.id)
      let keys = try Int64.fetchAll(
        database,
        sql: "SELECT DISTINCT identity FROM \(table.logName) WHERE identity IS NOT NULL")
      for key in keys where try !access.hasRow(localKey: key) {
        let row = RowKey(table: table.id, identity: try access.earlierIdentity(ofLocalKey: key))
        guard try isReferredToUncompared(key, of: table.id),
          try access.stamps.state(of: access.fingerprint(row.identity))?.existence == .deleted
        else { continue }
        try hold(key, of: row)
      }
    }
  }

  /// Holds a key that means a row until the tables are compared.
  func hold(_ key: Int64, of row: RowKey) throws {
    var remade = try RemadeTables.read(database)
    let held = RemadeTables.HeldKey(table: row.table, key: key, identity: row.identity.bytes)
    let others = (remade.heldKeys ?? []).filter { ($0.table, $0.key) != (row.table, key) }
    remade.heldKeys = others + [held]
    try write(remade)
  }

  /// Returns the held keys of rows in a table, with the rows' identities.
  func heldKeys(of table: Int) throws -> [Int64: RowIdentity] {
    if let knownHeldKeys { return knownHeldKeys[table] ?? [:] }
    var keys: [Int: [Int64: RowIdentity]] = [:]
    for held in try RemadeTables.read(database).heldKeys ?? [] {
      keys[held.table, default: [:]][held.key] = RowIdentity(bytes: held.identity)
    }
    knownHeldKeys = keys
    return keys[table] ?? [:]
  }

  /// Lets a key stand for a row with declared columns that is not in its table, until the transaction
  /// ends.
  func rememberHeldKey(_ key: Int64, of row: RowKey) throws {
    _ = try heldKeys(of: row.table)
    knownHeldKeys?[row.table, default: [:]][key] = row.identity
  }

  /// Returns whether a row of a table that is to be compared contains a key.
  func isReferredToUncompared(_ key: Int64, of table: Int) throws -> Bool {
    try tablesToCompare().contains { id in
      try schema[id].columns.contains { column in
        guard column.domain == .key(of: table) else { return false }
        let statement = try access(id).statement(
          "SELECT 1 FROM \(schema[id].quotedName) WHERE \(quoted(column.name)) = ?")
        statement.bind(key, at: 1)
        defer { statement.reset() }
        return try statement.step()
      }
    }
  }
}

extension TableAccess {
  /// Returns the identity of the deleted row with declared columns for which a key is held; `nil`
  /// if there is none.
  func heldIdentity(of key: Int64) throws -> RowIdentity? {
    guard case .columns = table.identity else { return nil }
    return try session.heldKeys(of: table.id)[key]
  }

  /// Returns the key that is held for a deleted row with declared columns, unless another row has
  /// it.
  func heldKey(of identity: RowIdentity) throws -> Int64? {
    guard case .columns = table.identity else { return nil }
    let keys = try session.heldKeys(of: table.id).filter { $0.value == identity }.keys.sorted()
    return try keys.first { try !hasRow(localKey: $0) }
  }
}
