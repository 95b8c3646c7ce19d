import SyncDirectory
import SyncModel
import SyncStore

/// Sends what was edited here and applies what was edited elsewhere.
///
/// Checks the binding, lists, reads, checks and applies what is new, seals
/// and publishes local edits, and tells the others; see ``SyncReport``. One
/// at a time per store (`storeInUse`). Interrupted at any point, the next
/// one continues.
public final class SynchronizeOperation: SyncOperation<SyncReport>, @unchecked Sendable {
  private let store: LocalStore
  private let directory: any SharedDirectory
  private let turns: SyncTurns
  private let checksOwnFiles: Bool

  /// Names the store and the directory.
  ///
  /// - Parameters:
  ///   - turns: Kept from one synchronization of the store to the next.
  ///   - checksOwnFiles: Whether to read every file of this client in the
  ///     directory, and put back those that are damaged.
  public init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    checksOwnFiles: Bool = false, environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.store = store
    self.directory = environment.retrying(directory)
    self.turns = turns
    self.checksOwnFiles = checksOwnFiles
    super.init("synchronize", environment: environment)
  }

  /// Synchronizes.
  public override func perform() async throws -> SyncReport {
    try await blocking { [self] in
      let context = OperationContext(self)
      return try StoreLock.hold(store: store.path, operation: verb) {
        try SyncPass(
          store: store, files: SharedFiles(directory, context: context), turns: turns,
          checksOwnFiles: checksOwnFiles
        ).run()
      }
    }
  }
}
