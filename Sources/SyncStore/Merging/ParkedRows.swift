import SyncModel

/// The rows that are not shown, and whether others stand for them.
struct ParkedRows {
  private let session: StoreSession
  private let set: WorkingSet

  init(_ session: StoreSession) {
    self.session = session
    set = WorkingSet(session: session)
  }

  /// Returns the parked rows.
  ///
  /// While a table cannot be synchronized, bookkeeping is not renewed after changes of the schema: then nothing is known
  /// of what stands for rows.
  ///
  /// - Parameter areAll: Whether to return those of tables that are not synchronized at present as well.
  func all(areAll: Bool = false) throws -> [ParkedRow] {
    var claiming: [Int: Set<RowIdentity>] = [:]
    let isCurrent = session.schema.suspended.isEmpty
    return try session.keptRows.parked(areAll: areAll).map { row, table in
      guard isCurrent, row.reason == .uniqueValueTaken, session.schema.contains(table) else {
        return row
      }
      let claimants = try claiming[table] ?? Set(session.keptRows.claimants(in: table))
      claiming[table] = claimants
      var row = row
      // A row whose key another row has on this device alone claims nothing.
      row.hasStandIn =
        try claimants.contains(row.identity) && hasStandIn(row.identity, session.schema[table])
      return row
    }
  }

  private func hasStandIn(_ identity: RowIdentity, _ table: TableSchema) throws -> Bool {
    let row = RowKey(table: table.id, identity: identity)
    if table.hasStandIns, !session.schema.inbound(to: table).isEmpty {
      return try leadsToShownRow(row)
    }
    guard let cells = try session.keptRows.row(row)?.cells else { return false }
    var wasFound = false
    for claim in try session.keptRows.claims(of: row) {
      guard let holder = try values(of: claim) else { continue }
      wasFound = true
      for cell in cells where !table.columns[cell.column].isIdentity {
        let column = table.columns[cell.column]
        let shown = try session.exported(holder[cell.column], column)
        if shown != (column.domain == .counter ? column.number(cell.value) : cell.value) {
          return false
        }
      }
    }
    return wasFound
  }

  /// Returns whether a row that has a value which the row claims is shown, or is hidden by such a row in turn.
  private func leadsToShownRow(_ row: RowKey) throws -> Bool {
    var next = [row]
    var seen: Set<RowKey> = [row]
    while let row = next.popLast() {
      for claim in try session.keptRows.claims(of: row) {
        if try values(of: claim) != nil { return true }
        for identity in try session.keptRows.claimants(of: claim) {
          let other = RowKey(table: row.table, identity: identity)
          if seen.insert(other).inserted { next.append(other) }
        }
      }
    }
    return false
  }

  /// Returns the values of the row that has a claimed value in the table.
  private func values(of claim: ClaimKey) throws -> [Value]? {
    let access = try session.access(claim.table)
    if claim.index == ClaimKey.identityIndex { return try access.shown(claim.key)?.values }
    return try set.keyOfHolder(claim, access).flatMap(access.row)?.values
  }
}
