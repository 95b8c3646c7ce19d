import SyncModel

/// A check whether the store already contains a change set.
struct ChangeContainment {
  let session: StoreSession

  private var clients: ClientRegistry { session.clients }

  /// Returns whether the store has each value of a change set under its stamp, or has replaced it.
  /// If so, merging the change set changes nothing.
  ///
  /// Also returns false where this is not easy to tell, such as for tables and columns that this
  /// store does not have. Merging such a change set once more changes nothing either.
  func contains(_ changeSet: SyncChangeSet) throws -> Bool {
    let author = try clients.number(of: changeSet.header.client)
    for changes in changeSet.tables {
      guard let table = session.schema.table(wireName: changes.table), table.knowsRows(as: changes),
        table.mergeType != .keepBoth
      else { return false }
      let batch = try IncomingChanges(
        changes, table: table, author: author, concurrency: .none, session: session)
      guard batch.foreignColumns.isEmpty else { return false }
      let states = try batch.states()
      var cursor = IncomingChanges.Cursor(batch)
      for row in states.indices {
        let change = batch.change(row, &cursor)
        let key = RowKey(table: table.id, identity: batch.identity(row))
        guard try contains(change, states[row] ?? .unstamped, key) else { return false }
      }
    }
    return true
  }

  private func contains(
    _ change: WorkingSet.Change, _ state: RowState, _ key: RowKey
  ) throws -> Bool {
    switch change.action {
    case .insert, .delete, .erase:
      if clients.precedes(state.existenceStamp, change.stamp) { return false }
    case .update: break
    }
    if let erasureStamp = change.erasureStamp, clients.precedes(state.erasureStamp, erasureStamp) {
      return false
    }
    for cell in change.cells {
      if case .added(let sum, _, let since) = counterValue(cell, key) {
        guard try contains(sum, since: since, cell.column, at: cell.stamp, state, key) else {
          return false
        }
      } else if clients.precedes(state.stamp(of: cell.column), cell.stamp) {
        return false
      }
    }
    return true
  }

  private func counterValue(
    _ cell: (column: Int, value: Value, stamp: LocalStamp), _ key: RowKey
  ) -> CounterValue? {
    guard session.schema[key.table].columns[cell.column].domain == .counter else { return nil }
    return CounterValue(cell.value)
  }

  /// Returns whether a client's additions to a counter are in its sum, are void, or are stored
  /// until the value that they add to arrives.
  private func contains(
    _ sum: Value, since: Stamp, _ column: Int, at stamp: LocalStamp, _ state: RowState,
    _ key: RowKey
  ) throws -> Bool {
    let set = LocalStamp(time: since.time.rawValue, client: try clients.number(of: since.client))
    let current = state.stamp(of: column)
    guard set == current else {
      if clients.precedes(set, current) { return true }
      let early = try session.early.sum(of: stamp.client, since: set, column, key)
      return early.map { $0.time.rawValue >= stamp.time } ?? false
    }
    guard state.isKept,
      let cell = try session.keptRows.row(key)?.cells.first(where: { $0.column == column }),
      let known = CounterValue(cell.value)?.counter?.sums[clients.client(stamp.client)]
    else { return false }
    return known.time.rawValue >= stamp.time
  }
}
