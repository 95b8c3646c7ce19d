import SyncModel

/// The values of excluded columns, which stay on this device, of rows that leave their tables.
extension RowWriter {
  /// Sets the values aside, if the row may come back or lives on under another key. Must be called
  /// before the row is deleted.
  func setLocalValuesAside(of row: WorkingRow, _ shown: ShownRow, _ access: TableAccess) throws {
    guard !access.table.excludedColumns.isEmpty else { return }
    let isHidden = row.exists || row.isLiving || session.conflicts.noted.contains(row.key)
    guard isHidden || row.movedTo != nil || session.mayBringRowsBack else { return }
    try session.setAside(access.localValues(shown.key), of: row.key)
    if !isHidden { session.undecidedAside.insert(row.key) }
  }

  /// Gives the values of rows that live on under other keys to these, and removes those of rows that
  /// are deleted.
  func forgetLocalValues() throws {
    for row in set.rows where row.isDead && !row.wasDead && !row.exists && !row.isVisible {
      let table = session.schema[row.key.table]
      guard !table.excludedColumns.isEmpty else { continue }
      if let destination = destination(of: row), destination.shown == nil {
        try session.aside.rename(row.key.identity, to: destination.key.identity, in: table.wireName)
        session.undecidedAside.remove(row.key)
        continue
      }
      if session.conflicts.noted.contains(row.key) { continue }
      if session.mayBringRowsBack, session.undecidedAside.contains(row.key) { continue }
      try session.aside.removeAll(of: row.key.identity, in: table.wireName)
    }
  }

  /// Returns the row as which a row lives on, if it is in the set.
  private func destination(of row: WorkingRow) -> WorkingRow? {
    var last = row
    var seen: Set<RowKey> = [row.key]
    while last.isDead, let identity = last.movedTo {
      let key = RowKey(table: row.key.table, identity: identity)
      guard seen.insert(key).inserted, let next = set[key] else { return nil }
      last = next
    }
    return last === row ? nil : last
  }
}
