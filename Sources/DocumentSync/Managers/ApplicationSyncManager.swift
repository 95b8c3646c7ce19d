import Foundation
import SyncDirectory
import SyncModel

/// What one application keeps in one shared directory: its clients and its
/// documents.
///
/// A thin way in: each method runs one operation on the manager's queue and
/// throws ``SyncError``. Cancelling the calling task cancels the operation.
public final class ApplicationSyncManager: Sendable {
  /// The shared directory.
  public let directory: any SharedDirectory
  /// The application; `nil` accepts whichever the directory belongs to.
  public let applicationIdentifier: String?
  /// What operations need from the world.
  public let environment: SyncEnvironment
  private let queue = OperationQueue()

  /// Names the directory and the application; touches nothing.
  public init(
    directory: any SharedDirectory, applicationIdentifier: String? = nil,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = directory
    self.applicationIdentifier = applicationIdentifier
    self.environment = environment
    queue.name = "DocumentSync: application"
  }

  /// Registers a client with the application.
  ///
  /// With `createIfMissing`, a directory that holds no application yet gets
  /// one; otherwise that is the error `applicationMissing`.
  @discardableResult
  public func register(
    _ client: ClientIdentifier, description: String, ancestor: ClientIdentifier? = nil,
    createIfMissing: Bool
  ) async throws -> ApplicationRegistration {
    try await queue.run(
      RegisterApplicationClientOperation(
        directory: directory, applicationIdentifier: applicationIdentifier, client: client,
        description: description, ancestor: ancestor, createIfMissing: createIfMissing,
        environment: environment))
  }

  /// The documents, deleted ones among them, in order of identifier.
  public func listDocuments() async throws -> [DocumentDescription] {
    try await queue.run(
      ListDocumentsOperation(
        directory: directory, applicationIdentifier: applicationIdentifier,
        environment: environment))
  }

  /// The document of that identifier, or the only one if it is `nil`.
  ///
  /// Errors: `documentMissing`, whose remedy lists those that are there,
  /// `documentAmbiguous`, `documentDeleted`.
  public func findDocument(_ identifier: String? = nil) async throws -> DocumentDescription {
    try await queue.run(
      RegisterDocumentOperation(
        directory: directory, applicationIdentifier: applicationIdentifier,
        action: .join(identifier: identifier), environment: environment))
  }

  /// The clients that have registered with the application, in order.
  public func listClients() async throws -> [ClientDescription] {
    try await queue.run(ListClientsOperation(directory: directory, environment: environment))
  }

  /// Checks every file of the shared directory against every rule, and
  /// changes nothing in it.
  ///
  /// What is wrong is in the report and is not thrown.
  public func verify(onProgress: SyncProgressHandler? = nil) async throws -> VerifyReport {
    try await queue.run(
      VerifyDirectoryOperation(
        directory: directory, applicationIdentifier: applicationIdentifier,
        environment: environment),
      onProgress: onProgress)
  }
}
