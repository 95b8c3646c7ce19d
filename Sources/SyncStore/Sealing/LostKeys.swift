import GRDB
import SyncModel

/// Rows with NULL in their key, which SQLite allows outside of INTEGER PRIMARY KEY, WITHOUT ROWID
/// and STRICT tables, in any number of rows.
///
/// Such a row has no identity on other devices, so it stays on the device that wrote it. A row that
/// other devices know gets its key back.
extension StoreSession {
  /// Gives rows whose key was set to NULL their former key: without it every other device would
  /// delete them.
  func restoreKeys() throws {
    for table in try tablesWithEdits() {
      guard let rowid = table.rowidName else { continue }
      for row in try lostKeys(of: table) {
        try restoreKey(row.key, of: row.rowid, entry: row.seq, table, rowid)
      }
    }
  }

  /// Returns the keys that rows had before they were set to NULL, the last ones first, with the rows'
  /// numbers in the table and the numbers of the entries.
  func lostKeys(
    of table: TableSchema
  ) throws -> [(seq: Int64, rowid: Int64, key: [Value])] {
    guard try mayLackKeys(table), let rowid = table.rowidName else { return [] }
    let keys = table.keyColumns.indices.map { "k\($0)" }
    let reading = try SQLStatement(
      "SELECT l.seq, l.identity, \(keys.map { "l.\($0)" }.joined(separator: ", ")) "
        + "FROM \(table.logName) AS l JOIN \(table.quotedName) AS t ON t.\(rowid) = l.identity "
        + "WHERE l.op = \(CaptureTriggers.Entry.delete.rawValue) AND l.identity IS NOT NULL "
        + "AND (\(table.isWithoutKey("t"))) "
        + "AND \(keys.map { "l.\($0) IS NOT NULL" }.joined(separator: " AND ")) "
        + "ORDER BY l.seq DESC", on: database)
    var lost: [(seq: Int64, rowid: Int64, key: [Value])] = []
    while try reading.step() {
      lost.append(
        (
          reading.integer(at: 0), reading.integer(at: 1),
          keys.indices.map { reading.value(at: $0 + 2) }
        )
      )
    }
    return lost
  }

  private func restoreKey(
    _ key: [Value], of row: Int64, entry: Int64, _ table: TableSchema, _ rowid: String
  ) throws {
    let access = try access(table.id)
    // Another row may have its key by now.
    guard try access.row(key) == nil else { return }
    let terms = table.keyColumns.map { "\(quoted($0)) = ?" }.joined(separator: ", ")
    let writing = try access.statement(
      "UPDATE\(table.orAbort) \(table.quotedName) SET \(terms) WHERE \(rowid) = ? "
        + "AND (\(table.isWithoutKey(table.quotedName)))")
    for (index, value) in key.enumerated() { writing.bind(value, at: index + 1) }
    writing.bind(row, at: key.count + 1)
    try write(writing)
    guard database.changesCount > 0 else { return }
    access.changes.noteAll()
    // Later edits were logged without a key.
    let columns = try columnsEditedWithoutKey(access)
    if columns == ColumnSet() {
      let removal = try access.statement("DELETE FROM \(table.logName) WHERE seq = ?")
      removal.bind(entry, at: 1)
      try removal.run()
    } else {
      let cleared =
        table.isReferred ? table.keyColumns.indices.map { ", n\($0) = NULL" }.joined() : ""
      let change = try access.statement(
        "UPDATE \(table.logName) SET op = \(CaptureTriggers.Entry.update.rawValue), "
          + "identity = NULL, mask = ?\(cleared) WHERE seq = ?")
      change.bind(columns.mask, at: 1)
      change.bind(entry, at: 2)
      try change.run()
    }
    conflicts.warn(
      SyncWarning(
        .keyRestored, table: table.name,
        message:
          "rows of \(table.name) had NULL set in their key: they have their key again, since they "
          + "would be deleted on all other devices"))
  }

  /// Returns the columns that were edited in rows without a key; the log does not tell in which of
  /// these rows. Returns all columns if one of the rows was deleted, since another may have its
  /// place in the table.
  private func columnsEditedWithoutKey(_ access: TableAccess) throws -> ColumnSet {
    let table = access.table
    let missing = table.keyColumns.indices.map { "k\($0) IS NULL" }.joined(separator: " OR ")
    let edits = try access.statement(
      "SELECT op, mask FROM \(table.logName) WHERE op IN "
        + "(\(CaptureTriggers.Entry.update.rawValue), \(CaptureTriggers.Entry.delete.rawValue)) "
        + "AND (\(missing))")
    var columns = ColumnSet()
    while try edits.step() {
      if edits.integer(at: 0) == CaptureTriggers.Entry.update.rawValue {
        columns.formUnion(ColumnSet(edits, at: 1))
      } else {
        for column in table.cellPositions { columns.formUnion(ColumnSet(column)) }
      }
    }
    return columns
  }

  /// Returns whether any table has rows without a key.
  func hasRowsWithoutKey() throws -> Bool {
    try schema.tables.contains { try rowsWithoutKey($0) > 0 }
  }

  /// Returns whether no sealing has warned of the rows without a key that were there when the
  /// document began.
  func isWarningOfKeysDue() throws -> Bool {
    try MetaTable.read(.keyMissing, database) != nil
  }

  /// Warns of rows without a key in the tables that were edited, and the first time in all tables.
  func warnOfRowsWithoutKey() throws {
    let isDue = try isWarningOfKeysDue()
    if isDue { try MetaTable.remove(.keyMissing, database) }
    for table in isDue ? schema.tables : try tablesWithEdits()
    where try isDue || mayLackKeys(table) {
      let count = try rowsWithoutKey(table)
      guard count > 0 else { continue }
      var warning = SyncWarning(
        .keyMissing, table: table.name,
        message: "rows of \(table.name) have NULL in their key and stay on this device")
      warning.count = count
      conflicts.warn(warning)
    }
  }

  /// Returns whether the edits of a table may affect rows without a key.
  func mayLackKeys(_ table: TableSchema) throws -> Bool {
    guard table.canLoseKeys else { return false }
    // For one column, an index gives the answer; for several columns, the log is shorter.
    if table.keyColumns.count == 1 { return try rowsWithoutKey(table) > 0 }
    let missing = table.keyColumns.indices.map { "k\($0) IS NULL" }.joined(separator: " OR ")
    return try Bool.fetchOne(
      database, sql: "SELECT EXISTS (SELECT 1 FROM \(table.logName) WHERE \(missing))") ?? false
  }

  /// Returns the number of rows of a table that have no NULL in their key.
  func rowCount(_ table: TableSchema) throws -> Int {
    let condition = table.canLoseKeys ? " AS t WHERE NOT (\(table.isWithoutKey("t")))" : ""
    return try Int.fetchOne(
      database, sql: "SELECT count(*) FROM \(table.quotedName)\(condition)") ?? 0
  }

  /// Returns the number of rows of a table with NULL in their key.
  func rowsWithoutKey(_ table: TableSchema) throws -> Int {
    guard table.canLoseKeys else { return 0 }
    return try Int.fetchOne(
      database,
      sql: "SELECT count(*) FROM \(table.quotedName) AS t WHERE \(table.isWithoutKey("t"))") ?? 0
  }
}
