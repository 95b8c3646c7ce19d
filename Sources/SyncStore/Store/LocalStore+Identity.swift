import SyncModel

/// The client that the store is, and its generation.
extension LocalStore {
  /// Makes the store a new client, in one transaction.
  ///
  /// Change sets that were sealed before belong to the former client, and stay in the store until
  /// they are published for that client (``ancestralChangeSets()``). Change sets that no longer
  /// belong to it are rewritten as change sets of the new client. Each value keeps its stamp, so
  /// that merging them where they are known changes nothing.
  ///
  /// Removes the records of the layer above whose keys begin with `client.`. If another state of
  /// the store may go on as the former client, the record `client.marker` becomes `former.marker`.
  ///
  /// - Parameters:
  ///   - bytes: The files of own change sets whose bytes the store no longer has, by their numbers.
  ///   - standing: Called with each change set of the present client, in order. All change sets from
  ///     the first one that is not common are rewritten, except those whose bytes are missing:
  ///     every member has applied them.
  @discardableResult
  package func beginIncarnation(
    _ reason: Incarnation.Reason, isAncestorGone: Bool = false, bytes: [UInt64: [UInt8]] = [:],
    standing: (SealedChangeSet) throws -> Incarnation.Standing = { _ in .common }
  ) throws -> Incarnation {
    let branch = try IncarnationBranch(
      of: sealedChangeSets(),
      bytes: { sealed in try read { try $0.bytes(of: sealed, given: bytes[sealed.number]) } },
      standing: standing)
    let before = binding
    let began = try write { session in
      let began = try store.identity(session.database).begin(
        reason, after: before, isAncestorGone: isAncestorGone, session.clients)
      try branch?.move(from: before, to: began.binding, session)
      return began
    }
    store.adopt(began.binding)
    return began.incarnation
  }

  /// Reads again which client of which document the store is: another process may have changed that,
  /// or put another store into the file. Call it before each operation of a store that stays open.
  ///
  /// Throws `notUnderSync` if the store has left its document.
  package func renewIdentity() throws { try connection.use { try store.renewIdentity($0) } }

  /// Checks whether the store is still the only state of its client, and makes it a new client if
  /// it is in another place or older than it was. Returns the new incarnation if there is one.
  ///
  /// Opening a store includes this; for a store that stays open for long, call it before each
  /// synchronization.
  @discardableResult
  package func checkPlace() throws -> Incarnation? {
    guard options.places != nil else { return nil }
    let began = try connection.use { database in
      try store.renewIdentity(database)
      return try store.identity(database).check(binding)
    }
    guard let began else { return nil }
    store.adopt(began.binding)
    return began.incarnation
  }

  /// Draws a new token, so that an older state of the store can be recognized. Call it before
  /// something is published.
  package func renewToken() throws {
    guard options.places != nil else { return }
    let client = binding.client
    let token = try write { session in
      let identity = store.identity(session.database)
      return try identity.settle(as: client, former: identity.recordedPlace())
    }
    try options.keep(token, of: client)
  }

  /// Returns the incarnations that were not announced yet, in order.
  package func unannouncedIncarnations() throws -> [Incarnation] {
    try read { try StoreIdentity.unannounced($0.database) }
  }

  /// Notes that all incarnations so far have been announced.
  package func noteIncarnationsAnnounced() throws {
    try write { try MetaTable.write(.incarnations, to: Array("[]".utf8), $0.database) }
  }

  /// Returns the clients that stores of `client` became on this machine, one after the other, when
  /// no store of it was left. Their changes are this store's own, although the store may be an
  /// older state that does not know them.
  package func successors(of client: ClientIdentifier) throws -> [ClientIdentifier] {
    try options.places?.allSuccessors(of: client) ?? []
  }

  // MARK: - Rewriting

  /// Rewrites the change sets that the store has brought from another generation (``returning()``)
  /// as change sets of its present client, and applies them. Each value keeps its stamp, so values
  /// that lost to them before lose again, and newer values stay. Idempotent.
  ///
  /// Returns how many there were.
  package func rewriteReturning(
    checkCancellation: @escaping () throws -> Void = {}
  ) throws -> Int {
    try write { session in
      let returning = try session.returning()
      guard !returning.isEmpty else { return 0 }
      try store.seal(session, checkCancellation: checkCancellation)
      _ = try rewriting(session, checkCancellation)
        .write(returning.map { try ChangeSetCodec.decode($0.bytes) }, isOwn: true)
      try session.forgetReturning()
      return returning.count
    }
  }

