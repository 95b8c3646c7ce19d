import SyncDirectory
import SyncModel
import SyncStore

/// Uploads the whole store.
public final class UploadWholeStoreOperation: SyncOperation<WholeStoreDescription>,
  @unchecked Sendable
{
  private let store: LocalStore
  private let directory: any SharedDirectory
  private let turns: SyncTurns

  /// Does nothing yet.
  public init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.store = store
    self.directory = directory
    self.turns = turns
    super.init("upload the whole store", environment: environment)
  }
}
