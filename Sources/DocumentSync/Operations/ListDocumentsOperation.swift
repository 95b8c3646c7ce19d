import SyncDirectory

/// Lists the documents of an application, in order of identifier, deleted
/// ones among them.
public final class ListDocumentsOperation: SyncOperation<[DocumentDescription]>,
  @unchecked Sendable
{
  private let directory: any SharedDirectory
  private let applicationIdentifier: String?

  /// Names the directory, and the application if it matters.
  public init(
    directory: any SharedDirectory, applicationIdentifier: String? = nil,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = environment.retrying(directory)
    self.applicationIdentifier = applicationIdentifier
    super.init("list the documents", environment: environment)
  }

  /// Lists.
  public override func perform() async throws -> [DocumentDescription] {
    try await blocking { [self] in
      begin(.listing)
      try directory.check(for: .reading)
      let files = SharedFiles(directory, context: OperationContext(self))
      _ = try ApplicationSteps(files).require(applicationIdentifier)
      return try DocumentSteps(files).all().map(\.description)
    }
  }
}
