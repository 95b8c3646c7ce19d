import Foundation
import SyncDirectory
import SyncModel

/// What one application keeps in one shared directory: its clients and its
/// documents.
///
/// Each method runs one operation on the manager's queue and throws
/// ``SyncError``. Cancelling the calling task cancels the operation.
public final class ApplicationSyncManager: Sendable {
  /// The shared directory.
  public let directory: any SharedDirectory
  /// The application; `nil` accepts any that the directory belongs to.
  public let applicationIdentifier: String?
  /// What operations need from the world.
  public let environment: SyncEnvironment
  /// What happens, for any number of observers.
  public let events: SyncEvents
  private let queue = OperationQueue()

  /// Creates a manager of a directory and an application; reads and writes
  /// nothing.
  public init(
    directory: any SharedDirectory, applicationIdentifier: String? = nil,
    events: SyncEvents = SyncEvents(), environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = directory
    self.applicationIdentifier = applicationIdentifier
    self.events = events
    self.environment = environment
    queue.name = "DocumentSync: application"
  }

  /// Registers a client with the application.
  ///
  /// With `createIfMissing`, a directory that holds no application yet gets
  /// one; otherwise that is the error `applicationMissing`.
  ///
  /// - Parameters:
  ///   - client: The client.
  ///   - description: What to call it.
  ///   - ancestor: The client that it continues, if it has a former one.
  ///   - createIfMissing: Whether to create the application if there is none.
  ///   - descriptions: What else to note about the client, and about the
  ///     application if it is created.
  ///   - onProgress: Called with the progress, on the thread of the operation.
  @discardableResult
  public func register(
    _ client: ClientIdentifier, description: String, ancestor: ClientIdentifier? = nil,
    createIfMissing: Bool, descriptions: SyncDescriptions = SyncDescriptions(),
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> ApplicationRegistration {
    try await run(
      makeRegisterOperation(
        client, description: description, ancestor: ancestor, createIfMissing: createIfMissing,
        descriptions: descriptions),
      onProgress)
  }

  /// The application that the directory belongs to; `applicationMissing` if
  /// there is none.
  public func findApplication(
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> ApplicationDescription {
    try await run(makeFindApplicationOperation(), onProgress)
  }

  /// The documents, deleted ones among them, in order of identifier.
  ///
  /// - Parameters:
  ///   - measuring: Whether to look at every file, for
  ///     ``DocumentDescription/contents``.
  ///   - onProgress: Called with the progress, on the thread of the operation.
  public func listDocuments(
    measuring: Bool = false, onProgress: SyncProgress.Handler? = nil
  ) async throws -> [DocumentDescription] {
    try await run(makeListDocumentsOperation(measuring: measuring), onProgress)
  }

  /// The documents that are in the directory and missing in the list of
  /// documents, since the files that describe them cannot be read.
  public func listUnreadableDocuments() async throws -> [UnreadableDocument] {
    try await run(ListUnreadableOperation(directory: directory, environment: environment))
  }

  /// The document of that identifier, or the only one if it is `nil`.
  ///
  /// Errors: `documentMissing`, whose remedy lists those that are there,
  /// `malformedFile` if it may be one that cannot be read, `documentAmbiguous`,
  /// `documentDeleted`.
  public func findDocument(
    _ identifier: String? = nil, onProgress: SyncProgress.Handler? = nil
  ) async throws -> DocumentDescription {
    try await run(makeFindDocumentOperation(identifier), onProgress)
  }

  /// The clients that have registered with the application, in order.
  public func listClients(
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> [ClientDescription] {
    try await run(makeListClientsOperation(), onProgress)
  }

  /// Deletes a document: first publishes a tombstone, which tells the others,
  /// then removes its files. Their stores stay as they are, with all edits.
  ///
  /// A call that was interrupted is completed by repeating it. Errors:
  /// `documentMissing`.
  ///
  /// - Parameters:
  ///   - identifier: The identifier of the document.
  ///   - client: The client that deletes it.
  ///   - description: What that client is called; its host's name if `nil`.
  ///   - preview: Whether to change nothing, and to report what would be
  ///     removed.
  ///   - onProgress: Called with the progress, on the thread of the operation.
  @discardableResult
  public func deleteDocument(
    _ identifier: String, by client: ClientIdentifier, described description: String? = nil,
    preview: Bool = false, onProgress: SyncProgress.Handler? = nil
  ) async throws -> RemovalReport {
    try await run(
      makeDeleteDocumentOperation(
        identifier, by: client, described: description, preview: preview),
      onProgress)
  }

  /// Removes everything that the application keeps in the directory. Only the
  /// tombstones of the documents stay, which tell the others, and files that do
  /// not belong to DocumentSync, which the report names.
  ///
  /// A call that was interrupted is completed by repeating it. The parameters
  /// are those of ``deleteDocument(_:by:described:preview:onProgress:)``.
  @discardableResult
  public func removeAll(
    by client: ClientIdentifier, described description: String? = nil, preview: Bool = false,
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> RemovalReport {
    try await run(
      makeRemoveAllOperation(by: client, described: description, preview: preview), onProgress)
  }

  /// Checks every file of the shared directory against every rule, and
  /// changes nothing in it.
  ///
  /// The report contains what is wrong; it is not thrown.
  public func verify(onProgress: SyncProgress.Handler? = nil) async throws -> VerifyReport {
    try await run(makeVerifyDirectoryOperation(), onProgress)
  }

  private func run<Output>(
    _ operation: SyncOperation<Output>, _ onProgress: SyncProgress.Handler? = nil
  ) async throws -> Output {
    try await queue.run(operation, events: events, onProgress: onProgress)
  }
}
