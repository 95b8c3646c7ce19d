import GRDB
import SyncModel

/// Integer keys of rows that are not in their tables, and that still stand for these rows.
///
/// There are two reasons for that. Other rows contain the key in their own keys without a foreign key
/// that holds the row (``StoreSchema/namers(of:)``): such a key stands for its row as long as a row
/// contains it. Or a program has remade a table, and rows of it may contain the key: the deletion of
/// the row is sealed before the table is compared, so the key is held until then
/// (``RemadeTables/heldKeys``).
///
/// A key of a row without declared columns has its entry among the identities of its table. This type
/// decides which of these entries stay when their rows go.
final class KeysOfGoneRows {
  unowned let session: StoreSession

  /// The keys with an entry that are in no table, by table and row; `nil` until they are first asked
  /// for.
  private var registered: [Int: [RowIdentity: Int64]] = [:]
  /// The held keys, by table; `nil` until they are first asked for.
  var knownHeldKeys: [Int: [Int64: RowIdentity]]?

  init(_ session: StoreSession) { self.session = session }

  var schema: StoreSchema { session.schema }

  /// Forgets what is remembered of the keys of a table, after a rollback.
  func forgetMemory(of table: Int) { registered[table] = nil }

  // MARK: - Keys that rows contain in their own

  /// Returns the keys of a table, among some, that rows contain in their own keys.
  func contained(_ keys: Set<Int64>, in table: Int) throws -> Set<Int64> {
    try found(keys, in: schema.namers(of: table).map { (schema[$0.table], name(of: $0)) })
  }

  /// Returns the SQL condition that a row contains a key of a table in its own key.
  ///
  /// - Parameter key: A column of integers, or an expression: a column without a type does not equal
  ///   numbers in columns of text.
  func containedCondition(_ key: String, in table: Int) -> String {
    let terms = schema.namers(of: table).map { namer in
      // One search, or one scan, for all keys. A row without a key contains NULL.
      "coalesce(\(key) IN (SELECT n.\(name(of: namer)) "
        + "FROM \(schema[namer.table].quotedName) AS n), 0)"
    }
    return terms.isEmpty ? "0" : "(\(terms.joined(separator: " OR ")))"
  }

  private func name(of namer: StoreSchema.Namer) -> String {
    quoted(schema[namer.table].columns[namer.column].name)
  }

  /// Returns the rows that contain one of several keys in a column: that key, and the local values
  /// of their key columns. The table is looked through once at most.
  func rows(
    of namer: StoreSchema.Namer, containing keys: Set<Int64>
  ) throws -> [(key: Int64, row: [Value])] {
    guard !keys.isEmpty else { return [] }
    let table = schema[namer.table]
    return try withList(of: keys, isInteger: true) { wanted in
      let names = [name(of: namer)] + table.keyColumns.map(quoted)
      let reading = try SQLStatement(
        "SELECT \(names.joined(separator: ", ")) FROM \(table.quotedName) "
          + "WHERE \(names[0]) IN \(wanted)", on: session.database)
      var found: [(key: Int64, row: [Value])] = []
      while try reading.step() {
        guard let key = Value.referredKey(reading.value(at: 0)) else { continue }
        found.append((key, table.keyColumns.indices.map { reading.value(at: $0 + 1) }))
      }
      return found
    }
  }

  /// Returns the keys, among some, that columns contain. Each column is looked through once at most,
  /// whether it has an index or not.
  func found(
    _ keys: Set<Int64>, in columns: [(table: TableSchema, name: String)]
  ) throws -> Set<Int64> {
    guard let one = keys.first, !columns.isEmpty else { return [] }
    if keys.count == 1 {
      let isFound = try columns.contains { table, name in
        let statement = try session.access(table.id).statement(
          "SELECT 1 FROM \(table.quotedName) WHERE \(name) = CAST(? AS NUMERIC) LIMIT 1")
        statement.bind(one, at: 1)
        defer { statement.reset() }
        return try statement.step()
      }
      return isFound ? keys : []
    }
    return try withList(of: keys, isInteger: true) { wanted in
      var found: Set<Int64> = []
      for (table, name) in columns {
        let reading = try SQLStatement(
          "SELECT DISTINCT \(name) FROM \(table.quotedName) "
            + "WHERE \(name) IN \(wanted)", on: session.database)
        while try reading.step() {
          if let key = Value.referredKey(reading.value(at: 0)) { found.insert(key) }
        }
      }
      return found
    }
  }

