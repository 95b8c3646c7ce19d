import SyncModel

/// The values of excluded columns, which stay on this device, of rows that leave their tables.
extension RowWriter {
  /// Sets the values aside, if the row may come back. Must be called before the row is deleted.
  func setLocalValuesAside(of row: WorkingRow, _ shown: ShownRow, _ access: TableAccess) throws {
    guard !access.table.excludedColumns.isEmpty else { return }
    let isHidden = row.exists || row.isLiving || session.conflicts.noted.contains(row.key)
    guard isHidden || session.mayBringRowsBack else { return }
    try session.setAside(access.localValues(shown.key), of: row.key)
    if !isHidden { session.undecidedAside.insert(row.key) }
  }

  /// Removes the values of rows that are deleted, or gives them to the hidden rows as which these
  /// live on.
  func forgetLocalValues() throws {
    for row in set.rows where row.isDead && !row.wasDead && !row.exists && !row.isVisible {
      let table = session.schema[row.key.table]
      guard !table.excludedColumns.isEmpty, !session.conflicts.noted.contains(row.key),
        !session.undecidedAside.contains(row.key)
      else { continue }
      let destination = row.movedTo.flatMap { set[RowKey(table: table.id, identity: $0)] }
      if let destination, destination.shown == nil {
        try session.aside.rename(row.key.identity, to: destination.key.identity, in: table.wireName)
      } else {
        try session.aside.removeAll(of: row.key.identity, in: table.wireName)
      }
    }
  }
}
