import GRDB
import SyncModel

/// The registered tables: the schema as bookkeeping records it.
enum TableRegistry {
  /// The synchronized tables, with their names in change sets and how their rows are identified.
  static let tables = TableDefinition(
    "docsync_table", .document,
    columns: [
      .integer("id", "PRIMARY KEY"), .text("name", "NOT NULL"), .text("wire", "NOT NULL"),
      .text("identity", "NOT NULL"), .integer("unstamped", "NOT NULL"),
      .integer("origin", "NOT NULL"),
    ])

  /// The columns of the tables, by bit, each with the table whose keys it holds.
  static let columns = TableDefinition(
    "docsync_column", .document,
    columns: [
      .integer("tbl"), .integer("bit", "", .position), .text("name", "NOT NULL"),
      .text("wire", "NOT NULL"), .integer("refers", isOptional: true),
    ], constraint: "PRIMARY KEY (tbl, bit)", isWithoutRowID: true)

  /// Returns the recorded schema of the tables that still exist, by their present names.
  ///
  /// It finds a renamed table by its triggers, which SQLite keeps with it, and a remade table,
  /// which has lost them, by its name. ``RenamedTables`` finds those that are both.
  static func registered(_ database: Database) throws -> [SQLName: SchemaReader.Registered] {
    let watched = try NamesTrigger.contents(database)
    let present = try SQLName.fetchAll(
      database, sql: "SELECT name FROM main.sqlite_schema WHERE type = 'table'")
    var names = Dictionary(
      present.map { ($0.folded, $0) }, uniquingKeysWith: { first, _ in first })
    for content in watched.values { names[content.table.folded] = nil }
    let excluded = try ExcludedNames.read(database).columns
    var result: [SQLName: SchemaReader.Registered] = [:]
    var missing: [SchemaReader.Registered] = []
    for row in try StoredRow.fetchAll(database, sql: "SELECT * FROM docsync_table ORDER BY id") {
      let id: Int = try row["id"]
      let stored: SQLName = try row["name"]
      let name = watched[id]?.table ?? names[stored.folded]
      if let name { names[name.folded] = nil }
      let wireName: SQLName = try row["wire"]
      let storedExcluded = excluded[wireName] ?? []
      var table = SchemaReader.Registered(
        id: id, wireName: wireName, identity: try row["identity"], storedName: stored,
        excluded: storedExcluded, storedExcluded: storedExcluded,
        isWatched: watched[id] != nil, hasUnstampedRows: try row["unstamped"],
        origin: UInt64(bitPattern: try row["origin"] as Int64))
      for column in try StoredRow.fetchAll(
        database, sql: "SELECT * FROM docsync_column WHERE tbl = ? ORDER BY bit", arguments: [id])
      {
        table.storedColumns.append(try column["name"])
        table.wireColumns.append(try column["wire"])
        table.references.append(try column["refers"])
      }
      table.columns = table.storedColumns
      guard let name else {
        missing.append(table)
        continue
      }
      if let content = watched[id] {
        table.excluded = content.excluded
        if content.columns.count == table.columns.count { table.columns = content.columns }
        table.hasOtherColumns = try !isSame(content, as: name, database)
      }
      result[name] = table
    }
    guard !missing.isEmpty else { return result }
    var renamed = try RenamedTables(database, known: result, missing: missing)
    renamed.find()
    return renamed.known
  }

  /// Returns whether those of the columns that a table still has are as they were: in their former
  /// order, each once, with the same definitions. If not, a column was dropped, and another one has
  /// its name.
  private static func isSame(
    _ content: NamesTrigger.Content, as table: SQLName, _ database: Database
  ) throws -> Bool {
    let present = try Row.fetchAll(
      database, sql: "PRAGMA main.table_xinfo(\(quoted(table)))")
    let places = Dictionary(
      present.enumerated().map { (($1["name"] as SQLName).folded, $0) }, uniquingKeysWith: min)
    let excluded = Set(content.excluded.map(\.folded))
    var last = -1
    for bit in content.order where content.columns.indices.contains(bit) {
      let name = content.columns[bit].folded
      if excluded.contains(name) { return false }
      guard let place = places[name] else { continue }
      guard place > last else { return false }
      last = place
      guard content.definitions.indices.contains(bit) else { continue }
      let row = present[place]
      let definition = NamesTrigger.definition(
        affinity: SchemaReader.affinity(of: row["type"]), isNotNull: row["notnull"] != 0,
        default: row["dflt_value"],
        collation: try ProgramDefinitions.collation(of: row["name"], in: table, database))
      if definition != content.definitions[bit] { return false }
    }
    return true
  }

  /// What is recorded about the tables: ``registered(_:)`` depends on nothing else than this and the
  /// schema, if bookkeeping is in line with the schema.
  struct Content: Equatable {
    fileprivate var tables: [[DatabaseValue]]
    fileprivate var columns: [[DatabaseValue]]
    fileprivate var excluded: [UInt8]?
  }

  /// Returns what is recorded about the tables, to be compared with an earlier state.
  static func content(_ database: Database) throws -> Content {
    func values(_ sql: String) throws -> [[DatabaseValue]] {
      try Row.fetchAll(database.cachedStatement(sql: sql)).map { Array($0.databaseValues) }
    }
    return Content(
      tables: try values("SELECT * FROM docsync_table ORDER BY id"),
      columns: try values("SELECT * FROM docsync_column ORDER BY tbl, bit"),
      excluded: try MetaTable.read(.excludedNames, database))
  }

