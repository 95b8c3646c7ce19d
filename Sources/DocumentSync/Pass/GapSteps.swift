import SyncDirectory
import SyncModel
import SyncStore

/// Closes gaps: those of this store with a whole store, those of others by
/// uploading one.
struct GapSteps: StoreSteps {
  let session: SyncSession

  func canClose(_ gap: Gap) throws -> Bool {
    let vector = try store.vector()
    return try WholeStoreSteps(files).candidates(GenerationFile(of: store.binding)).contains {
      gap.isClosed(by: $0, for: vector)
    }
  }

  /// Exchanges the content of the store for that of a whole store that closes
  /// a gap.
  func close(_ gap: Gap) throws -> SyncReport.Rebootstrap {
    let vector = try store.vector()
    return try RebootstrapStep(session: session).run(.gap, keptCommands: gap.keptCommands) {
      gap.isClosed(by: $0, for: vector)
    }
  }

  /// Adds to a gap the least numbers of the others' commands that were not
  /// vacuumed, as far as the markers show.
  func noting(
    _ lowest: LowestKept, of seen: [ClientIdentifier: StoreRecords.SeenMarker], _ gap: Gap
  ) throws -> Gap {
    var gap = gap
    for client in try CommandSteps(session: session).heads(seen).keys {
      gap.keptCommands[client] = try lowest.kept(of: client).commands
    }
    return gap
  }

  /// Asks the others once for a whole store that closes a gap.
  func ask(for gap: Gap) throws {
    var asked = try records.asked()
    guard asked[gap.client.description] != gap.number else { return }
    context.environment.logger.notice(
      "no whole store contains change set \(gap.number) of \(gap.client): asking for one")
    asked[gap.client.description] = gap.number
    try CommandSteps.enqueue(
      SyncCommand(SyncCommand.Upload(client: gap.client, number: gap.number)), in: store)
    try records.keep(asked: asked)
  }

  /// Uploads a whole store if others have asked for one, this store contains
  /// everything that was vacuumed, and no whole store in the directory does.
  func uploadIfAsked(_ listing: MarkerSteps.Listing) throws {
    let commands = CommandSteps(session: session)
    var state = try commands.state()
    guard let wanted = state.wanted, !wanted.isEmpty else { return }
    let vector = try store.vector()
    let possible = wanted.filter { vector.number(of: $0.client) >= $0.number }
    guard !possible.isEmpty else { return }
    let candidates = try WholeStoreSteps(files).candidates(GenerationFile(of: store.binding))
    let open = possible.filter { upload in
      !candidates.contains {
        $0.isComplete && $0.vector?.number(of: upload.client) ?? 0 >= upload.number
      }
    }
    if !open.isEmpty {
      let cleared = ClearedAway(try KnownMarkers(session: session).update(listing).values)
      guard cleared.isContained(in: vector, commands: state.commands) else { return }
      guard try WholeStoreSteps(files).uploadIfPossible(in: session) != nil else { return }
    }
    state.wanted = wanted.subtracting(possible)
    if state.wanted?.isEmpty ?? true { state.wanted = nil }
    try commands.keep(state)
  }
}
