import Foundation
import GRDB
import SyncModel

/// The values that cells had before unpublished edits, for the policies that need them
/// (`docsync_base`).
struct BaseValues {
  static let definition = TableDefinition(
    "docsync_base", .device(.changeSets),
    columns: [
      .integer("tbl", "", .table), .blob("identity", "", .row), .integer("col", "", .column),
      .blob("value", "NOT NULL", .cells),
    ], constraint: "PRIMARY KEY (tbl, identity, col)", isWithoutRowID: true)

  let statements: StatementCache

  /// Stores the value of a cell, unless one is stored already.
  func store(_ value: Value, of column: Int, _ row: RowKey) throws {
    let statement = try statements.statement(
      "INSERT OR IGNORE INTO docsync_base (tbl, identity, col, value) VALUES (?, ?, ?, ?)")
    statement.bind(row)
    statement.bind(Int64(column), at: 3)
    statement.bind(blob: KeptCells.encode([(column, value)]), at: 4)
    try statement.run()
  }

  /// Returns the value that a cell had before the unpublished edits, or `nil` if it is not known.
  func value(of column: Int, _ row: RowKey) throws -> Value? {
    let statement = try statements.statement(
      "SELECT value FROM docsync_base WHERE tbl = ? AND identity = ? AND col = ?")
    statement.bind(row)
    statement.bind(Int64(column), at: 3)
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    return try KeptCells.decode(statement.bytes(at: 0)).first?.value
  }

  /// A stored value, encoded by ``KeptCells``.
  struct Base {
    var row: RowKey
    var column: Int
    var cell: [UInt8]
  }

  func all() throws -> [Base] {
    try StoredRow.fetchAll(statements.database, sql: "SELECT * FROM docsync_base").map { row in
      Base(
        row: RowKey(
          table: try row["tbl"], identity: RowIdentity(bytes: Array(try row["identity"] as Data))),
        column: try row["col"], cell: Array(try row["value"] as Data))
    }
  }

  func removeAll() throws { try statements.database.execute(sql: "DELETE FROM docsync_base") }

  /// Removes all values, unless a change set is unpublished.
  func removeIfAllIsPublished() throws {
    try statements.database.execute(
      sql: "DELETE FROM docsync_base WHERE NOT EXISTS (\(Outbox.unpublished))")
  }

  /// Removes the values of cells that meet a condition.
  func remove(where isWanted: (RowKey, _ column: Int) -> Bool) throws {
    let statement = try statements.statement(
      "DELETE FROM docsync_base WHERE tbl = ? AND identity = ? AND col = ?")
    for base in try all() where isWanted(base.row, base.column) {
      statement.bind(base.row)
      statement.bind(Int64(base.column), at: 3)
      try statement.run()
    }
  }

  static func remove(of table: Int, _ database: Database) throws {
    try database.execute(sql: "DELETE FROM docsync_base WHERE tbl = ?", arguments: [table])
  }
}
