import SyncStore

/// Opens a store that is under sync.
///
/// The operation refuses a store whose first set-up was never completed. If the
/// set-up of a later generation was interrupted, the next synchronization
/// completes it.
final class OpenStoreOperation: SyncOperation<LocalStore>, @unchecked Sendable {
  private let path: String

  init(path: String, environment: SyncEnvironment) {
    self.path = path
    super.init("open the store", environment: environment)
  }

  override func perform() async throws -> LocalStore {
    try await blocking { [self] in
      let store = try LocalStore.open(at: path, options: environment.storeOptions)
      do {
        guard try StoreRecords(store).isSetUp() || store.binding.ancestor != nil else {
          throw SetUpState.unfinished(store.binding, path: path, operation: verb)
        }
        return store
      } catch {
        try store.close()
        throw error
      }
    }
  }
}
