import SyncDirectory
import SyncModel
import SyncStore

/// Lists the clients of an application, or the members of one document and
/// where they stand with it, in order.
public final class ListClientsOperation: SyncOperation<[ClientDescription]>,
  @unchecked Sendable
{
  private let directory: any SharedDirectory
  private let binding: StoreBinding?

  /// Names the directory, and the document if it is about one.
  public init(
    directory: any SharedDirectory, binding: StoreBinding? = nil,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = environment.retrying(directory)
    self.binding = binding
    super.init("list the clients", environment: environment)
  }

  /// Lists.
  public override func perform() async throws -> [ClientDescription] {
    try await blocking { [self] in
      begin(.listing)
      try directory.check(for: .reading)
      let files = SharedFiles(directory, context: OperationContext(self))
      let registered = try ApplicationSteps(files).clients()
      guard let binding else { return registered }
      try DocumentSteps(files).check(binding)
      let states = try MarkerSteps.states(files, binding: binding)
      let known = Dictionary(registered.map { ($0.client, $0) }, uniquingKeysWith: { $1 })
      return states.keys.sorted().map { client in
        var description =
          known[client] ?? ClientDescription(client: client, description: "", platform: "")
        description.state = states[client]
        return description
      }
    }
  }
}
