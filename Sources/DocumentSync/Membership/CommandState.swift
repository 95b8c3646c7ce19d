import Foundation
import SyncModel
import SyncStore

/// The result of all commands that a store has processed. The store and its
/// snapshots contain it.
struct CommandState: Hashable, Codable {
  /// A command that retires a client.
  struct Retirement: Hashable, Codable {
    var client: ClientIdentifier
    var reason: RetirementSelection.Reason
    /// The revision of the client's newest marker that the author had seen.
    var lastRevision: UInt64
    /// The author, the number and the stamp of the command.
    var author: ClientIdentifier
    var number: UInt64
    var stamp: HybridTime
    /// The number of the client's last change set, if the command names it and
    /// its author is the client itself or has replaced it.
    var changeHead: UInt64?

    /// Whether this retirement counts before the other.
    func precedes(_ other: Retirement) -> Bool {
      (stamp, author, number) < (other.stamp, other.author, other.number)
    }
  }

  /// The progress of the commands of this store's own client.
  struct Own: Hashable, Codable {
    var client: ClientIdentifier
    /// The last command that has a number.
    var sealed: VersionVector.Entry?
    /// The last command that is known to be in the shared directory.
    var published: VersionVector.Entry?
  }

  /// The generation of all this: each generation numbers its commands from 1.
  var generation: IntegrityKey
  /// The last processed command of each other client.
  var processed = VersionVector()
  /// The commands of the own client.
  var own: Own
  /// The retirements, in the order in which they count.
  var retirements: [Retirement] = []
  /// The generation that replaces this one, if a command has named it.
  var reset: SyncCommand.Reset?
  /// The change sets for which other clients have asked for a whole store;
  /// `nil` for none.
  var wanted: Set<SyncCommand.Upload>?
  /// The greatest stamp of a processed command.
  var latest = HybridTime.zero

  init(generation: IntegrityKey, client: ClientIdentifier) {
    self.generation = generation
    own = Own(client: client)
  }

  /// The last processed command of each client, including this one.
  var commands: VersionVector {
    var commands = processed
    commands[own.client] = own.sealed
    return commands
  }

  /// Whether the own client has announced that it leaves.
  var hasLeft: Bool { retirements.contains { $0.client == own.client && $0.author == own.client } }

  /// Processes the next command of its author.
  mutating func process(_ file: SyncCommandFile, hash: ContentHash) {
    let entry = VersionVector.Entry(number: file.number, hash: hash)
    if file.client == own.client { own.sealed = entry } else { processed[file.client] = entry }
    latest = max(latest, file.stamp)
    if let retire = file.command.retire {
      let retirement = Retirement(
        client: retire.client, reason: retire.reason, lastRevision: retire.lastRevision,
        author: file.client, number: file.number, stamp: file.stamp,
        changeHead: retire.client == file.client || retire.reason == .replaced
          ? retire.changeHead : nil)
      // A whole store that this store took over may have contained it.
      if !retirements.contains(retirement) { retirements.append(retirement) }
      retirements.sort { $0.precedes($1) }
    }
    if let other = file.command.reset, reset.map({ $0.ordinal < other.ordinal }) ?? true {
      reset = other
    }
    if let upload = file.command.upload, file.client != own.client {
      wanted = (wanted ?? []).union([upload])
    }
  }

  /// Adds what another store of the generation has processed.
  ///
  /// - Parameter lowestKept: Returns the least number of a client's commands
  ///   that was not vacuumed. If the next command to process still exists, or
  ///   is about to arrive, it is left to be processed. With `nil`, everything
  ///   that the other store has processed counts.
  mutating func formUnion(
    _ other: CommandState, lowestKept: ((ClientIdentifier) -> UInt64)? = nil
  ) {
    guard other.generation == generation else { return }
    for (client, entry) in other.processed.entries {
      let next = processed.number(of: client) + 1
      guard entry.number >= next else { continue }
      if let lowestKept, lowestKept(client) <= next { continue }
      processed[client] = entry
    }
    retirements = Set(retirements + other.retirements).sorted { $0.precedes($1) }
    if let theirs = other.reset, reset.map({ $0.ordinal < theirs.ordinal }) ?? true {
      reset = theirs
    }
    latest = max(latest, other.latest)
  }

  /// Returns the stamp for the next command.
  func nextStamp(milliseconds: Int64) -> HybridTime {
    max(HybridTime(milliseconds: milliseconds), latest.next)
  }

  func encoded() throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return Array(try encoder.encode(self))
  }

  /// Returns the state of a store's client in its generation.
  static func read(from store: LocalStore) throws -> CommandState {
    let binding = store.binding
    return try decoded(
      store.commandState(), generation: binding.generation, client: binding.client,
      path: store.path)
  }

  /// Returns the state that a standing contains.
  ///
  /// - Parameter path: The path of the store.
  static func read(from standing: LocalStore.Standing, path: String) throws -> CommandState {
    try decoded(
      standing.commandState, generation: standing.binding.generation,
      client: standing.binding.client, path: path)
  }

  /// Decodes a store's state; returns an empty state for a new generation.
  ///
  /// If the state is that of another client, from a snapshot or a former
  /// incarnation, the commands that this client had published now count as
  /// those of another client, and those that it had not published are dropped.
  static func decoded(
    _ bytes: [UInt8]?, generation: IntegrityKey, client: ClientIdentifier, path: String = ""
  ) throws -> CommandState {
    let empty = CommandState(generation: generation, client: client)
    guard let bytes else { return empty }
    var state: CommandState = try StoredJSON.read(
      from: bytes, of: "docsync_meta", key: "commandState", path: path)
    guard state.generation == generation else { return empty }
    let former = state.own
    guard former.client != client else { return state }
    state.processed[former.client] = former.published
    state.retirements.removeAll {
      $0.author == former.client && $0.number > former.published?.number ?? 0
    }
    state.own = Own(client: client)
    return state
  }
}

extension CommandState: StoredValue {
  func checkNumbers() throws {
    for retirement in retirements {
      try StoredNumbers.check("lastRevision", retirement.lastRevision)
      try StoredNumbers.check("number", retirement.number)
      try StoredNumbers.check("changeHead", retirement.changeHead)
    }
    try reset?.checkNumbers()
    for upload in wanted ?? [] { try StoredNumbers.check("number", upload.number) }
  }
}
