import SyncModel

/// Rows with a plain number in their key, and rows that refer to the row with that number here. Two
/// such rows can have one key in their table on this device, and different ones on others.
extension Materializer {
  /// Hides rows that would have the key of another visible row here. The row that refers to a row
  /// is shown, and the row with the plain number is hidden. Returns whether everything has to be
  /// decided once more.
  func giveWay() throws -> Bool {
    let before = set.count
    var hidden = false
    for row in set.rows where row.shown != nil || row.isVisible {
      for rival in try rivals(of: row) where try set[rival] == nil && isKnown(rival) {
        try set.row(rival)
      }
    }
    if set.count > before { return true }
    for row in set.rows where row.isVisible {
      let rivals = try rivals(of: row).filter { refers($0, before: row) }
      guard try rivals.contains(where: isVisible) else { continue }
      row.failure = .uniqueValueTaken
      row.givesWay = true
      hidden = true
    }
    return hidden
  }

  /// Decides again which rows give way.
  func forgetGivingWay() {
    for row in set.rows where row.givesWay {
      row.givesWay = false
      row.failure = nil
    }
  }

  private func identity(_ row: WorkingRow) -> RowIdentity { row.shownIdentity ?? row.key.identity }

  private func rivals(of row: WorkingRow) throws -> [RowKey] {
    let table = session.schema[row.key.table]
    guard table.hasKeysInIdentity else { return [] }
    let access = try session.access(table.id)
    // The numbers of new rows are not noted yet.
    let hasNumber = table.identityPositions.contains { position in
      table.columns[position].isKeyed && row.shownValue(position).flatMap(Value.key) != nil
    }
    guard try hasNumber || access.canHavePlainNumbers() else { return [] }
    return try access.rivals(of: identity(row)) { referred in
      try set[referred]?.localKey ?? session.access(referred.table).localKey(of: referred.identity)
    }.map { RowKey(table: row.key.table, identity: $0) }
  }

  private func isKnown(_ row: RowKey) throws -> Bool {
    let access = try session.access(row.table)
    if try access.stamps.state(of: access.fingerprint(row.identity)) != nil { return true }
    return try access.shown(row.identity) != nil
  }

  /// Returns whether a rival refers to a row by the first column in which the two differ.
  private func refers(_ rival: RowKey, before row: WorkingRow) -> Bool {
    let count = session.schema[rival.table].identityPositions.count
    guard let values = IdentityEncoding.values(of: rival.identity, count: count),
      let others = IdentityEncoding.values(of: identity(row), count: count)
    else { return false }
    return zip(values, others).first { $0 != $1 }?.0.kind == .identity
  }
}
