import GRDB
import SyncModel

/// What the edits in the log of one table have changed, row by row, as the next sealing will find it. Only
/// reads.
struct UnsealedRows {
  /// The change of one row.
  struct Change {
    /// The local values of the key columns, as the log has them.
    var key: [Value]
    var identity: RowIdentity
    var kind: StoreStatus.PendingChanges.Kind
    /// The positions of the changed columns.
    var columns: [Int]
    /// The time of the first edit.
    var since: HybridTime
  }

  private let session: StoreSession
  private let table: TableSchema
  private let access: TableAccess
  private let held: HeldEdits.OfTable
  /// Whether another row may have the identity that a row had.
  private let canMove: Bool
  private let isRemade: Bool
  private let isLogShared: Bool
  /// The former keys of rows that have NULL in their key now and get them back.
  private let lostKeys: Set<[Value]>

  /// Whether the next sealing gives a row of the table its key back.
  var hasLostKeys: Bool { !lostKeys.isEmpty }

  init(of table: TableSchema, _ session: StoreSession) throws {
    self.session = session
    self.table = table
    access = try session.access(table.id)
    held = try session.heldEdits().inTable(table, session)
    canMove = TableExport.canMove(table, in: session.schema)
    isRemade = try session.tablesToCompare().contains(table.id)
    isLogShared = try SharedLog.isNoted(session.database)
    lostKeys = try Set(session.lostKeys(of: table).map(\.key))
  }

  /// The most rows of the log that are in memory at once.
  private static let portion = 100_000

  /// Returns the first changes, at most `limit`, in order of the first edits, and whether there are more.
  func changes(limit: Int) throws -> (changes: [Change], hasMore: Bool) {
    var found: [Change] = []
    var seen: Set<EditLog.KeyHash> = []
    var gone: Set<RowIdentity> = []
    var portion = limit + 1
    var isLast = false
    // Rows whose edits have come to nothing do not count.
    while found.count <= limit, !isLast {
      var log = try EditLog(table: table, session: session, isBrief: true)
      let batch = try log.first(min(portion, Self.portion), notIn: &seen)
      found += try changes(batch, &gone)
      isLast = batch.isLast
      portion *= 2
    }
    return (Array(found.prefix(limit)), found.count > limit)
  }

  /// - Parameter gone: The identities of the rows that were found deleted.
  private func changes(
    _ batch: EditLog.Batch, _ gone: inout Set<RowIdentity>
  ) throws -> [Change] {
    var found: [Change] = []
    let drawn = try drawnIdentities(batch)
    for (row, log) in batch.rows.enumerated() {
      let key = batch.keys.map { $0[row] }
      if !log.isPresent, lostKeys.contains(key) { continue }
      let identity = try identity(of: key, log, drawn)
      // It has another key here, and is the same row for other devices.
      if canMove, !log.isPresent, try isShown(identity) || gone.contains(identity) { continue }
      let state = try access.stamps.state(of: access.fingerprint(identity))
      guard let (kind, columns) = try outcome(log, identity, state) else { continue }
      if kind == .deleted { gone.insert(identity) }
      found.append(
        Change(key: key, identity: identity, kind: kind, columns: columns, since: log.firstTime))
    }
    return found
  }

  private func outcome(
    _ log: EditLog.Row, _ identity: RowIdentity, _ state: RowState?
  ) throws -> (StoreStatus.PendingChanges.Kind, columns: [Int])? {
    let existed = try log.existed(identity, state, in: table, session)
    let isUnknown = held.unknown.contains(identity)
    guard log.isPresent else {
      if isUnknown, !held.known.contains(identity) { return nil }
      if !log.mayBeGone, isRemade || log.first == .renamed { return nil }
      let isUndead = try isUndead(identity, state)
      return existed || isUndead || (isLogShared && log.first == .insert) ? (.deleted, []) : nil
    }
    // The comparison of a table that was made again finds rows that came unseen.
    let cameUnseen = log.first == .insert && state?.existence == .unsaid
    guard existed, !isUnknown, !cameUnseen else {
      return log.insertTime != nil || log.isReborn || !log.updates.isEmpty ? (.inserted, []) : nil
    }
    if log.insertTime != nil { return (.updated, table.cellPositions) }
    guard !log.updates.isEmpty else { return nil }
    let columns = table.cellPositions.filter { position in
      log.updates.contains { $0.columns.contains(position) }
    }
    return (.updated, columns)
  }

  /// Returns whether a deleted row was shown all the same.
  private func isUndead(_ identity: RowIdentity, _ state: RowState?) throws -> Bool {
    guard state?.isKept == true else { return false }
    let kept = try session.keptRows.row(RowKey(table: table.id, identity: identity))
    return kept?.reason == .rescued || kept?.reason == .borrowed
  }

  private func isShown(_ identity: RowIdentity) throws -> Bool {
    guard let key = try access.key(of: identity) else { return false }
    return try access.row(key) != nil
  }

  private func identity(
    of key: [Value], _ log: EditLog.Row, _ drawn: [Int64: RowIdentity]
  ) throws -> RowIdentity {
    if let number = Value.key(key[0]), let identity = drawn[number] { return identity }
    return try log.isPresent ? access.identity(ofKey: key) : access.earlierIdentity(ofKey: key)
  }

  private func drawnIdentities(_ batch: EditLog.Batch) throws -> [Int64: RowIdentity] {
    guard table.identity == .surrogate else { return [:] }
    let keys = batch.rows.indices.compactMap {
      batch.rows[$0].first == .insert ? Value.key(batch.keys[0][$0]) : nil
    }
    return try session.identitiesToAssign(to: Set(keys), access)
  }
}
