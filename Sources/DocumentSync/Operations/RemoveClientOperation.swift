import SyncDirectory
import SyncModel
import SyncStore

/// Removes another client from a store's document: the other members stop
/// waiting for it.
///
/// Everything that it has published stays. If it returns, it learns of the
/// removal, and may continue as a new client, with its unpublished edits. A
/// repeated call changes nothing.
public final class RemoveClientOperation: DocumentOperation<ClientDescription>, @unchecked Sendable
{
  private let client: ClientIdentifier

  /// Creates an operation in which the store's client removes another client.
  package init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    client: ClientIdentifier, environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.client = client
    super.init(
      "remove the client", store: store, directory: directory, turns: turns,
      environment: environment)
  }

  override func perform() async throws -> ClientDescription {
    try await holdingStore { [self] files in
      begin(.listing)
      try directory.check(for: .writing)
      let session = SyncSession(files: files, store: store)
      let pass = SyncPass(session: session, turns: turns)
      do {
        try DocumentSteps(files).check(store.binding)
      } catch let error as SyncError where error.code == .generationReplaced {
        // The store moves first, as with every synchronization.
        _ = try pass.run()
      }
      let binding = store.binding
      guard client != binding.client else {
        throw files.context.error(
          .clientMissing, path: store.path, "This is the client that the store itself is.",
          remedy: "Take the store out of sync with \(.leave) instead.")
      }
      let applications = ApplicationSteps(files)
      let layout = DirectoryLayout.Document(binding.document).generation(binding.generation)
      let markers = try files.listIfPresent(layout.recentSyncs, as: MarkerName.self)
      var described = try applications.clients().first { $0.client == client }
      if described == nil, markers.contains(where: { $0.client == client }) {
        described = ClientDescription(client: client)
      }
      guard var described else {
        throw files.context.error(
          .clientMissing, path: files.userPath(DirectoryLayout.clientDevices),
          "There is no client \(client) in the shared directory.",
          remedy: "List the clients, and name one of them.")
      }
      // Another client may have removed it before.
      _ = try pass.run()
      let lastRevision = markers.filter { $0.client == client }.map(\.revision).max()
      if try retire(lastRevision: lastRevision ?? 0) { _ = try pass.run() }
      begin(.uploading, count: 1)
      try files.publishing(for: store) {
        try applications.noteRemoval(
          of: client, by: binding.client, described: binding.clientDescription)
      }
      report { $0.completedCount = 1 }
      described.status = .removed
      return described
    }
  }

  /// Enqueues the command, unless a removal of the client counts already.
  /// Returns whether it has enqueued it.
  /// A client without a marker may be a member, since its markers may not have
  /// arrived.
  private func retire(lastRevision: UInt64) throws -> Bool {
    let state = try CommandState.read(from: store)
    let counting = Members.counting(state.retirements, revisions: [client: lastRevision])
    guard counting[client]?.contains(where: { $0.reason == .removed }) != true else { return false }
    try CommandSteps.enqueue(
      SyncCommand(
        SyncCommand.Retire(client: client, reason: .removed, lastRevision: lastRevision)),
      in: store)
    return true
  }
}
