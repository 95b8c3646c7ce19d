import SyncDirectory
import SyncModel
import SyncStore

/// The one folder that each pass lists although no marker asks for it.
extension SyncPass {
  enum Turn: Sendable {
    /// The own folder, and what it holds.
    case own(OwnChangeSets.Listed)
    /// The folder of the own commands, and what it holds.
    case commands([CommandName])
    /// Another client's, or the folder of all.
    case other
    /// The folders in which something may have been left behind.
    case behind

    var looksBehind: Bool { if case .behind = self { true } else { false } }
    /// What is in the own folder, if it is the turn of that.
    var own: OwnChangeSets.Listed? { if case .own(let listed) = self { listed } else { nil } }
  }

  /// Lists one folder that no marker asked for: that of one client, itself
  /// included, that of its commands, or the folder of all clients, in which a
  /// client may be found whose only marker was lost.
  func takeTurn(
    _ fetch: ChangeFetch, _ members: Members, _ state: CommandState,
    _ listing: MarkerSteps.Listing
  ) throws -> Turn {
    let retirements = state.retirements
    let looksBehind = try LeftBehind(session: session).isNeeded(members)
    let others = fetch.knownClients.sorted()
    // Other members may have vacuumed the commands of a client that was retired
    // and came back.
    let hasCommands = try store.queuedCommands().contains(where: \.isPublished)
    let index = turns.take(of: others.count + 2 + (hasCommands ? 1 : 0) + (looksBehind ? 1 : 0))
    if index < others.count {
      try fetch.look(at: others[index])
      return .other
    }
    switch index - others.count {
    case 0: return .own(try OwnChangeSets(session: session).list())
    case 1:
      try fetch.lookForClients()
      // Others may have processed commands of a retired client, or applied more of it, and have
      // removed its markers by now: only theirs tell of that.
      if !retirements.isEmpty { try KnownMarkers(session: session).update(listing) }
      return .other
    case 2 where hasCommands:
      return .commands(try CommandSteps(session: session).listOwn())
    default: return .behind
    }
  }
}
