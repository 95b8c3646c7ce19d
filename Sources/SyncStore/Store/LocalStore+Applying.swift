import SyncModel

extension LocalStore {
  /// Applies the change sets that can be applied, in causal order, in one transaction per bounded
  /// group, and stores the rest until their dependencies have arrived. Skips change sets that were
  /// applied before.
  ///
  /// Seals local edits first, in the same transaction, so that they take part in merging.
  ///
  /// - Parameters:
  ///   - checkCancellation: Called before each change set. Its errors are passed on; the groups
  ///     that were committed by then stay applied, the others can be applied later.
  ///   - onApplied: Called for each change set after it was merged, which is before its group is
  ///     committed.
  package func apply(
    _ received: [ReceivedChangeSet], checkCancellation: @escaping () throws -> Void = {},
    onApplied: (AppliedChangeSet) -> Void = { _ in }
  ) throws -> ApplyReport {
    var report = ApplyReport()
    var told: Set<ContentHash> = []
    try passingOverTriggers {
      try apply(received, into: &report, checkCancellation) { applied in
        if told.insert(applied.hash).inserted { onApplied(applied) }
      }
    }
    return report
  }

  /// Applies change sets that were not applied before, and adds those that were committed to a
  /// report.
  private func apply(
    _ received: [ReceivedChangeSet], into report: inout ApplyReport,
    _ checkCancellation: @escaping () throws -> Void, onApplied: (AppliedChangeSet) -> Void
  ) throws {
    let kept = try read { try waitingSets($0).items }
    guard !received.isEmpty || !kept.isEmpty else { return }
    var pending = PendingChangeSets(received, kept: kept)
    var rowsPerTransaction = options.rowsPerTransaction
    var isDone = false
    while !isDone {
      let before = pending
      do {
        isDone = try write { session in
          for refused in report.refused {
            // They come again from the directory.
            try session.inbox.remove(of: refused.client, after: refused.number - 1)
          }
          try seal(session, checkCancellation: checkCancellation)
          try session.setCache(pending.isLarge ? .applyingLarge : .applying)
          let isDone = try applyGroup(
            of: rowsPerTransaction, &pending, session, &report, checkCancellation, onApplied)
          try decide(session, checkCancellation: checkCancellation)
          if isDone {
            for received in pending.rest.compactMap(\.received) { try session.inbox.add(received) }
            report.waiting = try pending.waiting(session)
          }
          report.add(session.conflicts)
          report.openConflicts = try session.conflicts.journal.openCount
          report.parkedRows = try session.keptRows.parkedCount()
          return isDone
        }
      } catch let fault as ChangeSetFault {
        // Nothing of the group was applied.
        pending = before
        if fault.isAlone {
          pending.refuse(fault.item)
          report.refused.append(fault.refusal)
        } else {
          // Applying one at a time shows which one it was.
          rowsPerTransaction = 0
        }
      }
    }
  }

  /// Applies at least one change set, and more until none is left that can be applied or the
  /// transaction has its full number of rows. Returns whether none is left.
  private func applyGroup(
    of rowsPerTransaction: Int, _ pending: inout PendingChangeSets, _ session: StoreSession,
    _ report: inout ApplyReport, _ checkCancellation: @escaping () throws -> Void,
    _ onApplied: (AppliedChangeSet) -> Void
  ) throws -> Bool {
    let apply = ChangeApply(
      session: session, clockTolerance: options.clockTolerance,
      checkCancellation: checkCancellation)
    var rows = 0
    var count = 0
    var last: PendingChangeSets.Item?
    var isDone = false
    do {
      while count == 0 || rows < rowsPerTransaction {
        guard let next = try pending.takeNext(session, binding) else {
          isDone = true
          break
        }
        last = next
        count += 1
        try checkCancellation()
        try next.check(session, binding)
        onApplied(
          try apply.apply(
            try next.changeSet(session), hash: next.hash, byteCount: next.byteCount))
        rows += next.rowCount
        try session.inbox.remove(of: next.header.client, through: next.header.number)
        if next.header.client == session.ownClient { try session.completeOwn() }
      }
      try apply.finish()
    } catch {
      guard let last, let fault = ChangeSetFault(error, in: last, isAlone: count == 1) else {
        throw error
      }
      throw fault
    }
    if !apply.report.unknownNames.isEmpty {
      var warning = SyncWarning(
        .schemaAhead,
        message: "another device has tables or columns that this device does not have yet")
      warning.names = apply.report.unknownNames.sorted()
      session.conflicts.warn(warning)
    }
    report.add(apply.report)
    return isDone
  }