  /// Rewrites change sets as change sets of this client, and applies them, where no device applies
  /// them as they are: those that other clients left behind in an earlier generation, or those of
  /// former states of this store. Each value keeps its stamp.
  ///
  /// Skips a change set if this store has all its changes already, in whichever way they came: if
  /// several devices find the same files, one of them rewrites them.
  ///
  /// If one of them is not to be taken for now, none is: ``RewriteOutcome`` says what to do.
  ///
  /// - Parameters:
  ///   - received: In causal order.
  ///   - brake: The brake of the synchronization; `nil` for change sets of this store.
  ///   - isWanted: Whether to write a change set although this store has all its changes.
  ///   - records: Values of ``setRecord(_:to:)`` to set in the same transaction; `nil` removes one.
  @discardableResult
  package func rewrite(
    _ received: [ReceivedChangeSet], brake: DeletionBrake? = nil,
    evenIf isWanted: (SyncChangeSet) -> Bool = { _ in false },
    records: [String: [UInt8]?] = [:], checkCancellation: @escaping () throws -> Void = {}
  ) throws -> RewriteOutcome {
    let passed = brake?.passed
    do {
      return try write { session in
        if let brake, brake.mayStop(received) {
          guard received.count == 1 else { return .divided }
          let stopped = try brake.weigh(received, session).flatMap(\.tables)
          guard stopped.isEmpty else { return .stopped(stopped) }
        }
        try store.seal(session, checkCancellation: checkCancellation)
        let count: Int
        do {
          count = try rewriting(session, checkCancellation)
            .write(received.map(\.changeSet), isOwn: false, evenIf: isWanted)
        } catch {
          throw received.last.flatMap {
            RefusedChangeSet(error, of: $0.changeSet.header, hash: $0.hash)
          } ?? error
        }
        try session.records.write(records)
        return .taken(writtenCount: count)
      }
    } catch let refused as RefusedChangeSet {
      if let passed { brake?.goBack(to: passed) }
      return received.count == 1 ? .refused(refused) : .divided
    }
  }

  private func rewriting(
    _ session: StoreSession, _ checkCancellation: @escaping () throws -> Void
  ) -> RewrittenChangeSets {
    RewrittenChangeSets(
      session: session, binding: binding, clockTolerance: options.clockTolerance,
      checkCancellation: checkCancellation)
  }

  // MARK: - Another generation

  /// Makes the store the beginning of another generation of its document, or of another document,
  /// as another client.
  ///
  /// In one transaction, it seals the edits, so that they have their stamps, and forgets the change
  /// sets made and received so far, since they belong to the old generation. Rows, stamps, parked
  /// rows, the conflict journal and the policies stay. Until a whole store of the new generation is
  /// uploaded, no other device has the changes that were not published.
  ///
  /// - Parameters:
  ///   - binding: The store's binding from now on. Its client must be new.
  ///   - records: The keys of the records to remove (``record(_:)``).
  ///   - new: Records to set in the same transaction.
  ///   - keepsNumbers: Whether the applied change sets still count as applied, so that a device
  ///     that comes over from the old generation knows which of its change sets are here. Otherwise
  ///     all clients begin with none.
  ///   - keepsCommand: Returns whether the new client sends an unsent command with this content.
  package func beginAgain(
    as binding: StoreBinding, forgetting records: [String], setting new: [String: [UInt8]?] = [:],
    keepsNumbers: Bool = false,
    keepsCommand: (_ content: [UInt8]) throws -> Bool = { _ in false }
  ) throws {
    let (configuration, former) = (configuration, self.binding.client)
    let token = try write { session in
      try store.seal(session, checkCancellation: {})
      let isForgotten = try MisidentifiedTables(session.schema).forget(session.database)
      let session =
        try isForgotten ? store.renewedSession(session.database, continuing: session) : session
      let token = try store.identity(session.database).beginGeneration(
        binding, configuration, session, forgetting: records, keepsNumbers: keepsNumbers,
        keepsCommand: keepsCommand)
      try session.records.write(new)
      return token
    }
    store.adopt(binding)
    try options.keep(token, of: binding.client)
    try options.forgetTokens(of: former)
  }

  /// Throws if the store has tables whose rows other devices may show beside rows to which they do
  /// not belong: see ``beginAgain(as:forgetting:setting:keepsNumbers:keepsCommand:)``.
  package func checkIdentities() throws {
    try read { try MisidentifiedTables($0.schema).check(path) }
  }
}
