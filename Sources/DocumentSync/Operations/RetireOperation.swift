import SyncDirectory
import SyncModel
import SyncStore

/// Retires clients of a document: nobody waits for them any more.
///
/// Synchronizes before, so that it knows who is there, and after. It takes
/// effect when all other members have synchronized.
public final class RetireOperation: DocumentOperation<[ClientIdentifier]>, @unchecked Sendable {
  /// Whom to retire.
  public enum Selection: Hashable, Sendable {
    /// One client, for a reason.
    case client(ClientIdentifier, RetirementReason)
    /// Those whose marker has not changed for so many milliseconds, by the
    /// clock of this device, summed over its own synchronizations.
    case notSeen(milliseconds: Int64)
  }

  private let selection: Selection

  /// Names the store, the directory and whom to retire.
  public init(
    _ selection: Selection, store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.selection = selection
    super.init(
      "retire clients", store: store, directory: directory, turns: turns,
      environment: environment)
  }

  /// Retires; gives those for whom a command was sent.
  ///
  /// Throws `clientUnknown` if there is no such member, or if it is this one.
  public override func perform() async throws -> [ClientIdentifier] {
    try await holdingStore { [self] files in
      let pass = SyncPass(store: store, files: files, turns: turns)
      let fetched = try pass.fetch()
      // What is noted from here on goes out with the next synchronization.
      try files.confirmRoot()
      let retirement = Retirement(store: store, context: files.context)
      let chosen = try retirement.enqueue(selection, fetched.members, fetched.seen)
      _ = try pass.send(fetched)
      // What it means is worked out at once, with a fresh look.
      if !chosen.isEmpty { _ = try SyncPass(store: store, files: files, turns: turns).run() }
      return chosen
    }
  }
}

/// Deciding whom to retire, and saying so.
struct Retirement {
  let store: LocalStore
  let context: OperationContext

  /// Keeps the commands to be sent; gives whom they retire.
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
