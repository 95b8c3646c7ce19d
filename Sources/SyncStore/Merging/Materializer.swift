import GRDB
import SyncModel

/// The decision which rows of a working set are shown, and the writing of the difference.
///
/// The shown rows are a function of the logical state alone, whatever the order in which the state
/// came about (Documentation/Merging.md):
///
/// 1. ``ExistenceRule`` decides which rows *exist*.
/// 2. A row *stands* if it exists, its own table's conditions accept it, and it is the top claimant
///    of every unique key that it claims. If other rows refer to a row that lost a value, the row
///    that holds the value stands in for it. The referring rows may claim more because of this, and
///    the step goes on with their claims.
/// 3. The *visible* rows are the greatest set of standing rows whose references all lead to visible
///    rows.
///
/// The set grows by the rows that its own rows can affect: claimants of the same values, children
/// of rows that vanish, rows that wait for a row that appears, and rows that are referred to and
/// not shown.
final class Materializer {
  let session: StoreSession
  let set: WorkingSet
  let existence: ExistenceRule
  /// The status of rows outside the set; each row is looked up once.
  private var outside: [RowKey: OutsideRow] = [:]
  var checkedClaims: Set<ClaimKey> = []
  var claimants: [ClaimKey: [WorkingRow]] = [:]
  /// The claims that each row loses, with the rows that hold the values.
  var losses: [ObjectIdentifier: [Claimant]] = [:]
  /// The standing rows that have another identity because of stand-ins, by that identity.
  private var borrowers: [RowKey: WorkingRow] = [:]

  /// The numbers of rows that were inserted, updated and deleted.
  struct Counts {
    var inserted = 0
    var updated = 0
    var deleted = 0
  }

  init(set: WorkingSet) {
    self.set = set
    session = set.session
    existence = ExistenceRule(set: set)
  }

  /// Decides which rows are shown, writes the difference, and empties the set.
  func run() throws -> Counts {
    guard set.count > 0 else { return Counts() }
    while true {
      try decide()
      let writer = RowWriter(set: set)
      try writer.notePlainValues()
      try session.database.execute(sql: "SAVEPOINT docsync_rows")
      let refused = try writer.writeRows()
      if !refused.isEmpty {
        // The refused rows no longer stand, which may let others stand.
        try session.database.execute(sql: "ROLLBACK TO docsync_rows; RELEASE docsync_rows")
        for refusal in refused {
          (refusal.row.borrower ?? refusal.row).failure = refusal.reason
        }
        try writer.forgetAssignedKeys()
        continue
      }
      try writer.noteChanges()
      try writer.writeBookkeeping()
      try OrphansWithoutKey(of: set.referrersWithoutKey, after: set).settle()
      try session.database.execute(sql: "RELEASE docsync_rows")
      set.removeAll()
      session.formerBorrowers.removeAll()
      return writer.counts
    }
  }

  func decide() throws {
    outside = [:]
    forgetGivingWay()
    while true {
      try existence.expand()
      try existence.decide()
      if try expandClaims() { continue }
      decideStanding()
      if try letStandIn() { continue }
      if try expandReferences() { continue }
      if try giveWay() { continue }
      if try !refuseHidden() { break }
    }
    for row in borrowers.values where row.isVisible { try lend(to: row) }
    try leaveUncompared()
  }

  /// Leaves shown rows in their tables that are not to be shown any more, if a program has remade
  /// the table and no change was merged into the row. The row may have been edited unseen. Out of
  /// its table it would not be compared, and the edit would never be sent.
  ///
  /// All of it is decided again when the table has been compared.
  private func leaveUncompared() throws {
    let uncompared = try session.tablesToCompare()
    guard !uncompared.isEmpty else { return }
    for row in set.rows {
      row.isLeftAlone =
        uncompared.contains(row.key.table) && row.shown != nil && !row.isVisible
        && row.shownIdentity == nil && !row.wasBorrowed && row.state == row.loadedState
        && row.values == row.loadedValues
      if row.isLeftAlone { row.isVisible = true }
    }
  }

