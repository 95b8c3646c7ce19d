import SyncStore

/// An operation that runs one call on a store.
final class StoreOperation<Output: Sendable>: SyncOperation<Output>, @unchecked Sendable {
  private let work: @Sendable () throws -> Output

  init(
    _ verb: String, environment: SyncEnvironment, _ work: @escaping @Sendable () throws -> Output
  ) {
    self.work = work
    super.init(verb, environment: environment)
  }

  override func perform() async throws -> Output { try await blocking(work) }
}
