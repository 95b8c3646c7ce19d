import SyncDirectory
import SyncModel

/// Registers a client with the application of a shared directory: finds or
/// creates the application, and publishes the client's description.
///
/// If two clients create the application without seeing each other's, both
/// succeed, and the one with the lowest root counts. A repeated call changes
/// nothing.
public final class RegisterApplicationClientOperation: SyncOperation<ApplicationRegistration>,
  @unchecked Sendable
{
  private let directory: any SharedDirectory
  private let applicationIdentifier: String?
  private let client: ClientIdentifier
  private let clientDescription: String
  private let ancestor: ClientIdentifier?
  private let createIfMissing: Bool
  private let descriptions: SyncDescriptions

  /// Creates an operation that registers a client.
  ///
  /// - Parameters:
  ///   - applicationIdentifier: The application; `nil` accepts any.
  ///   - createIfMissing: Whether to create the application in a directory that
  ///     has none.
  package init(
    directory: any SharedDirectory, applicationIdentifier: String?, client: ClientIdentifier,
    description: String, ancestor: ClientIdentifier? = nil, createIfMissing: Bool,
    descriptions: SyncDescriptions = SyncDescriptions(),
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.descriptions = descriptions
    self.directory = environment.retrying(directory)
    self.applicationIdentifier = applicationIdentifier
    self.client = client
    clientDescription = description
    self.ancestor = ancestor
    self.createIfMissing = createIfMissing
    super.init("register the client", environment: environment)
  }

  override func perform() async throws -> ApplicationRegistration {
    try await blocking { [self] in
      try SyncDescriptions.check(clientDescription, verb)
      begin(.listing)
      try directory.check(for: .writing)
      let steps = ApplicationSteps(SharedFiles(directory, context: OperationContext(self)))
      let (application, created) = try steps.findOrCreate(
        applicationIdentifier, by: client, createIfMissing: createIfMissing,
        described: descriptions)
      try steps.describe(
        client, as: clientDescription, ancestor: ancestor, userInfo: descriptions.clientInfo)
      return ApplicationRegistration(
        root: application.root, application: application.application, client: client,
        created: created)
    }
  }
}
