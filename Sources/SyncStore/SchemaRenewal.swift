import GRDB
import SyncModel

/// Brings bookkeeping in line with a schema that the application changed.
///
/// What was written to new tables and columns before there were triggers for
/// them is logged as if it had been written at the beginning of time: any
/// edit that was captured is worth more than what may be the default of a
/// migration that every device makes.
struct SchemaRenewal {
  let schema: StoreSchema
  let path: String

  /// Whether there is anything to do. Asked first, so that opening a store
  /// writes nothing.
  func isNeeded(_ database: Database) throws -> Bool {
    let registered = try Bookkeeping.registered(database)
    for table in schema.tables {
      guard registered[table.name]?.columns == table.columns.map(\.name),
        try triggers(of: table, database) == Set(CaptureTriggers(table: table).triggers)
      else { return true }
    }
    return registered.count != schema.tables.count
  }

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
    for table in schema.tables {
      guard let known = registered[table.name] else {
        try SetUpChecks(table: table, path: path).run(database)
        try Bookkeeping.register(table, database)
        try logRows(of: table, database)
        continue
      }
      if known.columns != table.columns.map(\.name) {
        try Bookkeeping.register(table, database)
        try logValues(of: table, from: known.columns.count, database)
      }
      try renewTriggers(of: table, database)
    }
  }

  private func triggers(of table: TableSchema, _ database: Database) throws -> Set<String> {
    try String.fetchSet(
      database,
      sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger' AND name GLOB ?",
      arguments: ["docsync_\(table.id)_*"])
  }

  private func renewTriggers(of table: TableSchema, _ database: Database) throws {
    let wanted = CaptureTriggers(table: table)
    guard try triggers(of: table, database) != Set(wanted.triggers) else { return }
    for statement in wanted.removal { try database.execute(sql: statement) }
    let columns = try database.columns(in: table.logName).map(\.name)
    for column in wanted.furtherColumns where !columns.contains(column) {
      try database.execute(sql: "ALTER TABLE \(table.logName) ADD COLUMN \(column)")
    }
    for statement in wanted.triggers { try database.execute(sql: statement) }
  }

  // MARK: - What was written before there were triggers

  /// One millisecond after 1970, as a Julian day.
  private static let beginning = "2440587.5 + 1.0 / 86400000"

  private func logRows(of table: TableSchema, _ database: Database) throws {
    guard let key = table.localKey, table.identity == .surrogate else {
      let keys = table.keyColumns.map(quoted).joined(separator: ", ")
      return try database.execute(
        sql: """
          INSERT INTO \(table.logName) \
          (op, at, \(table.keyColumns.indices.map { "k\($0)" }.joined(separator: ", "))) \
          SELECT \(CaptureTriggers.Entry.insert.rawValue), \(Self.beginning), \(keys) \
          FROM \(table.quotedName)
          """)
    }
    // Rows that a migration makes alike on every device are one row.
    let names = [key] + table.columns.map(\.name)
    let reading = try SQLStatement(
      "SELECT \(names.map(quoted).joined(separator: ", ")) FROM \(table.quotedName)", on: database)
    let writing = try SQLStatement(
      "INSERT INTO \(table.logName) (op, at, k0, identity) "
        + "VALUES (\(CaptureTriggers.Entry.insert.rawValue), \(Self.beginning), ?, ?)", on: database
    )
    while try reading.step() {
      let content = IdentityEncoding.encode(
        [.text(table.name)] + names.indices.map { reading.value(at: $0) })
      writing.bind(reading.integer(at: 0), at: 1)
      writing.bind(blob: Array(ContentHash(of: content.bytes).bytes.prefix(16)), at: 2)
      try writing.run()
    }
  }

  /// Logs the rows in which new columns have another value than their default.
  private func logValues(of table: TableSchema, from first: Int, _ database: Database) throws {
    let information = try Row.fetchAll(
      database, sql: "PRAGMA main.table_xinfo(\(quoted(table.name)))")
    let columns = table.columns[first...]
    // A default counts as what the column's affinity makes of it.
    let declarations = columns.map { column in
      let row = information.first { ($0["name"] as String) == column.name }
      let value = row?["dflt_value"] as String?
      return "\(quoted(column.name)) \(column.affinity.rawValue) DEFAULT (\(value ?? "NULL"))"
    }
    try database.execute(
      sql: """
        DROP TABLE IF EXISTS temp.docsync_default;
        CREATE TABLE temp.docsync_default (\(declarations.joined(separator: ", ")));
        INSERT INTO temp.docsync_default DEFAULT VALUES
        """)
    for (position, column) in zip(columns.indices, columns) {
      let name = quoted(column.name)
      let value = "(SELECT \(name) FROM temp.docsync_default)"
      try database.execute(
        sql: """
          INSERT INTO \(table.logName) \
          (op, at, mask, \(table.keyColumns.indices.map { "k\($0)" }.joined(separator: ", "))) \
          SELECT \(CaptureTriggers.Entry.update.rawValue), \(Self.beginning), \
          \(literal(ColumnSet(position).mask)), \
          \(table.keyColumns.map(quoted).joined(separator: ", ")) FROM \(table.quotedName) \
          WHERE \(name) COLLATE BINARY IS NOT \(value) OR typeof(\(name)) <> typeof(\(value))
          """)
    }
    try database.execute(sql: "DROP TABLE temp.docsync_default")
  }
}
