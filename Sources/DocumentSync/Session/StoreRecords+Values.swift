import Foundation
import SyncModel

/// The values of the records.
extension StoreRecords {
  /// The last RecentSync of this store. It is recorded before it is published,
  /// so that the same bytes are published again after an interruption.
  struct OwnMarker: Codable {
    /// The name of its file.
    var name: String
    /// Its file.
    var bytes: Data
    /// The decoded bytes.
    var content: RecentSyncFile
  }

  /// The newest RecentSync of another client that this store has seen.
  struct SeenMarker: Codable, Hashable {
    var revision: UInt64
    var changeHead: UInt64
    var commandHead: UInt64
  }

  /// The least numbers of a client's files that were not vacuumed.
  struct Kept: Codable, Hashable {
    var changeSets: UInt64 = 1
    var commands: UInt64 = 1
  }

  /// The state of the store at its last vacuum.
  struct Vacuumed: Codable, Hashable {
    /// The number of its last change set.
    var head: UInt64
    /// How many change sets of others were applied.
    var applied: UInt64
  }

  /// A missing or damaged file of another client that this client waits for.
  struct Awaited: Codable, Hashable {
    var client: ClientIdentifier
    var number: UInt64
    var isCommand: Bool

    /// Creates an entry; `nil` for a wait that does not end when the author
    /// restores a file.
    init?(_ wait: SyncReport.Wait) {
      guard [.notArrived, .damaged, .unreadable].contains(wait.reason) else { return nil }
      (client, number, isCommand) = (wait.client, wait.number, wait.isCommand)
    }
  }

  /// What this client waits for.
  struct Waits: Codable, Hashable {
    /// The change sets and commands that its last synchronization could not
    /// apply; `nil` in a store of an earlier build.
    var reported: [SyncReport.Wait]?
    /// The files at its last synchronization.
    var last: Set<Awaited> = []
    /// Those of them that were awaited at the synchronization before as well,
    /// so that the next marker names them; `nil` if there are none.
    var lasting: Set<Awaited>?
    /// The files that its last marker names.
    var said: Set<Awaited> = []
  }

  /// The time for which a client did nothing that this store has seen.
  struct Absence: Codable, Hashable {
    /// The revision of its newest marker.
    var revision: UInt64
    /// The time between synchronizations of this store since then, in
    /// milliseconds.
    var milliseconds: Int64
    /// The number of these synchronizations.
    var count: Int
    /// The time of the last of them, by the clock of this device, in
    /// milliseconds since 1970.
    var last: Int64
  }

  /// A former generation of this store, in which clients may have left change
  /// sets that no device applies any more.
  struct FormerGeneration: Codable, Hashable {
    var generation: IntegrityKey
    /// By client, the number up to which the present generation contains all
    /// that the client has published in the former one, as far as this store
    /// knows.
    var contained: [String: UInt64]
    /// By client, the least number that was not vacuumed.
    var lowestKept: [String: UInt64]
    /// By removed client, the number of the last change set to apply.
    var cuts: [String: UInt64]
    /// Whether its folder was scanned.
    var isLookedThrough = false
    /// The change sets that were found and not taken; earlier builds kept none.
    var held: [HeldChangeSet]?

    /// Whether to scan its folder although it is not its turn.
    var needsLook: Bool { !isLookedThrough || held?.isEmpty == false }
  }

  /// A change set of a former generation that is not to be taken for now. The
  /// later ones of its author wait for it.
  struct HeldChangeSet: Codable, Hashable {
    /// Its author.
    var client: ClientIdentifier
    var number: UInt64
    /// The tables of which it deletes too many rows; none if it was refused.
    var deletions: [StoreStatus.WaitingChangeSet.Deletions]
  }

  /// The clients of this generation that this store was before.
  struct Ancestors: Codable, Hashable {
    var clients: [ClientIdentifier] = []
    /// By client, the number up to which this store contains all that the
    /// client has published.
    var contained: [String: UInt64] = [:]
    /// The clients whose folders were scanned.
    var lookedThrough: [ClientIdentifier] = []
    /// By client, the last change set that was read of a branch that does not
    /// count. Earlier builds have none.
    var branches: [String: VersionVector.Entry]?
    /// By client, the number up to which this store had applied a branch when
    /// another one began to count. Earlier builds have none.
    var takenBack: [String: UInt64]?
  }

  /// A generation that the store has left, and its files there.
  struct FormerLife: Codable, Hashable {
    var document: DocumentName
    var generation: IntegrityKey
    /// The client of this store in that generation.
    var client: ClientIdentifier
    /// The other members.
    var members: [ClientIdentifier]
    /// The clients that were retired.
    var retired: [ClientIdentifier]
    /// The retired clients whose files this one removes, each with the number
    /// up to which its change sets count.
    var clearing: [String: UInt64]
  }
}
