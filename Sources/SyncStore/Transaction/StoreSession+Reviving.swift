import SyncModel

extension StoreSession {
  /// Whether a deleted row lives on, since an edit wins that the deletion did not know of.
  func isRevived(_ state: RowState, _ table: TableSchema) -> Bool {
    guard table.mergeType == .editWins, state.existence == .deleted else { return false }
    return table.cellPositions.contains {
      clients.precedes(state.existenceStamp, state.stamp(of: $0))
    }
  }
}
