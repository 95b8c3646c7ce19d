import SyncDirectory
import SyncModel
import SyncStore

/// Throws what a synchronization would throw before it changes anything.
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

/// Finds out what became of the document that a store belongs to. Errors:
/// those of a directory or a document that is not there.
public final class FindStandingOperation: SyncOperation<DocumentDescription.Standing>,
  @unchecked Sendable
{
  private let directory: any SharedDirectory
  private let binding: StoreBinding

  /// Names the directory and what the store is bound to.
  package init(
    directory: any SharedDirectory, binding: StoreBinding,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = environment.retrying(directory)
    self.binding = binding
    super.init("look after the document", environment: environment)
  }

  /// Looks.
  override func perform() async throws -> DocumentDescription.Standing {
    try await blocking { [self] in
      begin(.listing)
      let files = SharedFiles(directory, context: OperationContext(self))
      return try DocumentSteps(files).standing(of: binding)
    }
  }
}
