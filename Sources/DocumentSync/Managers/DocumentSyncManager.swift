import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Synchronization

/// One document on this device: its store, and its place in the shared
/// directory.
///
/// Get one with ``create(storeAt:directory:application:document:client:configuration:environment:onProgress:)``,
/// ``join(storeAt:directory:document:application:client:existing:environment:onProgress:)``
/// or ``open(storeAt:directory:environment:)``. Each method runs one
/// operation on the manager's queue, one at a time, and throws
/// ``SyncError``. Cancelling the calling task cancels the operation.
public final class DocumentSyncManager: Sendable {
  /// The local store.
  public let store: LocalStore
  /// The shared directory.
  public let directory: any SharedDirectory
  /// What operations need from the world.
  public let environment: SyncEnvironment
  /// Where the file is that ``join(storeAt:directory:document:application:client:existing:environment:onProgress:)``
  /// has replaced; `nil` if there was none.
  public let backup: String?
  private let queue: OperationQueue
  private let turns: SyncTurns
  /// For what must not wait for a synchronization.
  let journalQueue: OperationQueue
  private let decider = Mutex<ConflictDecider?>(nil)

  init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    environment: SyncEnvironment, backup: String? = nil
  ) {
    self.backup = backup
    self.store = store
    self.directory = directory
    self.turns = turns
    self.environment = environment
    queue = OperationQueue()
    queue.name = "DocumentSync: document"
    queue.maxConcurrentOperationCount = 1
    journalQueue = OperationQueue()
    journalQueue.name = "DocumentSync: conflicts"
    journalQueue.maxConcurrentOperationCount = 1
  }

  /// What the store is bound to.
  public var binding: StoreBinding { store.binding }

  /// Attaches who is asked about conflicts where the policy is `ask`; `nil`
  /// detaches. It counts from the next synchronization on.
  public func setDecider(_ decider: ConflictDecider?) {
    self.decider.withLock { $0 = decider }
  }

  /// Sends what was edited here and applies what was edited elsewhere.
  ///
  /// Without anything to do it lists three folders, and reads and writes
  /// nothing. If the store or the directory fails half-way, the next call
  /// continues. What cannot be applied yet is in ``SyncReport/waiting``.
  @discardableResult
  public func synchronize(onProgress: SyncProgressHandler? = nil) async throws -> SyncReport {
    try await queue.run(
      SynchronizeOperation(
        store: store, directory: directory, turns: turns, decider: decider.withLock(\.self),
        environment: environment),
      onProgress: onProgress)
  }

  /// Synchronizes, and checks every file of this client in the directory
  /// byte for byte; what is missing or damaged is put back.
  @discardableResult
  public func synchronizeThoroughly(
    onProgress: SyncProgressHandler? = nil
  ) async throws -> SyncReport {
    try await queue.run(
      SynchronizeOperation(
        store: store, directory: directory, turns: turns, checksOwnFiles: true,
        decider: decider.withLock(\.self), environment: environment),
      onProgress: onProgress)
  }

  /// Uploads the whole store, so that others can join from it.
  ///
  /// Edits that are not published are synchronized first.
  @discardableResult
  public func uploadWholeStore(
    onProgress: SyncProgressHandler? = nil
  ) async throws -> WholeStoreDescription {
    try await queue.run(
      UploadWholeStoreOperation(
        store: store, directory: directory, turns: turns, environment: environment),
      onProgress: onProgress)
  }

  /// The clients that share the document, in order, and where they stand.
  public func listClients() async throws -> [ClientDescription] {
    try await queue.run(
      ListClientsOperation(directory: directory, binding: binding, environment: environment))
  }

  /// Closes the store, after the operations that were begun. The manager is
  /// of no use afterwards.
  public func close() async throws {
    try await queue.run(CloseStoreOperation(store: store, environment: environment))
  }
}
