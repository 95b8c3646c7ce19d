import SyncModel

/// The members of a document, and what becomes of retired clients: a pure
/// function of the processed commands and of the seen markers, so that every
/// device gets the same result.
struct Members {
  /// The state of a client by its newest marker that could be read.
  struct Standing: Hashable {
    /// The commands that it has processed, including its own.
    var commands: VersionVector
    /// The change sets of others that it has applied.
    var applied: VersionVector
  }

  /// A change set that waits for others.
  struct Need: Hashable {
    var author: ClientIdentifier
    var number: UInt64
    /// The change sets that it needs and that this store has not applied.
    var missing: [ClientIdentifier: UInt64]
  }

  /// How far the change sets of a retired client are applied.
  enum Cut: Hashable {
    /// No further than now, until these clients have announced that they
    /// stopped.
    case stopped(waitingFor: [ClientIdentifier])
    /// Up to this number.
    case settled(UInt64)
  }

  /// By retired client, the retirement that counts.
  let retirements: [ClientIdentifier: CommandState.Retirement]
  /// By removed client, its removal. The client may have been retired for another reason before.
  let removals: [ClientIdentifier: CommandState.Retirement]
  /// The clients that are not retired.
  let remaining: Set<ClientIdentifier>
  /// How far the change sets of each retired client are applied.
  let cuts: [ClientIdentifier: Cut]

  /// The clients that vacuum waits for: the remaining ones, and those whose
  /// retirement some member does not know yet.
  var all: Set<ClientIdentifier> {
    remaining.union(
      cuts.compactMap { client, cut in if case .stopped = cut { client } else { nil } })
  }

  /// Whether it is settled how far every retired client's change sets are
  /// applied.
  var isSettled: Bool {
    cuts.values.allSatisfy { if case .settled = $0 { true } else { false } }
  }

  /// - Parameters:
  ///   - own: This client; its standing is that of its store.
  ///   - revisions: The revision of the newest seen marker of each other
  ///     client.
  ///   - standings: The content of those markers, as far as they could be read.
  ///   - needs: The change sets that wait here.
  init(
    own: ClientIdentifier, ownStanding: Standing, revisions: [ClientIdentifier: UInt64],
    standings: [ClientIdentifier: Standing], retirements all: [CommandState.Retirement],
    needs: [Need] = []
  ) {
    var known = standings
    known[own] = ownStanding
    let retirements = Self.counting(all, revisions: revisions)
    let remaining = Set(revisions.keys).union([own]).subtracting(retirements.keys)
    self.remaining = remaining
    self.retirements = retirements.mapValues { $0[0] }
    removals = Self.removals(among: retirements)
    var settled: [ClientIdentifier: UInt64] = [:]
    var cuts: [ClientIdentifier: Cut] = [:]
    for (client, commands) in retirements {
      let highest = remaining.map { known[$0]?.applied.number(of: client) ?? 0 }.max() ?? 0
      // A client that leaves names its last change set; a client that replaces
      // another names the last one of that client.
      if let head = commands.compactMap(\.changeHead).max() {
        settled[client] = max(head, highest)
        continue
      }
      let waitingFor =
        commands.map { command in
          Self.missing(command, remaining, known, own: own)
        }.min { $0.count < $1.count } ?? []
      guard waitingFor.isEmpty else {
        cuts[client] = .stopped(waitingFor: waitingFor)
        continue
      }
      settled[client] =
        remaining.map { known[$0]?.applied.number(of: client) ?? 0 }.max() ?? 0
    }
    // If a waiting change set will be applied, those that it depends on count
    // as well.
    var grows = true
    while grows {
      grows = false
      for need in needs {
        guard remaining.contains(need.author) || settled[need.author] ?? 0 >= need.number else {
          continue
        }
        for (client, number) in need.missing where settled[client].map({ $0 < number }) ?? false {
          settled[client] = number
          grows = true
        }
      }
    }
    for (client, number) in settled { cuts[client] = .settled(number) }
    self.cuts = cuts
  }

  /// Returns the retirements that count, in order, by the client that they
  /// retire.
  ///
  /// If a marker of an absent client is newer than the one that the command
  /// names, the client is there, and the command does not count. A command
  /// whose author was retired before does not count either, unless it retires
  /// its author.
  static func counting(
    _ all: [CommandState.Retirement], revisions: [ClientIdentifier: UInt64]
  ) -> [ClientIdentifier: [CommandState.Retirement]] {
    var counting: [ClientIdentifier: [CommandState.Retirement]] = [:]
    for retirement in all.sorted(by: { $0.precedes($1) }) {
      if retirement.reason == .absent,
        revisions[retirement.client] ?? 0 > retirement.lastRevision
      {
        continue
      }
      guard retirement.author == retirement.client || counting[retirement.author] == nil else {
        continue
      }
      counting[retirement.client, default: []].append(retirement)
    }
    return counting
  }

  /// Returns the removals among the retirements that count, by the client that they remove.
  static func removals(
    among counting: [ClientIdentifier: [CommandState.Retirement]]
  ) -> [ClientIdentifier: CommandState.Retirement] {
    counting.compactMapValues { $0.first { $0.reason == .removed } }
  }

  /// Returns the members that have not announced that they have processed the
  /// command, or that know of a command that this store has not processed and
  /// that may change which retirements count.
  private static func missing(
    _ command: CommandState.Retirement, _ remaining: Set<ClientIdentifier>,
    _ known: [ClientIdentifier: Standing], own: ClientIdentifier
  ) -> [ClientIdentifier] {
    let processed = known[own]?.commands ?? VersionVector()
    return remaining.filter { member in
      guard let standing = known[member] else { return true }
      return standing.commands.number(of: command.author) < command.number
        || !processed.contains(standing.commands)
    }.sorted()
  }
}
