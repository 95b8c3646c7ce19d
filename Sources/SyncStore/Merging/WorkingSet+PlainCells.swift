import SyncModel

extension WorkingSet {
  /// Makes cells of rows that are shown count as plain values.
  ///
  /// - Parameter references: Cells that refer to the row with that key nevertheless.
  func setPlain(_ cells: [StoreSession.PlainCell], except references: Set<CellKey> = []) throws {
    for cell in cells {
      let key = try session.cellKey(cell)
      let row = try row(key.row)
      guard !references.contains(key), row.shown?.values[cell.column] == cell.value,
        row.overlays[cell.column] == nil
      else { continue }
      row.values[cell.column] = cell.value
      row.isEdited = true
    }
  }
}
