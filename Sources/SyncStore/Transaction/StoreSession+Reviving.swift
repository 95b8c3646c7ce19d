import SyncModel

extension StoreSession {
  /// Returns whether a deleted row lives on, since an edit wins of which the author of the deletion
  /// did not know.
  func isRevived(_ state: RowState, _ table: TableSchema) -> Bool {
    guard table.mergeType == .editWins, state.existence == .deleted else { return false }
    return table.cellPositions.contains {
      clients.precedes(state.existenceStamp, state.stamp(of: $0))
    }
  }
}
