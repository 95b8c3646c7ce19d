import SyncModel

/// Sealing in and within transactions.
extension OpenStore {
  /// Seals the edits, and leaves the warnings to the next
  /// ``LocalStore/seal(checkCancellation:onProgress:prepare:)``.
  @discardableResult
  func sealUnreported(
    checkCancellation: @escaping () throws -> Void,
    onProgress: @escaping WorkProgress = { _, _ in },
    prepare: () throws -> Void = {}
  ) throws -> SealReport {
    guard try read({ try Sealing.isDue($0) }) else { return SealReport() }
    try prepare()
    return try passingOverTriggers {
      try write {
        try seal($0, work: WorkCount(onProgress), checkCancellation: checkCancellation)
      }
    }
  }

  /// Seals within a transaction: see ``Sealing``. The session has the warnings.
  @discardableResult
  func seal(
    _ session: StoreSession, work: WorkCount = WorkCount { _, _ in },
    comparesRemade: Bool = true, lackingDeletedCells: Set<Int> = [],
    checkCancellation: @escaping () throws -> Void
  ) throws -> SealReport {
    try Sealing(
      session: session, binding: binding, options: options, comparesRemade: comparesRemade,
      lackingDeletedCells: lackingDeletedCells, work: work, checkCancellation: checkCancellation
    ).run()
  }

  /// Makes the edits that policies want after changes were merged in this transaction, and seals
  /// them as ordinary changes, together with what is due of the edits that no change set could
  /// carry.
  func decide(_ session: StoreSession, checkCancellation: @escaping () throws -> Void) throws {
    let isDecided = try PolicyDecisions(
      session: session, limits: options.limits, checkCancellation: checkCancellation
    ).make()
    if try isDecided || DueHeldEdits(session).exist() {
      try seal(session, checkCancellation: checkCancellation)
      session.forgetUnpublished()
    }
    try LocalReferrers(session).followUndecided()
    try session.settleUndecidedAside()
  }

  /// Returns the change sets that wait, and whether the inbox has invalid entries besides.
  ///
  /// - Parameter isCommitted: Whether the session is that of ``readCommitted(isLong:_:)``.
  func waiting(
    _ session: StoreSession, isCommitted: Bool = false
  ) throws -> (waiting: [StoreStatus.WaitingChangeSet], hasInvalid: Bool) {
    let (items, hasInvalid) = try waitingItems.all(session, forgetsOthers: !isCommitted)
    let pending = try PendingChangeSets(
      [], kept: items, unconfirmed: .read(session.database))
    return (try pending.waiting(session), hasInvalid)
  }
}