  /// Calls `body` with a list of keys for IN, in parentheses. `body` must not need another such list.
  ///
  /// - Parameter isInteger: Whether a column of text equals a key that is the same number, as in a
  ///   comparison with an `INTEGER PRIMARY KEY`; otherwise the keys compare like bound numbers.
  func withList<Result>(
    of keys: Set<Int64>, isInteger: Bool = false, _ body: (String) throws -> Result
  ) throws -> Result {
    let wanted = "temp.docsync_wanted_keys"
    try session.database.execute(
      sql: "CREATE TEMP TABLE IF NOT EXISTS docsync_wanted_keys (key)")
    let adding = try SQLStatement("INSERT INTO \(wanted) (key) VALUES (?)", on: session.database)
    for key in keys.sorted() {
      adding.bind(key, at: 1)
      try adding.run()
    }
    // A column without a type would equal no text: SQLite converts only for expressions.
    let result = try body("(SELECT \(isInteger ? "CAST(key AS INTEGER)" : "+key") FROM \(wanted))")
    try session.database.execute(sql: "DELETE FROM \(wanted)")
    return result
  }

  // MARK: - Entries

  /// Lets a key stand for a row that is not in its table.
  func keep(_ key: Int64, of row: RowKey) throws {
    let access = try session.access(row.table)
    guard try access.explicitIdentity(of: key) ?? row.identity == row.identity else { return }
    try access.setIdentity(row.identity, of: key)
    registered[row.table]?[row.identity] = key
  }

  /// Gives a key to a row that is not in its table, unless it has one.
  func giveKey(to row: RowKey) throws {
    let access = try session.access(row.table)
    if let key = try access.localKey(of: row.identity),
      try access.explicitIdentity(of: key) == row.identity || access.hasRow(localKey: key)
    {
      return
    }
    let key = try access.assignKey(to: row.identity, preferring: nil)
    registered[row.table]?[row.identity] = key
  }

  /// Returns the key that stands for a row that is not in its table, since another row contains it
  /// in its own key; `nil` if there is none.
  func key(of row: RowKey) throws -> Int64? {
    guard !schema.namers(of: row.table).isEmpty else { return nil }
    if registered[row.table] == nil {
      var keys: [RowIdentity: Int64] = [:]
      let reading = try entriesWithoutRow(in: row.table)
      while try reading.step() {
        keys[RowIdentity(bytes: reading.bytes(at: 1))] = reading.integer(at: 0)
      }
      registered[row.table] = keys
    }
    guard let key = registered[row.table]?[row.identity],
      try session.access(row.table).explicitIdentity(of: key) == row.identity
    else { return nil }
    return key
  }

  /// Returns a statement that reads the keys, and the identities, of a table's entries that belong to
  /// no row of the table.
  private func entriesWithoutRow(
    in id: Int, where condition: String = "1"
  ) throws -> SQLStatement {
    let table = schema[id]
    return try SQLStatement(
      "SELECT i.key, i.identity FROM \(table.identityName) AS i WHERE \(condition) "
        + "AND NOT EXISTS (SELECT 1 FROM \(table.quotedName) AS t "
        + "WHERE t.\(quoted(table.keyColumns[0])) = i.key)", on: session.database)
  }

  /// Returns the entries of a table that belong to no row of the table or its log.
  ///
  /// - Parameter isNeedless: Whether only those count whose keys no row, and no entry of a log,
  ///   contains in its own key, and no row, as far as is known, as a plain value.
  func strayEntries(
    in id: Int, isNeedless: Bool
  ) throws -> [(key: Int64, identity: RowIdentity)] {
    var conditions = [
      "NOT coalesce(i.key IN (SELECT l.k0 FROM \(schema[id].logName) AS l), 0)"
    ]
    if isNeedless, !schema.namers(of: id).isEmpty {
      conditions.append("NOT \(containedCondition("i.key", in: id))")
      conditions.append("NOT \(PlainKeys.condition("i.key", in: id))")
      for namer in schema.namers(of: id) {
        let table = schema[namer.table]
        let name = table.columns[namer.column].name
        guard let place = table.keyColumns.firstIndex(where: { $0.folded == name.folded }) else {
          continue
        }
        conditions.append(
          "NOT coalesce(i.key IN (SELECT l.k\(place) FROM \(table.logName) AS l), 0)")
      }
    }
    let reading = try entriesWithoutRow(
      in: id, where: conditions.joined(separator: " AND "))
    var found: [(key: Int64, identity: RowIdentity)] = []
    while try reading.step() {
      found.append((reading.integer(at: 0), RowIdentity(bytes: reading.bytes(at: 1))))
    }
    return found
  }

