import Foundation
import GRDB
import SyncModel

/// A map from the keys in an attached whole store to the keys here, for rows whose keys differ from
/// device to device.
///
/// A row that this store has keeps its key: the application, and tables that stay on this device,
/// know it by that key. A new row takes its key from the whole store, unless another row has that
/// key here, or the key is a plain value here.
///
/// The temporary tables contain only keys that differ. They are named by the number that the table
/// has in the whole store.
struct KeyMapping {
  /// The name under which the whole store is attached.
  static let attached = "docsync_whole"

  let database: Database
  /// The tables of this store.
  let old: StoreSchema
  /// The tables of the whole store.
  let new: StoreSchema
  /// The tables in which keys differ.
  private(set) var mapped: Set<Int> = []
  /// The tables with rows that have a plain number in their key (``plainRows(_:)``).
  var plainTables: Set<Int> = []

  init(database: Database, old: StoreSchema, new: StoreSchema) {
    self.database = database
    self.old = old
    self.new = new
  }

  /// Returns whether keys of a table differ.
  func isMapped(_ table: TableSchema) -> Bool { mapped.contains(table.id) }

  /// Returns whether a table has rows that have a plain number in their key.
  func hasPlainRows(_ table: TableSchema) -> Bool { plainTables.contains(table.id) }

  /// Returns the name of the temporary table with the keys of a table: `old` is the key in the
  /// whole store, `new` the key here.
  static func keys(_ id: Int) -> String { "temp.docsync_keys_\(id)" }

  // MARK: - Terms

  /// Returns the SQL term for the value here of a column in a row of the whole store.
  func mapped(_ position: Int, of table: TableSchema, row: String) -> String {
    let term = "\(row).\(quoted(table.columns[position].name))"
    guard case .key(let parent) = table.columns[position].domain else { return term }
    return mapped(term, parent, isText: table.columns[position].affinity == .text)
  }

  /// Returns the SQL term for the key here of a row of the whole store.
  func mappedKey(of table: TableSchema, row: String) -> String {
    mapped("\(row).\(quoted(table.localKey ?? "rowid"))", table.id)
  }

  /// Returns the SQL term for the value in the whole store of a key column in a row here.
  func unmapped(_ term: String, _ table: Int) -> String {
    guard mapped.contains(table) else { return term }
    let keys = Self.keys(table)
    return "coalesce((SELECT old FROM \(keys) WHERE new = \(term)), "
      + "CASE WHEN NOT EXISTS (SELECT 1 FROM \(keys) WHERE old = \(term)) THEN \(term) END)"
  }

  private func mapped(_ term: String, _ table: Int, isText: Bool = false) -> String {
    guard mapped.contains(table) else { return term }
    let new = isText ? "CAST(new AS TEXT)" : "new"
    return "coalesce((SELECT \(new) FROM \(Self.keys(table)) WHERE old = \(term)), \(term))"
  }

  // MARK: - Building

  /// Creates the temporary tables.
  mutating func build() throws {
    let tables = new.inDependencyOrder(new.tables)
    // The keys of the others may contain these.
    for table in tables where table.identity == .surrogate { try map(table) }
    for table in tables where table.identity != .surrogate {
      try notePlainRows(of: table)
      try map(table)
    }
  }

  private mutating func map(_ table: TableSchema) throws {
    guard table.localKey != nil, let here = old.table(wireName: table.wireName),
      here.identityDescription == table.identityDescription, here.localKey != nil
    else { return }
    try database.execute(
      sql: "DROP TABLE IF EXISTS \(Self.keys(table.id)); CREATE TABLE \(Self.keys(table.id)) "
        + "(old INTEGER PRIMARY KEY, new INTEGER NOT NULL UNIQUE)")
    switch table.identity {
    case .surrogate where here.origin == table.origin:
      try withFunctions { try mapSurrogates(table, here) }
    case .columns: try mapDeclared(table, here)
    default: return
    }
    let isEmpty = try Bool.fetchOne(
      database, sql: "SELECT NOT EXISTS (SELECT 1 FROM \(Self.keys(table.id)))")
    if isEmpty == false { mapped.insert(table.id) }
  }

  /// Removes the temporary tables.
  func remove() throws {
    for table in new.tables {
      try database.execute(
        sql: "DROP TABLE IF EXISTS \(Self.keys(table.id)); "
          + "DROP TABLE IF EXISTS \(Self.plainRows(table.id))")
    }
  }