  /// Checks the conditions of rows that are not written, since a refused row must not keep other
  /// rows from a value. Returns true if a row is refused. The conditions of the other rows are
  /// checked when these are written.
  private func refuseHidden() throws -> Bool {
    var isRefused = false
    for row in set.rows where row.exists && !row.isVisible && !row.claims.isEmpty {
      guard row.failure == nil, !row.isTried else { continue }
      row.isTried = true
      row.failure = try set.refusal(of: row, with: row.ownOverlays)
      if row.failure != nil { isRefused = true }
    }
    return isRefused
  }

  // MARK: - References

  /// Finds the visible rows. Returns true if rows came into the set that have to be considered
  /// first.
  private func expandReferences() throws -> Bool {
    let before = set.count
    borrowers = [:]
    for row in set.rows {
      row.isVisible = row.stands
      if row.stands, let identity = row.shownIdentity {
        borrowers[RowKey(table: row.key.table, identity: identity)] = row
      }
    }
    var isSettled = false
    while !isSettled {
      isSettled = true
      for row in set.rows where row.isVisible {
        guard try !hasAllParents(row) else { continue }
        row.isVisible = false
        isSettled = false
      }
      if set.count > before { return true }
    }
    let hidden = set.rows.filter { !isVisible($0) }
    try existence.loadReferrers(byColumnsOf: set.rows.filter(isVisible))
    try existence.loadChildren(of: hidden)
    for row in hidden where row.shown != nil {
      if row.standIn != nil || row.shownIdentity != nil { try existence.loadWaiters(for: row) }
    }
    try existence.loadStrangers(of: hidden.filter { !$0.wasLiving && !$0.wasDead })
    return set.count > before
  }

  private func hasAllParents(_ row: WorkingRow) throws -> Bool {
    let table = session.schema[row.key.table]
    for key in table.foreignKeys where key.isRequired {
      let values = key.columns.map { row.shownValue($0) ?? .null }
      if values.contains(.null) { continue }
      if try existence.isPlain(values, key) { continue }
      guard try isVisible(values, key) else { return false }
    }
    return true
  }

  private func isVisible(_ values: [Value], _ key: ForeignKey) throws -> Bool {
    let parent = session.schema[key.parent]
    if let identity = parent.identity(for: values, of: key) {
      return try isVisible(RowKey(table: parent.id, identity: identity))
    }
    guard parent.identifies(key) == false else { return false }
    // The reference names a unique column that is not the identity.
    let wanted = parent.referenceKey(values, key)
    for row in set.rows where row.key.table == parent.id && row.isVisible {
      if parent.referenceKey(row.referredValues(key, parent), key) == wanted { return true }
    }
    let access = try session.access(parent.id)
    let statement = try access.statement(
      "SELECT \(parent.keyColumns.map(quoted).joined(separator: ", ")) FROM \(parent.quotedName) "
        + "WHERE \(TableAccess.match(key.parentColumns))")
    for (index, value) in values.enumerated() {
      statement.bind(
        try set.local(value, session.schema[key.child].columns[key.columns[index]]), at: index + 1)
    }
    guard try statement.step() else { return false }
    let found = parent.keyColumns.indices.map { statement.value(at: $0) }
    statement.reset()
    guard !found.contains(.null) else { return false }
    let row = RowKey(table: parent.id, identity: try access.identity(ofKey: found))
    guard set[row] == nil else { return false }
    let columns = session.schema[key.child].columns
    let hasPlain = zip(values, key.columns).contains { value, column in
      value.kind != .identity && columns[column].isKeyed
    }
    if hasPlain {
      // A plain number leads to no row that refers to the row with this number.
      try set.row(row)
    }
    return !hasPlain
  }

  private func isVisible(_ row: WorkingRow) -> Bool {
    if !borrowers.isEmpty, let borrower = borrowers[row.key] { return borrower.isVisible }
    return row.isVisible && row.shownIdentity == nil
  }

  func isVisible(_ key: RowKey) throws -> Bool {
    if let row = borrowers[key] { return row.isVisible }
    if let row = set[key] { return isVisible(row) }
    let status = try outside[key] ?? session.outsideRow(key)
    outside[key] = status
    // A row that is not shown may appear together with the rows that refer to it.
    if status == .kept { try set.row(key) }
    return status != .absent
  }
}
