import GRDB
import SyncModel

/// Plain values in columns that stand for keys: 0, '' or 7, where no row had that key when they were
/// written (`docsync_plain`).
///
/// They have the same value on every device. A row here can have such a key all the same: changes
/// never give one to their rows, but the application may. Then bookkeeping stores the value, since
/// the table does not distinguish it from a reference (``KeptRow/Reason/overlaid``).
final class PlainKeys {
  static let definition = TableDefinition(
    "docsync_plain", .document, version: 3,
    columns: [.integer("tbl", "", .table), .integer("key")], constraint: "PRIMARY KEY (tbl, key)",
    isWithoutRowID: true)

  private let database: Database
  private var known: [Int: Set<Int64>] = [:]

  init(_ database: Database) { self.database = database }

  /// The integers that are plain values somewhere in columns that stand for keys of a table, and
  /// maybe other integers.
  func keys(of table: Int) throws -> Set<Int64> {
    if let known = known[table] { return known }
    let found = try Int64.fetchSet(
      database, sql: "SELECT key FROM docsync_plain WHERE tbl = ?", arguments: [table])
    known[table] = found
    return found
  }

  /// Notes a plain value; ignores others.
  func note(_ value: Value, in column: ColumnSchema) throws {
    guard case .key(let table) = column.domain, let key = Value.key(value),
      try !keys(of: table).contains(key)
    else { return }
    known[table]?.insert(key)
    try database.execute(
      sql: "INSERT OR IGNORE INTO docsync_plain (tbl, key) VALUES (?, ?)", arguments: [table, key])
  }

  /// Notes the plain values of rows that exist before syncing begins.
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

  /// Forgets what was read, after a rollback.
  func forgetMemory() { known = [:] }
}
