import SyncDirectory
import SyncModel
import SyncStore

/// Selects the clients to retire, and enqueues the commands.
struct Retirement {
  let store: LocalStore
  let context: OperationContext

  /// Enqueues the commands; returns the clients that they retire.
  func enqueue(
    _ selection: RetirementSelection, _ members: Members,
    _ seen: [ClientIdentifier: StoreRecords.SeenMarker]
  ) throws -> [ClientIdentifier] {
    let others = members.remaining.subtracting([store.binding.client])
    let chosen: [ClientIdentifier]
    let reason: RetirementSelection.Reason
    switch selection {
    case .client(let client, let why):
      guard others.contains(client) else { throw unknown(client, members) }
      (chosen, reason) = ([client], why)
    case .notSeen(let limit):
      let absences = try StoreRecords(store).absences()
      chosen = others.filter { client in
        guard let absence = absences[client] else { return false }
        return absence.count >= MemberSteps.leastCount && absence.milliseconds >= limit.milliseconds
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
        ? "Leave the document instead." : "\(.listClients) lists the members of the document.")
  }
}
