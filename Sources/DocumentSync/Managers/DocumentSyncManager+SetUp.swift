import Foundation
import SyncDirectory
import SyncModel
import SyncStore

extension DocumentSyncManager {
  /// Puts the database at `path` under sync as a new document, and uploads it
  /// for other devices to join.
  ///
  /// If the directory holds no application, the call creates it. To complete an
  /// interrupted call, repeat it; a call with another directory, document or
  /// configuration ends what was begun, and begins again. If the call fails, it
  /// takes back what it has done, or says that it could not; then repeat it, or
  /// end the set-up with ``abandon(storeAt:directory:options:)``.
  ///
  /// Errors, with nothing changed: `alreadyUnderSync`; `storeUnsuitable` if the
  /// database cannot be synchronized; `policyUnsuitable`; `storeInDirectory` if it is inside the
  /// directory; `documentExists` if the document is in the directory already
  /// (join it instead). If another device creates the document at the same time
  /// and that one counts, the call also throws `documentExists`; the database is
  /// then as it was before.
  ///
  /// - Parameters:
  ///   - path: The path of the database.
  ///   - directory: The shared directory.
  ///   - document: The identifier by which other devices find the document.
  ///   - options: The options; each has a default.
  ///   - onProgress: Called with the progress, on the thread of the operation.
  public static func create(
    storeAt path: String, directory: any SharedDirectory, document: String,
    options: Options = Options(), onProgress: SyncProgress.Handler? = nil
  ) async throws -> DocumentSyncManager {
    let operation = makeCreateDocumentOperation(
      storeAt: path, directory: directory, document: document, options: options)
    let binding = try await OperationQueue().run(
      operation, events: options.events, onProgress: onProgress)
    guard let store = operation.store else {
      throw SyncError(
        .internalFault, operation: operation.verb, path: path,
        message: "The document was created, and its store is not open.",
        remedy: "Open the store.")
    }
    options.events.send(.registered(binding))
    return DocumentSyncManager(
      store: store, directory: directory, turns: operation.turns, options: options,
      resumption: operation.resumption)
  }

  /// Takes the database at `path` out of sync, whatever its state: also if its
  /// set-up is not complete, or its bookkeeping is damaged. It sends nothing,
  /// tells no other device, and removes what only the bookkeeping contains.
  ///
  /// For a store that can be opened, ``removalLoss()`` lists what would be
  /// lost, and ``leave(abandoning:isConfirmed:onProgress:)`` asks for a
  /// confirmation.
  ///
  /// - Parameters:
  ///   - path: The path of the store.
  ///   - directory: The shared directory, where it is now; `nil` takes its last
  ///     known path.
  ///   - options: The options; each has a default.
  /// - Returns: `false` if files of an incomplete set-up stay in the directory,
  ///   since it cannot be reached or other devices can use them.
  @discardableResult
  public static func abandon(
    storeAt path: String, directory: (any SharedDirectory)? = nil, options: Options = Options()
  ) async throws -> Bool {
    try await OperationQueue().run(
      AbandonOperation(path: path, directory: directory, environment: options.environment),
      events: options.events, onProgress: nil)
  }

  /// Downloads the whole store of a document, puts it at `path` under sync, and
  /// synchronizes it for the first time.
  ///
  /// If that synchronization fails, or the policies of the options are
  /// unsuitable, the store exists, and can be opened and synchronized again. An
  /// incomplete store is never at `path`.
  ///
  /// If a file is at `path`, the call throws `fileExists` and leaves it alone,
  /// unless `existing` permits replacing it. Then ``backup`` is the path of its
  /// copy, ``merged`` counts its rows if they were merged, and ``replaced``
  /// describes what the store in it had not sent.
  ///
  /// - Parameters:
  ///   - path: The path for the store.
  ///   - directory: The shared directory.
  ///   - document: The identifier; `nil` takes the only document in the
  ///     directory.
  ///   - existing: What to do with a file at `path`.
  ///   - options: The options; each has a default.
  ///   - onProgress: Called with the progress, on the thread of the operation.
  public static func join(
    storeAt path: String, directory: any SharedDirectory, document: String? = nil,
    existing: ExistingFile = .refuse, options: Options = Options(),
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> DocumentSyncManager {
    let downloaded = try await OperationQueue().run(
      makeDownloadWholeStoreOperation(
        storeAt: path, directory: directory, document: document, existing: existing,
        options: options),
      events: options.events, onProgress: onProgress)
    options.events.send(.registered(downloaded.store.binding))
    let manager = DocumentSyncManager(
      store: downloaded.store, directory: directory,
      turns: SyncTurns(environment: options.environment), options: options,
      backup: downloaded.backup, merged: downloaded.merged, replaced: downloaded.replaced)
    try await manager.take(options.policies)
    try await manager.synchronize(onProgress: onProgress)
    return manager
  }

  /// Opens a store that is under sync. Throws `policyUnsuitable` if the policies
  /// of the options are.
  ///
  /// - Parameters:
  ///   - path: The path of the store.
  ///   - directory: The shared directory, where it is now; `nil` takes its last
  ///     known path.
  ///   - options: The options; each has a default.
  ///   - onProgress: Called with the progress, on the thread of the operation.
  public static func open(
    storeAt path: String, directory: (any SharedDirectory)? = nil, options: Options = Options(),
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> DocumentSyncManager {
    let environment = options.environment
    let store = try await OperationQueue().run(
      OpenStoreOperation(path: path, environment: environment), events: options.events,
      onProgress: onProgress)
    let manager: DocumentSyncManager
    do {
      manager = DocumentSyncManager(
        store: store,
        directory: try directory ?? environment.openDirectory(store.binding.directory),
        turns: SyncTurns(environment: environment), options: options)
    } catch {
      throw SyncError.wrapping(error, operation: "open the directory")
    }
    do {
      try await manager.take(options.policies)
    } catch {
      try store.close()
      throw error
    }
    return manager
  }

  /// Sets the policies of the options, unless the store has them already.
  private func take(_ policies: SyncPolicies?) async throws {
    guard let policies, try await self.policies() != policies else { return }
    try await setPolicies { $0 = policies }
  }
}
