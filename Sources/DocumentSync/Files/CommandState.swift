import Foundation
import SyncModel

/// What all the commands that a store has processed come to. It is kept in
/// the store, and goes along with its snapshots.
struct CommandState: Hashable, Codable {
  /// A command that retires a client.
  struct Retirement: Hashable, Codable {
    var client: ClientIdentifier
    var reason: RetirementReason
    /// The revision of the client's newest marker that the author had seen.
    var lastRevision: UInt64
    /// Who said so, and the number and the stamp of the command.
    var author: ClientIdentifier
    var number: UInt64
    var stamp: HybridTime
    /// The number of the client's last change set, where it said so itself.
    var changeHead: UInt64?

    /// The order in which retirements count.
    func precedes(_ other: Retirement) -> Bool {
      (stamp, author, number) < (other.stamp, other.author, other.number)
    }
  }

  /// How far the commands of the client are whose state this is.
  struct Own: Hashable, Codable {
    var client: ClientIdentifier
    /// The last one that was given a number.
    var sealed: VersionVector.Entry?
    /// The last one that is known to be in the shared directory.
    var published: VersionVector.Entry?
  }

  /// The generation that all this is about: each numbers its commands anew.
  var generation: IntegrityKey
  /// The last command of each other client that was processed.
  var processed = VersionVector()
  /// The own ones.
  var own: Own
  /// In order.
  var retirements: [Retirement] = []
  /// The generation that takes this one's place, once a command said so.
  var reset: SyncCommand.Reset?
  /// The change sets of which others need a whole store that contains them.
  /// A set; `nil` for none.
  var wanted: Set<SyncCommand.Upload>?
  /// The greatest stamp of a command that was processed.
  var latest = HybridTime.zero

  init(generation: IntegrityKey, client: ClientIdentifier) {
    self.generation = generation
    own = Own(client: client)
  }

  /// The last command of each client that was processed, this one included.
  var commands: VersionVector {
    var commands = processed
    commands[own.client] = own.sealed
    return commands
  }

  /// Whether the client whose state this is has said that it goes.
  var hasLeft: Bool { retirements.contains { $0.client == own.client && $0.author == own.client } }

  /// Takes in a command that is the next one of its author.
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
      // A whole store that was taken over may have said so before.
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

  /// Takes in what another store of the generation has processed.
  ///
  /// - Parameter lowestKept: The least number of a client's commands that was
  ///   not cleared away. Where the next one to process is still there, or is
  ///   about to come, it is left to be processed. `nil` if all that the other
  ///   has processed counts.
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

  /// The stamp of the next command.
  func nextStamp(milliseconds: Int64) -> HybridTime {
    max(HybridTime(milliseconds: milliseconds), latest.next)
  }

  func encoded() throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return Array(try encoder.encode(self))
  }

  /// What a store keeps, or the beginning of a generation's.
  ///
  /// If it was that of another client, a snapshot's or that of a former
  /// incarnation, what that one had published is one of the others' by now,
  /// and what it had not is not to be.
  static func decoded(
    _ bytes: [UInt8]?, generation: IntegrityKey, client: ClientIdentifier
  ) throws -> CommandState {
    let empty = CommandState(generation: generation, client: client)
    guard let bytes else { return empty }
    var state = try JSONDecoder().decode(CommandState.self, from: Data(bytes))
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
