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
    if let text = ColumnDefault(expression).text {
      return Value.text(text).converted(to: affinity)
    }
    // Each expression has a table of its own, which stays: SQLite drops no table while rows are
    // read from another.
    let content = ContentHash(of: Array("\(affinity.rawValue) \(expression)".utf8))
    let name = "temp.docsync_default_\(RowIdentity(bytes: content.bytes).hexadecimal)"
    do {
      // In a generated column, SQLite refuses expressions that are not deterministic.
      try database.execute(
        sql: """
          CREATE TABLE IF NOT EXISTS \(name) \
          (x INTEGER PRIMARY KEY, v \(affinity.rawValue) AS (\(expression)));
          INSERT OR IGNORE INTO \(name) (x) VALUES (1)
          """)
      let statement = try SQLStatement("SELECT v FROM \(name)", on: database)
      guard try statement.step() else { return .null }
      defer { statement.reset() }
      return statement.value(at: 0)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      return .null
    }
  }
}
