import SyncDirectory
import SyncModel
import SyncStore

/// Exchanges the content of the store for that of the best whole store: the
/// only remedy if change sets cannot be fetched one by one.
///
/// The exchange happens in one transaction. The fetch that follows brings the
/// change sets since the upload of the whole store; the caller has to read the
/// applied vector again.
struct RebootstrapStep: StoreSteps {
  /// How many costly whole stores one synchronization tries at most; the next
  /// one continues with others.
  private static let greatestTries = 8
  /// The most unusable whole stores that the store remembers.
  private static let greatestMemory = 4_096

  let session: SyncSession

  /// Downloads the best whole store, and exchanges the content.
  ///
  /// Errors, besides those of the directory: `wholeStoreMissing`; and
  /// `generationReplaced` or `documentReplaced` if the rows cannot be merged.
  /// The store is unchanged then.
  ///
  /// - Parameters:
  ///   - generation: The generation that the store moves to; `nil` for its own.
  ///     If it moves, it sets aside own change sets that the whole store does
  ///     not contain, to write them again (``LocalStore/returning()``), drops
  ///     all records of other clients' markers, and notes that it is to become
  ///     a new client (``StoreRecords/hasGoneOver()``).
  ///   - keptCommands: The least numbers of the others' commands that were not
  ///     vacuumed. If the whole store has processed a vacuumed command, this
  ///     client does not get that command; it gets the others.
  ///   - isStranger: Whether the generation is no successor of the store's.
  ///     Then a new client merges the rows, in place of the own change sets.
  ///     The rows are also merged if those change sets no longer exist
  ///     anywhere.
  ///   - isWanted: Selects suitable whole stores.
  func run(
    _ reason: SyncReport.Rebootstrap.Reason, into generation: GenerationFile? = nil,
    keptCommands: [ClientIdentifier: UInt64] = [:], isStranger: Bool = false,
    where isWanted: (WholeStoreSteps.Candidate) -> Bool = { _ in true }
  ) throws -> SyncReport.Rebootstrap {
    context.begin(.listing)
    context.environment.logger.notice("re-bootstrap of \(store.path): \(reason.rawValue)")
    let siblings = LocalSiblings(store: store.path, operation: context.verb)
    try siblings.removeAll()
    do {
      let database = siblings.temporary("database")
      let steps = WholeStoreSteps(files)
      let checked = try steps.download(
        generation ?? GenerationFile(of: store.binding), beside: siblings,
        passingOver: Set(try self.records.unsound()),
        atMost: Self.greatestTries,
        onUnsound: { paths in
          try self.records.keep(
            unsound: (try self.records.unsound() + paths).suffix(Self.greatestMemory))
        }, where: isWanted)
      let former = try generation.map {
        try formerGenerations(beyond: checked.header.vector, in: $0, reason, isStranger)
      }
      let isStranger =
        try isStranger || (generation != nil && isCleared(beyond: checked.header.vector))
      let missing = isStranger ? [:] : try ownBytes(beyond: checked.header.vector)
      context.begin(.applying)
      let records = try StoreRecords.rebootstrapped(
        from: checked.header, found: checked.found, by: client,
        keeping: generation == nil ? records.wholeStores() : nil, former: former,
        goingOver: generation != nil && !isStranger)
      let missed =
        generation == nil
        ? try CommandFetch(session: session).missed(
          until: checked.header.commands, kept: keptCommands) : CommandFetch.Missed()
      let replacement =
        if let generation, isStranger {
          try merge(
            try caughtUp(database, in: generation, siblings), into: generation, reason, records)
        } else {
          try store.replaceContent(
            withSnapshotAt: database, binding: generation.map(binding), ownBytes: missing,
            records: records, commandState: commandState(in: generation, kept: keptCommands),
            events: missed.events, checkCancellation: context.checkCancellation,
            onProgress: context.count(_:of:))
        }
      session.held.forget()
      for event in missed.events { context.send(.commandReceived(event)) }
      try siblings.removeAll()
      let report = SyncReport.Rebootstrap(
        reason: reason, backup: replacement.backup, wholeStore: steps.description(checked),
        reappliedChangeSets: replacement.reapplied.count,
        returningChangeSets: replacement.pendingOwn.count,
        changedSchema: replacement.changedSchema, conflicts: replacement.conflicts,
        merged: replacement.merged, warnings: replacement.warnings + missed.warnings)
      context.send(.rebootstrapped(report))
      return report
    } catch {
      try siblings.removeAll()
      throw error
    }
  }

