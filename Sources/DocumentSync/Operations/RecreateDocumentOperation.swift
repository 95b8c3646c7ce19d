import SyncDirectory
import SyncModel
import SyncStore

/// Creates a deleted document again, with the whole content of a store that
/// belonged to it.
///
/// The store becomes a new client in a generation with the next ordinal. If the
/// operation is interrupted, the next call completes it. Throws
/// `documentReplaced` if another device has created the document again; nothing
/// is changed then.
public final class RecreateDocumentOperation: DocumentOperation<StoreBinding>, @unchecked Sendable {
  private let descriptions: SyncDescriptions

  /// Creates an operation for a store whose document was deleted.
  package init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    descriptions: SyncDescriptions = SyncDescriptions(),
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.descriptions = descriptions
    super.init(
      "create the document again", store: store, directory: directory, turns: turns,
      environment: environment)
  }

  override func perform() async throws -> StoreBinding {
    try await holdingStore(needsSetUp: false) { [self] files in
      try descriptions.check(verb)
      return try begin(described: descriptions, files) { try beginAgain(files) }
    }
  }

  /// Binds the store to the next generation.
  private func beginAgain(_ files: SharedFiles) throws {
    var binding = store.binding
    let (applications, documents) = (ApplicationSteps(files), DocumentSteps(files))
    // Only a tombstone allows this step.
    guard case .deleted = try documents.standing(of: binding) else {
      try documents.check(binding)
      return
    }
    try store.checkCompleteness()
    var generator = environment.generator
    let client = ClientIdentifier.random(using: &generator)
    binding.root = try applications.findOrCreate(
      binding.application, by: client, createIfMissing: true, described: descriptions
    ).file.root
    try documents.checkAbsent(binding.documentIdentifier)
    binding.ancestor = binding.client
    binding.client = client
    binding.clientDescription = descriptions.client ?? binding.clientDescription
    binding.generation = .random(using: &generator)
    binding.generationOrdinal = Int(try documents.nextOrdinal(of: binding.document))
    try applications.describe(
      client, as: binding.clientDescription, ancestor: binding.ancestor,
      userInfo: descriptions.clientInfo, document: binding.document)
    try checkCancellation()
    // Unsent commands were for members of the deleted document.
    try store.beginAgain(as: binding, forgetting: StoreRecords.ofOneLife)
  }
}
