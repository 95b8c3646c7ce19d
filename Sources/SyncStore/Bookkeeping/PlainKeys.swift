import GRDB
import SyncModel

/// Plain values in columns that stand for keys: values such as 0, '' or 7 that were the key of no
/// row when they were written (`docsync_plain`).
///
/// A plain value is the same on every device. A row in this store can have such a key all the same:
/// applied changes never give one to their rows, but the application may. Then bookkeeping stores
/// the plain value, since the table does not distinguish it from a reference
/// (``KeptRow/Reason/overlaid``).
final class PlainKeys {
  static let definition = TableDefinition(
    "docsync_plain", .document, version: 3,
    columns: [.integer("tbl", "", .table), .integer("key")], constraint: "PRIMARY KEY (tbl, key)",
    isWithoutRowID: true)

  private let database: Database
  private var known: [Int: Set<Int64>] = [:]

  init(_ database: Database) { self.database = database }

  /// Returns the integers that are plain values in columns that stand for keys of a table, and
  /// maybe other integers.
  func keys(of table: Int) throws -> Set<Int64> {
    if let known = known[table] { return known }
    let found = try Int64.fetchSet(
      database, sql: "SELECT key FROM docsync_plain WHERE tbl = ?", arguments: [table])
    known[table] = found
    return found
  }

  /// Returns the same for a table of an attached store, which may be of an earlier build.
  ///
  /// - Parameter schema: The name under which the store is attached.
  static func keys(
    of table: Int, in schema: String, _ database: Database
  ) throws -> Set<Int64> {
    guard try database.tableExists(definition.name, in: schema) else { return [] }
    return try Int64.fetchSet(
      database, sql: "SELECT key FROM \(schema).docsync_plain WHERE tbl = ?", arguments: [table])
  }

  /// Returns the SQL condition that ``keys(of:)`` contains a key.
  static func condition(_ key: String, in table: Int) -> String {
    "\(key) IN (SELECT p.key FROM docsync_plain AS p WHERE p.tbl = \(table))"
  }

  /// Records a plain value, if it is an integer in a column that stands for keys.
  func note(_ value: Value, in column: ColumnSchema) throws {
    guard case .key(let table) = column.domain, let key = column.key(value),
      try !keys(of: table).contains(key)
    else { return }
    known[table]?.insert(key)
    try database.execute(
      sql: "INSERT OR IGNORE INTO docsync_plain (tbl, key) VALUES (?, ?)", arguments: [table, key])
  }

  /// Records the plain values of the rows that exist when syncing begins.
  func noteBeginning(_ schema: StoreSchema) throws {
    for table in schema.tables {
      for column in table.columns {
        guard case .key(let id) = column.domain, let key = schema[id].localKey else { continue }
        let reading = try SQLStatement(
          "SELECT DISTINCT \(quoted(column.name)) FROM \(table.quotedName) AS c "
            + "WHERE \(quoted(column.name)) IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "
            + "\(schema[id].quotedName) AS p WHERE p.\(quoted(key)) = c.\(quoted(column.name)))",
          on: database)
        while try reading.step() { try note(reading.value(at: 0), in: column) }
      }
    }
  }

  /// Empties the cache, after a rollback.
  func forgetMemory() { known = [:] }
}
