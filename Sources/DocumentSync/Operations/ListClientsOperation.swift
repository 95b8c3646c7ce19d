import SyncDirectory
import SyncModel
import SyncStore

/// Lists the clients of an application, or those of one document and where
/// they stand with it, in order.
public final class ListClientsOperation: SyncOperation<[ClientDescription]>,
  @unchecked Sendable
{
  private let directory: any SharedDirectory
  private let binding: StoreBinding?
  private let retirements: [CommandState.Retirement]

  /// Names the directory, and the document if it is about one.
  package convenience init(
    directory: any SharedDirectory, binding: StoreBinding? = nil,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.init(
      directory: directory, binding: binding, retirements: [], environment: environment)
  }

  /// - Parameter retirements: The known retirements, which show which clients
  ///   are members no more.
  init(
    directory: any SharedDirectory, binding: StoreBinding?,
    retirements: [CommandState.Retirement], environment: SyncEnvironment
  ) {
    self.directory = environment.retrying(directory)
    self.binding = binding
    self.retirements = retirements
    super.init("list the clients", environment: environment)
  }

  /// Lists.
  override func perform() async throws -> [ClientDescription] {
    try await blocking { [self] in
      begin(.listing)
      try directory.check(for: .reading)
      let files = SharedFiles(directory, context: OperationContext(self))
      let registered = try ApplicationSteps(files).clients()
      guard let binding else {
        return Self.withoutFormerStates(try withMembership(registered, files))
      }
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
      // A client that had been removed before has removed it: that does not count.
      let gone = RecentSyncFile.retired(by: markers.compactMap(\.file)).union(counting.keys)
      for client in states.keys where !gone.contains(client) {
        if let remover = clients[client]?.removal?.client, gone.contains(remover) {
          clients[client]?.stay()
        }
      }
      for (client, retirements) in counting {
        clients[client, default: ClientDescription(client: client)].retire(retirements[0].reason)
      }
      return Self.withoutFormerStates(clients.values.sorted { $0.client < $1.client })
    }
  }

  /// Marks the clients that have a marker in a document that was not deleted,
  /// and those that the others' markers there list as retired.
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
  /// continued: they are clients no more.
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
  /// Notes where it stands with the document.
  fileprivate mutating func join(_ state: State) {
    self.state = state
    if status == .neverSynced { status = .member }
  }

  /// Notes that no removal of it counts.
  fileprivate mutating func stay() {
    if status == .removed { status = .member }
  }

  /// Notes that the members do not wait for it any more.
  fileprivate mutating func retire(_ reason: RetirementSelection.Reason) {
    guard status == .neverSynced || status == .member else { return }
    status = reason == .removed ? .removed : reason == .left ? .left : .retired
  }
}
