import SyncDirectory
import SyncModel
import SyncStore

/// Resets the document to the content of this store: a new generation replaces
/// the present one.
///
/// The operation first publishes the edits of this device, and announces in the
/// present generation which one replaces it. The other devices move to it with
/// their edits. If it is interrupted, the next call completes it.
public final class ResetOperation: DocumentOperation<StoreBinding>, @unchecked Sendable {
  /// Creates an operation that resets a store's document.
  package init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    super.init(
      "begin the document again", store: store, directory: directory, turns: turns,
      environment: environment)
  }

  override func perform() async throws -> StoreBinding {
    try await holdingStore(needsSetUp: false) { [self] files in
      try begin(described: SyncDescriptions(), files) { try goOver(files) }
    }
  }

  /// Announces the generation that replaces the present one, and binds the
  /// store to it, as a new client.
  ///
  /// The announcement comes first, since its author no longer exists once the
  /// store is bound to the new generation. If the operation ends in between,
  /// the other devices wait for a generation that has not arrived, and work on
  /// meanwhile.
  private func goOver(_ files: SharedFiles) throws {
    try store.checkCompleteness()
    let session = SyncSession(files: files, store: store)
    let pass = SyncPass(session: session, turns: turns, checksIdentities: false)
    _ = try pass.run()
    let fetched = try pass.fetch()
    // The next synchronization sends whatever is enqueued from here on.
    try files.confirmRoot()
    var generator = environment.generator
    let records = session.records
    var reset = try records.reset()
    if reset == nil {
      let begun = SyncCommand.Reset(
        generation: .random(using: &generator),
        ordinal: try DocumentSteps(files).nextOrdinal(of: store.binding.document))
      try records.keep(begun)
      try CommandSteps.enqueue(SyncCommand(begun), in: store)
      reset = begun
    }
    _ = try pass.send(fetched)
    guard let reset else { return }
    try checkCancellation()
    let leftBehind = LeftBehind(session: session)
    let former = try leftBehind.formerGenerations(
      beside: leftBehind.present(containing: store.vector()))
    var binding = store.binding
    binding.ancestor = binding.client
    binding.client = .random(using: &generator)
    binding.generation = reset.generation
    binding.generationOrdinal = Int(reset.ordinal)
    try ApplicationSteps(files).describe(
      binding.client, as: binding.clientDescription, ancestor: binding.ancestor,
      document: binding.document)
    try FormerLives(session: session).noteLeaving()
    try store.beginAgain(
      as: binding, forgetting: StoreRecords.ofOneGeneration,
      setting: StoreRecords.record(of: former), keepsNumbers: true,
      keepsCommand: CommandSteps.isForEveryGeneration)
  }
}
