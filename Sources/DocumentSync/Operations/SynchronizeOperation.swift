import SyncDirectory
import SyncModel
import SyncStore

/// Sends and receives changes.
public final class SynchronizeOperation: SyncOperation<SyncReport>, @unchecked Sendable {
  private let store: LocalStore
  private let directory: any SharedDirectory
  private let turns: SyncTurns
  private let checksOwnFiles: Bool

  /// Does nothing yet.
  public init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    checksOwnFiles: Bool = false,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.store = store
    self.directory = directory
    self.turns = turns
    self.checksOwnFiles = checksOwnFiles
    super.init("synchronize", environment: environment)
  }
}