  /// Returns the numbers of all registered tables, including those that no longer exist and are
  /// still recorded.
  static func registeredIDs(_ database: Database) throws -> Set<Int> {
    try Int.fetchSet(database, sql: "SELECT id FROM docsync_table")
  }

  /// Returns the name of a table in change sets, or `nil` if it is not registered.
  private static func wireName(of id: Int, _ database: Database) throws -> SQLName? {
    try SQLName.fetchOne(
      database, sql: "SELECT wire FROM docsync_table WHERE id = ?", arguments: [id])
  }

  /// Returns the recorded names of a table and of its columns; `nil` and none if it is not
  /// registered.
  static func names(
    of id: Int, _ database: Database
  ) throws -> (table: SQLName?, columns: [SQLName]) {
    (
      try SQLName.fetchOne(
        database, sql: "SELECT name FROM docsync_table WHERE id = ?", arguments: [id]),
      try SQLName.fetchAll(
        database, sql: "SELECT name FROM docsync_column WHERE tbl = ? ORDER BY bit",
        arguments: [id])
    )
  }

  /// Records a table and creates its bookkeeping.
  static func register(_ table: TableSchema, _ database: Database) throws {
    try record(table, database)
    for statement in Bookkeeping.creation(for: table) { try database.execute(sql: statement) }
  }

  /// Records a table as it is now.
  static func record(_ table: TableSchema, _ database: Database) throws {
    try database.execute(
      sql: """
        INSERT OR REPLACE INTO docsync_table (id, name, wire, identity, unstamped, origin) \
        VALUES (?, ?, ?, ?, ?, ?)
        """,
      arguments: [
        table.id, table.name, table.wireName, table.identityDescription, table.hasUnstampedRows,
        Int64(bitPattern: table.origin),
      ])
    try database.execute(
      sql: "DELETE FROM docsync_column WHERE tbl = ?", arguments: [table.id])
    for (bit, column) in table.columns.enumerated() {
      try database.execute(
        sql: "INSERT INTO docsync_column (tbl, bit, name, wire, refers) VALUES (?, ?, ?, ?, ?)",
        arguments: [table.id, bit, column.name, column.wireName, column.referredTable])
    }
    try ExcludedNames.note(table.renamedExclusions, of: table.wireName, database)
  }

  /// Removes a table that no longer exists, with all bookkeeping of its rows. The conflict journal
  /// still names it.
  static func forget(_ id: Int, _ database: Database) throws {
    try forgetConflicts(of: id, database)
    var remade = try RemadeTables.read(database)
    remade.sealed?[id] = nil
    if remade.noticed.removeValue(forKey: id) != nil { try remade.write(database) }
    let name = try wireName(of: id, database)
    if let name { try ExcludedNames.note([], of: name, database) }
    try BaseValues.remove(of: id, database)
    if let name { try AsideValues.removeAll(in: name, except: [], database) }
    try remove(id, database)
  }

  /// Removes a table's bookkeeping that describes the document, its log and its triggers. Records
  /// that its rows are lost.
  static func remove(_ id: Int, _ database: Database) throws {
    if let name = try wireName(of: id, database) { try LostNames.note(nil, of: name, database) }
    try database.execute(
      sql:
        "DELETE FROM docsync_table WHERE id = \(id); DELETE FROM docsync_column WHERE tbl = \(id)"
    )
    for table in Bookkeeping.tables where table.scope == .document {
      guard let rows = table.belonging(to: id) else { continue }
      try database.execute(sql: "DELETE FROM \(table.name) WHERE \(rows)")
    }
    try database.execute(
      sql: """
        DROP TABLE IF EXISTS main.docsync_log_\(id); DROP TABLE IF EXISTS main.docsync_id_\(id);
        DROP TABLE IF EXISTS main.docsync_stamps_\(id)
        """)
    try removeTriggers(of: id, database)
  }

  /// Removes a table's triggers, so that no more edits are captured.
  static func removeTriggers(of id: Int, _ database: Database) throws {
    for trigger in try triggers(of: id, database) {
      try database.execute(sql: "DROP TRIGGER main.\(quoted(trigger))")
    }
  }

  private static func triggers(of id: Int, _ database: Database) throws -> [SQLName] {
    try SQLName.fetchAll(
      database,
      sql: "SELECT name FROM main.sqlite_schema WHERE type = 'trigger' AND name GLOB ?",
      arguments: ["docsync_\(id)_*"])
  }
}

extension TableRegistry {
  private static func forgetConflicts(of id: Int, _ database: Database) throws {
    guard
      try ConflictTable.names(id, database),
      let table = try StoredRow.fetchOne(
        database, sql: "SELECT name, wire, identity FROM docsync_table WHERE id = ?",
        arguments: [id])
    else { return }
    var former = try FormerNames.read(database)
    let columns = try StoredRow.fetchAll(
      database, sql: "SELECT bit, name, wire FROM docsync_column WHERE tbl = ?", arguments: [id])
    let names = try columns.map { row in
      (try row["bit"] as Int, FormerNames.Column(name: try row["name"], wireName: try row["wire"]))
    }
    let number = former.note(
      FormerNames.Table(
        name: try table["name"], wireName: try table["wire"], identity: try table["identity"],
        columns: Dictionary(names) { first, _ in first }
          .merging(former.columns[id] ?? [:]) { here, _ in here }))
    former.columns[id] = nil
    try former.write(database)
    try ConflictTable.rename(id, toGone: number, database)
  }
}

extension ColumnSchema {
  /// The number of the table whose keys the column holds.
  var referredTable: Int? {
    guard case .key(let table) = domain else { return nil }
    return table
  }
}