  /// Runs `body` while SQL may call `docsync_first_identity(origin, key)` and
  /// `docsync_first_key(origin, identity)`.
  func withFunctions(_ body: () throws -> Void) throws {
    database.add(function: Self.firstIdentity)
    database.add(function: Self.firstKey)
    defer {
      database.remove(function: Self.firstIdentity)
      database.remove(function: Self.firstKey)
    }
    try body()
  }

  /// Returns the identity of a row that existed before syncing began. It is made of the row's key:
  /// see ``TableAccess/identity(ofLocalKey:)``.
  private static let firstIdentity = DatabaseFunction(
    "docsync_first_identity", argumentCount: 2, pure: true
  ) { values in
    guard let origin = Int64.fromDatabaseValue(values[0]),
      let key = Int64.fromDatabaseValue(values[1])
    else { return nil }
    return Data(
      Bits128(high: UInt64(bitPattern: origin), low: UInt64(bitPattern: key)).bytes)
  }

  private static let firstKey = DatabaseFunction(
    "docsync_first_key", argumentCount: 2, pure: true
  ) { values in
    guard let origin = Int64.fromDatabaseValue(values[0]),
      let identity = Data.fromDatabaseValue(values[1]),
      let bits = Bits128(bytes: Array(identity)), bits.high == UInt64(bitPattern: origin)
    else { return nil }
    return Int64(bitPattern: bits.low)
  }

  private func mapSurrogates(_ table: TableSchema, _ here: TableSchema) throws {
    let whole = "\(Self.attached).\(table.quotedName)"
    let wholeKeys = "\(Self.attached).\(table.identityName)"
    let hereKeys = "main.\(here.identityName)"
    let key = quoted(table.localKey ?? "rowid")
    let hereKey = quoted(here.localKey ?? "rowid")
    let origin = Int64(bitPattern: table.origin)
    try database.execute(
      sql: """
        CREATE TEMP TABLE docsync_here (identity BLOB PRIMARY KEY, key INTEGER) WITHOUT ROWID;
        INSERT OR IGNORE INTO temp.docsync_here (identity, key) SELECT identity, key FROM \(hereKeys);
        CREATE TEMP TABLE docsync_pairs (old INTEGER PRIMARY KEY, new INTEGER, own INTEGER);
        """)
    // `own`: the row has, or in this store would have, an entry of its own.
    try database.execute(
      sql: """
        INSERT INTO temp.docsync_pairs (old, new, own) \
        SELECT s.key, coalesce(h.key, (SELECT t.\(hereKey) FROM main.\(here.quotedName) AS t \
        WHERE t.\(hereKey) = docsync_first_key(?1, s.identity) AND NOT EXISTS \
        (SELECT 1 FROM \(hereKeys) AS x WHERE x.key = t.\(hereKey)))), 1 \
        FROM \(wholeKeys) AS s LEFT JOIN temp.docsync_here AS h ON h.identity = s.identity
        """, arguments: [origin])
    try database.execute(
      sql: """
        INSERT OR IGNORE INTO temp.docsync_pairs (old, new, own) \
        SELECT l.key, h.key, 0 FROM \(hereKeys) AS l \
        JOIN \(whole) AS t ON t.\(key) = l.key LEFT JOIN temp.docsync_here AS h \
        ON h.identity = docsync_first_identity(?1, l.key) \
        WHERE NOT EXISTS (SELECT 1 FROM \(wholeKeys) AS s WHERE s.key = l.key)
        """, arguments: [origin])
    try database.execute(
      sql: """
        INSERT OR IGNORE INTO temp.docsync_pairs (old, new, own) \
        SELECT t.\(key), h.key, 0 FROM temp.docsync_here AS h \
        JOIN \(whole) AS t ON t.\(key) = docsync_first_key(?1, h.identity) \
        WHERE NOT EXISTS (SELECT 1 FROM \(wholeKeys) AS s WHERE s.key = t.\(key))
        """, arguments: [origin])
    try fill(
      table, here,
      taken: """
        EXISTS (SELECT 1 FROM \(hereKeys) AS l WHERE l.key = p.old) \
        OR p.own AND EXISTS (SELECT 1 FROM main.\(here.quotedName) AS t WHERE t.\(hereKey) = p.old) \
        OR p.own AND \(PlainKeys.condition("p.old", in: here.id)) \
        AND EXISTS (SELECT 1 FROM \(whole) AS w WHERE w.\(key) = p.old)
        """,
      sources: [
        ("main.\(here.quotedName)", hereKey), (hereKeys, "key"), (whole, key), (wholeKeys, "key"),
      ])
    try database.execute(sql: "DROP TABLE temp.docsync_here")
  }

