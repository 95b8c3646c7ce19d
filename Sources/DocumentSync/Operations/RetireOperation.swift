import SyncDirectory
import SyncModel
import SyncStore

/// Retires clients of a document: the other members stop waiting for them.
///
/// It synchronizes before, so that it knows the present members, and after. It
/// takes effect when all other members have synchronized.
public final class RetireOperation: DocumentOperation<[ClientIdentifier]>, @unchecked Sendable {
  /// The clients to retire.
  public enum Selection: Hashable, Sendable {
    /// One client, for a reason.
    case client(ClientIdentifier, RetirementReason)
    /// Those clients whose marker has not changed for so many milliseconds, by
    /// the clock of this device, summed over its own synchronizations.
    case notSeen(milliseconds: Int64)
  }

  private let selection: Selection

  /// Names the store, the directory and the clients to retire.
  public init(
    _ selection: Selection, store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.selection = selection
    super.init(
      "retire clients", store: store, directory: directory, turns: turns,
      environment: environment)
  }

  /// Retires; returns the clients for which a command was sent.
  ///
  /// Throws `clientUnknown` if there is no such member, or if it is this one.
  public override func perform() async throws -> [ClientIdentifier] {
    try await holdingStore { [self] files in
      let pass = SyncPass(store: store, files: files, turns: turns)
      let fetched = try pass.fetch()
      // The next synchronization sends what is enqueued from here on.
      try files.confirmRoot()
      let retirement = Retirement(store: store, context: files.context)
      let chosen = try retirement.enqueue(selection, fetched.members, fetched.seen)
      _ = try pass.send(fetched)
      // Another pass works out at once what the commands mean.
      if !chosen.isEmpty { _ = try SyncPass(store: store, files: files, turns: turns).run() }
      return chosen
    }
  }
}

/// Chooses the clients to retire, and enqueues the commands.
struct Retirement {
  let store: LocalStore
  let context: OperationContext

  /// Enqueues the commands; returns the clients that they retire.
  func enqueue(
    _ selection: RetireOperation.Selection, _ members: Members,
    _ seen: [ClientIdentifier: StoreRecords.SeenMarker]
  ) throws -> [ClientIdentifier] {
    let others = members.remaining.subtracting([store.binding.client])
    let chosen: [ClientIdentifier]
    let reason: RetirementReason
    switch selection {
    case .client(let client, let why):
      guard others.contains(client) else { throw unknown(client, members) }
      (chosen, reason) = ([client], why)
    case .notSeen(let milliseconds):
      let absences = try StoreRecords(store).absences()
      chosen = others.filter { client in
        guard let absence = absences[client] else { return false }
        return absence.count >= MemberSteps.leastCount && absence.milliseconds >= milliseconds
      }.sorted()
      reason = .absent
    }
    for client in chosen {
      try CommandSteps.enqueue(
        SyncCommand(
          SyncCommand.Retire(
            client: client, reason: reason, lastRevision: seen[client]?.revision ?? 0)),
        in: store)
    }
    return chosen
  }

  private func unknown(_ client: ClientIdentifier, _ members: Members) -> SyncError {
    let isOwn = client == store.binding.client
    return context.error(
      .clientUnknown, path: store.path,
      isOwn
        ? "This device cannot retire itself."
        : members.retirements[client] != nil
          ? "The client \(client) is retired already."
          : "The client \(client) is not a member of the document.",
      remedy: isOwn
        ? "Leave the document instead." : "“docsync clients” lists the members of the document.")
  }
}
