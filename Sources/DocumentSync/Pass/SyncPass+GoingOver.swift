import SyncDirectory
import SyncModel
import SyncStore

/// Moving to the generation that counts, if it is not the store's.
extension SyncPass {
  /// Checks the binding, and moves the store to the generation that counts,
  /// once the root that it names has arrived as well. If the document was
  /// reset, the store brings its edits along. If another device created the
  /// document at the same time, or created it again after a deletion and a
  /// merge was decided, the store brings its rows along.
  func goOver() throws -> SyncReport.Rebootstrap? {
    let documents = DocumentSteps(files)
    do {
      try documents.check(store.binding)
      return nil
    } catch let error as SyncError where error.code == .generationReplaced {
      let step = RebootstrapStep(session: session)
      switch try documents.lineage(of: store.binding) {
      case .successor(let generation):
        guard try files.roots().contains(generation.root) else { throw error }
        try RemakeSteps(session: session).run(before: generation)
        try processLastCommands()
        try checkFormerRemoval()
        try FormerLives(session: session).noteLeaving()
        return try goOver(to: generation)
      case .stranger(let generation):
        guard try files.roots().contains(generation.root) else { throw error }
        try RemakeSteps(session: session).run()
        try processLastCommands()
        try checkFormerRemoval()
        try FormerLives(session: session).noteLeaving()
        return try step.run(.createdTwice, into: generation, isStranger: true)
      case .unknown: throw error
      }
    } catch let error as SyncError where error.code == .documentReplaced {
      guard let found = try documents.find(store.binding.document), !found.isDeleted,
        try records.mergesInto() == found.file.generation,
        try files.roots().contains(found.file.root)
      else { throw error }
      try RemakeSteps(session: session).run()
      return try RebootstrapStep(session: session).run(
        .begunAgain, into: found.file, isStranger: true)
    }
  }

  private func goOver(to successor: GenerationFile) throws -> SyncReport.Rebootstrap {
    do {
      return try RebootstrapStep(session: session).run(.reset, into: successor)
    } catch let error as StoreError where error.code == .fork {
      try fork(error)
      return try RebootstrapStep(session: session).run(.reset, into: successor)
    }
  }

  /// Processes the remaining commands of a generation that the store is about
  /// to leave: each of them is for every member.
  private func processLastCommands() throws {
    // The report leaves the outcome out.
    let session = SyncSession(files: files, store: store)
    defer { self.session.held.forget() }
    let markers = MarkerSteps(session: session)
    do {
      let listing = try markers.list()
      _ = try CommandFetch(session: session).fetch(
        markers.seen(listing), LowestKept(session, listing))
      for wait in session.report.waiting { context.environment.logger.notice("\(wait)") }
    } catch let fork as Fork {
      // The other state of the store moves as well, and has the commands.
      context.environment.logger.notice("\(fork.path): \(fork.detail)")
    }
  }

  /// Throws if this client was removed from the generation that the store is about to leave. The
  /// next generation does not know its clients.
  private func checkFormerRemoval() throws {
    let retirements = try CommandState.read(from: store).retirements
    guard !retirements.isEmpty else { return }
    var revisions = try records.seenMarkers().mapValues(\.revision)
    revisions[client] = try records.ownMarker()?.content.revision ?? 0
    try checkRemoval(
      Members.removals(among: Members.counting(retirements, revisions: revisions)),
      store.unannouncedIncarnations())
  }

  /// Makes a store that has gone over to another generation a new client, and writes the change
  /// sets again that it has brought along, also after an interruption.
  func bringAlong() throws {
    let returning = try store.returning()
    // Earlier builds did not note that they had gone over.
    let isFormer = returning.contains { $0.client == store.binding.client }
    if try isFormer || records.hasGoneOver() { try store.beginIncarnation(.begunAgain) }
    guard !returning.isEmpty else { return }
    context.begin(
      .applying, count: returning.count, bytes: returning.reduce(0) { $0 + $1.bytes.count })
    _ = try store.rewriteReturning(checkCancellation: context.checkCancellation)
    context.endPhase()
  }
}