  private func mapDeclared(_ table: TableSchema, _ here: TableSchema) throws {
    let whole = "\(Self.attached).\(table.quotedName)"
    let key = quoted(table.localKey ?? "rowid")
    let hereKey = quoted(here.localKey ?? "rowid")
    let match = zip(table.identityPositions, here.identityPositions).map { position, other in
      "t.\(quoted(here.columns[other].name)) = \(mapped(position, of: table, row: "s"))"
    }
    try database.execute(
      sql: """
        CREATE TEMP TABLE docsync_pairs (old INTEGER PRIMARY KEY, new INTEGER, own INTEGER);
        INSERT OR IGNORE INTO temp.docsync_pairs (old, new, own) \
        SELECT s.\(key), t.\(hereKey), 1 FROM \(whole) AS s LEFT JOIN main.\(here.quotedName) AS t \
        ON \(match.joined(separator: " AND ")) AND NOT \(isPlainRow(table, row: "s"))
        """)
    try fill(
      table, here,
      taken: "EXISTS (SELECT 1 FROM main.\(here.quotedName) AS t WHERE t.\(hereKey) = p.old) "
        + "OR \(PlainKeys.condition("p.old", in: here.id))",
      sources: [("main.\(here.quotedName)", hereKey), (whole, key)])
  }

  /// A column that holds keys.
  private typealias Source = (table: String, column: String)

  /// Stores the pairs that differ, and gives free keys to new rows whose key another row has here.
  private func fill(
    _ table: TableSchema, _ here: TableSchema, taken: String, sources: [Source]
  ) throws {
    let keys = Self.keys(table.id)
    try database.execute(
      sql: "INSERT INTO \(keys) (old, new) SELECT old, new FROM temp.docsync_pairs "
        + "WHERE new IS NOT NULL AND new <> old")
    let homeless = try Int64.fetchAll(
      database, sql: "SELECT p.old FROM temp.docsync_pairs AS p WHERE p.new IS NULL AND (\(taken))")
    let plain = try PlainKeys.keys(of: here.id, in: "main", database).union(
      PlainKeys.keys(of: table.id, in: Self.attached, database))
    var greatest: Int64 = 0
    for source in sources + [(keys, "new")] {
      let sql = "SELECT max(\(source.column)) FROM \(source.table)"
      greatest = max(greatest, try Int64.fetchOne(database, sql: sql) ?? 0)
    }
    for schema in ["main", Self.attached]
    where try database.tableExists("sqlite_sequence", in: schema) {
      let sequence = try Int64.fetchOne(
        database, sql: "SELECT seq FROM \(schema).sqlite_sequence WHERE name = ?",
        arguments: [schema == "main" ? here.name : table.name])
      greatest = max(greatest, sequence ?? 0)
    }
    for old in homeless {
      let new: Int64
      while greatest < .max, plain.contains(greatest + 1) { greatest += 1 }
      if greatest < .max {
        greatest += 1
        new = greatest
      } else {
        new = try freeKey(sources + [(keys, "new")], plain)
      }
      try database.execute(
        sql: "INSERT INTO \(keys) (old, new) VALUES (?, ?)", arguments: [old, new])
    }
    try database.execute(sql: "DROP TABLE temp.docsync_pairs")
  }

  /// Draws a free key at random, as SQLite does when the greatest key is taken.
  private func freeKey(_ sources: [Source], _ plain: Set<Int64>) throws -> Int64 {
    while true {
      let candidate = Int64.random(in: 1..<(.max))
      if plain.contains(candidate) { continue }
      let isTaken = try sources.contains { source in
        try Bool.fetchOne(
          database, sql: "SELECT 1 FROM \(source.table) WHERE \(source.column) = ?",
          arguments: [candidate]) ?? false
      }
      if !isTaken { return candidate }
    }
  }
}
