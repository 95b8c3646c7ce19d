import SyncDirectory
import SyncModel
import SyncStore

/// Uploads the whole store, so that other devices can join from it, and tells
/// them.
///
/// The operation first synchronizes edits that are not published. The snapshot
/// and its compressed copy are beside the store for a while.
public final class UploadWholeStoreOperation: DocumentOperation<WholeStoreDescription>,
  @unchecked Sendable
{
  /// Creates an operation that uploads a store.
  package init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    super.init(
      "upload the whole store", store: store, directory: directory, turns: turns,
      environment: environment)
  }

  override func perform() async throws -> WholeStoreDescription {
    try await holdingStore { [self] files in
      try WholeStoreUpload(
        store: store, directory: directory, turns: turns, context: files.context
      ).run()
    }
  }
}
