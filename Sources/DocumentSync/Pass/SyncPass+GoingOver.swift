import SyncDirectory
import SyncModel
import SyncStore

/// Moving to the generation that counts, if it is not the store's.
extension SyncPass {
  /// Checks the binding, and moves to the generation that counts, once the root that it names has
  /// arrived as well: with the edits made here if the document was reset, and with the rows if it
  /// was created on another device at the same time. It moves with the rows, too, if the document
  /// was deleted and created again, and a merge was decided.
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
        try processLastCommands()
        try FormerLives(session: session).noteLeaving()
        let rebootstrap = try goOver(to: generation)
        // If its rows were merged, it is a new client already.
        if rebootstrap.merged == nil { try store.beginIncarnation(.begunAgain) }
        return rebootstrap
      case .stranger(let generation):
        guard try files.roots().contains(generation.root) else { throw error }
        try FormerLives(session: session).noteLeaving()
        return try step.run(.createdTwice, into: generation, isStranger: true)
      case .unknown: throw error
      }
    } catch let error as SyncError where error.code == .documentReplaced {
      guard let found = try documents.find(store.binding.document), !found.isDeleted,
        try records.mergesInto() == found.file.generation,
        try files.roots().contains(found.file.root)
      else { throw error }
      return try RebootstrapStep(session: session).run(
        .begunAgain, into: found.file, isStranger: true)
    }
  }

  private func goOver(to successor: GenerationFile) throws -> SyncReport.Rebootstrap {
    do {
      return try RebootstrapStep(session: session).run(.reset, into: successor)
    } catch let error as StoreError where error.code == .fork {
      // The whole store contains more of this client than its store: the store
      // is an older state of itself, and what it has made since is its own.
      context.environment.logger.notice("\(error)")
      try store.beginIncarnation(
        .forked, standing: try OwnChangeSets(session: session).standing())
      return try RebootstrapStep(session: session).run(.reset, into: successor)
    }
  }

  /// Processes the commands that are left in a generation that the store is
  /// about to leave: each is for every member.
  private func processLastCommands() throws {
    // What comes of it is not reported.
    let session = SyncSession(files: files, store: store)
    defer { self.session.held.forget() }
    let markers = MarkerSteps(session: session)
    do {
      let listing = try markers.list()
      _ = try CommandFetch(session: session).fetch(
        markers.seen(listing), LowestKept(session, listing))
      for wait in session.report.waiting { context.environment.logger.notice("\(wait)") }
    } catch let fork as Fork {
      // The other state of it moves as well, and has them.
      context.environment.logger.notice("\(fork.path): \(fork.detail)")
    }
  }

  /// Writes again what the store has brought along from another generation,
  /// also after an interruption.
  func bringAlong() throws {
    let returning = try store.returning()
    guard !returning.isEmpty else { return }
    if returning.contains(where: { $0.client == store.binding.client }) {
      try store.beginIncarnation(.begunAgain)
    }
    context.begin(
      .applying, count: returning.count, bytes: returning.reduce(0) { $0 + $1.bytes.count })
    _ = try store.rewriteReturning(checkCancellation: context.checkCancellation)
    context.endPhase()
  }
}