  /// Returns the former generations of the store once it has moved to another one.
  private func formerGenerations(
    beyond vector: VersionVector, in generation: GenerationFile,
    _ reason: SyncReport.Rebootstrap.Reason, _ isStranger: Bool
  ) throws -> [StoreRecords.FormerGeneration] {
    let leftBehind = LeftBehind(session: session)
    guard isStranger else {
      return try leftBehind.formerGenerations(beside: leftBehind.present(containing: vector))
    }
    // A document that was created again may have other identities, and does not know the clients
    // of the deleted one.
    guard reason != .begunAgain else { return [] }
    return try leftBehind.shared(
      with: DocumentSteps(files).predecessors(of: generation), containing: vector)
  }

  /// Makes a whole store with all change sets since its upload, and with the
  /// command state of the upload: the rows are compared with the present
  /// document, and later commands are for this store.
  private func caughtUp(
    _ database: String, in generation: GenerationFile, _ siblings: LocalSiblings
  ) throws -> (path: String, commands: [UInt8]?) {
    var binding = binding(generation)
    var generator = context.environment.generator
    // No other device learns of this client.
    binding.client = .random(using: &generator)
    var options = context.environment.storeOptions
    options.places = nil
    let whole = try LocalStore.adopt(
      snapshotAt: database, binding: binding, options: options,
      checkCancellation: context.checkCancellation)
    do {
      let commands = try whole.commandState()
      // The report and the events leave out what this store processes.
      let unheard = SharedFiles(files.directory, context: context.unheard)
      try SyncPass(
        session: SyncSession(files: unheard, store: whole),
        turns: SyncTurns(environment: context.environment), allowsDeletions: true
      ).catchUp()
      let result = siblings.temporary("caught-up")
      _ = try whole.snapshot(to: result, checkCancellation: context.checkCancellation)
      try whole.close()
      return (result, commands)
    } catch {
      try whole.close()
      throw error
    }
  }

  private func merge(
    _ whole: (path: String, commands: [UInt8]?), into generation: GenerationFile,
    _ reason: SyncReport.Rebootstrap.Reason, _ records: [String: [UInt8]?]
  ) throws -> ContentReplacement {
    let commandState = commandState(in: generation, kept: nil)
    context.begin(.applying)
    do {
      return try store.replaceContent(
        withSnapshotAt: whole.path, mergingInto: binding(generation), records: records,
        commandState: { own, _ in try commandState(own, whole.commands) },
        checkCancellation: context.checkCancellation, onProgress: context.count(_:of:))
    } catch let error as StoreError where error.code == .schemasDiffer {
      let isTwice = reason == .createdTwice
      throw SyncError(
        isTwice ? .generationReplaced : .documentReplaced, operation: context.verb,
        path: store.path,
        message: "The document “\(generation.identifier)” was "
          + (isTwice
            ? "begun on another device, too, and that one counts"
            : "deleted, and another was created under the same name")
          + "; the rows here cannot be merged into it. \(error.message)",
        remedy: "Bring both to the same version of the application, then sync again; or take this "
          + "store out of sync and join the document under another path. The store is unchanged.",
        detail: error.detail, underlying: error)
    }
  }

  /// Joins the states of both stores. A command counts as processed if either
  /// state contains it, unless a member of the document can still provide it.
  ///
  /// - Parameter kept: The least numbers of commands that were not vacuumed;
  ///   `nil` for a store that joins, for which none of the commands are.
  private func commandState(
    in generation: GenerationFile?, kept: [ClientIdentifier: UInt64]?
  ) -> (_ own: [UInt8]?, _ whole: [UInt8]?) throws -> [UInt8]? {
    let client = client
    let generation = generation?.generation ?? binding.generation
    return { own, whole in
      var state = try CommandState.decoded(own, generation: generation, client: client)
      state.formUnion(
        try CommandState.decoded(whole, generation: generation, client: client),
        lowestKept: kept.map { kept in { kept[$0] ?? 1 } })
      return try state.encoded()
    }
  }

  private func binding(_ generation: GenerationFile) -> StoreBinding {
    store.binding.moved(to: generation)
  }

  /// Whether own change sets that a whole store does not contain were vacuumed:
  /// only their rows are left. The device that reset the document did not have
  /// these change sets, nor the whole store that did.
  private func isCleared(beyond vector: VersionVector) throws -> Bool {
    try vector.number(of: client) + 1 < records.kept().changeSets
  }

  /// Reads the own change sets from the directory that a whole store does not
  /// contain, and whose bytes the store has dropped because every member had
  /// them.
  private func ownBytes(beyond vector: VersionVector) throws -> [UInt64: [UInt8]] {
    let client = client
    return try OwnChangeSets(session: session).droppedBytes(
      of: store.sealedChangeSets().filter { $0.number > vector.number(of: client) })
  }
}

extension StoreBinding {
  /// Returns the binding of the same client to a generation.
  func moved(to generation: GenerationFile) -> StoreBinding {
    var binding = self
    binding.root = generation.root
    binding.document = generation.document
    binding.documentIdentifier = generation.identifier
    binding.generation = generation.generation
    binding.generationOrdinal = Int(generation.ordinal)
    return binding
  }
}
