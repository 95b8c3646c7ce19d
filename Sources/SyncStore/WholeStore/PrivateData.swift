import GRDB
import SyncModel

/// The data in a copy of a store that must not leave the device: the client's identity, what it has
/// not published, and excluded data, including words of it in an index or a full-text table.
///
/// The space that ``remove()`` frees still holds the data until the file is vacuumed.
struct PrivateData {
  let schema: StoreSchema
  let database: Database

  /// The names of the bookkeeping tables that are a device's own.
  static var tables: [String] { Bookkeeping.tables.filter(\.isDeviceOwn).map(\.name) }

  func remove() throws {
    for table in Self.tables { try database.execute(sql: "DELETE FROM \(table)") }
    for key in MetaTable.Key.deviceOwn { try MetaTable.remove(key, database) }
    // Another device does not run the migration that this one may be running.
    for (name, reason) in schema.leftOut where reason == .schema {
      if case .lock(let release)? = try SchemaTables.entry(of: name, database)?.content {
        try database.execute(sql: release)
      }
    }
    let texts = try FilledVirtualTables(database: database, virtualTables: virtualTables)
    for name in excludedTables {
      if schema.undefined.contains(name) {
        try PlainForm.replace(name, database)
      } else {
        try database.execute(sql: "DELETE FROM \(quoted(name))")
      }
    }
    for table in tablesWithExcludedColumns { try removeColumns(of: table) }
    let withoutKey = try tablesWithRowsWithoutKey()
    guard !withoutKey.isEmpty || hasExcludedData else { return }
    try removeRowsWithoutKey(of: withoutKey, texts)
    try removeStatistics(alsoOf: withoutKey)
    try removeDerivedText(texts)
    try removeUnsuitableTables()
  }

  private var hasExcludedData: Bool {
    !excludedTables.isEmpty || !tablesWithExcludedColumns.isEmpty
  }

  /// The tables whose rows stay on the device, among them those that cannot be synchronized.
  private var excludedTables: [SQLName] { schema.localTables }

  /// Removes the tables that cannot be synchronized, which are empty by now, and the triggers, views
  /// and full-text tables that read or write them: builds that know no such tables open no database
  /// with one.
  private func removeUnsuitableTables() throws {
    var gone = schema.problems.keys.sorted()
    guard !gone.isEmpty else { return }
    while let name = gone.popLast() {
      let objects = try Row.fetchAll(
        database,
        sql: "SELECT type, name, sql FROM main.sqlite_schema WHERE type IN ('trigger', 'view')")
      for object in objects where SQLTokens(object["sql"] as String? ?? "").namesTable(name) {
        let dependent: SQLName = object["name"]
        try database.execute(
          sql: "DROP \(object["type"] as String) IF EXISTS main.\(quoted(dependent))")
        if object["type"] == "view" { gone.append(dependent) }
      }
      for virtual in virtualTables
      where try Self.contentTable(definition(of: virtual))?.isSame(as: name) ?? false {
        try database.execute(sql: "DROP TABLE main.\(quoted(virtual))")
        gone.append(virtual)
      }
      if schema.problems[name] != nil {
        try database.execute(sql: "DROP TABLE main.\(quoted(name))")
      }
    }
  }

  private var tablesWithExcludedColumns: [TableSchema] {
    schema.tables.filter { !$0.excludedColumns.isEmpty }
  }

  private func removeColumns(of table: TableSchema) throws {
    let information = try Row.fetchAll(
      database, sql: "PRAGMA main.table_xinfo(\(quoted(table.name)))")
    let terms = try information.filter {
      ($0["hidden"] as Int) == 0
        && table.excludedColumns.contains(($0["name"] as SQLName).folded)
    }.map {
      "\(quoted($0["name"])) = \(try ColumnDefault($0["dflt_value"]).term(database))"
    }
    guard !terms.isEmpty else { return }
    do {
      try database.execute(
        sql: "UPDATE \(table.quotedName) SET \(terms.joined(separator: ", "))")
    } catch let error as DatabaseError
      where [.SQLITE_CONSTRAINT, .SQLITE_MISMATCH].contains(error.resultCode)
    {
      throw StoreError(
        .badConfiguration, path: "",
        message:
          "The table \(quoted(table.name)) does not accept rows without its excluded columns: "
          + "\(error.message ?? "a condition is violated").",
        remedy: "Give each excluded column a default that the table accepts, or exclude the whole "
          + "table with \(.exclude(table.name)).", detail: error.description)
    }
  }

  private func tablesWithRowsWithoutKey() throws -> [SQLName] {
    try schema.tables.filter { table in
      guard table.canLoseKeys else { return false }
      return try Bool.fetchOne(
        database,
        sql: "SELECT EXISTS (SELECT 1 FROM \(table.quotedName) AS t "
          + "WHERE \(table.isWithoutKey("t")))") == true
    }.map(\.name)
  }

