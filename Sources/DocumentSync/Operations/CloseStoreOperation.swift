import SyncStore

/// Closes a store, after the operations before it in the queue.
final class CloseStoreOperation: SyncOperation<Void>, @unchecked Sendable {
  private let store: LocalStore

  init(store: LocalStore, environment: SyncEnvironment) {
    self.store = store
    super.init("close the store", environment: environment)
  }

  override func perform() async throws {
    let store = store
    try await blocking { try store.close() }
  }
}
