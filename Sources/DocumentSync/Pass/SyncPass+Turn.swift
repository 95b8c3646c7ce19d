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

    var scansFormerGenerations: Bool { if case .behind = self { true } else { false } }
    /// The content of the own folder, if it is its turn.
    var own: OwnChangeSets.Listed? { if case .own(let listed) = self { listed } else { nil } }
  }

  /// A folder that can have its turn.
  private enum Place {
    case client(ClientIdentifier)
    case own
    case clients
    case commands
    case behind

    /// Whether what is found there is of use to a half.
    func serves(_ half: SyncHalf) -> Bool {
      switch (self, half) {
      case (_, .both), (.clients, _): true
      case (.client, _), (.behind, _): half == .fetching
      case (.own, _), (.commands, _): half == .sending
      }
    }
  }

  /// Lists one folder that no marker asked for: that of one client, possibly
  /// this one, that of its commands, or the folder of all clients, which shows
  /// a client whose only marker was lost.
  func takeTurn(
    _ fetch: ChangeFetch, _ state: CommandState, _ listing: MarkerSteps.Listing
  ) throws -> Turn {
    let places = try places(fetch).filter { $0.serves(half) }
    switch places[turns.take(of: places.count, for: half)] {
    case .client(let client):
      try fetch.look(at: client)
      return .other
    case .own: return .own(try OwnChangeSets(session: session).list())
    case .clients:
      if half != .sending { try fetch.lookForClients() }
      // Others may have processed commands of a retired client, or applied more
      // of its change sets, and have removed its markers by now. Only their own
      // markers show that.
      let retirements = state.retirements
      if !retirements.isEmpty { try KnownMarkers(session: session).update(listing) }
      return .other
    case .commands: return .commands(try CommandSteps(session: session).listOwn())
    case .behind: return .behind
    }
  }

  private func places(_ fetch: ChangeFetch) throws -> [Place] {
    var places = fetch.knownClients.sorted().map(Place.client) + [.own, .clients]
    // Other members may have vacuumed the commands of a retired client that
    // came back.
    if try store.queuedCommands().contains(where: \.isPublished) { places.append(.commands) }
    if try LeftBehind(session: session).isNeeded() { places.append(.behind) }
    return places
  }
}
