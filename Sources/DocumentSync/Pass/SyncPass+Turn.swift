import SyncDirectory
import SyncModel
import SyncStore

/// The one folder that each pass lists although no marker asks for it.
extension SyncPass {
  enum Turn: Sendable {
    /// The own folder, and its content.
    case own(OwnChangeSets.Listed)
    /// The folder of the own commands, and its content.
    case commands([CommandName])
    /// The folder of another client, or the folder of all clients.
    case other
    /// The folders in which clients may have left change sets behind.
    case behind

    var looksBehind: Bool { if case .behind = self { true } else { false } }
    /// The content of the own folder, if it is its turn.
    var own: OwnChangeSets.Listed? { if case .own(let listed) = self { listed } else { nil } }
  }

  /// Lists one folder that no marker asked for: that of one client, possibly
  /// this one, that of its commands, or the folder of all clients, which shows
  /// a client whose only marker was lost.
  func takeTurn(
    _ fetch: ChangeFetch, _ members: Members, _ state: CommandState,
    _ listing: MarkerSteps.Listing
  ) throws -> Turn {
    let retirements = state.retirements
    let looksBehind = try LeftBehind(session: session).isNeeded(members)
    let others = fetch.knownClients.sorted()
    // Other members may have vacuumed the commands of a retired client that
    // came back.
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
      // Others may have processed commands of a retired client, or applied more
      // of its change sets, and have removed its markers by now. Only their own
      // markers show that.
      if !retirements.isEmpty { try KnownMarkers(session: session).update(listing) }
      return .other
    case 2 where hasCommands:
      return .commands(try CommandSteps(session: session).listOwn())
    default: return .behind
    }
  }
}
