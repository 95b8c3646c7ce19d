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
  /// Whether the store begins the document, or a generation of it.
  var isBeginning = false

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
        if try isBeginning && forgetHeldEdits() { continue }
        guard attempt == Self.attempts else {
          attempt += 1
          continue
        }
        // Otherwise the store waits for others, as the error reports.
        guard try store.head() != before else { throw error }
        throw SyncError(
          .unpublishedEdits, operation: context.verb, path: store.path,
          message: "The copy of the database was not uploaded: new edits came in at each of "
            + "\(Self.attempts) attempts.",
          remedy: "Try again when no program writes to the store for a moment. Your edits are "
            + "synchronized as always.",
          detail: error.detail, underlying: error)
      }
    }
  }

  /// Forgets the edits that no change set can carry, if no device has taken over a whole store of this
  /// generation yet: then all devices get them with the first one. Returns whether there were any.
  private func forgetHeldEdits() throws -> Bool {
    let steps = WholeStoreSteps(SharedFiles(directory, context: context))
    guard try steps.candidates(GenerationFile(of: store.binding)).isEmpty else { return false }
    return try store.forgetHeldEdits()
  }

  private var pass: SyncPass {
    SyncPass(
      session: SyncSession(files: SharedFiles(directory, context: context), store: store),
      turns: turns)
  }
}
