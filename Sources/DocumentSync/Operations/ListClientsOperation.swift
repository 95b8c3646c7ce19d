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
  private let retired: Set<ClientIdentifier>

  /// Names the directory, and the document if it is about one.
  ///
  /// - Parameter retired: The clients that are known to be members no more.
  public init(
    directory: any SharedDirectory, binding: StoreBinding? = nil,
    retired: Set<ClientIdentifier> = [], environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = environment.retrying(directory)
    self.binding = binding
    self.retired = retired
    super.init("list the clients", environment: environment)
  }

  /// Lists.
  public override func perform() async throws -> [ClientDescription] {
    try await blocking { [self] in
      begin(.listing)
      try directory.check(for: .reading)
      let files = SharedFiles(directory, context: OperationContext(self))
      let registered = try ApplicationSteps(files).clients()
      guard let binding else { return try withMembership(registered, files) }
      try DocumentSteps(files).check(binding)
      let layout = DirectoryLayout.Document(binding.document).generation(binding.generation)
      let states = try MarkerSteps.states(files, layout: layout)
      var clients = Dictionary(
        registered.filter { $0.document == binding.document || states[$0.client] != nil }
          .map { ($0.client, $0) }, uniquingKeysWith: { $1 })
      for (client, state) in states {
        clients[client, default: ClientDescription(client: client)].join(state)
      }
      for client in retired {
        clients[client, default: ClientDescription(client: client)].retire()
      }
      return clients.values.sorted { $0.client < $1.client }
    }
  }

  /// Marks those who have a marker in a document that lives.
  private func withMembership(
    _ registered: [ClientDescription], _ files: SharedFiles
  ) throws -> [ClientDescription] {
    var members: [ClientIdentifier: DocumentName] = [:]
    for found in try DocumentSteps(files).all() where !found.isDeleted {
      let layout = DirectoryLayout.Document(found.file.document)
        .generation(found.file.generation)
      for marker in try files.listIfPresent(layout.recentSyncs, as: MarkerName.self) {
        members[marker.client] = found.file.document
      }
    }
    return registered.map { client in
      var client = client
      if let document = members[client.client] {
        client.document = client.document ?? document
        if client.status == .neverSynced { client.status = .member }
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

  /// Notes that nobody waits for it.
  fileprivate mutating func retire() {
    if status == .neverSynced || status == .member { status = .retired }
  }
}
