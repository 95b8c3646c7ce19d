import SyncDirectory
import SyncModel
import SyncStore

/// Throws the error that a synchronization would throw about the document,
/// without changing anything.
final class CheckDocumentOperation: SyncOperation<Void>, @unchecked Sendable {
  private let store: LocalStore
  private let directory: any SharedDirectory

  init(store: LocalStore, directory: any SharedDirectory, environment: SyncEnvironment) {
    self.store = store
    self.directory = environment.retrying(directory)
    super.init("look after the document", environment: environment)
  }

  override func perform() async throws {
    try await blocking { [self] in
      begin(.listing)
      let files = SharedFiles(directory, context: OperationContext(self))
      try DocumentSteps(files).check(store.binding)
    }
  }
}

/// Finds out what became of the document of a store. Errors: those of a missing
/// directory or document.
public final class FindStandingOperation: SyncOperation<DocumentDescription.Standing>,
  @unchecked Sendable
{
  private let directory: any SharedDirectory
  private let binding: StoreBinding

  /// Creates an operation for the document that a store is bound to.
  package init(
    directory: any SharedDirectory, binding: StoreBinding,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = environment.retrying(directory)
    self.binding = binding
    super.init("look after the document", environment: environment)
  }

  override func perform() async throws -> DocumentDescription.Standing {
    try await blocking { [self] in
      begin(.listing)
      let files = SharedFiles(directory, context: OperationContext(self))
      return try DocumentSteps(files).standing(of: binding)
    }
  }
}
