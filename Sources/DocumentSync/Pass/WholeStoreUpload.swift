import SyncDirectory
import SyncModel
import SyncStore

/// Uploads a whole store between two synchronizations: the first publishes
/// local edits, the second announces the upload.
struct WholeStoreUpload {
  /// The most attempts, if new edits prevent the upload.
  private static let attempts = 5

  let store: LocalStore
  let directory: any SharedDirectory
  let turns: SyncTurns
  let context: OperationContext

  func run() throws -> WholeStoreDescription {
    var attempt = 1
    var before: VersionVector.Entry?
    while true {
      _ = try pass.run()
      if attempt == 1 { before = try store.head() }
      do {
        let files = SharedFiles(directory, context: context)
        files.expectRoot(store.binding)
        let uploaded = try files.publishing(for: store) {
          try WholeStoreSteps(files).upload(store)
        }
        _ = try pass.run()
        return uploaded
      } catch let error as StoreError
        where error.code == .unpublishedEdits
      {
        guard attempt == Self.attempts else {
          attempt += 1
          continue
        }
        // Otherwise the store waits for others, as the error reports.
        guard try store.head() != before else { throw error }
        throw SyncError(
          .unpublishedEdits, operation: context.verb, path: store.path,
          message: "The whole store was not uploaded: new edits came in at each of "
            + "\(Self.attempts) attempts.",
          remedy: "Try again when no program writes to the store for a moment. Your edits are "
            + "synchronized as always.",
          detail: error.detail, underlying: error)
      }
    }
  }

  private var pass: SyncPass {
    SyncPass(
      session: SyncSession(files: SharedFiles(directory, context: context), store: store),
      turns: turns)
  }
}
