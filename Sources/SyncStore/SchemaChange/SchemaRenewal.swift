import GRDB
import SyncModel

/// The renewal of bookkeeping after the application has changed the schema.
///
/// It logs values that were written to new tables and columns before these had triggers, as if they
/// had been written at the beginning of time: they may be the defaults of a migration that every
/// device makes, so any captured edit wins over them.
struct SchemaRenewal {
  let schema: StoreSchema
  let path: String

  /// Returns whether there is anything to do. Call it before ``run(_:)``, so that opening a store
  /// writes nothing.
  ///
  /// - Parameter earlier: Tables whose triggers do not matter, since an earlier build made them.
  func isNeeded(_ database: Database, exceptTriggersOf earlier: Set<Int> = []) throws -> Bool {
    let registered = try TableRegistry.registered(database)
    for table in schema.tables {
      guard let known = registered[table.name], known.id == table.id,
        known.storedName == table.name, known.storedColumns == table.columns.map(\.name),
        known.references == table.columns.map(\.referredTable),
        known.storedExcluded == table.renamedExclusions,
        try earlier.contains(table.id)
          || triggers(of: table, database)
            == Set(CaptureTriggers(table: table).triggers.map(SQLText.init))
      else { return true }
    }
    return try !schema.suspended.isEmpty
      || TableRegistry.registeredIDs(database) != Set(schema.tables.map(\.id))
      || hasFormerReferences(database)
  }

  /// Returns whether there are other tables than before, tables of other names, or tables that were made
  /// again.
  func changesTables(_ database: Database) throws -> Bool {
    let registered = try TableRegistry.registered(database)
    return try schema.tables.contains { table in
      guard let known = registered[table.name], known.id == table.id else { return true }
      return !known.isLogged || known.storedName != table.name
    } || TableRegistry.registeredIDs(database) != Set(schema.tables.map(\.id))
  }

  /// Returns whether references of rows that are not shown are noted under a name that no foreign
  /// key has any more. Nothing else shows that a surrogate key has been renamed.
  private func hasFormerReferences(_ database: Database) throws -> Bool {
    let keys = schema.tables.flatMap(\.foreignKeys)
    let present = Set(keys.map { [$0.columnsName, "\($0.parent)"] })
    return try KeptRows.referenceNames(database).contains { parent, columns in
      !present.contains([columns, "\(parent)"])
    }
  }

  /// The tables for which the edits captured before a change matter.
  struct Concerned {
    /// New tables of which rows are to be named before they are logged (``NewRowNames``).
    var new: [Int] = []
    /// Tables that a program remade; they had no triggers for a while.
    var remade: [Int] = []
    /// The columns of these tables that refer to other rows than before, or to rows only now.
    var redirected: [Int: Set<Int>] = [:]
    /// Tables whose deleted rows retain their cells from now on, although the log lacks them.
    var lackingDeletedCells: Set<Int> = []
    /// The former forms of the keys of tables whose keys have other forms now.
    var formerKeyForms: [Int: [KeyForm]] = [:]
  }

  /// Registers new tables and columns, forgets dropped ones, and renews missing or outdated
  /// triggers. Idempotent. Throws `unsupportedSchema` or `badConfiguration`, and changes nothing, if
  /// a table was synchronized and cannot be at present.
  func run(_ database: Database) throws -> Concerned {
    try schema.checkNoneSuspended(path)
    let registered = try TableRegistry.registered(database)
    let gone = try TableRegistry.registeredIDs(database).subtracting(schema.tables.map(\.id))
    for id in gone.sorted() { try TableRegistry.forget(id, database) }
    var concerned = Concerned()
    for table in schema.tables {
      guard let known = registered[table.name], known.id == table.id else {
        try SetUpChecks(table: table, path: path).run(database)
        try TableRegistry.register(table, database)
        if table.identity == .surrogate {
          concerned.new.append(table.id)
        } else {
          try logRows(of: table, database)
        }
        // A table of that name whose rows were identified in another way has no rows to fetch.
        if registered[table.name] != nil { try LostNames.forget(table.wireName, database) }
        continue
      }
      let columns = ColumnChange(from: known, to: table)
      let recorded = try recordedColumns(of: table, columns, database)
      if !columns.isNone {
        try dropTriggers(of: table, database)
        try columns.run(database)
      }
      try TableRegistry.record(table, database)
      // A comparison tells which rows of a remade table are not new.
      if known.isLogged {
        try logValues(of: columns.added, table, database)
        try logReferences(of: columns.redirected, table, database)
      }
      try renewTriggers(of: table, database)
      try restoreTexts(of: table, database)
      let missing = Set(table.recordedColumns).subtracting(recorded)
      if table.keepsDeleted, !missing.subtracting(columns.added).isEmpty {
        concerned.lackingDeletedCells.insert(table.id)
      }
      try fillLog(of: columns.added, table, database)
      try forgetAside(of: table, database)
      if !known.isLogged {
        concerned.remade.append(table.id)
        concerned.redirected[table.id] = Set(columns.redirected)
      }
    }
    var forms = try KeyForms.read(database) ?? KeyForms()
    concerned.formerKeyForms = forms.update(schema.tables)
    try forms.write(database)
    return concerned
  }

  private func triggers(of table: TableSchema, _ database: Database) throws -> Set<SQLText> {
    try SQLText.fetchSet(
      database,
      sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger' AND name GLOB ?",
      arguments: ["docsync_\(table.id)_*"])
  }

  private func dropTriggers(of table: TableSchema, _ database: Database) throws {
    for statement in CaptureTriggers(table: table).removal { try database.execute(sql: statement) }
  }

