import SyncDirectory
import SyncModel
import SyncStore

/// Clears away at once the files that no device needs any more, and reports
/// what is kept for which member.
///
/// It synchronizes before. A client clears away only its own files and those
/// that retired clients left; see ``VacuumReport``.
public final class VacuumOperation: DocumentOperation<VacuumReport>, @unchecked Sendable {
  /// Names the store and the directory.
  package init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    super.init(
      "remove files that no device needs", store: store, directory: directory, turns: turns,
      environment: environment)
  }

  /// Clears away.
  override func perform() async throws -> VacuumReport {
    try await holdingStore { [self] files in
      try SyncPass(
        session: SyncSession(files: files, store: store), turns: turns, clearsAway: true
      ).run().housekeeping ?? VacuumReport()
    }
  }
}
