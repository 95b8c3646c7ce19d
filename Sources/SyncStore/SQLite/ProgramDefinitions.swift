import CSQLite
import GRDB
import SyncModel

/// Functions and collations that only the program of a database defines. Without them, SQLite can
/// neither read nor write the tables whose definitions use them.
enum ProgramDefinitions {
  /// The collations that SQLite has.
  static let collations: Set<String> = ["BINARY", "NOCASE", "RTRIM"]

  /// Returns the function or collation that an ordinary table needs and the connection does not
  /// have; `nil` if there is none. Default values may use such functions: no statement of ours
  /// leaves out a column.
  ///
  /// It prepares statements and runs none, so the connection may be one that only reads.
  static func missing(for table: SQLName, _ database: Database) throws -> String? {
    // The connections of a store run no triggers of the database.
    if let connection = database.sqliteConnection { csqlite_set_triggers_enabled(connection, 0) }
    let name = "main.\(quoted(table))"
    let sql = try String.fetchOne(
      database, sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?",
      arguments: [table])
    let columns = try Row.fetchAll(
      database, sql: "PRAGMA main.table_xinfo(\(quoted(table)))"
    ).filter { ($0["hidden"] as Int) == 0 }.map { quoted($0["name"] as SQLName) }
    let values = columns.map { _ in "NULL" }.joined(separator: ", ")
    // SQLite does not read CHECK constraints of a database that it cannot write to.
    let checks = SQLTokens(sql ?? "").conditions.map { "SELECT \($0.text) FROM \(name)" }
    for statement in [
      "DELETE FROM \(name)", "SELECT * FROM \(name)",
      "INSERT INTO \(name) (\(columns.joined(separator: ", "))) VALUES (\(values))",
    ] + checks {
      do {
        _ = try SQLStatement(statement, on: database)
      } catch let error as DatabaseError {
        if let missing = missing(in: error) { return missing }
      }
    }
    let known = Set(
      try Row.fetchAll(database, sql: "PRAGMA collation_list").map {
        ($0["name"] as String).uppercased()
      })
    return try collation(inColumnsOf: table, except: [], among: known, database)
  }

  /// Returns a collation of a column that is not among the known ones: those of SQLite itself. The connection may have
  /// a collation of the same name that compares otherwise.
  static func collation(
    inColumnsOf table: SQLName, except excluded: [SQLName],
    among known: Set<String> = collations, _ database: Database
  ) throws -> String? {
    for row in try Row.fetchAll(database, sql: "PRAGMA main.table_xinfo(\(quoted(table)))") {
      let column: SQLName = row["name"]
      if let name = try collation(of: column, in: table, database),
        !known.contains(name.uppercased()),
        !excluded.contains(where: { $0.isSame(as: column) })
      {
        return name
      }
    }
    return nil
  }

  /// Returns the collation of a column; `nil` if SQLite cannot describe the column.
  static func collation(
    of column: SQLName, in table: SQLName, _ database: Database
  ) throws -> String? {
    var collation: UnsafePointer<CChar>?
    let code = sqlite3_table_column_metadata(
      database.sqliteConnection, "main", table.text, column.text, nil, &collation, nil, nil, nil)
    guard code == SQLITE_OK, let collation else { return nil }
    return String(cString: collation)
  }

  /// Returns the function or collation that is missing according to an error of SQLite; `nil` for
  /// other errors.
  static func missing(in error: DatabaseError) -> String? {
    guard let message = error.message else { return nil }
    for start in ["no such function: ", "unknown function: ", "no such collation sequence: "]
    where message.hasPrefix(start) {
      let name = message.dropFirst(start.count)
      return String(name.hasSuffix("()") ? name.dropLast(2) : name)
    }
    return nil
  }

  /// Returns the ordinary tables of a database.
  static func tables(_ database: Database) throws -> [SQLName] {
    try TableType.all(database)
      .filter { $0.type == .ordinary && !$0.name.begins(with: "sqlite_") }
      .map(\.name).sorted()
  }
}
