import SyncDirectory
import SyncModel
import SyncStore

/// The beginning of a document, or of another life of it, from a store that
/// knows from its binding which one it is to be.
struct DocumentBeginning {
  let store: LocalStore
  let files: SharedFiles
  let turns: SyncTurns
  let descriptions: SyncDescriptions

  /// Completes the beginning, or ends it if it has lost: what was begun by a
  /// store that shared the document before can always go on.
  ///
  /// If another generation of the document counts by now, the store goes over
  /// to that one, with its rows. If what was begun is deleted by now, the store
  /// is one whose document was deleted, and `documentDeleted` is thrown, so that
  /// somebody decides.
  func completeOrYield() throws {
    if try yield() { return }
    do {
      try complete()
    } catch let error as SyncError
      where [.documentExists, .generationReplaced, .documentDeleted, .documentReplaced]
      .contains(error.code)
    {
      // That has come about meanwhile.
      guard try yield() else { throw error }
    }
  }

  /// Goes over to the generation that counts rather than the store's. Says
  /// whether there was one.
  private func yield() throws -> Bool {
    let (documents, records) = (DocumentSteps(files), StoreRecords(store))
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
      try FormerLives(files: files, store: store).noteLeaving()
      let rebootstrap = try RebootstrapStep(files: files, store: store).run(
        .createdTwice, into: generation, isStranger: true)
      // The next synchronization tells of it.
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
    try StoreRecords(store).noteSetUp()
  }
}