  /// Removes rows with NULL in their key, also from full-text tables.
  ///
  /// - Parameter emptied: The tables that have such rows.
  private func removeRowsWithoutKey(
    of emptied: [SQLName], _ texts: FilledVirtualTables
  ) throws {
    guard !emptied.isEmpty else { return }
    var unknown: Set<SQLName> = []
    for table in schema.tables where emptied.contains(table.name) {
      let isWithoutKey = "DELETE FROM \(table.quotedName) AS t WHERE \(table.isWithoutKey("t"))"
      unknown.formUnion(try texts.remove(by: isWithoutKey, from: table.name))
    }
    for name in virtualTables {
      let sql = try definition(of: name)
      let content = Self.contentTable(sql)
      let isContent = content.map { table in emptied.contains { $0.isSame(as: table) } } ?? false
      if unknown.contains(name) && !isContent {
        try empty(name, sql: sql, content: content)
      } else if isContent || emptied.contains(where: { texts.isFilled(name, by: $0) }) {
        try forgetWords(of: name, sql: sql, content: content)
      }
    }
  }

  private var virtualTables: [SQLName] {
    schema.leftOut.filter { $0.value == .virtualTable }.keys.sorted()
  }

  private func definition(of table: SQLName) throws -> String {
    try String.fetchOne(
      database, sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?",
      arguments: [table]) ?? ""
  }

  /// ANALYZE keeps samples of values.
  private func removeStatistics(alsoOf others: [SQLName]) throws {
    let tables = excludedTables + tablesWithExcludedColumns.map(\.name) + others
    for statistics in ["sqlite_stat1", "sqlite_stat3", "sqlite_stat4"]
    where try database.tableExists(statistics) {
      for table in tables {
        try database.execute(
          sql: "DELETE FROM main.\(statistics) WHERE tbl = ? COLLATE NOCASE", arguments: [table])
      }
    }
  }

  // MARK: - Virtual tables

  /// Rebuilds or empties the virtual tables with words of excluded data. Virtual tables are not
  /// synchronized but are part of the copy, so that a search works at once.
  private func removeDerivedText(_ texts: FilledVirtualTables) throws {
    guard hasExcludedData else { return }
    for name in virtualTables {
      let sql = try definition(of: name)
      let content = Self.contentTable(sql)
      let isConcerned =
        content.map(isPrivate) ?? false
        || texts.isFilled(name) { readsPrivateData($0, of: $1) }
      if isConcerned { try empty(name, sql: sql, content: content) }
    }
  }

  private func isPrivate(_ table: SQLName) -> Bool {
    (excludedTables + tablesWithExcludedColumns.map(\.name)).contains {
      $0.folded == table.folded
    }
  }

  private func readsPrivateData(_ statement: [SQLTokens.Token], of trigger: AppTrigger) -> Bool {
    func names(_ name: SQLName) -> Bool { statement.contains { $0.isName(name) } }
    func isNamed(_ table: SQLName) -> Bool {
      table.folded == trigger.tableName.folded || names(table)
    }
    return excludedTables.contains(where: isNamed)
      || tablesWithExcludedColumns.contains { table in
        isNamed(table.name) && table.excludedColumns.contains(where: names)
      }
  }

  /// Returns the table whose rows a full-text table indexes, by its option `content`; empty if the
  /// full-text table stores no content, `nil` if it stores its own.
  static func contentTable(_ sql: String) -> SQLName? {
    let tokens = SQLTokens(sql).tokens
    for position in tokens.indices.dropLast(2)
    where tokens[position].isWord("CONTENT") && tokens[position + 1].isSymbol("=") {
      return tokens[position + 2].name
    }
    return nil
  }

  /// Removes everything from a virtual table, or what its content table does not contain any more.
  private func empty(_ name: SQLName, sql: String, content: SQLName?) throws {
    guard let module = Self.fullTextModule(sql) else {
      return try database.execute(sql: "DELETE FROM \(quoted(name))")
    }
    if content == "", !module.begins(with: "fts5") {
      // It cannot delete.
      try database.execute(sql: "DROP TABLE \(quoted(name))")
      return try database.execute(sql: sql)
    }
    if content == nil { try database.execute(sql: "DELETE FROM \(quoted(name))") }
    try run(content == "" ? "delete-all" : "rebuild", on: name)
  }

  /// Removes the words of rows that were deleted from a full-text table: deleting leaves them where
  /// they are until they are merged.
  private func forgetWords(of name: SQLName, sql: String, content: SQLName?) throws {
    guard Self.fullTextModule(sql) != nil else { return }
    try run(content == "" ? "optimize" : "rebuild", on: name)
  }

  private func run(_ command: String, on table: SQLName) throws {
    try database.execute(
      sql: "INSERT INTO \(quoted(table)) (\(quoted(table))) VALUES (?)", arguments: [command])
  }

  /// Returns the module of a full-text table; `nil` for other virtual tables.
  private static func fullTextModule(_ sql: String) -> SQLName? {
    let words = SQLTokens(sql).tokens
    let module = words.firstIndex { $0.isWord("USING") }.map { words[$0 + 1].name }
    return module.flatMap { $0.begins(with: "fts") ? $0 : nil }
  }
}
