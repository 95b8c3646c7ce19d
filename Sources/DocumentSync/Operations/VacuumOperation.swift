import SyncDirectory
import SyncModel
import SyncStore

/// Clears away what nobody needs any more, at once, and says what is kept for
/// whose sake.
///
/// Synchronizes before. A client clears away its own files only, and what
/// retired clients left; see ``VacuumReport``.
public final class VacuumOperation: SyncOperation<VacuumReport>, @unchecked Sendable {
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
    super.init("clear away what nobody needs", environment: environment)
  }

  /// Clears away.
  public override func perform() async throws -> VacuumReport {
    try await blocking { [self] in
      let context = OperationContext(self)
      return try StoreLock.hold(store: store.path, operation: verb) {
        let pass = SyncPass(
          store: store, files: SharedFiles(directory, context: context), turns: turns,
          clearsAway: true)
        return try pass.run().housekeeping ?? VacuumReport()
      }
    }
  }
}
