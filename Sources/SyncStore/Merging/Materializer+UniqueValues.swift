import SyncModel

/// The decision which of several rows holds a unique value that all of them claim.
extension Materializer {
  /// Finds the claimants of each value. Returns true if rows came into the set whose existence is
  /// not decided yet.
  func expandClaims() throws -> Bool {
    let before = set.count
    claimants = [:]
    for row in set.rows {
      row.claims = row.exists && row.failure == nil ? try set.claims(of: row) : []
      row.formerClaims = []
      row.standInFailure = nil
      for claim in row.claims { claimants[claim, default: []].append(row) }
      var claims = row.claims + row.oldClaims + row.oldFormerClaims
      if session.schema[row.key.table].isKnownByReferences {
        claims.append(ClaimKey(identityOf: row.key))
      }
      for claim in claims where checkedClaims.insert(claim).inserted {
        try loadClaimants(claim)
      }
    }
    return set.count > before
  }

  func loadClaimants(_ claim: ClaimKey) throws {
    let access = try session.access(claim.table)
    var found = try session.keptRows.claimants(of: claim)
    if claim.index == ClaimKey.identityIndex {
      let isClaimed = !found.isEmpty || claimants[claim] != nil
      if isClaimed { found.append(claim.key) }
    } else if let key = try set.keyOfHolder(claim, access) {
      try set.add([key], access)
    }
    for identity in found { try set.row(RowKey(table: claim.table, identity: identity)) }
  }

  func decideStanding() {
    for row in set.rows {
      row.stands = row.exists && row.failure == nil && row.standInFailure == nil
    }
    losses = [:]
    for (claim, claimants) in claimants {
      let owner = owner(of: claim)
      let rows = owner.isEmpty ? claimants : claimants + owner
      guard rows.count > 1, let top = rows.max(by: { precedes(($0, claim), ($1, claim)) })
      else { continue }
      for row in rows where row !== top {
        row.stands = false
        losses[ObjectIdentifier(row), default: []].append((top, claim))
      }
    }
  }

  /// Returns the row whose identity other rows claim, if it exists.
  func owner(of claim: ClaimKey) -> [WorkingRow] {
    guard claim.index == ClaimKey.identityIndex else { return [] }
    let row = set[RowKey(table: claim.table, identity: claim.key)]
    return [row].compactMap { $0 }.filter { $0.exists && $0.failure == nil }
  }

  /// A row and one of the values that it claims.
  typealias Claimant = (row: WorkingRow, claim: ClaimKey)

  /// Returns whether the right claimant has the better claim.
  func precedes(_ left: Claimant, _ right: Claimant) -> Bool {
    let leftOwnsClaim = ownsClaim(left.row, for: left.claim)
    if leftOwnsClaim != ownsClaim(right.row, for: right.claim) { return !leftOwnsClaim }
    let leftStamp = stamp(of: left.row, for: left.claim)
    let rightStamp = stamp(of: right.row, for: right.claim)
    if leftStamp == rightStamp { return left.row.key.identity < right.row.key.identity }
    return session.clients.precedes(leftStamp, rightStamp)
  }

  /// Returns whether a row's claim is its own: the row is neither rescued nor overlaid in a column
  /// of the claim. Overlays by stand-ins do not count: otherwise the better claim would change as
  /// the step goes on.
  private func ownsClaim(_ row: WorkingRow, for claim: ClaimKey) -> Bool {
    if claim.index == ClaimKey.identityIndex { return row.key.identity == claim.key }
    guard row.isLiving else { return false }
    let unique = session.schema[claim.table].uniqueIndexes[claim.index]
    guard unique.isPlain else { return row.ownOverlays.isEmpty }
    return !unique.columns.contains { $0.map { row.ownOverlays[$0] != nil } ?? false }
  }

  private func stamp(of row: WorkingRow, for claim: ClaimKey) -> LocalStamp {
    if claim.index == ClaimKey.identityIndex { return row.state.existenceStamp }
    let table = session.schema[claim.table]
    let unique = table.uniqueIndexes[claim.index]
    let columns =
      unique.isPlain ? unique.columns.compactMap { $0 } : Array(table.columns.indices)
    var newest = LocalStamp.zero
    for column in columns {
      let isCell = !table.columns[column].isIdentity || table.columns[column].isLoose
      let stamp = isCell ? row.state.stamp(of: column) : row.state.existenceStamp
      if session.clients.precedes(newest, stamp) { newest = stamp }
    }
    return newest
  }
}
