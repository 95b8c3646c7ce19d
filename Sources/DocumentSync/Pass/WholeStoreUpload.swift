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
    try run(isFirst: false) { false }
  }

  /// Uploads the first whole store of a document, or of a generation of it. Edits that no change set
  /// can carry do not prevent that: all devices get them with it. If an interrupted call has uploaded
  /// one, those that were made since stay on this device.
  func begin() throws {
    do {
      _ = try run(isFirst: true) { try !hasWholeStore() && store.forgetHeldEdits() }
    } catch let error as StoreError where error.code == .unpublishedEdits {
      guard try hasWholeStore(), try !store.heldEdits().isEmpty else { throw error }
    }
  }

  private func hasWholeStore() throws -> Bool {
    let steps = WholeStoreSteps(SharedFiles(directory, context: context))
    return try !steps.candidates(GenerationFile(of: store.binding)).isEmpty
  }

  /// - Parameters:
  ///   - isFirst: Whether other devices wait for the whole store.
  ///   - forgetHeld: Forgets the edits that no change set can carry, if that is right. Returns whether
  ///     there were any.
  private func run(
    isFirst: Bool, _ forgetHeld: () throws -> Bool
  ) throws -> WholeStoreDescription {
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
        if try forgetHeld() { continue }
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
          remedy: isFirst
            ? "No other device can synchronize until this one has uploaded it. Let no program write to "
              + "the store for a moment, then run \(.synchronize)."
            : "Try again when no program writes to the store for a moment. Your edits are "
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
