import SyncDirectory

/// Lists the documents of an application, including deleted ones, in order of
/// identifier.
public final class ListDocumentsOperation: SyncOperation<[DocumentDescription]>,
  @unchecked Sendable
{
  private let directory: any SharedDirectory
  private let applicationIdentifier: String?
  private let measures: Bool

  /// Creates an operation for a directory. If `applicationIdentifier` is `nil`, it
  /// accepts any application.
  ///
  /// - Parameter measures: Whether to measure all files, for
  ///   ``DocumentDescription/contents``.
  package init(
    directory: any SharedDirectory, applicationIdentifier: String? = nil,
    measures: Bool = false, environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = environment.retrying(directory)
    self.applicationIdentifier = applicationIdentifier
    self.measures = measures
    super.init("list the documents", environment: environment)
  }

  override func perform() async throws -> [DocumentDescription] {
    try await blocking { [self] in
      begin(.listing)
      try directory.check(for: .reading)
      let files = SharedFiles(directory, context: OperationContext(self))
      _ = try ApplicationSteps(files).require(applicationIdentifier)
      let steps = DocumentSteps(files)
      let documents = try steps.all().map(\.description)
      guard measures else { return documents }
      begin(.measuring)
      return try documents.map { document in
        var document = document
        document.contents = try steps.contents(of: document.name)
        return document
      }
    }
  }
}

/// Lists the documents whose describing files cannot be read, in order of path.
final class ListUnreadableOperation: SyncOperation<[DocumentDescription.Unreadable]>,
  @unchecked Sendable
{
  private let directory: any SharedDirectory

  init(directory: any SharedDirectory, environment: SyncEnvironment) {
    self.directory = environment.retrying(directory)
    super.init("list the documents", environment: environment)
  }

  override func perform() async throws -> [DocumentDescription.Unreadable] {
    try await blocking { [self] in
      begin(.listing)
      try directory.check(for: .reading)
      return try DocumentSteps(SharedFiles(directory, context: OperationContext(self))).look()
        .unreadable
    }
  }
}
