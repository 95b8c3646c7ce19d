import SyncModel

/// Rows that are shown under the identity of another row, which does not exist itself.
extension StoreSession {
  /// Returns the row that is shown under the identity of `row`; `nil` if there is none.
  ///
  /// The entry of a living borrower says so (``KeptRow/Reason/elsewhere``). The entry of a deleted
  /// one, which other rows hold, does not: it is the claimant of the identity that comes first.
  func borrower(of row: RowKey) throws -> RowKey? {
    guard try keptRows.row(row)?.reason == .borrowed else { return nil }
    let access = try access(row.table)
    var first: (identity: RowIdentity, stamp: LocalStamp)?
    for identity in try keptRows.claimants(of: ClaimKey(identityOf: row)) {
      let state = try access.stamps.state(of: access.fingerprint(identity))
      let stamp = state?.existenceStamp ?? .zero
      if let first {
        let isBehind =
          first.stamp == stamp
          ? identity < first.identity : clients.precedes(stamp, first.stamp)
        if isBehind { continue }
      }
      first = (identity, stamp)
    }
    return first.map { RowKey(table: row.table, identity: $0.identity) }
  }

  /// Remembers the deleted row that is shown under the identity of `row`, before an edit or deletion
  /// of `row` is exported (``formerBorrowers``).
  func noteBorrower(of row: RowKey) throws {
    guard let borrower = try borrower(of: row), try keptRows.row(borrower)?.reason != .elsewhere
    else { return }
    formerBorrowers.insert(borrower)
  }

  /// Returns whether a deleted row that other rows hold was shown under another identity before the
  /// present changes.
  ///
  /// - Parameter claims: The unique keys that it claimed then.
  func wasBorrower(_ row: RowKey, _ claims: [ClaimKey]) throws -> Bool {
    if formerBorrowers.contains(row) { return true }
    return try claims.contains {
      try $0.index == ClaimKey.identityIndex
        && borrower(of: RowKey(table: $0.table, identity: $0.key)) == row
    }
  }
}
