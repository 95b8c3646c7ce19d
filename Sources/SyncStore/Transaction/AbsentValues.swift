import GRDB
import SyncModel

/// The values of cells that were never set, since their row came from a device that does not have
/// the column: the column's default.
///
/// A default that is not always the same on all devices, such as the current time, counts as NULL:
/// every device has to show the same value.
final class AbsentValues {
  private let database: Database
  private var known: [Int: [Value]] = [:]

  init(_ database: Database) { self.database = database }

  /// Returns the values of a table's columns, by position.
  func values(of table: TableSchema) throws -> [Value] {
    if let known = known[table.id] { return known }
    let values = try Self.read(table, database)
    known[table.id] = values
    return values
  }

  /// Reads the defaults, as the columns' affinities convert them.
  static func read(_ table: TableSchema, _ database: Database) throws -> [Value] {
    let information = try Row.fetchAll(
      database, sql: "PRAGMA main.table_xinfo(\(quoted(table.name)))")
    return try table.columns.map { column in
      let row = information.first {
        ($0["name"] as SQLName).folded == column.name.folded
      }
      guard let expression = row?["dflt_value"] as String? else { return .null }
      return try value(of: expression, column.affinity, database)
    }
  }

  private static func value(
    of expression: String, _ affinity: ColumnSchema.Affinity, _ database: Database
  ) throws -> Value {
    let tokens = SQLTokens(expression).tokens
    // In a DEFAULT clause, a bare word is a string; elsewhere it is a column.
    if tokens.count == 1, tokens[0].kind == .quotedName || isName(tokens[0]) {
      return .text(tokens[0].text)
    }
    return try addedValue(of: expression, affinity, database)
      ?? computedValue(of: expression, affinity, database)
  }

  /// Returns what SQLite shows for a column that `ALTER TABLE` has added. For `DEFAULT 1.0` in a column without a
  /// type this is the integer 1, other than in rows that are inserted later.
  private static func addedValue(
    of expression: String, _ affinity: ColumnSchema.Affinity, _ database: Database
  ) throws -> Value? {
    let name = table(of: expression, affinity, "added")
    do {
      let isMade = try Bool.fetchOne(
        database, sql: "SELECT EXISTS (SELECT 1 FROM temp.sqlite_master WHERE 'temp.' || name = ?)",
        arguments: [name])
      if isMade != true {
        try database.execute(
          sql: """
            CREATE TABLE \(name) (x INTEGER PRIMARY KEY);
            INSERT INTO \(name) (x) VALUES (1)
            """)
        try database.execute(
          sql: "ALTER TABLE \(name) ADD COLUMN v \(affinity.rawValue) DEFAULT \(expression)")
      }
      return try value(in: name, database)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      // No column with such a default can be added to a table with rows.
      return nil
    }
  }

  /// Returns the value of a default, `NULL` if it is not deterministic.
  private static func computedValue(
    of expression: String, _ affinity: ColumnSchema.Affinity, _ database: Database
  ) throws -> Value {
    let name = table(of: expression, affinity, "default")
    do {
      // In a generated column, SQLite refuses expressions that are not deterministic.
      try database.execute(
        sql: """
          CREATE TABLE IF NOT EXISTS \(name) \
          (x INTEGER PRIMARY KEY, v \(affinity.rawValue) AS (\(expression)));
          INSERT OR IGNORE INTO \(name) (x) VALUES (1)
          """)
      return try value(in: name, database)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      return .null
    }
  }

  /// Returns the name of a table for an expression. It stays: SQLite drops no table while rows are read from
  /// another.
  private static func table(
    of expression: String, _ affinity: ColumnSchema.Affinity, _ use: String
  ) -> String {
    let content = ContentHash(of: Array("\(affinity.rawValue) \(expression)".utf8))
    return "temp.docsync_\(use)_\(RowIdentity(bytes: content.bytes).hexadecimal)"
  }

  private static func value(in table: String, _ database: Database) throws -> Value {
    let statement = try SQLStatement("SELECT v FROM \(table)", on: database)
    guard try statement.step() else { return .null }
    defer { statement.reset() }
    return statement.value(at: 0)
  }

  private static func isName(_ token: SQLTokens.Token) -> Bool {
    let reserved = ["NULL", "TRUE", "FALSE", "CURRENT_TIME", "CURRENT_DATE", "CURRENT_TIMESTAMP"]
    return token.kind == .word && !reserved.contains(token.text.uppercased())
      && token.text.first?.isNumber == false
  }
}
