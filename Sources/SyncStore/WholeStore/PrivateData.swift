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
    for name in excludedTables { try database.execute(sql: "DELETE FROM \(quoted(name))") }
    for table in tablesWithExcludedColumns { try removeColumns(of: table) }
    try removeStatistics(of: try removeRowsWithoutKey())
    try removeDerivedText()
  }

  private var excludedTables: [SQLName] {
    schema.leftOut.filter { $0.value == "excluded" }.keys.sorted()
  }

  private var tablesWithExcludedColumns: [TableSchema] {
    schema.tables.filter { !$0.excludedColumns.isEmpty }
  }

  private func removeColumns(of table: TableSchema) throws {
    let information = try Row.fetchAll(
      database, sql: "PRAGMA main.table_xinfo(\(quoted(table.name)))")
    let terms = information.filter {
      ($0["hidden"] as Int) == 0
        && table.excludedColumns.contains(($0["name"] as SQLName).folded)
    }.map {
      "\(quoted($0["name"])) = \(($0["dflt_value"] as String?).map { "(\($0))" } ?? "NULL")"
    }
    guard !terms.isEmpty else { return }
    try database.execute(
      sql: "UPDATE \(table.quotedName) SET \(terms.joined(separator: ", "))")
  }

  /// Removes rows with NULL in their key, also from full-text tables that index them where they are.
  /// Returns the names of the tables that had such rows.
  private func removeRowsWithoutKey() throws -> Set<SQLName> {
    var emptied: Set<SQLName> = []
    for table in schema.tables where table.canLoseKeys {
      try database.execute(
        sql: "DELETE FROM \(table.quotedName) AS t WHERE \(table.isWithoutKey("t"))")
      if database.changesCount > 0 { emptied.insert(table.name.folded) }
    }
    guard !emptied.isEmpty else { return [] }
    for name in virtualTables {
      let sql = try definition(of: name)
      guard let content = Self.contentTable(sql), emptied.contains(content.folded) else { continue }
      try empty(name, sql: sql, content: content)
    }
    return emptied
  }

  private var virtualTables: [SQLName] {
    schema.leftOut.filter { $0.value == "virtual table" }.keys.sorted()
  }

  private func definition(of table: SQLName) throws -> String {
    try String.fetchOne(
      database, sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?",
      arguments: [table]) ?? ""
  }

  /// ANALYZE keeps samples of values.
  ///
  /// - Parameter emptied: Tables of which rows were removed.
  private func removeStatistics(of emptied: Set<SQLName>) throws {
    let tables = excludedTables + tablesWithExcludedColumns.map(\.name) + emptied
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
  private func removeDerivedText() throws {
    guard !excludedTables.isEmpty || !tablesWithExcludedColumns.isEmpty else { return }
    let triggers = try String.fetchAll(
      database, sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger'"
    ).compactMap(AppTrigger.init)
    for name in virtualTables {
      let sql = try definition(of: name)
      let content = Self.contentTable(sql)
      let isConcerned =
        content.map(isPrivate) ?? false
        || triggers.contains { trigger in
          trigger.statements(writingTo: name).contains { readsPrivateData($0, of: trigger) }
        }
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

  private func empty(_ name: SQLName, sql: String, content: SQLName?) throws {
    let words = SQLTokens(sql).tokens
    let module = words.firstIndex { $0.isWord("USING") }.map { words[$0 + 1].name }
    guard let module, module.begins(with: "fts") else {
      return try database.execute(sql: "DELETE FROM \(quoted(name))")
    }
    let isContentless = content == ""
    if content == nil { try database.execute(sql: "DELETE FROM \(quoted(name))") }
    // Deleting leaves the words where they are until they are merged.
    try database.execute(
      sql: "INSERT INTO \(quoted(name)) (\(quoted(name))) VALUES (?)",
      arguments: [isContentless ? "delete-all" : "rebuild"])
  }
}
