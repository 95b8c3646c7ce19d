import SyncDirectory
import SyncStore

/// The upload of a whole store between two synchronizations: the first
/// publishes what is not, the second tells the others of the upload.
struct WholeStoreUpload {
  /// How often edits that are made meanwhile may come in between.
  private static let attempts = 5

  let store: LocalStore
  let directory: any SharedDirectory
  let turns: SyncTurns
  let context: OperationContext

  func run() throws -> WholeStoreDescription {
    var attempt = 1
    while true {
      _ = try pass.run()
      do {
        let files = SharedFiles(directory, context: context)
        files.expectRoot(store.binding)
        let uploaded = try WholeStoreSteps(files).upload(store)
        _ = try pass.run()
        return uploaded
      } catch let error as StoreError
        where error.code == .unpublishedEdits && attempt < Self.attempts
      {
        attempt += 1
      }
    }
  }

  private var pass: SyncPass {
    SyncPass(store: store, files: SharedFiles(directory, context: context), turns: turns)
  }
}