  /// Returns the columns whose values in deleted rows the log records until the triggers are
  /// renewed.
  ///
  /// The trigger lists them. The log itself may have more columns, which a policy required at some
  /// time, in this store or in the one of which it is a copy.
  private func recordedColumns(
    of table: TableSchema, _ change: ColumnChange, _ database: Database
  ) throws -> Set<Int> {
    let trigger = try SQLText.fetchSet(
      database,
      sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger' AND name = ?",
      arguments: [CaptureTriggers(table: table).deleteTriggerName]
    ).first
    let names =
      try trigger.map { CaptureTriggers(table: table).columnsLogged(by: $0.text) }
      ?? database.columns(in: table.logName).map(\.name)
    return Set(
      change.places.enumerated().compactMap { former, place in
        names.contains(CaptureTriggers.Column.old(former)) ? place : nil
      })
  }

  /// Renews missing or outdated triggers.
  private func renewTriggers(of table: TableSchema, _ database: Database) throws {
    let wanted = CaptureTriggers(table: table)
    guard try triggers(of: table, database) != Set(wanted.triggers.map(SQLText.init)) else {
      return
    }
    for statement in wanted.removal { try database.execute(sql: statement) }
    let columns = try database.columns(in: table.logName).map(\.name)
    for column in wanted.furtherColumns where !columns.contains(column) {
      try database.execute(sql: "ALTER TABLE \(table.logName) ADD COLUMN \(column)")
    }
    for statement in wanted.triggers { try database.execute(sql: statement) }
  }

  /// Makes texts of the keys that SQLite converted to numbers before the triggers took that into
  /// account: see ``CaptureTriggers``.
  private func restoreTexts(of table: TableSchema, _ database: Database) throws {
    for (index, name) in table.keyColumns.enumerated()
    where CaptureTriggers(table: table).canConvert([name]) && table.affinity(of: name) == .text {
      for column in ["k\(index)", CaptureTriggers.Column.destination(index)] {
        try database.execute(
          sql: "UPDATE \(table.logName) SET \(column) = CAST(\(column) AS TEXT) "
            + "WHERE typeof(\(column)) IN ('integer', 'real')")
      }
    }
  }

  /// Adds the values that new columns would have had to the deletions in the log.
  private func fillLog(of columns: [Int], _ table: TableSchema, _ database: Database) throws {
    guard columns.contains(where: table.recordedColumns.contains) else { return }
    let absent = try AbsentValues.read(table, database)
    for position in columns where table.recordedColumns.contains(position) {
      let statement = try SQLStatement(
        "UPDATE \(table.logName) SET \(CaptureTriggers.Column.old(position)) = ?", on: database)
      statement.bind(absent[position], at: 1)
      try statement.run()
    }
  }

  /// Forgets values that were set aside for columns that are dropped or synchronized by now.
  private func forgetAside(of table: TableSchema, _ database: Database) throws {
    try AsideValues.removeAll(
      in: table.wireName, except: table.excludedColumns.sorted(), database)
  }

  // MARK: - Values written before there were triggers

  /// One millisecond after the start of 1970, as a Julian day.
  static let beginning = "2440587.5 + 1.0 / 86400000"

  private func logRows(of table: TableSchema, _ database: Database) throws {
    let keys = table.keyColumns.map(quoted).joined(separator: ", ")
    try database.execute(
      sql: """
        INSERT INTO \(table.logName) \
        (op, at, \(table.keyColumns.indices.map { "k\($0)" }.joined(separator: ", "))) \
        SELECT \(CaptureTriggers.Entry.insert.rawValue), \(Self.beginning), \(keys) \
        FROM \(table.quotedName)
        """)
  }

  /// Returns the identity of a row that a migration has made, by its key and its values
  /// (``NewRowNames``).
  static func identity(of values: [Value], in table: TableSchema) -> RowIdentity {
    let content = IdentityEncoding.encode([.text(table.wireName.text)] + values)
    return RowIdentity(bytes: Array(ContentHash(of: content.bytes).bytes.prefix(16)))
  }

  /// Logs the rows in which new columns have another value than their default.
  private func logValues(
    of columns: [Int], _ table: TableSchema, _ database: Database
  ) throws {
    guard !columns.isEmpty else { return }
    // A default counts as what the column's affinity makes of it.
    let absent = try AbsentValues.read(table, database)
    for position in columns where !table.columns[position].isIdentity {
      let name = quoted(table.columns[position].name)
      let statement = try SQLStatement(
        logging(position, table)
          + " WHERE \(name) COLLATE BINARY IS NOT ?1 OR typeof(\(name)) <> typeof(?1)",
        on: database)
      statement.bind(absent[position], at: 1)
      try statement.run()
    }
  }

  /// Logs the values of columns that refer to other rows than before, or are now known to refer to
  /// rows: other devices have the plain value.
  private func logReferences(
    of columns: [Int], _ table: TableSchema, _ database: Database
  ) throws {
    for position in columns where !table.columns[position].isIdentity {
      try database.execute(
        sql: logging(position, table)
          + " WHERE \(quoted(table.columns[position].name)) IS NOT NULL")
    }
  }

  private func logging(_ column: Int, _ table: TableSchema) -> String {
    """
    INSERT INTO \(table.logName) \
    (op, at, mask, \(table.keyColumns.indices.map { "k\($0)" }.joined(separator: ", "))) \
    SELECT \(CaptureTriggers.Entry.update.rawValue), \(Self.beginning), \
    \(literal(ColumnSet(column).mask)), \(table.keyColumns.map(quoted).joined(separator: ", ")) \
    FROM \(table.quotedName)
    """
  }
}
