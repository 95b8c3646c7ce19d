import SyncDirectory
import SyncModel
import SyncStore

/// Lists the clients of an application or of one document.
public final class ListClientsOperation: SyncOperation<[ClientDescription]>, @unchecked Sendable {
  private let directory: any SharedDirectory
  private let binding: StoreBinding?

  /// Does nothing yet.
  public init(
    directory: any SharedDirectory, binding: StoreBinding? = nil,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = directory
    self.binding = binding
    super.init("list the clients", environment: environment)
  }
}
