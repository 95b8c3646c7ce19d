import Foundation
import SyncDirectory
import SyncModel

/// Functions that make the operations behind the manager's methods, for the
/// application's own queues.
///
/// Each operation sends its events to the manager's ``events``. Add it to any
/// `OperationQueue`, with any dependencies, and read ``SyncOperation/result``
/// when it has finished.
extension ApplicationSyncManager {
  /// Makes the operation of
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

  /// Makes the operation of ``findApplication(onProgress:)``.
  public func makeFindApplicationOperation() -> FindApplicationOperation {
    sending(
      FindApplicationOperation(
        directory: directory, applicationIdentifier: applicationIdentifier,
        environment: environment))
  }

  /// Makes the operation of ``listDocuments(measuring:onProgress:)``.
  public func makeListDocumentsOperation(measuring: Bool = false) -> ListDocumentsOperation {
    sending(
      ListDocumentsOperation(
        directory: directory, applicationIdentifier: applicationIdentifier, measures: measuring,
        environment: environment))
  }

  /// Makes the operation of ``findDocument(_:onProgress:)``.
  public func makeFindDocumentOperation(
    _ identifier: String? = nil
  ) -> RegisterDocumentOperation {
    sending(
      RegisterDocumentOperation(
        directory: directory, applicationIdentifier: applicationIdentifier,
        action: .join(identifier: identifier), environment: environment))
  }

  /// Makes the operation of ``listClients(onProgress:)``.
  public func makeListClientsOperation() -> ListClientsOperation {
    sending(ListClientsOperation(directory: directory, environment: environment))
  }

  /// Makes the operation of
  /// ``deleteDocument(_:by:described:preview:onProgress:)``.
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

  /// Makes the operation of ``removeAll(by:described:preview:onProgress:)``.
  public func makeRemoveAllOperation(
    by client: ClientIdentifier, described description: String? = nil, preview: Bool = false
  ) -> RemoveAllOperation {
    sending(
      RemoveAllOperation(
        directory: directory, applicationIdentifier: applicationIdentifier, by: client,
        described: description ?? ProcessInfo.processInfo.hostName, isPreview: preview,
        environment: environment))
  }

  /// Makes the operation of ``verify(onProgress:)``.
  public func makeVerifyDirectoryOperation() -> VerifyDirectoryOperation {
    sending(
      VerifyDirectoryOperation(
        directory: directory, applicationIdentifier: applicationIdentifier,
        environment: environment))
  }

  /// Sets the manager's events on the operation, and returns it.
  private func sending<Output, Made: SyncOperation<Output>>(_ operation: Made) -> Made {
    operation.events = events
    return operation
  }
}
