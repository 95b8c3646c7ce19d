import GRDB
import SyncModel

/// The merge of change sets into the store, within one transaction.
///
/// It writes tables whose rows concern no other rows while it reads the change set
/// (``TableApply``). The rows of the other tables, and every row that is not plain, go through a
/// ``WorkingSet``, which ``finish()`` settles.
final class ChangeApply {
  private let session: StoreSession
  private let set: WorkingSet
  private let entangled: Set<Int>

  /// The number of rows at which the working set is settled before more come in.
  static let workingRows = 20_000

  private(set) var report = ApplyReport()

  private let clockTolerance: Int64

  private let checkCancellation: () throws -> Void

  /// - Parameters:
  ///   - clockTolerance: How many milliseconds a change may be ahead of this device's clock before
  ///     it causes a warning.
  ///   - checkCancellation: Called again and again; throws to cancel.
  init(
    session: StoreSession, clockTolerance: Int64,
    checkCancellation: @escaping () throws -> Void = {}
  ) {
    self.session = session
    self.checkCancellation = checkCancellation
    self.clockTolerance = clockTolerance
    set = WorkingSet(session: session)
    var entangled: Set<Int> = []
    for table in session.schema.tables where table.isEntangled {
      entangled.insert(table.id)
      entangled.formUnion(table.foreignKeys.map(\.parent))
    }
    self.entangled = entangled
  }

  /// Merges one change set and counts it as applied. Its predecessors and dependencies must be
  /// applied.
  ///
  /// - Parameter concurrency: The changes that its author had not seen; `nil` derives them from its
  ///   dependencies.
  func apply(
    _ changeSet: SyncChangeSet, hash: ContentHash, byteCount: Int,
    concurrency: Concurrency? = nil
  ) throws -> AppliedChangeSet {
    let author = try session.clients.number(of: changeSet.header.client)
    session.changes.note(author: changeSet.header.client)
    try merge(
      changeSet, author: author,
      try concurrency
        ?? Concurrency(author: author, dependencies: changeSet.dependencies, session: session))
    let entry = VersionVector.Entry(number: changeSet.header.number, hash: hash)
    try session.clients.setLast(entry, of: changeSet.header.client)
    try session.history.add(
      client: author, entry: entry, rowCount: changeSet.rowCount, byteCount: byteCount,
      at: session.now)
    let range = changeSet.timeRange
    try session.ranges.record(
      client: author, number: entry.number, range, isMixed: changeSet.hasStampsOfOthers)
    warnOfClock(changeSet.header.client, range)
    let applied = AppliedChangeSet(
      client: changeSet.header.client, number: entry.number, hash: hash,
      rowCount: changeSet.rowCount, milliseconds: session.now)
    report.applied.append(applied)
    return applied
  }

  /// Merges the changes of a change set.
  func merge(
    _ changeSet: SyncChangeSet, author: Int32, _ concurrency: Concurrency
  ) throws {
    for changes in changeSet.tables where changes.count > 0 {
      try checkCancellation()
      guard let table = session.schema.table(wireName: changes.table),
        table.knowsRows(as: changes)
      else {
        try keep(changes, author: author)
        continue
      }
      session.warnOfUnusableTriggers(of: table)
      let batch = try IncomingChanges(
        changes, table: table, author: author, concurrency: concurrency, session: session)
      try batch.adoptFormerStates()
      if !batch.foreignColumns.isEmpty {
        try session.foreign.keep(
          batch.changes, columns: batch.foreignColumns, author: author, clients: session.clients,
          identity: batch.identity)
        report.unknownNames.formUnion(
          batch.foreignColumns.map { "\(changes.table).\(changes.columns[$0])" })
      }
      let hasEarly = try !table.counters.isEmpty && session.early.exist()
      let isReferredLocally = try session.localReferences()[table.name.folded] != nil
      // Moves are recorded even if no row here refers to the moved rows yet.
      if entangled.contains(table.id) || isReferredLocally || hasEarly || batch.hasRepeatedRows
        || !changes.moves.isEmpty
      {
        try merge(batch)
      } else {
        let apply = try TableApply(
          batch, session: session, set: set, checkCancellation: checkCancellation)
        try apply.run()
        report.insertedRows += apply.counts.inserted
        report.updatedRows += apply.counts.updated
        report.deletedRows += apply.counts.deleted
      }
      if set.count >= Self.workingRows { try finish() }
    }
  }

  /// Settles the remaining rows, so that the tables show the merged state.
  func finish() throws {
    let counts = try Materializer(set: set).run()
    report.insertedRows += counts.inserted
    report.updatedRows += counts.updated
    report.deletedRows += counts.deleted
  }

  /// Stores the changes of a table that this store does not have, or whose rows it identifies in
  /// another way. Ignores a table that is excluded, and one in which migrations are recorded or which is
  /// part of a virtual table: earlier builds synchronized such tables.
  private func keep(_ changes: TableChanges, author: Int32) throws {
    let isIgnored = session.schema.leftOut.contains {
      $0.key.folded == changes.table.folded
        && [.excluded, .schema, .virtualTablePart].contains($0.value)
    }
    if isIgnored { return }
    try session.foreign.keep(changes, author: author, clients: session.clients)
    report.unknownNames.insert(changes.table)
  }

  private func merge(_ batch: IncomingChanges) throws {
    var states = try batch.states()
    // The rows that refer to these rows ask for their keys.
    try session.access(batch.table.id).stamps.readAhead(batch.fingerprints)
    var cursor = IncomingChanges.Cursor(batch)
    for row in 0..<batch.changes.count {
      if row % 1024 == 1023 { try checkCancellation() }
      if set.count >= Self.workingRows, row % 1024 == 0 {
        try finish()
        states = try batch.states()
      }
      let key = RowKey(table: batch.table.id, identity: batch.identity(row))
      let working =
        try set[key] ?? set.load(key, fingerprint: batch.fingerprints[row], state: states[row])
      try set.merge(batch.change(row, &cursor), into: working)
    }
  }

  private func warnOfClock(_ client: ClientIdentifier, _ range: ClosedRange<HybridTime>?) {
    guard let greatest = range?.upperBound.milliseconds else { return }
    let ahead = greatest - session.now
    guard ahead > clockTolerance else { return }
    var warning = SyncWarning(
      .clockAhead, message: "the clock of another device is far ahead of this device's clock")
    warning.client = client
    warning.milliseconds = ahead
    session.conflicts.warn(warning)
  }
}

extension SyncChangeSet {
  /// Whether some of its cells have stamps of clients other than its author.
  fileprivate var hasStampsOfOthers: Bool {
    tables.contains { table in
      table.exceptions.contains { $0.stamp.client != header.client && $0.column != nil }
    }
  }
}
