import SyncDirectory
import SyncModel
import SyncStore

/// The base class of operations on the document of a store on this device.
///
/// Only one of them works on a store at a time, in one process or in several;
/// another one throws `storeInUse`.
public class DocumentOperation<Output: Sendable>: SyncOperation<Output>, @unchecked Sendable {
  /// The store that belongs to the document.
  final let store: LocalStore
  /// The shared directory, with the environment's retries.
  final let directory: any SharedDirectory
  /// The turns that operations on the store share.
  final let turns: SyncTurns

  /// Creates an operation that does `verb`.
  init(
    _ verb: String, store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    environment: SyncEnvironment
  ) {
    self.store = store
    self.directory = environment.retrying(directory)
    self.turns = turns
    super.init(verb, environment: environment)
  }

  /// Runs blocking work, as ``SyncOperation/blocking(_:)`` does, while nothing
  /// else synchronizes the store.
  ///
  /// - Parameter needsSetUp: Whether to throw `setUpUnfinished` if the store's
  ///   document is not complete in the directory.
  final func holdingStore<Value: Sendable>(
    needsSetUp: Bool = true, _ work: @escaping @Sendable (SharedFiles) throws -> Value
  ) async throws -> Value {
    try await blocking { [self] in
      let files = SharedFiles(directory, context: OperationContext(self))
      return try holdingLock(of: store.path) {
        try store.renewIdentity()
        guard try !needsSetUp || StoreRecords(store).isSetUp() else {
          throw SetUpState.unfinished(store.binding, path: store.path, operation: verb)
        }
        return try work(files)
      }
    }
  }
}

extension DocumentOperation<StoreBinding> {
  /// Binds the store to another generation with `goOver`, unless an interrupted
  /// call has done so, and begins that generation in the directory. If another
  /// generation counts by then, the store moves to that one.
  final func begin(
    described descriptions: SyncDescriptions, _ files: SharedFiles, goOver: () throws -> Void
  ) throws -> StoreBinding {
    begin(.listing)
    try directory.check(for: .writing)
    let isSetUp = try StoreRecords(store).isSetUp()
    if isSetUp { try goOver() }
    try DocumentBeginning(
      session: SyncSession(files: files, store: store), turns: turns, descriptions: descriptions
    ).completeOrYield()
    let binding = store.binding
    if isSetUp, let ancestor = binding.ancestor {
      send(.newIncarnation(client: binding.client, ancestor: ancestor))
    }
    send(.registered(binding))
    return binding
  }
}
