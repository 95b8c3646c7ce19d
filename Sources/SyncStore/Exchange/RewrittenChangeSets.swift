import SyncModel

/// The rewriting of change sets, which no device applies as they are, as change sets of this
/// client. The store applies them at once. Each value keeps its stamp.
struct RewrittenChangeSets {
  let session: StoreSession
  let binding: StoreBinding
  let clockTolerance: Int64
  let checkCancellation: () throws -> Void

  /// Rewrites the change sets, which are in causal order, except those whose changes the store has
  /// already. Returns how many were written.
  ///
  /// - Parameters:
  ///   - isOwn: Whether this store made them.
  ///   - isWanted: Whether to write a change set although the store has its changes.
  func write(
    _ changeSets: [SyncChangeSet], isOwn: Bool,
    evenIf isWanted: (SyncChangeSet) -> Bool = { _ in false }
  ) throws -> Int {
    let conflicts = session.conflicts
    let lastConflict = try conflicts.journal.summary().last
    defer { conflicts.previousClient = nil }
    var count = 0
    for former in changeSets {
      try checkCancellation()
      let changeSet = try rewritten(former)
      var concurrency: Concurrency?
      if isOwn {
        // Only the original records what its author knew when it was made.
        let author = try session.clients.number(of: former.header.client)
        concurrency = try Concurrency(
          author: author, dependencies: former.dependencies, session: session, countsOwn: false)
        conflicts.previousClient = author
      }
      // Each one is finished before the next one, which is compared with what is in the tables.
      let apply = ChangeApply(session: session, clockTolerance: clockTolerance)
      if try !isWanted(former) && ChangeContainment(session: session).contains(changeSet) {
        // Values that have lost are entered in the journal.
        guard let concurrency else { continue }
        try apply.merge(changeSet, author: session.own, concurrency)
      } else {
        let bytes = try ChangeSetCodec.encode(changeSet)
        let entry = VersionVector.Entry(
          number: changeSet.header.number, hash: ContentHash(of: bytes))
        try session.outbox.add(bytes, as: entry, rowCount: changeSet.rowCount, of: session.own)
        _ = try apply.apply(
          changeSet, hash: entry.hash, byteCount: bytes.count, concurrency: concurrency)
        count += 1
      }
      try apply.finish()
    }
    try conflicts.journal.finish()
    try ConflictTable.removeRepeated(after: lastConflict, session.database)
    return count
  }

  /// Returns a change set as the next one of this client.
  private func rewritten(_ former: SyncChangeSet) throws -> SyncChangeSet {
    let head = try session.ownHead()
    var changeSet = former
    changeSet.header = SyncChangeSet.Header(
      root: binding.root, document: binding.document, generation: binding.generation,
      client: binding.client, number: (head?.number ?? 0) + 1, previous: head?.hash)
    changeSet.dependencies = try session.clients.vector()
    changeSet.dependencies[binding.client] = nil
    changeSet.tables = former.tables.map { $0.keepingStamps(of: former.header.client) }
    return changeSet
  }
}
