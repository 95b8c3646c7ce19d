import GRDB
import SyncModel

/// Brings bookkeeping in line with a schema that the application changed.
struct SchemaRenewal {
  let schema: StoreSchema
  let path: String

  /// Registers new tables and columns and makes triggers anew that are
  /// missing or out of date. Idempotent.
  func run(_ database: Database) throws {
    let registered = try Bookkeeping.registered(database)
    for name in registered.keys.sorted() where schema.table(named: name) == nil {
      throw StoreError(
        .unsupportedSchema, path: path,
        message: "The synchronized table \(quoted(name)) has gone.",
        remedy: "Bring it back under its name; dropping and renaming synchronized tables is not "
          + "supported yet.")
    }
    for var table in schema.tables {
      if let known = registered[table.name] {
        if known.columns != table.columns.map(\.name) { try Bookkeeping.register(table, database) }
      } else {
        // The rows that are there already came before their triggers.
        table.hasUnstampedRows = try hasRows(table, database)
        try Bookkeeping.register(table, database)
        continue
      }
      try renewTriggers(of: table, database)
    }
  }

  private func renewTriggers(of table: TableSchema, _ database: Database) throws {
    let triggers = CaptureTriggers(table: table)
    let present = try String.fetchSet(
      database,
      sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger' AND name GLOB ?",
      arguments: ["docsync_\(table.id)_*"])
    let wanted = triggers.triggers
    guard present != Set(wanted) else { return }
    for statement in triggers.removal + wanted { try database.execute(sql: statement) }
  }

  private func hasRows(_ table: TableSchema, _ database: Database) throws -> Bool {
    try Bool.fetchOne(
      database, sql: "SELECT EXISTS (SELECT 1 FROM \(table.quotedName))") ?? false
  }
}