  /// Returns the change sets that wait, without their changes, and whether there are invalid entries
  /// besides.
  private func waitingSets(
    _ session: StoreSession
  ) throws -> (items: [PendingChangeSets.Item], hasInvalid: Bool) {
    let (kept, hasInvalid) = try session.inbox.all()
    let items = try waitingItems.items(kept.map(\.hash)) { index in
      let (client, number, hash) = kept[index]
      let bytes = try session.inbox.bytes(of: client, number: number, hash: hash)
      let summary = try ChangeSetCodec.summary(bytes)
      return PendingChangeSets.Item(
        header: summary.header, hash: hash, dependencies: summary.dependencies,
        received: nil, byteCount: bytes.count, rowCount: summary.rowCount)
    }
    return (items, hasInvalid)
  }

  /// Returns the change sets of other clients that have been applied.
  package func appliedVector() throws -> VersionVector {
    try read { session in
      var vector = try session.clients.vector()
      vector[binding.client] = nil
      return vector
    }
  }

  /// Returns the change sets that have been applied, including those of this client.
  package func vector() throws -> VersionVector {
    try read { try $0.clients.vector() }
  }

  /// Returns the hashes of a client's change sets that were applied or sealed here, by their
  /// numbers, from `first` on. Old ones are missing.
  package func hashes(
    of client: ClientIdentifier, from first: UInt64
  ) throws -> [UInt64: ContentHash] {
    try read { session in
      var hashes = try session.history.hashes(of: session.clients.number(of: client), from: first)
      if let last = try session.clients.vector()[client], last.number >= first {
        hashes[last.number] = last.hash
      }
      return hashes
    }
  }

  /// Marks another client's change sets after `entry` as not applied, or all of them if it is
  /// `nil`, and forgets those that wait. Their changes stay.
  package func takeBack(_ client: ClientIdentifier, to entry: VersionVector.Entry?) throws {
    try write { session in
      try session.clients.setLast(entry, of: client)
      try session.inbox.remove(of: client, after: entry?.number ?? 0)
    }
  }

  /// Returns the last change set that this client sealed; `nil` for none.
  package func head() throws -> VersionVector.Entry? {
    try read { try $0.ownHead() }
  }

  /// Returns the received change sets that wait. Own ones are among them after the store's content
  /// was exchanged.
  ///
  /// Removes entries whose client or hash is invalid: a synchronization fetches their change sets
  /// again.
  package func waiting() throws -> [StoreStatus.WaitingChangeSet] {
    let (waiting, hasInvalid) = try read { session in
      let (items, hasInvalid) = try waitingSets(session)
      return (try PendingChangeSets([], kept: items).waiting(session), hasInvalid)
    }
    if hasInvalid { try write { try $0.inbox.removeInvalid(own: $0.ownClient) } }
    return waiting
  }

  /// Returns the waiting change sets within a transaction.
  func waiting(_ session: StoreSession) throws -> [StoreStatus.WaitingChangeSet] {
    try PendingChangeSets([], kept: waitingSets(session).items).waiting(session)
  }
}

extension ApplyReport {
  fileprivate mutating func add(_ other: ApplyReport) {
    applied += other.applied
    insertedRows += other.insertedRows
    updatedRows += other.updatedRows
    deletedRows += other.deletedRows
    unknownNames.formUnion(other.unknownNames)
  }

  fileprivate mutating func add(_ recorder: ConflictRecorder) {
    conflicts += recorder.count
    questions += recorder.questions.sorted().filter { !questions.contains($0) }
    warnings = SyncWarning.joining(warnings + recorder.takeWarnings())
  }
}
