import SyncModel

extension LocalStore {
  /// Applies the change sets that can be applied, in causal order, in one transaction per bounded
  /// group, and stores the rest until their dependencies have arrived. Skips change sets that were
  /// applied before.
  ///
  /// Seals local edits first, in the same transaction, so that they take part in merging.
  ///
  /// - Parameters:
  ///   - brake: The brake of the synchronization, which stops change sets that delete too many rows;
  ///     `nil` applies them, those that were stopped earlier, too.
  ///   - checkCancellation: Called before each change set. Its errors are passed on; the groups
  ///     that were committed by then stay applied, the others can be applied later.
  ///   - onApplied: Called for each change set after it was merged, which is before its group is
  ///     committed.
  package func apply(
    _ received: [ReceivedChangeSet], brake: DeletionBrake? = nil,
    checkCancellation: @escaping () throws -> Void = {},
    onApplied: (AppliedChangeSet) -> Void = { _ in }
  ) throws -> ApplyReport {
    var report = ApplyReport()
    var told: Set<ContentHash> = []
    try store.passingOverTriggers {
      let kept = try read { try store.waitingItems.all($0).items }
      guard !received.isEmpty || !kept.isEmpty else { return }
      let pending = PendingChangeSets(
        received, kept: kept, unconfirmed: try stop(received, kept, brake))
      var groups = ChangeSetGroups(pending, binding, options, checkCancellation)
      while !groups.isDone {
        var start = ContinuousClock.now
        try groups.attempt(&report) { groups, report in
          try write { session in
            // It may have waited for other programs until now.
            start = .now
            try groups.begin(session, report)
            try store.seal(session, checkCancellation: checkCancellation)
            session.undecidedReferrers = []
            try groups.apply(session, &report) { applied in
              if told.insert(applied.hash).inserted { onApplied(applied) }
            }
            try store.decide(session, checkCancellation: checkCancellation)
            try groups.end(session, &report)
          }
        }
        if !groups.isDone { options.pause(ContinuousClock.now - start) }
      }
    }
    return report
  }

  /// Returns the change sets that are not to be applied for now, and stores them for the next
  /// synchronizations.
  private func stop(
    _ received: [ReceivedChangeSet], _ kept: [PendingChangeSets.Item], _ brake: DeletionBrake?
  ) throws -> UnconfirmedDeletions {
    let before = try read { try UnconfirmedDeletions.read($0.database) }
    let mayStop = brake?.mayStop(received) ?? false
    guard mayStop || !before.changeSets.isEmpty else { return before }
    return try write { session in
      let hashes = Set(kept.map(\.hash.description))
      var stopped = UnconfirmedDeletions()
      if let brake {
        stopped.changeSets = before.changeSets.filter { hashes.contains($0.hash) }
        if mayStop { stopped.changeSets += try brake.weigh(received, session) }
      }
      try stopped.write(session.database)
      return stopped
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

  // MARK: - Remade tables

  /// Returns the tables that a program has remade, and whose rows have to be compared with their
  /// former state before anything is applied.
  package func remadeTables() throws -> [RemadeTable] {
    try read { session in
      try session.remadeTables().map {
        RemadeTable(name: $0.table.name, vector: try session.vector(beforeRemakeOf: $0.table.id))
      }
    }
  }

  /// Logs all rows of ``remadeTables()`` with a time in 1970, since their former state is unknown.
  package func logRemadeTables() throws {
    try write { try UnseenRows(session: $0).logRemadeTables() }
  }

  /// Compares the rows of remade tables with those of another store of the document, and logs the
  /// differences, as edits at the time when the remake was noticed. The next sealing seals them.
  ///
  /// - Parameters:
  ///   - tables: Tables of ``remadeTables()`` that have the same vector.
  ///   - base: A store of the document that has applied the change sets of that vector, and no
  ///     others, as far as such a store can be made. Changes of other devices that are not here yet
  ///     take precedence over differences; where `base` has less, that is left as it is.
  package func compare(
    _ tables: [RemadeTable], with base: LocalStore,
    checkCancellation: @escaping () throws -> Void = {}
  ) throws {
    let names = Set(tables.map(\.name))
    try base.read { former in
      try write { session in
        try RemadeTablesComparison(
          session: session, former: former, checkCancellation: checkCancellation
        ).run(names)
      }
    }
  }

  // MARK: - Own commands

  /// Stores a command that is to be sent, durably.
  package func enqueueCommand(_ content: [UInt8]) throws {
    try write { try $0.commands.add(content) }
  }

  /// Returns the commands of this client that have not been removed yet, in order.
  package func queuedCommands() throws -> [QueuedCommand] {
    try read { try $0.commands.all() }
  }

  /// Gives a command its number and its file, and stores the resulting command state, in one
  /// transaction.
  package func sealCommand(
    _ sequence: Int64, as entry: VersionVector.Entry, bytes: [UInt8], state: [UInt8]
  ) throws {
    try write { session in
      try session.commands.seal(sequence, as: entry, bytes: bytes)
      try MetaTable.write(.commandState, to: state, session.database)
    }
  }

  /// Returns the bytes of a sealed command, exactly as they are published.
  package func commandBytes(_ number: UInt64) throws -> [UInt8] {
    guard let bytes = try read({ try $0.commands.bytes(number) }) else {
      throw StoreError(
        .missing, path: path, message: "The store no longer keeps its command \(number).",
        remedy: "It was removed after all members had processed it.")
    }
    return bytes
  }

  /// Records that a sealed command is in the shared directory, and stores the resulting command
  /// state, in one transaction.
  package func markCommandPublished(_ number: UInt64, state: [UInt8]) throws {
    try write { session in
      try MetaTable.write(.commandState, to: state, session.database)
      try session.commands.markPublished(number)
    }
  }

  /// Removes the published commands up to a number.
  package func forgetCommands(through number: UInt64) throws {
    try write { try $0.commands.removePublished(through: number) }
  }

  // MARK: - Processing commands

  // The result of all clients' commands is a value of the layer above, the *command state*.
  // Snapshots contain it; the commands and the queue stay in this store.

  /// Returns the result of all commands that were processed; `nil` before the first.
  package func commandState() throws -> [UInt8]? {
    try read { try MetaTable.read(.commandState, $0.database) }
  }

  /// Stores the new command state and queues events for the application, in one transaction. Skips
  /// events whose command was queued before.
  ///
  /// - Parameter limits: The number of the last wanted change set of each client. Waiting change
  ///   sets with greater numbers are removed.
  package func process(
    state: [UInt8], events: [CommandEvent] = [], limits: [ClientIdentifier: UInt64] = [:]
  ) throws {
    try write { session in
      try MetaTable.write(.commandState, to: state, session.database)
      try session.events.add(events)
      for (client, number) in limits { try session.inbox.remove(of: client, after: number) }
    }
  }

  // MARK: - The application's queue of commands

  /// Returns the commands that the application has not acknowledged, in order.
  package func pendingEvents() throws -> [CommandEvent] {
    try read { try $0.events.all() }
  }

  /// Adds the commands that another store of the document has queued. Skips those that were queued
  /// before.
  package func queueEvents(_ events: [CommandEvent]) throws {
    guard !events.isEmpty else { return }
    try write { try $0.events.add(events) }
  }

  /// Removes a command from the queue, durably. Idempotent.
  package func acknowledgeEvent(of client: ClientIdentifier, number: UInt64) throws {
    try write { try $0.events.remove(number, of: client) }
  }
}
