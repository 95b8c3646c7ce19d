import SyncModel

/// What was cleared away from a generation, as far as markers say: whoever
/// lacks it can only get it from a whole store.
struct ClearedAway: Hashable {
  /// By client, the number of its last change set that was.
  private(set) var changeSets: [ClientIdentifier: UInt64] = [:]
  /// The same of commands.
  private(set) var commands: [ClientIdentifier: UInt64] = [:]
  /// Beyond which change sets of retired clients nobody needs any.
  private var cuts: [ClientIdentifier: UInt64] = [:]

  /// What markers say of their clients, and of those that are retired.
  init(_ markers: some Sequence<RecentSyncFile>) {
    for marker in markers {
      add(marker.client, marker.lowestKept, marker.lowestKeptCommand)
      for retired in marker.retired {
        add(retired.client, retired.lowestKept, retired.lowestKeptCommand)
        if let number = retired.cut { cut(retired.client, after: number) }
      }
    }
  }

  /// Adds the least numbers of a client that were not cleared away.
  mutating func add(
    _ client: ClientIdentifier, _ lowestChangeSet: UInt64, _ lowestCommand: UInt64
  ) {
    if lowestChangeSet > 1 {
      changeSets[client] = max(changeSets[client] ?? 0, lowestChangeSet - 1)
    }
    if lowestCommand > 1 { commands[client] = max(commands[client] ?? 0, lowestCommand - 1) }
  }

  /// Nobody needs what a client has published after a change set.
  mutating func cut(_ client: ClientIdentifier, after number: UInt64) {
    cuts[client] = min(cuts[client] ?? .max, number)
  }

  /// The clients of which change sets were cleared away that a vector lacks.
  func clients(lackedBy vector: VersionVector) -> Set<ClientIdentifier> {
    Set(
      changeSets.filter { client, number in
        vector.number(of: client) < min(number, cuts[client] ?? .max)
      }.keys)
  }

  /// Whether everything that was cleared away is in one place.
  func isContained(in vector: VersionVector, commands processed: VersionVector) -> Bool {
    clients(lackedBy: vector).isEmpty
      && commands.allSatisfy { processed.number(of: $0.key) >= $0.value }
  }
}
