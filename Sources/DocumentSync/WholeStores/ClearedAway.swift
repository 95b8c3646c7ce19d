import SyncModel

/// The vacuumed change sets and commands of a generation, as far as the markers
/// show: a device that lacks them can get them only from a whole store.
struct ClearedAway: Hashable {
  /// The number of each client's last vacuumed change set.
  private(set) var changeSets: [ClientIdentifier: UInt64] = [:]
  /// The number of each client's last vacuumed command.
  private(set) var commands: [ClientIdentifier: UInt64] = [:]
  /// The last change set of each retired client that devices need.
  private var cuts: [ClientIdentifier: UInt64] = [:]

  /// Collects the numbers that markers record for their clients and for retired
  /// ones.
  init(_ markers: some Sequence<RecentSyncFile>) {
    for marker in markers {
      add(marker.client, marker.lowestKept, marker.lowestKeptCommand)
      for retired in marker.retired {
        add(retired.client, retired.lowestKept, retired.lowestKeptCommand)
        if let number = retired.cut { cut(retired.client, after: number) }
      }
    }
  }

  /// Adds the least numbers of a client that were not vacuumed.
  mutating func add(
    _ client: ClientIdentifier, _ lowestChangeSet: UInt64, _ lowestCommand: UInt64
  ) {
    if lowestChangeSet > 1 {
      changeSets[client] = max(changeSets[client] ?? 0, lowestChangeSet - 1)
    }
    if lowestCommand > 1 { commands[client] = max(commands[client] ?? 0, lowestCommand - 1) }
  }

  /// Records that no device needs the change sets of a client after a number.
  mutating func cut(_ client: ClientIdentifier, after number: UInt64) {
    cuts[client] = min(cuts[client] ?? .max, number)
  }

  /// Returns the authors of vacuumed change sets that a vector lacks.
  func clients(lackedBy vector: VersionVector) -> Set<ClientIdentifier> {
    Set(
      changeSets.filter { client, number in
        vector.number(of: client) < min(number, cuts[client] ?? .max)
      }.keys)
  }

  /// Whether the two vectors contain everything that was vacuumed.
  func isContained(in vector: VersionVector, commands processed: VersionVector) -> Bool {
    clients(lackedBy: vector).isEmpty
      && commands.allSatisfy { processed.number(of: $0.key) >= $0.value }
  }
}
