import GRDB
import SyncModel

/// The rows of a table that stays on the device, when a database with rows becomes a store of a
/// document. They refer to the same rows as before, which may have other keys by now.
///
/// So two rows may get the same key or the same unique value. Then a row whose references lead to
/// rows of the document comes first, and the other one is left out.
struct LocalRows {
  let database: Database
  let table: SQLName
  /// The columns that are written.
  let columns: [SQLName]
  let references: [RowReference]
  let merge: DatabaseMerge
  let checkCancellation: () throws -> Void

  private static let copied = "temp.docsync_local_rows"

  private var name: String { "main.\(quoted(table))" }

  // MARK: - Copying

  /// Copies the rows of the former database into the table, which is empty. Returns how many are left
  /// out.
  func copy(from former: Database) throws -> Int {
    let columns = try writtenColumns()
    guard !columns.isEmpty else { return 0 }
    let source = Source(database: former, table: name, columns: columns.map(quoted))
    do {
      try database.atomically {
        let writing = try inserting(columns)
        try forEachRow(of: source) { _, translated in try run(writing, translated.values) }
      }
      return 0
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      return try insertWhatFits(columns, of: source)
    }
  }

  /// Inserts rows, first those whose references lead to rows of the document. Returns
  /// how many of them the table refuses.
  private func insertWhatFits(_ columns: [SQLName], of source: Source) throws -> Int {
    let writing = try inserting(columns)
    var refused = 0
    for leads in [true, false] {
      try forEachRow(of: source) { _, translated in
        guard translated.leads(by: references) == leads else { return }
        do {
          try run(writing, translated.values)
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
          refused += 1
        }
      }
    }
    return refused
  }

  /// Returns the columns, with the rowid unless it is one of them: rows keep it.
  private func writtenColumns() throws -> [SQLName] {
    guard !columns.isEmpty, let key = try LocalReference.rowKey(of: table, database)
    else { return columns }
    let isAmongThem = try Bool.fetchOne(
      database,
      sql: """
        SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?1 COLLATE NOCASE AND wr
          UNION ALL SELECT 1 WHERE EXISTS (SELECT 1 FROM pragma_table_xinfo(?1, 'main') WHERE pk > 0)
          AND NOT EXISTS (SELECT 1 FROM pragma_index_list(?1, 'main') WHERE origin = 'pk')
        """, arguments: [table])
    return isAmongThem == true ? columns : columns + key
  }

  /// The place from which rows are read.
  private struct Source {
    var database: Database
    /// The name of the table in SQL.
    var table: String
    /// The names of the columns in SQL. Those that are read first are ``LocalRows/columns``.
    var columns: [String]
  }

  /// Calls `body` with each row, as it was and with its references translated.
  private func forEachRow(
    of source: Source, _ body: (_ values: [Value], DatabaseMerge.Translation) throws -> Void
  ) throws {
    let reading = try SQLStatement(
      "SELECT \(source.columns.joined(separator: ", ")) FROM \(source.table)",
      on: source.database)
    var count = 0
    while try reading.step() {
      count += 1
      if count % DatabaseMerge.interval == 0 { try checkCancellation() }
      let values = source.columns.indices.map { reading.value(at: $0) }
      try body(values, merge.translation(values, references))
    }
  }

  /// Returns the statement that inserts a row. ABORT is explicit, so that a conflict clause in the
  /// schema does not remove another row.
  private func inserting(_ columns: [SQLName]) throws -> SQLStatement {
    try SQLStatement(
      "INSERT OR ABORT INTO \(name) (\(columns.map(quoted).joined(separator: ", "))) "
        + "VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))", on: database)
  }

  private func run(_ statement: SQLStatement, _ values: [Value]) throws {
    for (index, value) in values.enumerated() { statement.bind(value, at: index + 1) }
    try statement.run()
  }

  // MARK: - In place

  /// Updates the references of the rows, which are in place. Returns how many rows are left out.
  func follow() throws -> Int {
    guard let key = try LocalReference.rowKey(of: table, database) else { return 0 }
    let moved = try movedRows(key)
    guard !moved.isEmpty else { return 0 }
    try removeTriggers()
    do {
      try database.atomically { for row in moved { try update(row, key) } }
      return 0
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      // Rows may exchange values, so that each finds the other one in its place.
      return try insertAgain()
    }
  }

  /// A row whose references have other values by now.
  private struct Moved {
    var key: [Value]
    /// The positions of the columns that change, with their values.
    var changes: [(column: Int, value: Value)]
  }

  private func movedRows(_ key: [SQLName]) throws -> [Moved] {
    let source = Source(database: database, table: name, columns: (columns + key).map(quoted))
    var moved: [Moved] = []
    try forEachRow(of: source) { values, translated in
      let changes = columns.indices.filter { values[$0] != translated.values[$0] }
      guard !changes.isEmpty else { return }
      moved.append(
        Moved(
          key: Array(values[columns.count...]),
          changes: changes.map { ($0, translated.values[$0]) }))
    }
    return moved
  }

  private func update(_ row: Moved, _ key: [SQLName]) throws {
    let writing = try SQLStatement(
      "UPDATE OR ABORT \(name) SET "
        + row.changes.map { "\(quoted(columns[$0.column])) = ?" }.joined(separator: ", ")
        + " WHERE " + key.map { "\(quoted($0)) IS ?" }.joined(separator: " AND "), on: database)
    try run(writing, row.changes.map(\.value) + row.key)
  }

  /// Removes all rows, and inserts them again. Returns how many are left out.
  private func insertAgain() throws -> Int {
    let columns = try writtenColumns()
    let names = columns.map(quoted).joined(separator: ", ")
    let places = columns.indices.map { "c\($0)" }
    try database.execute(
      sql: "CREATE TABLE \(Self.copied) (\(places.joined(separator: ", "))); "
        + "INSERT INTO \(Self.copied) SELECT \(names) FROM \(name) NOT INDEXED; "
        + "DELETE FROM \(name)")
    let refused = try insertWhatFits(
      columns, of: Source(database: database, table: Self.copied, columns: places))
    try database.execute(sql: "DROP TABLE \(Self.copied)")
    return refused
  }

  /// Removes the copies of triggers that would run: nothing but the numbers of rows changes. They are
  /// made again in the next transaction.
  private func removeTriggers() throws {
    let triggers = try SQLName.fetchAll(
      database,
      sql: "SELECT name FROM temp.sqlite_schema WHERE type = 'trigger' "
        + "AND name GLOB 'docsync_*' AND tbl_name = ? COLLATE NOCASE", arguments: [table])
    for trigger in triggers { try database.execute(sql: "DROP TRIGGER temp.\(quoted(trigger))") }
  }
}

extension DatabaseMerge.Translation {
  /// Returns whether all references lead to rows, apart from those that contain NULL.
  fileprivate func leads(by references: [RowReference]) -> Bool {
    references.allSatisfy { reference in
      reference.columns.allSatisfy(leading.contains)
        || reference.columns.contains { values[$0] == .null }
    }
  }
}

extension StoreSession {
  /// Warns that rows of a table that stays on the device are left out.
  func warnOfRowsLeftOut(_ count: Int, of table: SQLName) {
    guard count > 0 else { return }
    conflicts.warn(
      SyncWarning(
        .localValueRefused, table: table,
        message: "\(count) \(count == 1 ? "row" : "rows") of \(table), which stays on this device, "
          + "could not be kept: the references have the values that they have in the document, and "
          + "with these the table cannot have all rows. The backup of the database has all."))
  }
}
