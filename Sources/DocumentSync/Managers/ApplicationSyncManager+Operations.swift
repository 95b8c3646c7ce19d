import Foundation
import SyncDirectory
import SyncModel

/// The operations behind the manager's methods, for queues of the application.
///
/// Each function makes a new operation, which sends its events to the
/// manager's ``events``. Add it to any `OperationQueue`, with any dependencies,
/// and read ``SyncOperation/result`` when it has finished.
extension ApplicationSyncManager {
  /// The operation of
  /// ``register(_:description:ancestor:createIfMissing:descriptions:onProgress:)``.
  public func makeRegisterOperation(
    _ client: ClientIdentifier, description: String, ancestor: ClientIdentifier? = nil,
    createIfMissing: Bool, descriptions: SyncDescriptions = SyncDescriptions()
  ) -> RegisterApplicationClientOperation {
    sending(
      RegisterApplicationClientOperation(
        directory: directory, applicationIdentifier: applicationIdentifier, client: client,
        description: description, ancestor: ancestor, createIfMissing: createIfMissing,
        descriptions: descriptions, environment: environment))
  }

  /// The operation of ``findApplication(onProgress:)``.
  public func makeFindApplicationOperation() -> FindApplicationOperation {
    sending(
      FindApplicationOperation(
        directory: directory, applicationIdentifier: applicationIdentifier,
        environment: environment))
  }

  /// The operation of ``listDocuments(measuring:onProgress:)``.
  public func makeListDocumentsOperation(measuring: Bool = false) -> ListDocumentsOperation {
    sending(
      ListDocumentsOperation(
        directory: directory, applicationIdentifier: applicationIdentifier, measures: measuring,
        environment: environment))
  }

  /// The operation of ``findDocument(_:onProgress:)``.
  public func makeFindDocumentOperation(
    _ identifier: String? = nil
  ) -> RegisterDocumentOperation {
    sending(
      RegisterDocumentOperation(
        directory: directory, applicationIdentifier: applicationIdentifier,
        action: .join(identifier: identifier), environment: environment))
  }

  /// The operation of ``listClients(onProgress:)``.
  public func makeListClientsOperation() -> ListClientsOperation {
    sending(ListClientsOperation(directory: directory, environment: environment))
  }

  /// The operation of ``deleteDocument(_:by:described:preview:onProgress:)``.
  public func makeDeleteDocumentOperation(
    _ identifier: String, by client: ClientIdentifier, described description: String? = nil,
    preview: Bool = false
  ) -> DeleteDocumentOperation {
    sending(
      DeleteDocumentOperation(
        directory: directory, applicationIdentifier: applicationIdentifier, document: identifier,
        by: client, described: description ?? ProcessInfo.processInfo.hostName,
        isPreview: preview, environment: environment))
  }

  /// The operation of ``removeAll(by:described:preview:onProgress:)``.
  public func makeRemoveAllOperation(
    by client: ClientIdentifier, described description: String? = nil, preview: Bool = false
  ) -> RemoveAllOperation {
    sending(
      RemoveAllOperation(
        directory: directory, applicationIdentifier: applicationIdentifier, by: client,
        described: description ?? ProcessInfo.processInfo.hostName, isPreview: preview,
        environment: environment))
  }

  /// The operation of ``verify(onProgress:)``.
  public func makeVerifyDirectoryOperation() -> VerifyDirectoryOperation {
    sending(
      VerifyDirectoryOperation(
        directory: directory, applicationIdentifier: applicationIdentifier,
        environment: environment))
  }

  /// The operation, with the manager's events.
  private func sending<Output, Made: SyncOperation<Output>>(_ operation: Made) -> Made {
    operation.events = events
    return operation
  }
}
