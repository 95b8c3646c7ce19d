import SyncModel

/// Sealing in and within transactions.
extension OpenStore {
  /// Seals the edits, and leaves the warnings to the next
  /// ``LocalStore/seal(checkCancellation:onProgress:prepare:)``.
  @discardableResult
  func sealUnreported(
    checkCancellation: @escaping () throws -> Void,
    onProgress: @escaping WorkProgress = { _, _ in },
    refusesRemadeTables: Bool = false, prepare: () throws -> Void = {}
  ) throws -> SealReport {
    guard try read({ try Sealing.isDue($0) }) else { return SealReport() }
    try prepare()
    return try passingOverTriggers {
      try write { session in
        if refusesRemadeTables, let remade = try session.remadeTables().first {
          throw StoreError(
            .unpublishedEdits, path: path,
            message: "A program has made the table \(quoted(remade.table.name)) again. It is not "
              + "compared with its former rows yet.",
            remedy: "Synchronize the store, then try again.")
        }
        return try seal(session, work: WorkCount(onProgress), checkCancellation: checkCancellation)
      }
    }
  }

  /// Seals the edits, and runs `body` in a transaction that only reads, on the state right after that.
  /// Other programs may write while `body` runs, in WAL mode; in rollback mode their commits wait.
  ///
  /// A program can make an edit between the two transactions, although the time is short: then the
  /// edits are sealed again. Returns `nil` if that happens at each of ``sealingAttempts`` attempts.
  /// Throws `unpublishedEdits` if a program has made a table again: a synchronization compares it
  /// first.
  func readSealed<Result>(
    checkCancellation: @escaping () throws -> Void, prepare: () throws -> Void,
    _ body: (StoreSession) throws -> Result
  ) throws -> Result? {
    for _ in 1...Self.sealingAttempts {
      try sealUnreported(
        checkCancellation: checkCancellation, refusesRemadeTables: true, prepare: prepare)
      try checkCancellation()
      let result: Result?? = try connection.use { database in
        try readIfCurrent(database) { session in
          guard try session.tablesWithEdits().isEmpty else { return nil }
          return try body(session)
        }
      }
      if case .some(.some(let result)) = result { return result }
    }
    return nil
  }

  private static let sealingAttempts = 50

  /// Seals within a transaction: see ``Sealing``. The session has the warnings.
  @discardableResult
  func seal(
    _ session: StoreSession, work: WorkCount = WorkCount { _, _ in },
    comparesRemade: Bool = true, lackingDeletedCells: Set<Int> = [],
    checkCancellation: @escaping () throws -> Void
  ) throws -> SealReport {
    let report = try Sealing(
      session: session, binding: binding, options: options, comparesRemade: comparesRemade,
      lackingDeletedCells: lackingDeletedCells, work: work, checkCancellation: checkCancellation
    ).run()
    try GoneQuestions(session: session).close()
    return report
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
    try GoneQuestions(session: session).close()
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
