import Foundation
import SyncModel
import SyncStore

/// The content, the status and the history of the store.
///
/// No method here changes anything. All answer from the last committed state of
/// the store, and do not wait for operations that were begun before. Exceptions: a
/// method may wait for the transaction that runs if the application has changed its
/// schema, if the state cannot be read beside the transaction, and in rollback mode
/// while a transaction writes to the file. There, ``rowCount()``, ``digest()``,
/// ``pendingChanges(limit:)`` and ``removalLoss()`` wait until the transaction ends: they would keep it from
/// committing. Only ``unreceived()`` needs the shared directory; it waits for the
/// operations that were begun before if the directory does not fit the store.
extension DocumentSyncManager {
  /// The path of the store.
  public var path: String { store.path }

  /// Returns what the store has not sent, has received, waits for and
  /// synchronizes.
  public func status() async throws -> StoreStatus {
    try await ask("read the status") { try $0.status() }
  }

  /// Returns the change sets and commands that the last synchronization could
  /// not apply, with the reasons.
  public func waits() async throws -> [SyncReport.Wait] {
    try await ask("list what waits") { store in
      try StoreRecords(store).waits().reported ?? store.waiting().map(SyncReport.Wait.init)
    }
  }

  /// Returns the number of change sets of each other client that this store has
  /// not applied, as far as the names in the shared directory show; clients
  /// without any are left out.
  ///
  /// Throws the errors of a missing directory or document.
  public func unreceived() async throws -> [ClientIdentifier: Int] {
    try await look {
      FindUnreceivedOperation(store: $0, directory: directory, environment: environment)
    }
  }

  /// The time at which the last synchronization of the store ended without an
  /// error, in any process; `nil` if it is not known.
  ///
  /// The file that locks the store contains it: a synchronization that has
  /// nothing to do does not write to the store. A copy of the store alone does
  /// not know it.
  public var lastSynchronization: Date? { StoreLock.lastSynchronization(of: store.path) }

  /// Returns whether this device has edits that no other device can have, since they were not sent.
  public func hasUnsentEdits() async throws -> Bool {
    try await ask("look for edits") { try $0.hasUnsentEdits() }
  }

  /// Returns the edits that no other device can have, row by row: those that are in no change set yet, those in
  /// change sets that were not sent, and those that are too large to be sent.
  ///
  /// It looks at all edits that are in no change set yet, and reads change sets that were not sent. To know
  /// how many there are, ask ``pendingCount()``.
  ///
  /// - Parameter limit: The most changes that are listed, up to 1,000,000;
  ///   ``StoreStatus/PendingChanges/hasMore`` says whether there are more.
  public func pendingChanges(limit: Int = 100) async throws -> StoreStatus.PendingChanges {
    try await ask("list the edits to send", isLong: true) { try $0.pendingChanges(limit: limit) }
  }

  /// Returns how many edits no other device can have. It looks at none of the edits that are in no change
  /// set yet.
  public func pendingCount() async throws -> StoreStatus.PendingCount {
    try await ask("count the edits to send") { try $0.pendingCount() }
  }

  /// Whether the file at the path of the store is still the one that the manager has open. Looks at the
  /// file system.
  package var isFileInPlace: Bool { store.isFileInPlace }

  /// Brings SQLite's write-ahead log into the file, unless a program uses the store.
  package func checkpoint() async throws {
    let store = store
    try await journalQueue.run(
      StoreOperation("empty the write-ahead log", environment: environment) {
        try store.checkpoint()
      })
  }

  /// Returns the changes of the directory; see ``SharedDirectory/changes()``. Blocks, at most for
  /// ``SyncEnvironment/directoryTimeLimit``.
  package func directoryChanges() -> AsyncStream<Void>? {
    environment.retrying(directory).changes()
  }

  /// Returns whether the shared directory is there, and is the one of the store's document. Returns `true`
  /// as well if the store cannot say which that is: the next synchronization says why.
  package func isDirectoryThere() async -> Bool {
    do {
      // Another process may have moved the store to another directory.
      try await ask("read the document's name") { try $0.renewIdentity() }
    } catch {
      return true
    }
    do {
      let application = try await ApplicationSyncManager(
        directory: directory, environment: environment
      ).findApplication()
      return application.root == binding.root
    } catch {
      // Whatever is wrong with it, it is not there.
      return false
    }
  }

  /// Returns the number of rows in the synchronized tables. It does not count
  /// rows with NULL in their key, which stay on this device.
  public func rowCount() async throws -> Int {
    try await ask("count the rows", isLong: true) { try $0.rowCount() }
  }

  /// Returns the last change sets that this device made or applied, the newest
  /// first.
  public func history(limit: Int = 100) async throws -> [AppliedChangeSet] {
    try await ask("read the history") { try $0.history(limit: limit) }
  }

  /// Returns a digest of the rows that the store shows and of the logical state
  /// beneath them. Devices that agree have equal digests.
  ///
  /// The first part includes edits that are not sent yet; the second does not.
  public func digest() async throws -> StoreDigest {
    try await ask("compute the digest", isLong: true) { try $0.digest() }
  }

  /// Returns the parked rows: rows that the store has and does not show.
  public func parkedRows() async throws -> [ParkedRow] {
    try await ask("list the parked rows") { try $0.parkedRows() }
  }

  /// Returns the data that leaving the document now would lose, since only the
  /// bookkeeping contains it.
  public func removalLoss() async throws -> RemovalLoss {
    try await ask("look for what leaving would lose", isLong: true) { try $0.removalLoss() }
  }

  /// Returns whether the database at `path` is under sync. Throws
  /// `storeMissing`, and other errors if the file cannot be read.
  public static func isUnderSync(storeAt path: String) throws -> Bool {
    do {
      return try LocalStore.isUnderSync(at: path)
    } catch {
      throw SyncError.wrapping(error, operation: "look at the database", path: path)
    }
  }

  /// Returns how the database at `path` would be synchronized; changes nothing.
  /// It may be a store whose set-up is not complete.
  ///
  /// Throws `storeUnsuitable` if it cannot be synchronized as it is.
  public static func plan(
    storeAt path: String, configuration: StoreConfiguration = StoreConfiguration()
  ) throws -> StorePlan {
    do {
      let isUnfinished =
        try LocalStore.isUnderSync(at: path) && SetUpState.read(storeAt: path) != nil
      return try LocalStore.plan(
        at: path, configuration: configuration, ignoresBookkeeping: isUnfinished)
    } catch {
      throw SyncError.wrapping(error, operation: "look at the database", path: path)
    }
  }
}
