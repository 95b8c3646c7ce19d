import SyncDirectory
import SyncModel
import SyncStore

/// The beginning of a document, or of another generation of it, from a store
/// whose binding names the one to begin.
struct DocumentBeginning: StoreSteps {
  let session: SyncSession
  let turns: SyncTurns
  let descriptions: SyncDescriptions

  /// Completes the beginning, or ends it if it has lost: a store that shared
  /// the document before can always complete what it began.
  ///
  /// If another generation of the document counts by now, the store moves to
  /// that one, with its rows. If the generation that was begun is deleted by
  /// now, the store counts as one whose document was deleted, and
  /// `documentDeleted` is thrown, so that the caller decides.
  func completeOrYield() throws {
    if try yield() { return }
    do {
      try complete()
    } catch let error as SyncError
      where [.documentExists, .generationReplaced, .documentDeleted, .documentReplaced]
      .contains(error.code)
    {
      // That has happened in the meantime.
      guard try yield() else { throw error }
    }
  }

  /// Moves the store to the generation that counts instead of its own. Returns
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
      try FormerLives(session: session).noteLeaving()
      let rebootstrap = try RebootstrapStep(session: session).run(
        .createdTwice, into: generation, isStranger: true)
      // The next synchronization reports it.
      try records.keep(rebootstrap)
      try records.noteSetUp()
      return true
    }
  }

  /// Publishes what others need to find the document and to join it.
  /// Interrupted, it is completed by repeating it.
  func complete() throws {
    let binding = store.binding
    // The store may stand alone after an interruption, or elsewhere.
    _ = try ApplicationSteps(files).require(binding.application)
    _ = try DocumentSteps(files).create(
      binding, description: descriptions.document ?? binding.documentIdentifier,
      userInfo: descriptions.documentInfo)
    _ = try WholeStoreUpload(
      store: store, directory: files.directory, turns: turns, context: files.context
    ).run()
    try records.noteSetUp()
  }
}
