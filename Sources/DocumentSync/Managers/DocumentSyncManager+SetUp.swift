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
  ///   - application: The application's identifier.
  ///   - document: The identifier by which others find the document.
  ///   - client: What to call this device; its host name if `nil`.
  ///   - descriptions: What else to note about client, document and
  ///     application.
  ///   - delegate: The delegate that decides from now on.
  ///   - events: Where to send the events from now on.
  public static func create(
    storeAt path: String, directory: any SharedDirectory, application: String = "docsync",
    document: String, client: String? = nil, descriptions: SyncDescriptions = SyncDescriptions(),
    configuration: StoreConfiguration = StoreConfiguration(),
    delegate: (any SyncDelegate)? = nil, events: SyncEvents = SyncEvents(),
    environment: SyncEnvironment = SyncEnvironment(), onProgress: SyncProgressHandler? = nil
  ) async throws -> DocumentSyncManager {
    let turns = SyncTurns(environment: environment)
    let operation = CreateDocumentOperation(
      storeAt: path, directory: directory, application: application, document: document,
      descriptions: descriptions.naming(client), configuration: configuration, turns: turns,
      environment: environment)
    let binding = try await OperationQueue().run(operation, events: events, onProgress: onProgress)
    guard let store = operation.store else {
      throw SyncError(
        .internalFault, operation: operation.verb, path: path,
        message: "The document was created, and its store is not open.",
        remedy: "Open the store.")
    }
    events.send(.registered(binding))
    return DocumentSyncManager(
      store: store, directory: directory, turns: turns, environment: environment,
      delegate: delegate, events: events)
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
  ///   - document: The identifier; `nil` takes the only document there is.
  ///   - application: The application; `nil` accepts any.
  ///   - client: What to call this device; its host name if `nil`.
  ///   - descriptions: What else to note about the client.
  ///   - delegate: The delegate that decides from now on.
  ///   - events: Where to send the events from now on.
  public static func join(
    storeAt path: String, directory: any SharedDirectory, document: String? = nil,
    application: String? = nil, client: String? = nil,
    descriptions: SyncDescriptions = SyncDescriptions(), existing: ExistingFile = .refuse,
    delegate: (any SyncDelegate)? = nil, events: SyncEvents = SyncEvents(),
    environment: SyncEnvironment = SyncEnvironment(), onProgress: SyncProgressHandler? = nil
  ) async throws -> DocumentSyncManager {
    var generator = environment.generator
    let downloaded = try await OperationQueue().run(
      DownloadWholeStoreOperation(
        directory: directory, applicationIdentifier: application, document: document, to: path,
        client: .random(using: &generator), descriptions: descriptions.naming(client),
        existing: existing, environment: environment),
      events: events, onProgress: onProgress)
    events.send(.registered(downloaded.store.binding))
    let manager = DocumentSyncManager(
      store: downloaded.store, directory: directory,
      turns: SyncTurns(environment: environment), environment: environment,
      backup: downloaded.backup, merged: downloaded.merged, replaced: downloaded.replaced,
      delegate: delegate, events: events)
    try await manager.synchronize(onProgress: onProgress)
    return manager
  }

  /// Opens a store that is under sync.
  ///
  /// - Parameters:
  ///   - directory: Where the shared directory is now; `nil` takes the place
  ///     where it was last.
  ///   - delegate: The delegate that decides from now on.
  ///   - events: Where to send the events from now on.
  public static func open(
    storeAt path: String, directory: (any SharedDirectory)? = nil,
    delegate: (any SyncDelegate)? = nil, events: SyncEvents = SyncEvents(),
    environment: SyncEnvironment = SyncEnvironment(), onProgress: SyncProgressHandler? = nil
  ) async throws -> DocumentSyncManager {
    let store = try await OperationQueue().run(
      OpenStoreOperation(path: path, environment: environment), events: events,
      onProgress: onProgress)
    do {
      return DocumentSyncManager(
        store: store,
        directory: try directory ?? environment.openDirectory(store.binding.directory),
        turns: SyncTurns(environment: environment), environment: environment,
        delegate: delegate, events: events)
    } catch {
      throw SyncError.wrapping(error, operation: "open the directory")
    }
  }
}

extension SyncDescriptions {
  /// The same, with a name for the client if one is given.
  fileprivate func naming(_ client: String?) -> Self {
    var descriptions = self
    descriptions.client = client ?? descriptions.client
    return descriptions
  }
}
