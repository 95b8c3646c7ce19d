import GRDB
import SyncModel

/// The edits in earlier batches of rows that are not in their table: a later
/// batch contains their deletion, which includes all columns that were changed
/// before it.
struct DepartedRows {
  private let inserting: SQLStatement
  private let selecting: SQLStatement

  init(database: Database) throws {
    try database.execute(
      sql: "CREATE TEMP TABLE IF NOT EXISTS docsync_departed "
        + "(row BLOB PRIMARY KEY, op INTEGER, updated INTEGER, balance INTEGER, mask, "
        + "at INTEGER) "
        + "WITHOUT ROWID; DELETE FROM temp.docsync_departed")
    inserting = try SQLStatement(
      "INSERT OR REPLACE INTO temp.docsync_departed (row, op, updated, balance, mask, at) "
        + "VALUES (?, ?, ?, ?, ?, ?)", on: database)
    selecting = try SQLStatement(
      "SELECT op, updated, balance, mask, at FROM temp.docsync_departed WHERE row = ?",
      on: database)
  }

  /// Stores a row that a later batch may delete.
  func remember(_ row: EditLog.Row) throws {
    inserting.bind(blob: row.hash.bytes, at: 1)
    inserting.bind(row.oldest.rawValue, at: 2)
    inserting.bind(row.hasOnlyUpdates ? 1 : 0, at: 3)
    inserting.bind(Int64(row.insertions), at: 4)
    inserting.bind(.text(Array(row.changed.mask.utf8)), at: 5)
    inserting.bind(Int64(bitPattern: row.lastTime.rawValue), at: 6)
    try inserting.run()
  }

  /// Adds to a row what earlier batches have done to it.
  func recall(_ row: inout EditLog.Row) throws {
    selecting.bind(blob: row.hash.bytes, at: 1)
    guard try selecting.step() else { return }
    defer { selecting.reset() }
    row.oldest = try CaptureTriggers.Entry(
      reading: selecting.integer(at: 0), from: "docsync_departed")
    row.hasOnlyUpdates = selecting.integer(at: 1) != 0
    row.insertions = Int(selecting.integer(at: 2))
    row.changed = ColumnSet(selecting, at: 3)
    row.lastTime = HybridTime(rawValue: UInt64(bitPattern: selecting.integer(at: 4)))
  }
}

extension CaptureTriggers.Entry {
  /// Creates the kind of an entry from its number in a table. Throws if there is no such kind.
  init(reading number: Int64, from table: @autoclosure () -> String) throws {
    guard let kind = Self(rawValue: number) else {
      throw DatabaseError(
        resultCode: .SQLITE_CORRUPT, message: "\(table()) has an entry of an unknown kind")
    }
    self = kind
  }
}
