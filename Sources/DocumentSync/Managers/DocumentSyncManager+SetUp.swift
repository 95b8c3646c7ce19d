import Foundation
import SyncDirectory
import SyncModel
import SyncStore

extension DocumentSyncManager {
  /// Puts the database at `path` under sync as a new document, and uploads
  /// it for others to join.
  ///
  /// If the directory holds no application, it creates one. A call that stopped
  /// half-way is completed by repeating it. It is refused, with nothing
  /// changed, if the store is under sync (`alreadyUnderSync`), cannot be
  /// synchronized (`storeUnsuitable`), or the document is there already
  /// (`documentExists`: join it instead). It is also refused if another device
  /// creates the document at the same time and that one counts: then the
  /// database is as it was before.
  ///
  /// - Parameters:
  ///   - path: The path of the database.
  ///   - directory: The shared directory.
  ///   - document: The identifier by which others find the document.
  ///   - options: What else to work with.
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
      store: store, directory: directory, turns: operation.turns, options: options)
  }

  /// Gets the whole store of a document that is in the directory, and puts
  /// it at `path` under sync.
  ///
  /// Then it synchronizes the store for the first time; if that fails, the
  /// store exists, and can be opened and synchronized again.
  ///
  /// An incomplete store is never at `path`. A file that exists there is left
  /// alone (`fileExists`) unless `existing` permits to replace it; then
  /// ``backup`` is its new path, ``merged`` is what became of its rows if these
  /// were to be merged, and ``replaced`` is what it had not sent.
  ///
  /// - Parameters:
  ///   - path: The path at which the store is to be.
  ///   - directory: The shared directory.
  ///   - document: The identifier; `nil` takes the only document there is.
  ///   - existing: What to do with a file that exists at `path`.
  ///   - options: What else to work with.
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
    try await manager.synchronize(onProgress: onProgress)
    return manager
  }

  /// Opens a store that is under sync.
  ///
  /// - Parameters:
  ///   - path: The path of the store.
  ///   - directory: Where the shared directory is now; `nil` takes the place
  ///     where it was last.
  ///   - options: What else to work with.
  ///   - onProgress: Called with the progress, on the thread of the operation.
  public static func open(
    storeAt path: String, directory: (any SharedDirectory)? = nil, options: Options = Options(),
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> DocumentSyncManager {
    let environment = options.environment
    let store = try await OperationQueue().run(
      OpenStoreOperation(path: path, environment: environment), events: options.events,
      onProgress: onProgress)
    do {
      return DocumentSyncManager(
        store: store,
        directory: try directory ?? environment.openDirectory(store.binding.directory),
        turns: SyncTurns(environment: environment), options: options)
    } catch {
      throw SyncError.wrapping(error, operation: "open the directory")
    }
  }
}
