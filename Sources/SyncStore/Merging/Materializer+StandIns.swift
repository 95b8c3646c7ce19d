import SyncModel

/// Stand-ins: references to a row that lost a unique value are shown to lead to the row that holds
/// it.
extension Materializer {
  /// Repeats three steps: chooses the stand-ins, adds what the rows that refer to them claim
  /// because of them, and decides which rows still stand. Ends because claims are only added.
  /// Returns whether everything has to be decided once more.
  func letStandIn() throws -> Bool {
    guard set.rows.contains(where: canLeaveReferences) else { return false }
    let before = set.count
    var leaning: [WorkingRow] = []
    while true {
      chooseStandIns()
      var isChanged = false
      leaning = try existence.layStandIns()
      for row in leaning {
        if !row.isTried {
          row.isTried = true
          row.failure = try set.refusal(of: row, with: row.ownOverlays)
          if row.failure != nil { return true }
        }
        guard row.standInFailure == nil else { continue }
        if let failure = try set.refusal(of: row) {
          row.standInFailure = failure
          isChanged = true
          continue
        }
        for claim in try set.claims(of: row) where !row.claims.contains(claim) {
          row.claims.append(claim)
          claimants[claim, default: []].append(row)
          isChanged = true
          if checkedClaims.insert(claim).inserted { try loadClaimants(claim) }
          // A row that its table refuses leaves its identity to other rows.
          for owner in owner(of: claim) where !owner.isTried {
            owner.isTried = true
            owner.failure = try set.refusal(of: owner, with: owner.ownOverlays)
            if owner.failure != nil { return true }
          }
        }
      }
      if set.count > before { return true }
      guard isChanged else { break }
      decideStanding()
    }
    for row in leaning where row.standInFailure == nil {
      let shown = try set.claims(of: row)
      row.formerClaims = row.claims.filter { !shown.contains($0) }
      row.claims = shown
    }
    return false
  }

  /// Returns whether a row lost a unique value and other rows can refer to it.
  private func canLeaveReferences(_ row: WorkingRow) -> Bool {
    let table = session.schema[row.key.table]
    return losses[ObjectIdentifier(row)] != nil && table.hasStandIns
      && !session.schema.inbound(to: table).isEmpty
  }

  /// Chooses a stand-in for each row that lost a value: the row that holds the value or, if that
  /// row does not stand, that row's own stand-in.
  private func chooseStandIns() {
    func holder(of row: WorkingRow) -> WorkingRow? {
      guard row.failure == nil, row.standInFailure == nil else { return nil }
      return losses[ObjectIdentifier(row)]?.max { left, right in
        left.row.stands == right.row.stands ? precedes(left, right) : right.row.stands
      }?.row
    }
    for row in set.rows {
      row.standIn = nil
      guard canLeaveReferences(row) else { continue }
      var found = row
      var seen: Set<ObjectIdentifier> = []
      while let holder = holder(of: found), seen.insert(ObjectIdentifier(found)).inserted {
        found = holder
      }
      if found.stands { row.standIn = found }
    }
  }

  /// Shows a row under the identity that stand-ins give it: the row of that identity, which does
  /// not exist itself, shows the values.
  func lend(to borrower: WorkingRow) throws {
    guard let identity = borrower.shownIdentity else { return }
    let row = try set.row(RowKey(table: borrower.key.table, identity: identity))
    row.borrower = borrower
    row.isVisible = true
    row.claims = borrower.claims
    for column in row.values.indices { row.overlays[column] = borrower.shownValue(column) }
    borrower.isVisible = false
    borrower.isElsewhere = true
  }
}
