import SyncDirectory
import SyncModel
import SyncStore

/// Finds a document to join, or publishes the beginning of the one that a
/// store is bound to.
public final class RegisterDocumentOperation: SyncOperation<DocumentDescription>,
  @unchecked Sendable
{
  /// What to do about the document.
  public enum Action: Sendable {
    /// It is there: find it by its identifier, or the only one if `nil`.
    /// Errors: `documentMissing`, which lists those that are there,
    /// `documentAmbiguous`, `documentDeleted`.
    case join(identifier: String?)
    /// It is not there: begin it as the binding defines. A repeated call
    /// changes nothing. Errors: `documentExists`, `generationReplaced`.
    case create(StoreBinding, description: String)
  }

  private let directory: any SharedDirectory
  private let applicationIdentifier: String?
  private let action: Action

  /// Names the document and what to do about it.
  package init(
    directory: any SharedDirectory, applicationIdentifier: String?, action: Action,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = environment.retrying(directory)
    self.applicationIdentifier = applicationIdentifier
    self.action = action
    super.init("register the document", environment: environment)
  }

  /// Registers.
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
