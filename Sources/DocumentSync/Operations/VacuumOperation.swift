import SyncDirectory
import SyncModel
import SyncStore

/// Removes the files that no device needs any more, and reports which files
/// stay for which member.
///
/// The operation synchronizes before. A client removes only its own files and
/// those that retired clients left; see ``VacuumReport``.
public final class VacuumOperation: DocumentOperation<VacuumReport>, @unchecked Sendable {
  /// Creates an operation that vacuums the directory for a store's client.
  package init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    super.init(
      "remove files that no device needs", store: store, directory: directory, turns: turns,
      environment: environment)
  }

  override func perform() async throws -> VacuumReport {
    try await holdingStore { [self] files in
      try SyncPass(
        session: SyncSession(files: files, store: store), turns: turns, clearsAway: true
      ).run().housekeeping ?? VacuumReport()
    }
  }
}
