import SyncDirectory
import SyncModel
import SyncStore

/// Uploads the whole store, so that others can join from it, and tells them.
///
/// Edits that are not published are synchronized first. The snapshot and its
/// compressed copy lie beside the store for a while.
public final class UploadWholeStoreOperation: DocumentOperation<WholeStoreDescription>,
  @unchecked Sendable
{
  /// Names the store and the directory.
  package init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    super.init(
      "upload the whole store", store: store, directory: directory, turns: turns,
      environment: environment)
  }

  /// Uploads.
  override func perform() async throws -> WholeStoreDescription {
    try await holdingStore { [self] files in
      try WholeStoreUpload(
        store: store, directory: directory, turns: turns, context: files.context
      ).run()
    }
  }
}
