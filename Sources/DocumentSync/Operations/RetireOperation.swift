import SyncDirectory
import SyncModel
import SyncStore

/// Retires clients of a document: the other members stop waiting for them.
///
/// The operation synchronizes before, to learn the present members, and after.
/// The retirement takes effect when all other members have synchronized.
public final class RetireOperation: DocumentOperation<[ClientIdentifier]>, @unchecked Sendable {
  private let selection: RetirementSelection

  /// Creates an operation that retires the selected clients.
  package init(
    _ selection: RetirementSelection, store: LocalStore, directory: any SharedDirectory,
    turns: SyncTurns, environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.selection = selection
    super.init(
      "retire clients", store: store, directory: directory, turns: turns,
      environment: environment)
  }

  /// Retires the clients; returns those for which it sent a command.
  ///
  /// Throws `clientUnknown` if the client is not a member, or is this one.
  override func perform() async throws -> [ClientIdentifier] {
    try await holdingStore { [self] files in
      let pass = SyncPass(session: SyncSession(files: files, store: store), turns: turns)
      let fetched = try pass.fetch()
      // The next synchronization sends whatever is enqueued from here on.
      try files.confirmRoot()
      let retirement = Retirement(store: store, context: files.context)
      let chosen = try retirement.enqueue(selection, fetched.members, fetched.seen)
      _ = try pass.send(fetched)
      // Another pass applies the commands at once.
      if !chosen.isEmpty { _ = try pass.run() }
      return chosen
    }
  }
}
