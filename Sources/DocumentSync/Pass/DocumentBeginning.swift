import SyncDirectory
import SyncModel
import SyncStore

/// Begins a document, or another generation of it, from a store whose binding
/// names the generation to begin.
struct DocumentBeginning: StoreSteps {
  let session: SyncSession
  let turns: SyncTurns
  let descriptions: SyncDescriptions

  /// Completes the beginning, or gives way to a generation that counts instead:
  /// a store that has shared the document before can always complete what it
  /// began.
  ///
  /// If another generation counts by now, the store moves to that one, with its
  /// rows. If the generation that this store began was deleted, throws
  /// `documentDeleted`, so that the caller decides; the store then counts as
  /// one whose document was deleted.
  func completeOrYield() throws {
    if try yield() { return }
    do {
      try complete()
    } catch let error as SyncError
      where [.documentExists, .generationReplaced, .documentDeleted, .documentReplaced]
      .contains(error.code)
    {
      // Another device has done so in the meantime.
      guard try yield() else { throw error }
    }
  }

  /// Moves the store to the generation that counts in place of its own. Returns
  /// whether there was one.
  private func yield() throws -> Bool {
    let documents = DocumentSteps(files)
    switch try documents.rival(of: store.binding) {
    case .none: return false
    case .deleted:
      try records.noteSetUp()
      try documents.check(store.binding)
      return true
    case .counting(let generation):
      guard try files.roots().contains(generation.root) else {
        throw documents.replaced(store.binding)
      }
      try RemakeSteps(session: session).run()
      try FormerLives(session: session).noteLeaving()
      let rebootstrap = try RebootstrapStep(session: session).run(
        .createdTwice, into: generation, isStranger: true)
      // The next synchronization reports it.
      try records.keep(rebootstrap)
      try records.noteSetUp()
      return true
    }
  }

  /// Publishes the files that other devices need to find the document and to
  /// join it. To complete an interrupted call, repeat it.
  func complete() throws {
    let binding = store.binding
    // After an interruption, the directory may be empty, or another one.
    _ = try ApplicationSteps(files).require(binding.application)
    _ = try DocumentSteps(files).create(
      binding, after: try records.formerGenerations().last?.generation,
      description: descriptions.document ?? binding.documentIdentifier,
      userInfo: descriptions.documentInfo)
    do {
      try WholeStoreUpload(
        store: store, directory: files.directory, turns: turns, context: files.context
      ).begin()
    } catch let error as SyncError where error.code == .clientRemoved {
      // A device that has joined since the interruption has removed this client. So
      // the document is complete. The next synchronization asks how to go on; it
      // could not if the set-up stayed unfinished.
      files.context.environment.logger.notice("\(error)")
    }
    // The synchronization for the upload reports to no caller.
    try store.noteRowsWithoutKey()
    try records.noteSetUp()
  }
}
