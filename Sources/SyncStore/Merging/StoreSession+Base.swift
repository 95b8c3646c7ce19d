import SyncModel

extension StoreSession {
  /// The value of a cell before the edits that are not published; `nil` if it
  /// is not known.
  func base(of column: Int, _ row: WorkingRow) throws -> Value? {
    let statement = try access(row.key.table).statement(
      "SELECT value FROM docsync_base WHERE tbl = ? AND identity = ? AND col = ?")
    statement.bind(Int64(row.key.table), at: 1)
    statement.bind(blob: row.key.identity.bytes, at: 2)
    statement.bind(Int64(column), at: 3)
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    return try KeptCells.decode(statement.bytes(at: 0)).first?.value
  }
}
