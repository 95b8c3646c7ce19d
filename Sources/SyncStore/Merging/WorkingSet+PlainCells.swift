import SyncModel

extension WorkingSet {
  /// Turns cells of shown rows into plain values.
  ///
  /// - Parameter references: The cells that are references all the same.
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
