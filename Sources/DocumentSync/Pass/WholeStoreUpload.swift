import SyncDirectory
import SyncModel
import SyncStore

/// Uploads a whole store between two synchronizations: the first publishes
/// local edits, the second announces the upload.
struct WholeStoreUpload {
  let store: LocalStore
  let directory: any SharedDirectory
  let turns: SyncTurns
  let context: OperationContext

  /// The most attempts, if the store cannot be copied after a synchronization, for example since a
  /// program has made a table again meanwhile.
  private static let attempts = 3

  func run() throws -> WholeStoreDescription {
    var attempt = 1
    while true {
      _ = try pass.run()
      do {
        let uploaded = try upload()
        _ = try pass.run()
        return uploaded
      } catch let error as StoreError
        where error.code == .unpublishedEdits && attempt < Self.attempts
      {
        attempt += 1
      }
    }
  }

  private func upload() throws -> WholeStoreDescription {
    let files = SharedFiles(directory, context: context)
    files.expectRoot(store.binding)
    return try files.publishing(for: store) {
      try WholeStoreSteps(files).uploadWithEdits(of: store, turns: turns)
    }
  }

  /// Uploads the first whole store of a document, or of a generation of it. Edits that no change set
  /// can carry do not prevent that: all devices get them with it. If an interrupted call has uploaded
  /// one, those that were made since stay on this device.
  func begin() throws {
    do {
      try runForgettingHeldEdits()
    } catch let error as StoreError where error.code == .unpublishedEdits {
      if try hasWholeStore() {
        guard try !store.heldEdits().isEmpty else { throw error }
        return
      }
      throw SyncError(
        .unpublishedEdits, operation: context.verb, path: store.path,
        message: error.message + " No other device can synchronize until this one has uploaded its "
          + "first copy of the database.",
        remedy: error.remedy, detail: error.detail, underlying: error)
    }
  }

  private func runForgettingHeldEdits() throws {
    while true {
      do {
        _ = try run()
        return
      } catch let error as StoreError where error.code == .unpublishedEdits {
        guard try !hasWholeStore() && store.forgetHeldEdits() else { throw error }
      }
    }
  }

  private func hasWholeStore() throws -> Bool {
    let steps = WholeStoreSteps(SharedFiles(directory, context: context))
    return try !steps.candidates(GenerationFile(of: store.binding)).isEmpty
  }

  private var pass: SyncPass {
    SyncPass(
      session: SyncSession(files: SharedFiles(directory, context: context), store: store),
      turns: turns)
  }
}
