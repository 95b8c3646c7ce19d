import GRDB
import SyncModel

/// A table without anything that only the program of its database defines: with its columns and its
/// primary key, but without generated columns, conditions, collations, references and indexes.
enum PlainForm {
  /// Gives a table its plain form, and leaves it empty. Its triggers stay.
  ///
  /// SQLite can drop a table whose functions and collations it does not have, but neither empty nor
  /// copy it.
  static func replace(_ table: SQLName, _ database: Database) throws {
    let statement = try creation(of: table, database)
    let triggers = try String.fetchAll(
      database,
      sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger' AND tbl_name = ? "
        + "COLLATE NOCASE ORDER BY rowid", arguments: [table])
    try database.execute(sql: "DROP TABLE main.\(quoted(table))")
    try database.execute(sql: statement)
    for trigger in triggers { try database.execute(sql: trigger) }
  }

  /// Returns the statement that creates a table in its plain form.
  private static func creation(of table: SQLName, _ database: Database) throws -> String {
    let columns = try Row.fetchAll(database, sql: "PRAGMA main.table_xinfo(\(quoted(table)))")
      .filter { ($0["hidden"] as Int) == 0 }
    var terms = columns.map { column in
      let type: String = column["type"]
      let isSimple = SQLTokens(type).tokens.allSatisfy { token in
        token.kind == .word || (token.kind == .symbol && "(),+-.".contains(token.text))
      }
      return quoted(column["name"] as SQLName) + " " + (isSimple ? type : quoted(SQLName(type)))
        + ((column["notnull"] as Int) != 0 ? " NOT NULL" : "")
        + ((column["dflt_value"] as String?).map {
          " DEFAULT \(ColumnDefault($0).expression)"
        } ?? "")
    }
    let key = columns.filter { ($0["pk"] as Int) > 0 }.sorted {
      ($0["pk"] as Int) < ($1["pk"] as Int)
    }.map { quoted($0["name"] as SQLName) }
    if !key.isEmpty { terms.append("PRIMARY KEY (\(key.joined(separator: ", ")))") }
    let properties = try Row.fetchOne(
      database,
      sql: "SELECT wr, strict FROM pragma_table_list WHERE schema = 'main' AND name = ? "
        + "COLLATE NOCASE", arguments: [table])
    var options: [String] = []
    if properties?["wr"] == 1 { options.append("WITHOUT ROWID") }
    if properties?["strict"] == 1 { options.append("STRICT") }
    return "CREATE TABLE main.\(quoted(table)) (\(terms.joined(separator: ", ")))"
      + (options.isEmpty ? "" : " " + options.joined(separator: ", "))
  }
}
