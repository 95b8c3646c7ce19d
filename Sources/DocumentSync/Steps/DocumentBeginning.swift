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
