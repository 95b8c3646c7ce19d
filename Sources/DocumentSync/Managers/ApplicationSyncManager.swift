import Foundation
import SyncDirectory
import SyncModel

/// One application in one shared directory: its clients and its documents.
///
/// Each method runs one operation on the manager's queue and throws
/// ``SyncError``. Cancelling the calling task cancels the operation.
public final class ApplicationSyncManager: Sendable {
  /// The shared directory.
  public let directory: any SharedDirectory
  /// The application's identifier; `nil` accepts the application of the
  /// directory, whichever it is.
  public let applicationIdentifier: String?
  /// The clock, the random numbers and the limits for operations.
  public let environment: SyncEnvironment
  /// The events of the manager's operations, for any number of observers.
  public let events: SyncEvents
  private let queue = OperationQueue()

  /// Creates a manager of an application in a directory; reads and writes
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
  /// If the directory holds no application, the call creates it with
  /// `createIfMissing`, and throws `applicationMissing` otherwise.
  ///
  /// - Parameters:
  ///   - client: The client.
  ///   - description: The client's name, for people.
  ///   - ancestor: The client whose state this one continues, if there is one.
  ///   - createIfMissing: Whether to create the application if there is none.
  ///   - descriptions: Further notes about the client, and about the
  ///     application if the call creates it.
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

  /// Returns the application that the directory belongs to. Throws
  /// `applicationMissing` if there is none.
  public func findApplication(
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> ApplicationDescription {
    try await run(makeFindApplicationOperation(), onProgress)
  }

  /// Returns the entries of a directory that belongs to no application yet, if
  /// they belong neither to DocumentSync nor to a synchronizer or an operating
  /// system, in order; none once an application is in the directory.
  ///
  /// Call it before you create the first document: if it returns names, ask
  /// whether the directory is meant, or use a folder below it. Nothing else
  /// looks for such files; they do no harm, and DocumentSync leaves them alone.
  public func findOtherFiles() async throws -> [String] {
    try await run(FindOtherFilesOperation(directory: directory, environment: environment))
  }

  /// Returns a finding if other users of the group that shares the directory cannot use folders of
  /// it. Verifying finds files, too.
  package func findClosedFolders() async throws -> VerifyReport.Finding? {
    try await run(FindClosedOperation(directory: directory, environment: environment))
  }

  /// Returns the documents, including deleted ones, in order of identifier.
  ///
  /// - Parameters:
  ///   - measuring: Whether to measure all files, for
  ///     ``DocumentDescription/contents``.
  ///   - onProgress: Called with the progress, on the thread of the operation.
  public func listDocuments(
    measuring: Bool = false, onProgress: SyncProgress.Handler? = nil
  ) async throws -> [DocumentDescription] {
    try await run(makeListDocumentsOperation(measuring: measuring), onProgress)
  }

  /// Returns the documents in the directory that
  /// ``listDocuments(measuring:onProgress:)`` leaves out because the files that
  /// describe them cannot be read.
  public func listUnreadableDocuments() async throws -> [DocumentDescription.Unreadable] {
    try await run(ListUnreadableOperation(directory: directory, environment: environment))
  }

  /// Returns the document with that identifier; with `nil`, the only document.
  ///
  /// Errors: `documentMissing`, whose remedy lists the documents in the
  /// directory; `malformedFile` if the document may be one that cannot be read;
  /// `documentAmbiguous`; `documentDeleted`.
  public func findDocument(
    _ identifier: String? = nil, onProgress: SyncProgress.Handler? = nil
  ) async throws -> DocumentDescription {
    try await run(makeFindDocumentOperation(identifier), onProgress)
  }

  /// Returns the clients that have registered with the application, in order.
  public func listClients(
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> [ClientDescription] {
    try await run(makeListClientsOperation(), onProgress)
  }

  /// Deletes a document: publishes a tombstone, which tells the other devices,
  /// then removes the document's files. The stores of the devices stay as they
  /// are, with all edits.
  ///
  /// To complete an interrupted call, repeat it. Errors: `documentMissing`.
  ///
  /// - Parameters:
  ///   - identifier: The identifier of the document.
  ///   - client: The client that deletes the document.
  ///   - description: The name of that client; the host's name if `nil`.
  ///   - preview: Whether to change nothing, and only report what a call
  ///     without it would remove.
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

  /// Removes all files of the application from the directory. The documents'
  /// tombstones stay, which tell the other devices, and so do files that do not
  /// belong to DocumentSync; the report names these.
  ///
  /// To complete an interrupted call, repeat it. The parameters are those of
  /// ``deleteDocument(_:by:described:preview:onProgress:)``.
  @discardableResult
  public func removeAll(
    by client: ClientIdentifier, described description: String? = nil, preview: Bool = false,
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> RemovalReport {
    try await run(
      makeRemoveAllOperation(by: client, described: description, preview: preview), onProgress)
  }

  /// Checks every file of the shared directory against every rule; changes
  /// nothing in the directory.
  ///
  /// The report lists the faults; they are not thrown.
  public func verify(onProgress: SyncProgress.Handler? = nil) async throws -> VerifyReport {
    try await run(makeVerifyDirectoryOperation(), onProgress)
  }

  private func run<Output>(
    _ operation: SyncOperation<Output>, _ onProgress: SyncProgress.Handler? = nil
  ) async throws -> Output {
    try await queue.run(operation, events: events, onProgress: onProgress)
  }
}
