import SyncDirectory
import SyncModel
import SyncStore

/// Registers a client with the application of a shared directory.
public final class RegisterApplicationClientOperation: SyncOperation<ApplicationRegistration>,
  @unchecked Sendable
{
  private let directory: any SharedDirectory
  private let applicationIdentifier: String?
  private let client: ClientIdentifier
  private let clientDescription: String
  private let ancestor: ClientIdentifier?
  private let createIfMissing: Bool

  /// Does nothing yet.
  public init(
    directory: any SharedDirectory, applicationIdentifier: String?, client: ClientIdentifier,
    description clientDescription: String, ancestor: ClientIdentifier?, createIfMissing: Bool,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = directory
    self.applicationIdentifier = applicationIdentifier
    self.client = client
    self.clientDescription = clientDescription
    self.ancestor = ancestor
    self.createIfMissing = createIfMissing
    super.init("register the client", environment: environment)
  }
}
