import SyncDirectory
import SyncModel
import SyncStore

/// A change set or a command that a store needs and that was vacuumed.
struct Gap: Error, Hashable {
  var client: ClientIdentifier
  var number: UInt64
  var isCommand = false
  /// The least numbers of the others' commands that were not vacuumed.
  var keptCommands: [ClientIdentifier: UInt64] = [:]

  /// Whether a whole store contains it, and opens no other gap. If two whole
  /// stores each lacked something vacuumed that the other contains, exchanging
  /// one for the other would never end.
  ///
  /// - Parameter vector: The change sets that the store has.
  func isClosed(by candidate: WholeStoreSteps.Candidate, for vector: VersionVector) -> Bool {
    guard let contained = candidate.vector,
      (isCommand ? candidate.commands : contained)?.number(of: client) ?? 0 >= number
    else { return false }
    return candidate.lacking.allSatisfy { vector.number(of: $0) <= contained.number(of: $0) }
  }
}
