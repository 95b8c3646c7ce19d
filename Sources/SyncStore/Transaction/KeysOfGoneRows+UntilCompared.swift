import GRDB
import SyncModel

/// Keys that stand for deleted rows until remade tables are compared. Rows of these tables may still
/// contain the keys: nothing else would tell which rows they mean.
extension KeysOfGoneRows {
  // MARK: - Held keys

  /// Returns the held keys of rows in a table, with the rows' identities.
  private func held(in table: Int) throws -> [Int64: RowIdentity] {
    if let knownHeldKeys { return knownHeldKeys[table] ?? [:] }
    var keys: [Int: [Int64: RowIdentity]] = [:]
    for held in try RemadeTables.read(session.database).heldKeys ?? [] {
      keys[held.table, default: [:]][held.key] = RowIdentity(bytes: held.identity)
    }
    knownHeldKeys = keys
    return keys[table] ?? [:]
  }

  /// Returns the identity of the deleted row with declared columns for which a key is held; `nil`
  /// if there is none.
  func heldIdentity(of key: Int64, in table: TableSchema) throws -> RowIdentity? {
    guard case .columns = table.identity else { return nil }
    return try held(in: table.id)[key]
  }

  /// Returns whether a key is held for a row that is gone.
  func isHeld(_ key: Int64, of row: RowKey) throws -> Bool {
    try held(in: row.table)[key] == row.identity
  }

  /// Returns the key that is held for a deleted row with declared columns, unless another row has
  /// it.
  func heldKey(of row: RowKey) throws -> Int64? {
    guard case .columns = schema[row.table].identity else { return nil }
    let access = try session.access(row.table)
    let keys = try held(in: row.table).filter { $0.value == row.identity }.keys.sorted()
    return try keys.first { try !access.hasRow(localKey: $0) }
  }

  /// Holds keys, each of which means a row until the tables are compared.
  func hold(_ keys: [(key: Int64, row: RowKey)]) throws {
    guard !keys.isEmpty else { return }
    struct Key: Hashable {
      var table: Int
      var key: Int64
    }
    var remade = try RemadeTables.read(session.database)
    let new = Set(keys.map { Key(table: $0.row.table, key: $0.key) })
    let others = (remade.heldKeys ?? []).filter {
      !new.contains(Key(table: $0.table, key: $0.key))
    }
    remade.heldKeys =
      others
      + keys.map {
        RemadeTables.HeldKey(table: $0.row.table, key: $0.key, identity: $0.row.identity.bytes)
      }
    try session.write(remade)
  }

  /// Lets a key stand for a row with declared columns that is not in its table, until the transaction
  /// ends.
  func holdForNow(_ key: Int64, of row: RowKey) throws {
    _ = try held(in: row.table)
    knownHeldKeys?[row.table, default: [:]][key] = row.identity
  }

  /// Holds the keys of rows with declared columns whose deletion is in the log, as far as rows of
  /// tables that are to be compared contain these keys.
  func holdDeclared() throws {
    guard try !session.tablesToCompare().isEmpty else { return }
    var held: [(key: Int64, row: RowKey)] = []
    for table in schema.tables {
      guard case .columns = table.identity else { continue }
      let access = try session.access(table.id)
      let keys = try Int64.fetchSet(
        session.database,
        sql: "SELECT DISTINCT identity FROM \(table.logName) WHERE identity IS NOT NULL"
      ).filter { try !access.hasRow(localKey: $0) }
      for key in try containedUncompared(keys, in: table.id).sorted() {
        let row = RowKey(table: table.id, identity: try access.earlierIdentity(ofLocalKey: key))
        if try isDeleted(row, access) { held.append((key, row)) }
      }
    }
    try hold(held)
  }

  /// Returns the keys of a table, among some, that rows of tables contain that are to be compared.
  func containedUncompared(_ keys: Set<Int64>, in table: Int) throws -> Set<Int64> {
    let columns = try session.tablesToCompare().sorted().flatMap { id in
      schema[id].columns.filter { $0.domain == .key(of: table) }
        .map { (schema[id], quoted($0.name)) }
    }
    return try found(keys, in: columns)
  }

  /// Returns whether a key of a removed row can stand for it until the tables are compared.
  func mayBeHeld(_ freed: Freed) throws -> Bool {
    let access = try session.access(freed.table)
    return try isDeleted(freed.row, access)
      && [nil, freed.identity].contains(access.explicitIdentity(of: freed.key))
  }

  private func isDeleted(_ row: RowKey, _ access: TableAccess) throws -> Bool {
    try access.stamps.state(of: access.fingerprint(row.identity))?.existence == .deleted
  }

  // MARK: - Entries

  /// Notes the key that a deleted row had, if a remade table is not compared yet. Returns false if
  /// there is no such table, or if bookkeeping has no tombstone of the row.
  ///
  /// A row that was inserted unseen into that table, or deleted unseen, may contain the key in its
  /// own. It is sealed after the deletion, and the key must still mean the deleted row.
  func keepUntilCompared(_ freed: Freed) throws -> Bool {
    let access = try session.access(freed.table)
    guard try !session.tablesToCompare().isEmpty,
      try session.keptRows.row(freed.row)?.reason == .tombstone,
      try access.explicitIdentity(of: freed.key) ?? freed.identity == freed.identity
    else { return false }
    try access.setIdentity(freed.identity, of: freed.key)
    return true
  }

  /// Frees the keys of rows that were hidden or deleted while tables were to be compared: until
  /// then, a row that was inserted unseen may refer to them.
  ///
  /// - Parameter onlyTaken: Whether to free only keys that a program has given to other rows.
  func freeThoseOfHiddenRows(onlyTaken: Bool) throws {
    for table in schema.tables where table.identity == .surrogate {
      let taken =
        onlyTaken
        ? " AND key IN (SELECT \(quoted(table.keyColumns[0])) FROM \(table.quotedName))" : ""
      try session.database.execute(
        sql: """
          DELETE FROM \(table.identityName) WHERE identity IN \
          (\(KeptRows.hiddenRows(of: table.id)))\(taken) \
          AND NOT \(containedCondition("\(table.identityName).key", in: table.id))
          """)
    }
    let held = try RemadeTables.read(session.database).heldKeys ?? []
    for (id, held) in Dictionary(grouping: held, by: \.table) where schema.contains(id) {
      let access = try session.access(id)
      let contained = try contained(Set(held.map(\.key)), in: id)
      for held in held where !contained.contains(held.key) {
        if try onlyTaken && !access.hasRow(localKey: held.key) { continue }
        try access.forgetKey(held.key, of: RowIdentity(bytes: held.identity))
      }
    }
  }

  /// Frees the keys of rows that came and went unseen, as a table was remade twice: no change set
  /// names these rows.
  func freeThoseOfUnknownRows() throws {
    for table in schema.tables where table.identity == .surrogate {
      let access = try session.access(table.id)
      for stray in try strayEntries(in: table.id, isNeedless: true)
      where try access.stamps.state(of: access.fingerprint(stray.identity)) == nil {
        try access.forgetKey(stray.key, of: stray.identity)
      }
    }
  }
}
