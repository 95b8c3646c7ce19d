import SyncDirectory
import SyncModel
import SyncStore

/// Finds a document to join, or publishes the beginning of the document that a
/// store is bound to.
public final class RegisterDocumentOperation: SyncOperation<DocumentDescription>,
  @unchecked Sendable
{
  /// The operation's task.
  public enum Action: Sendable {
    /// Find the document by its identifier; with `nil`, the only one. Errors:
    /// `documentMissing`, which lists the documents in the directory,
    /// `documentAmbiguous`, `documentDeleted`.
    case join(identifier: String?)
    /// Begin the document as the binding defines it. A repeated call changes
    /// nothing. Errors: `documentExists`, `generationReplaced`.
    case create(StoreBinding, description: String)
  }

  private let directory: any SharedDirectory
  private let applicationIdentifier: String?
  private let action: Action

  /// Creates an operation that finds or begins a document.
  package init(
    directory: any SharedDirectory, applicationIdentifier: String?, action: Action,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = environment.retrying(directory)
    self.applicationIdentifier = applicationIdentifier
    self.action = action
    super.init("register the document", environment: environment)
  }

  override func perform() async throws -> DocumentDescription {
    try await blocking { [self] in
      begin(.listing)
      let files = SharedFiles(directory, context: OperationContext(self))
      _ = try ApplicationSteps(files).require(applicationIdentifier)
      let steps = DocumentSteps(files)
      switch action {
      case .join(let identifier):
        return try steps.require(identifier).description
      case .create(let binding, let description):
        return try steps.create(binding, description: description).description
      }
    }
  }
}
