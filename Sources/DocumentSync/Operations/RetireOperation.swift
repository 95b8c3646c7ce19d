import SyncDirectory
import SyncModel
import SyncStore

/// Retires clients of a document: the other members stop waiting for them.
///
/// It synchronizes before, so that it knows the present members, and after. It
/// takes effect when all other members have synchronized.
public final class RetireOperation: DocumentOperation<[ClientIdentifier]>, @unchecked Sendable {
  private let selection: RetirementSelection

  /// Names the store, the directory and the clients to retire.
  package init(
    _ selection: RetirementSelection, store: LocalStore, directory: any SharedDirectory,
    turns: SyncTurns, environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.selection = selection
    super.init(
      "retire clients", store: store, directory: directory, turns: turns,
      environment: environment)
  }

  /// Retires; returns the clients for which a command was sent.
  ///
  /// Throws `clientUnknown` if there is no such member, or if it is this one.
  override func perform() async throws -> [ClientIdentifier] {
    try await holdingStore { [self] files in
      let pass = SyncPass(session: SyncSession(files: files, store: store), turns: turns)
      let fetched = try pass.fetch()
      // The next synchronization sends what is enqueued from here on.
      try files.confirmRoot()
      let retirement = Retirement(store: store, context: files.context)
      let chosen = try retirement.enqueue(selection, fetched.members, fetched.seen)
      _ = try pass.send(fetched)
      // Another pass works out at once what the commands mean.
      if !chosen.isEmpty { _ = try pass.run() }
      return chosen
    }
  }
}
