import SyncModel

/// The values of excluded columns, which stay on this device, of rows that leave their tables.
extension RowWriter {
  /// Sets the values aside, if the row may come back or lives on under another key. Must be called
  /// before any row is deleted.
  func setLocalValuesAside(of row: WorkingRow, _ shown: ShownRow) throws {
    guard !session.schema[row.key.table].excludedColumns.isEmpty else { return }
    let isHidden = row.exists || row.isLiving || session.conflicts.noted.contains(row.key)
    let isMoved = row.movedTo != nil && !row.wasDead
    guard isHidden || isMoved || session.mayBringRowsBack else { return }
    let access = try session.access(row.key.table)
    try session.setAside(access.localValues(shown.key), of: row.key)
    if !isHidden { session.undecidedAside.insert(row.key) }
  }

  /// Gives the values of rows that live on under other keys to these, and removes those of rows that
  /// are deleted.
  func moveLocalValues() throws {
    for row in set.rows where row.isDead && !row.wasDead && !row.exists && !row.isVisible {
      let table = session.schema[row.key.table]
      guard !table.excludedColumns.isEmpty else { continue }
      if let destination = try destination(of: row) {
        try session.aside.rename(row.key.identity, to: destination.identity, in: table.wireName)
        let isUndecided = session.undecidedAside.remove(row.key) != nil
        if isUndecided, set[destination]?.isDead ?? false {
          session.undecidedAside.insert(destination)
        }
        // Otherwise it gets them when it is inserted.
        if let shown = try session.access(table.id).shown(destination.identity),
          set[destination].map({ $0.shown != nil && $0.isVisible }) ?? true
        {
          if try session.putBackAside(into: destination, key: shown.key) {
            try session.access(table.id).changes.note(.updated, shown.key)
          }
        }
        continue
      }
      if session.conflicts.noted.contains(row.key) { continue }
      if session.mayBringRowsBack, session.undecidedAside.contains(row.key) { continue }
      try session.aside.removeAll(of: row.key.identity, in: table.wireName)
    }
  }

  /// Returns the row as which a row lives on, or under which it may come back; `nil` if that row has
  /// values of its own. It may have come before the others of this set, or come after them.
  private func destination(of row: WorkingRow) throws -> RowKey? {
    var last = row
    var seen: Set<RowKey> = [row.key]
    while last.isDead, let identity = last.movedTo {
      let key = RowKey(table: row.key.table, identity: identity)
      guard seen.insert(key).inserted else { return nil }
      guard let next = set[key] else { return try hasValuesOfItsOwn(key) ? nil : key }
      last = next
    }
    if last === row { return nil }
    if last.isDead {
      let mayComeBack =
        session.conflicts.noted.contains(last.key) || session.mayBringRowsBack
      return mayComeBack ? last.key : nil
    }
    return try last.shown == nil || !hasValuesOfItsOwn(last.key) ? last.key : nil
  }

  /// Whether a row is shown with other values than the defaults, or is deleted.
  private func hasValuesOfItsOwn(_ row: RowKey) throws -> Bool {
    let access = try session.access(row.table)
    if let shown = try access.shown(row.identity) {
      return try !access.hasDefaultLocalValues(shown.key)
    }
    return try access.stamps.state(of: access.fingerprint(row.identity))?.existence == .deleted
  }

  /// Puts values back into the rows that are shown again. Must be called when the states of all rows
  /// are stored.
  func putBackLocalValues() throws {
    var inserted: Set<RowKey> = []
    for row in set.rows where row.isVisible && row.shown == nil && !row.isUnseen && !row.isLeftAlone
    {
      let table = session.schema[row.key.table]
      if table.localKey != nil { inserted.insert(row.key) }
      guard !table.excludedColumns.isEmpty else { continue }
      try session.putBackAside(into: row.key, key: writtenKey(of: row, table))
    }
    // Rows may have other identities by now.
    if session.knownWaitingReferences?.isEmpty == false { session.knownWaitingReferences = nil }
    try session.putBackReferences(to: inserted)
  }
}
