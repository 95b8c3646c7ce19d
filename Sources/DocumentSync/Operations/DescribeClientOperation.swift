import SyncDirectory
import SyncModel
import SyncStore

/// Publishes a new description of a store's client, unless it equals the
/// present one.
public final class DescribeClientOperation: SyncOperation<Void>, @unchecked Sendable {
  private let store: LocalStore
  private let directory: any SharedDirectory
  private let descriptions: SyncDescriptions

  /// Creates an operation with the parts of the description to change.
  package init(
    store: LocalStore, directory: any SharedDirectory, descriptions: SyncDescriptions,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.store = store
    self.directory = environment.retrying(directory)
    self.descriptions = descriptions
    super.init("describe the client", environment: environment)
  }

  override func perform() async throws {
    try await blocking { [self] in
      try descriptions.check(verb)
      begin(.uploading, count: 1)
      try directory.check(for: .writing)
      let files = SharedFiles(directory, context: OperationContext(self))
      try holdingLock(of: store.path) {
        try store.renewIdentity()
        let binding = store.binding
        files.expectRoot(binding)
        try files.publishing(for: store) {
          try ApplicationSteps(files).describe(
            binding.client, as: descriptions.client ?? binding.clientDescription,
            ancestor: binding.ancestor, userInfo: descriptions.clientInfo,
            document: binding.document)
        }
        if let name = descriptions.client { try store.setClientDescription(name) }
        report { $0.completedCount = 1 }
      }
    }
  }
}
