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
      let kept = try read { try waitingItems.all($0).items }
      guard !received.isEmpty || !kept.isEmpty else { return }
      var groups = ChangeSetGroups(
        PendingChangeSets(received, kept: kept), binding, options, checkCancellation)
      while !groups.isDone {
        try groups.attempt(&report) { groups, report in
          try write { session in
            try groups.begin(session, report)
            try seal(session, checkCancellation: checkCancellation)
            try groups.apply(session, &report) { applied in
              if told.insert(applied.hash).inserted { onApplied(applied) }
            }
            try decide(session, checkCancellation: checkCancellation)
            try groups.end(session, &report)
          }
        }
      }
    }
    return report
  }

  /// Makes the edits that policies want after changes were merged in this transaction, and seals
  /// them as ordinary changes.
  func decide(_ session: StoreSession, checkCancellation: @escaping () throws -> Void) throws {
    guard try PolicyDecisions(session: session).make() else { return }
    try seal(session, checkCancellation: checkCancellation)
    session.forgetUnpublished()
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
      let (items, hasInvalid) = try waitingItems.all(session)
      return (try PendingChangeSets([], kept: items).waiting(session), hasInvalid)
    }
    if hasInvalid { try write { try $0.inbox.removeInvalid(own: $0.ownClient) } }
    return waiting
  }

  /// Returns the waiting change sets within a transaction.
  func waiting(_ session: StoreSession) throws -> [StoreStatus.WaitingChangeSet] {
    try PendingChangeSets([], kept: waitingItems.all(session).items).waiting(session)
  }
}