  /// Frees the keys of rows that are gone and that no row contains in its own key any more. If other
  /// rows have such a key as a plain value, bookkeeping has a note of that, and the key stays.
  func freeNeedless(in id: Int) throws {
    let table = schema[id]
    // Until then, a row that was inserted unseen may contain them.
    guard try session.tablesToCompare().isEmpty else { return }
    let key = "\(table.identityName).key"
    try session.database.execute(
      sql: """
        DELETE FROM \(table.identityName) WHERE NOT EXISTS (SELECT 1 FROM \(table.quotedName) AS t \
        WHERE t.\(quoted(table.keyColumns[0])) = \(key)) \
        AND NOT coalesce(\(key) IN (SELECT l.k0 FROM \(table.logName) AS l), 0) \
        AND NOT \(PlainKeys.condition(key, in: id)) AND NOT \(containedCondition(key, in: id))
        """)
  }

  /// Frees the keys that rows of some tables contained in their own keys, and that no row contains
  /// any more.
  ///
  /// - Parameter tables: The tables of which rows have gone, or have another key.
  func freeNeedless(afterChangesOf tables: Set<Int>) throws {
    for table in schema.namedTables
    where schema.namers(of: table.id).contains(where: { tables.contains($0.table) }) {
      try freeNeedless(in: table.id)
    }
  }
}

// MARK: - Sealing

extension KeysOfGoneRows {
  /// A key of a row that the edits in the log have removed.
  struct Freed {
    var table: Int
    var key: Int64
    var identity: RowIdentity

    var row: RowKey { RowKey(table: table, identity: identity) }
  }

  /// Lets the keys that rows contain in their own keys stand for the removed rows, before sealing
  /// decides which rows are shown. Frees a key that is a plain value, if its row came and went: no
  /// cell needs a note that it does not refer to that row (``StoreSession/isAmbiguous(_:in:)``).
  /// Returns the rows for which keys stand.
  func keepContained(_ freed: [Freed]) throws -> Set<RowKey> {
    var named: Set<RowKey> = []
    let contained = try freed.byTable { try self.contained($0, in: $1) }
    let isCompared = try session.tablesToCompare().isEmpty
    for freed in freed {
      let access = try session.access(freed.table)
      guard try !access.hasRow(localKey: freed.key) else { continue }
      if contained[freed.table]?.contains(freed.key) == true {
        try keep(freed.key, of: freed.row)
        named.insert(freed.row)
      } else if isCompared, try isPlain(freed), try !isKnown(freed) {
        try access.forgetKey(freed.key, of: freed.identity)
      }
    }
    return named
  }

  /// Returns whether a key may be a plain value of rows, in a table whose keys others contain in theirs.
  private func isPlain(_ freed: Freed) throws -> Bool {
    try !schema.namers(of: freed.table).isEmpty
      && session.plainKeys.keys(of: freed.table).contains(freed.key)
  }

  /// Returns whether change sets may name the row of a key: it did not come and go between two of them.
  private func isKnown(_ freed: Freed) throws -> Bool {
    let access = try session.access(freed.table)
    return try access.stamps.state(of: access.fingerprint(freed.identity)) != nil
  }

  /// Frees the keys of removed rows, except those that still stand for their rows, once sealing has
  /// decided which rows are shown.
  ///
  /// - Parameter named: The rows for which keys stood until then (``keepContained(_:)``).
  func free(_ freed: [Freed], named: Set<RowKey>) throws {
    let contained = try freed.byTable { try self.contained($0, in: $1) }
    let uncompared = try freed.byTable { try self.containedUncompared($0, in: $1) }
    var held: [(key: Int64, row: RowKey)] = []
    for freed in freed {
      let access = try session.access(freed.table)
      // The row may have come back since other rows refer to it.
      guard try access.row([.integer(freed.key)]) == nil else { continue }
      if try keepUntilCompared(freed) { continue }
      if uncompared[freed.table]?.contains(freed.key) == true, try mayBeHeld(freed) {
        try access.setIdentity(freed.identity, of: freed.key)
        held.append((freed.key, freed.row))
        continue
      }
      if contained[freed.table]?.contains(freed.key) == true { continue }
      // No change set names a row that came and went, unless the key of another row did: a plain
      // value that is its number stays one.
      if try isPlain(freed), try named.contains(freed.row) || isKnown(freed) { continue }
      try access.forgetKey(freed.key, of: freed.identity)
    }
    try hold(held)
  }
}

extension [KeysOfGoneRows.Freed] {
  /// Returns the result of `body` for the keys of each table.
  fileprivate func byTable(
    _ body: (Set<Int64>, Int) throws -> Set<Int64>
  ) rethrows -> [Int: Set<Int64>] {
    var keys: [Int: Set<Int64>] = [:]
    for freed in self { keys[freed.table, default: []].insert(freed.key) }
    return try Dictionary(
      uniqueKeysWithValues: keys.map { table, keys in (table, try body(keys, table)) })
  }
}
