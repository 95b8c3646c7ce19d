import SyncDirectory
import SyncModel
import SyncStore

/// Uploads the whole store, so that others can join from it, and tells them.
///
/// Edits that are not published are synchronized first. The snapshot and its
/// compressed copy lie beside the store for a while.
public final class UploadWholeStoreOperation: SyncOperation<WholeStoreDescription>,
  @unchecked Sendable
{
  private let store: LocalStore
  private let directory: any SharedDirectory
  private let turns: SyncTurns

  /// Names the store and the directory.
  public init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.store = store
    self.directory = environment.retrying(directory)
    self.turns = turns
    super.init("upload the whole store", environment: environment)
  }

  /// Uploads.
  public override func perform() async throws -> WholeStoreDescription {
    try await blocking { [self] in
      let context = OperationContext(self)
      return try StoreLock.hold(store: store.path, operation: verb) {
        try WholeStoreUpload(store: store, directory: directory, turns: turns, context: context)
          .run()
      }
    }
  }
}
