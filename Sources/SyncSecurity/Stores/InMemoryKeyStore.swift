import Foundation
import SyncModel

/// Keys in memory, for tests and for simulated devices. They are gone with the object.
package final class InMemoryKeyStore: KeyStore, @unchecked Sendable {
  private let lock = NSLock()
  private var stored: [RootIdentifier: StoredKeys] = [:]

  /// Creates a store without keys.
  package init() {}

  /// Returns the keys for an application; `nil` if there are none.
  package func keys(for root: RootIdentifier) -> StoredKeys? {
    lock.withLock { stored[root] }
  }

  /// Changes the keys for an application, while no other thread does.
  package func update<Result>(
    _ root: RootIdentifier, _ change: (inout StoredKeys?) throws -> Result
  ) throws -> Result {
    try lock.withLock {
      var keys = stored[root]
      let result = try change(&keys)
      stored[root] = keys
      return result
    }
  }
}
