import SyncDirectory
import SyncModel
import SyncStore

/// Lists the clients of an application, or those of one document with their
/// state in it, in order.
public final class ListClientsOperation: SyncOperation<[ClientDescription]>,
  @unchecked Sendable
{
  private let directory: any SharedDirectory
  private let store: LocalStore?

  /// Creates an operation for an application, or for the document of a store.
  package init(
    directory: any SharedDirectory, store: LocalStore? = nil,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = environment.retrying(directory)
    self.store = store
    super.init("list the clients", environment: environment)
  }

  override func perform() async throws -> [ClientDescription] {
    try await blocking { [self] in
      begin(.listing)
      try directory.check(for: .reading)
      let files = SharedFiles(directory, context: OperationContext(self))
      guard let store else {
        let registered = try ApplicationSteps(files).clients()
        return Self.withoutFormerStates(try withMembership(registered, files))
      }
      while true {
        let standing = try store.standing()
        let clients = try listed(standing, at: store.path, files)
        // A reset, for example, makes the store another client's meanwhile.
        if try store.standing().binding == standing.binding { return clients }
      }
    }
  }

  /// Returns the clients of the document of a store, with their state in it.
  private func listed(
    _ standing: LocalStore.Standing, at path: String, _ files: SharedFiles
  ) throws -> [ClientDescription] {
    let registered = try ApplicationSteps(files).clients()
    let binding = standing.binding
    // They show the clients that are no longer members.
    let retirements = try CommandState.read(from: standing, path: path).retirements
    try DocumentSteps(files).check(binding)
    let layout = DirectoryLayout.Document(binding.document).generation(binding.generation)
    let markers = try MarkerSteps.newest(files, layout: layout)
    let states = MarkerSteps.states(of: markers)
    var clients = Dictionary(
      registered.filter { $0.document == binding.document || states[$0.client] != nil }
        .map { ($0.client, $0) }, uniquingKeysWith: { $1 })
    for (client, state) in states {
      clients[client, default: ClientDescription(client: client)].join(state)
    }
    let counting = Members.counting(retirements, revisions: states.mapValues(\.revision))
    // A client that was itself removed before has removed this one: that does
    // not count.
    let gone = RecentSyncFile.retired(by: markers.compactMap(\.file)).union(counting.keys)
    for client in states.keys where !gone.contains(client) {
      if let remover = clients[client]?.removal?.client, gone.contains(remover) {
        clients[client]?.stay()
      }
    }
    let removals = Members.removals(among: counting)
    for (client, retirements) in counting {
      let reason = removals[client]?.reason ?? retirements[0].reason
      clients[client, default: ClientDescription(client: client)].retire(reason)
    }
    return Self.withoutFormerStates(clients.values.sorted { $0.client < $1.client })
  }

  /// Marks the clients that have a marker in a document that was not deleted,
  /// and those that the markers of others there list as retired.
  private func withMembership(
    _ registered: [ClientDescription], _ files: SharedFiles
  ) throws -> [ClientDescription] {
    var members: [ClientIdentifier: DocumentName] = [:]
    var retired: Set<ClientIdentifier> = []
    for found in try DocumentSteps(files).all() where !found.isDeleted {
      let layout = DirectoryLayout.Document(found.file.document)
        .generation(found.file.generation)
      let markers = try MarkerSteps.newest(files, layout: layout)
      for marker in markers { members[marker.name.client] = found.file.document }
      retired.formUnion(RecentSyncFile.retired(by: markers.compactMap(\.file)))
    }
    return registered.map { client in
      var client = client
      if let document = members[client.client] {
        client.document = client.document ?? document
        if client.status == .neverSynced { client.status = .member }
      }
      if retired.contains(client.client) { client.retire(.absent) }
      return client
    }
  }

  /// Marks the clients without a marker whose state another client has
  /// continued as retired.
  private static func withoutFormerStates(
    _ clients: [ClientDescription]
  ) -> [ClientDescription] {
    let continued = Set(clients.compactMap(\.ancestor))
    return clients.map { client in
      var client = client
      if client.status == .neverSynced, continued.contains(client.client) {
        client.retire(.replaced)
      }
      return client
    }
  }
}

extension ClientDescription {
  /// Notes its state in the document, which makes it a member.
  fileprivate mutating func join(_ state: State) {
    self.state = state
    if status == .neverSynced { status = .member }
  }

  /// Notes that its removal does not count.
  fileprivate mutating func stay() {
    if status == .removed { status = .member }
  }

  /// Notes that the other members no longer wait for it.
  fileprivate mutating func retire(_ reason: RetirementSelection.Reason) {
    guard status == .neverSynced || status == .member else { return }
    status = reason == .removed ? .removed : reason == .left ? .left : .retired
  }
}
