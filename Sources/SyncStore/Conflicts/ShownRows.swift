import SyncModel

/// The rows that are in their tables, as logical values.
struct ShownRows {
  let session: StoreSession

  /// Returns whether a row is in its table.
  func contains(_ row: RowKey) throws -> Bool {
    let access = try session.access(row.table)
    return try access.key(of: row.identity).flatMap(access.row) != nil
  }

  /// Returns the value and the stamp of a cell of a row that is shown; `nil` if it is not shown.
  func cell(_ cell: CellKey) throws -> (value: Value, stamp: LocalStamp)? {
    let access = try session.access(cell.row.table)
    guard let key = try access.key(of: cell.row.identity), let row = try access.row(key) else {
      return nil
    }
    let state = try access.stamps.state(of: access.fingerprint(cell.row.identity))
    // A row may be shown with another reference than its own.
    let kept = state?.isKept == true ? try session.keptRows.row(cell.row) : nil
    let written = session.writtenPlainCells[cell.row]?.first { $0.column == cell.column }?.value
    return (
      try written ?? kept?.cells.first { $0.column == cell.column }?.value
        ?? session.exported(row.values[cell.column], access.table.columns[cell.column]),
      state?.stamp(of: cell.column) ?? .zero
    )
  }
}
