import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// Functions that make the operations behind the manager's methods, for the
/// application's own queues.
///
/// Each operation sends its events to the manager's ``events``. Add it to any
/// `OperationQueue`, with any dependencies, and read ``SyncOperation/result``
/// when it has finished. Only one operation works on a store at a time; another
/// one fails with `storeInUse`. An operation asks the delegate about conflicts,
/// but not about the document: it fails with the error that the question would
/// be about.
extension DocumentSyncManager {
  /// Makes the operation of ``synchronize(allowingDeletions:onProgress:)``.
  ///
  /// - Parameters:
  ///   - extent: Whether to make that of ``fetchChanges(onProgress:)`` or
  ///     ``sendChanges(onProgress:)`` instead.
  ///   - isThorough: Whether to make that of ``synchronizeThoroughly(onProgress:)``.
  ///   - allowsDeletions: Whether to apply change sets that delete more rows than
  ///     ``SyncEnvironment/deletionLimit`` allows.
  public func makeSynchronizeOperation(
    _ extent: SynchronizeOperation.Extent = .all, isThorough: Bool = false,
    allowsDeletions: Bool = false
  ) -> SynchronizeOperation {
    sending(
      SynchronizeOperation(
        store: store, directory: directory, turns: turns, extent: extent,
        checksOwnFiles: isThorough, allowsDeletions: allowsDeletions,
        delegate: delegate.withLock(\.self), environment: environment))
  }

  /// Makes the operation of ``uploadWholeStore(onProgress:)``.
  public func makeUploadWholeStoreOperation() -> UploadWholeStoreOperation {
    sending(
      UploadWholeStoreOperation(
        store: store, directory: directory, turns: turns, environment: environment))
  }

  /// Makes the operation of ``missingSchema(onProgress:)``.
  func makeFindMissingSchemaOperation() -> FindMissingSchemaOperation {
    sending(
      FindMissingSchemaOperation(
        store: store, directory: directory, turns: turns, environment: environment))
  }

  /// Makes the operation of ``undoChangeSet(_:of:isRehearsal:onProgress:)``.
  func makeUndoOperation(
    _ number: UInt64, of author: ClientIdentifier, isRehearsal: Bool
  ) -> UndoOperation {
    sending(
      UndoOperation(
        number, of: author, isRehearsal: isRehearsal, store: store, directory: directory,
        turns: turns, environment: environment))
  }

  /// Makes the operation of ``vacuum(onProgress:)``.
  public func makeVacuumOperation() -> VacuumOperation {
    sending(
      VacuumOperation(store: store, directory: directory, turns: turns, environment: environment))
  }

  /// Makes the operation of ``retire(_:onProgress:)``.
  public func makeRetireOperation(_ selection: RetirementSelection) -> RetireOperation {
    sending(
      RetireOperation(
        selection, store: store, directory: directory, turns: turns, environment: environment))
  }

  /// Makes the operation of ``reset(onProgress:)``.
  public func makeResetOperation() -> ResetOperation {
    sending(
      ResetOperation(store: store, directory: directory, turns: turns, environment: environment))
  }

  /// Makes the operation that creates a deleted document again from this store,
  /// as after the decision ``SyncQuestion/Decision/create``.
  public func makeRecreateDocumentOperation() -> RecreateDocumentOperation {
    sending(
      RecreateDocumentOperation(
        store: store, directory: directory, turns: turns, environment: environment))
  }

  /// Makes the operation of ``leave(abandoning:isConfirmed:onProgress:)``.
  public func makeLeaveOperation(
    abandoning: Bool = false, isConfirmed: Bool = false
  ) -> LeaveOperation {
    sending(
      LeaveOperation(
        store: store, directory: directory, turns: turns, abandons: abandoning,
        isConfirmed: isConfirmed, environment: environment))
  }

  /// Makes the operation of ``removeClient(_:onProgress:)``.
  public func makeRemoveClientOperation(_ client: ClientIdentifier) -> RemoveClientOperation {
    sending(
      RemoveClientOperation(
        store: store, directory: directory, turns: turns, client: client,
        environment: environment))
  }

  /// Makes the operation of ``describeClient(_:userInfo:onProgress:)``.
  public func makeDescribeClientOperation(
    _ description: String? = nil, userInfo: SyncUserInfo? = nil
  ) -> DescribeClientOperation {
    sending(
      DescribeClientOperation(
        store: store, directory: directory,
        descriptions: SyncDescriptions(client: description, clientInfo: userInfo),
        environment: environment))
  }

  /// Makes the operation of ``findStanding(onProgress:)``.
  public func makeFindStandingOperation() -> FindStandingOperation {
    sending(FindStandingOperation(directory: directory, binding: binding, environment: environment))
  }

  /// Makes the operation of ``verify(onProgress:)``.
  public func makeVerifyStoreOperation() -> VerifyStoreOperation {
    sending(
      VerifyStoreOperation(storeAt: store.path, directory: directory, environment: environment))
  }

  /// Makes the operation of
  /// ``create(storeAt:directory:document:options:onProgress:)``. Open the store
  /// when the operation has finished.
  public static func makeCreateDocumentOperation(
    storeAt path: String, directory: any SharedDirectory, document: String,
    options: Options = Options()
  ) -> CreateDocumentOperation {
    let operation = CreateDocumentOperation(
      storeAt: path, directory: directory, application: options.createdApplication,
      document: document, descriptions: options.descriptions,
      configuration: options.configuration, policies: options.policies,
      turns: SyncTurns(environment: options.environment), environment: options.environment)
    operation.events = options.events
    return operation
  }

  /// Makes the operation of
  /// ``join(storeAt:directory:document:existing:options:onProgress:)``. Open
  /// the store when the operation has finished, and synchronize.
  public static func makeDownloadWholeStoreOperation(
    storeAt path: String, directory: any SharedDirectory, document: String? = nil,
    existing: ExistingFile = .refuse, options: Options = Options()
  ) -> DownloadWholeStoreOperation {
    var generator = options.environment.generator
    let operation = DownloadWholeStoreOperation(
      directory: directory, applicationIdentifier: options.application, document: document,
      to: path, client: .random(using: &generator), descriptions: options.descriptions,
      existing: existing, environment: options.environment)
    operation.events = options.events
    return operation
  }

  /// Sets the manager's events on the operation, and returns it.
  private func sending<Output, Made: SyncOperation<Output>>(_ operation: Made) -> Made {
    operation.events = events
    return operation
  }
}
