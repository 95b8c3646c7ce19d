import SyncModel
import SyncStore

/// What the store contains and has done.
///
/// None of these waits for a synchronization that is under way, needs the
/// shared directory, or changes anything.
extension DocumentSyncManager {
  /// The path of the store.
  public var path: String { store.path }

  /// What the store has not sent, has received, waits for and synchronizes.
  public func status() async throws -> StoreStatus {
    try await use("read the status") { try $0.status() }
  }

  /// The last change sets that were made or applied here, the newest first.
  public func history(limit: Int = 100) async throws -> [AppliedChangeSet] {
    try await use("read the history") { try $0.history(limit: limit) }
  }

  /// The digest of what the store shows and of the state beneath: equal where
  /// devices agree.
  ///
  /// The first part includes edits that are not sent yet; the second does not.
  public func digest() async throws -> StoreDigest {
    try await use("compute the digest") { try $0.digest() }
  }

  /// The rows that are kept and not shown.
  public func parkedRows() async throws -> [ParkedRow] {
    try await use("list the parked rows") { try $0.parkedRows() }
  }

  /// What would be lost if the store left the document now: only the
  /// bookkeeping contains it.
  public func removalLoss() async throws -> RemovalLoss {
    try await use("look for what leaving would lose") { try $0.removalLoss() }
  }

  /// Whether the database at `path` is under sync. Throws `storeMissing` and
  /// other errors of a file that cannot be read.
  public static func isUnderSync(storeAt path: String) throws -> Bool {
    do {
      return try LocalStore.isUnderSync(at: path)
    } catch {
      throw SyncError.wrapping(error, operation: "look at the database", path: path)
    }
  }

  /// How the database at `path` would be put under sync; changes nothing.
  ///
  /// Throws `storeUnsuitable` if it cannot be synchronized as it is.
  public static func plan(
    storeAt path: String, configuration: StoreConfiguration = StoreConfiguration()
  ) throws -> StorePlan {
    do {
      return try LocalStore.plan(at: path, configuration: configuration)
    } catch {
      throw SyncError.wrapping(error, operation: "look at the database", path: path)
    }
  }
}
