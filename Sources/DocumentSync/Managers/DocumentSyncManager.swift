import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Synchronization

/// One document on this device: its store, and its place in the shared
/// directory.
///
/// Get a manager from
/// ``register(storeAt:directory:document:options:onProgress:)``, which joins,
/// creates or opens the document as needed, or from
/// ``create(storeAt:directory:document:options:onProgress:)``,
/// ``join(storeAt:directory:document:existing:options:onProgress:)`` or
/// ``open(storeAt:directory:options:onProgress:)``. Each method runs one
/// operation on the manager's queue, one at a time, and throws ``SyncError``.
/// Methods that only read the store do not wait for the others.
/// Cancelling the calling task cancels the operation.
public final class DocumentSyncManager: Sendable {
  /// The local store.
  package let store: LocalStore
  /// The shared directory.
  public let directory: any SharedDirectory
  /// The clock, the random numbers and the limits for operations.
  public let environment: SyncEnvironment
  /// The path of the backup of the file that joining has replaced; `nil` if
  /// there was no file.
  public let backup: String?
  /// What became of that file's rows, if joining has merged them.
  public let merged: MergedRows?
  /// The store in that file, if joining has replaced a store under sync.
  public let replaced: ReplacedStore?
  /// What creating the document has done with a set-up that was interrupted
  /// before.
  package let resumption: SetUpState.Resumption?
  /// The events of the manager's operations, for any number of observers.
  public let events: SyncEvents
  private let queue: OperationQueue
  let turns: SyncTurns
  /// The queue for operations that change the store and must not wait for a synchronization.
  let journalQueue: OperationQueue
  /// The queue for operations that only read the store: up to ``questionsAtOnce`` of them at a time.
  private let questionQueue: OperationQueue
  /// The queue for those of them that read all rows: the others must not wait for these.
  private let longQuestionQueue: OperationQueue
  /// The queue for operations that only look at the shared directory, which may take long.
  private let lookingQueue: OperationQueue
  /// The most operations of each of them at a time: each has a thread, and perhaps a connection.
  private static let questionsAtOnce = 8
  /// The most questions at a time that read all rows.
  private static let longQuestionsAtOnce = 2
  let delegate: Mutex<(any SyncDelegate)?>
  /// Asks the delegate one question at a time.
  let questions = AsyncTurn()

  init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns, options: Options,
    backup: String? = nil, merged: MergedRows? = nil, replaced: ReplacedStore? = nil,
    resumption: SetUpState.Resumption? = nil
  ) {
    self.resumption = resumption
    self.backup = backup
    self.merged = merged
    self.replaced = replaced
    self.store = store
    self.directory = directory
    self.turns = turns
    environment = options.environment
    delegate = Mutex(options.delegate)
    events = options.events
    queue = OperationQueue()
    queue.name = "DocumentSync: document"
    queue.maxConcurrentOperationCount = 1
    journalQueue = OperationQueue()
    journalQueue.name = "DocumentSync: conflicts"
    journalQueue.maxConcurrentOperationCount = 1
    questionQueue = OperationQueue()
    questionQueue.name = "DocumentSync: questions"
    questionQueue.maxConcurrentOperationCount = Self.questionsAtOnce
    longQuestionQueue = OperationQueue()
    longQuestionQueue.name = "DocumentSync: long questions"
    longQuestionQueue.maxConcurrentOperationCount = Self.longQuestionsAtOnce
    lookingQueue = OperationQueue()
    lookingQueue.name = "DocumentSync: looking at the directory"
    lookingQueue.maxConcurrentOperationCount = Self.questionsAtOnce
    events.enter(.registered)
    store.setResolver { [weak self] name, values in
      try self?.delegate.withLock(\.self)?.resolve(values, by: name)
    }
    store.setChangeObserver(
      RowChangeObserver(
        willCommit: { [weak self] in self?.delegate.withLock(\.self)?.willCommit($0) },
        didCommit: { [events] in events.send(.rowsChanged($0)) }))
  }

  /// The application, the directory, the document and the client that the store
  /// is bound to.
  public var binding: StoreBinding { store.binding }

  /// How the document is synchronized, as it was chosen when it was created.
  package var configuration: StoreConfiguration { store.configuration }

  /// The state of the document, as of the last operation.
  public var state: DocumentSyncState { events.state }

  /// The state of the document, and each state that it takes from now on.
  public var states: AsyncStream<DocumentSyncState> { events.states() }

  /// Sets the delegate that decides about the document and about conflicts;
  /// `nil` removes it. A new delegate answers conflicts from the next
  /// synchronization on.
  public func setDelegate(_ delegate: (any SyncDelegate)?) {
    self.delegate.withLock { $0 = delegate }
  }

  /// Sends the edits of this device and applies those of other devices.
  ///
  /// If there is nothing to do, it lists three folders, now and then asks for
  /// the lengths of a few files of its own, and reads and writes nothing. If
  /// the store or the directory fails half-way, the next call continues.
  /// ``SyncReport/waiting`` lists what cannot be applied yet. If the document
  /// was deleted, or created again, or this client was removed, the delegate
  /// decides; see ``SyncQuestion``.
  ///
  /// - Parameters:
  ///   - allowingDeletions: Whether to apply change sets, of now and of earlier synchronizations, that
  ///     delete more rows than ``SyncEnvironment/deletionLimit`` allows.
  ///   - onProgress: Called with the progress, on any thread.
  @discardableResult
  public func synchronize(
    allowingDeletions: Bool = false, onProgress: SyncProgress.Handler? = nil
  ) async throws -> SyncReport {
    try await synchronize(.all, allowingDeletions: allowingDeletions, onProgress)
  }

  /// Applies the edits of other devices, and sends none of this device.
  ///
  /// Edits of this device are merged with them as in ``synchronize(allowingDeletions:onProgress:)``, and wait to be sent.
  /// The other devices do not hear how far this one has come before it sends.
  @discardableResult
  public func fetchChanges(onProgress: SyncProgress.Handler? = nil) async throws -> SyncReport {
    try await synchronize(.fetching, onProgress)
  }

  /// Sends the edits of this device, and applies none of other devices.
  ///
  /// Commands of others are processed all the same: this client may have been removed, or the document
  /// deleted. ``SyncReport/waiting`` is as the last call has found it that applied edits.
  @discardableResult
  public func sendChanges(onProgress: SyncProgress.Handler? = nil) async throws -> SyncReport {
    try await synchronize(.sending, onProgress)
  }

  /// Synchronizes, checks every file of this client in the directory byte for
  /// byte, and restores missing and damaged ones.
  @discardableResult
  public func synchronizeThoroughly(
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> SyncReport {
    try await synchronize(.all, checksOwnFiles: true, onProgress)
  }

  private func synchronize(
    _ extent: SynchronizeOperation.Extent, checksOwnFiles: Bool = false,
    allowingDeletions: Bool = false, _ onProgress: SyncProgress.Handler?
  ) async throws -> SyncReport {
    try await asking {
      try await run(
        makeSynchronizeOperation(
          extent, isThorough: checksOwnFiles, allowsDeletions: allowingDeletions),
        onProgress: onProgress)
    }
  }

  /// Uploads the whole store, so that other devices can join from it.
  ///
  /// The call first synchronizes edits that are not published.
  @discardableResult
  public func uploadWholeStore(
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> WholeStoreDescription {
    try await asking {
      try await run(makeUploadWholeStoreOperation(), onProgress: onProgress)
    }
  }

  /// Returns what the schemas of other devices have and the store's lacks, from the newest whole store
  /// of each of the devices in the directory, at most eight. Changes nothing.
  ///
  /// A definition that no device has uploaded with a whole store is not known:
  /// ``StoreStatus/MissingSchema/undefinedNames``. Downloads whole stores to files beside the store
  /// for a while.
  public func missingSchema(
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> StoreStatus.MissingSchema {
    try await run(makeFindMissingSchemaOperation(), onProgress: onProgress)
  }

  /// Undoes a change set, of this device or of another one, by ordinary edits in one transaction; the next
  /// synchronization sends them.
  ///
  /// Rows that the change set has inserted are deleted, rows that it has deleted are inserted again, and the cells
  /// that it has changed get the values that they would have without it. What was changed since stays as it is, and
  /// so does what a constraint refuses: ``AppliedChangeSet/Undo/leftRows``. What has become again what the change set
  /// has made of it counts as not changed. The triggers of the application do not run, apart from those that
  /// maintain what stays on the device, since the change set contains what they have done. Doing it twice changes
  /// nothing more. The edits are a change set themselves after the next synchronization, and can be undone in turn.
  ///
  /// What there was before is in the shared directory: in a whole store that does not contain the change set, and in
  /// the other change sets. Downloads the whole store to a file beside the store for a while. Throws
  /// `changeSetUnavailable` if the store has not applied the change set, or if the directory lacks any of that.
  ///
  /// - Parameters:
  ///   - number: The number of the change set among those of its author; ``history(limit:)`` lists them.
  ///   - client: The author; `nil` for this device.
  ///   - isRehearsal: Whether to change nothing, and to return what would be done.
  ///   - onProgress: Called with the progress, on any thread.
  @discardableResult
  public func undoChangeSet(
    _ number: UInt64, of client: ClientIdentifier? = nil, isRehearsal: Bool = false,
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> AppliedChangeSet.Undo {
    try await run(
      makeUndoOperation(number, of: client ?? binding.client, isRehearsal: isRehearsal),
      onProgress: onProgress)
  }

  /// Returns the clients of the document, in order, and how far each has
  /// synchronized, as the directory is at the moment. Waits for other operations
  /// of the manager only if the directory does not fit the store, as during a
  /// reset.
  public func listClients(
    onProgress: SyncProgress.Handler? = nil
  ) async throws -> [ClientDescription] {
    try await look(onProgress) {
      ListClientsOperation(directory: directory, store: $0, environment: environment)
    }
  }

  /// Removes the files that no device needs any more. A synchronization does so
  /// by itself now and then.
  @discardableResult
  public func vacuum(onProgress: SyncProgress.Handler? = nil) async throws -> VacuumReport {
    try await asking {
      try await run(makeVacuumOperation(), onProgress: onProgress)
    }
  }

  /// Retires clients, so that the other members stop waiting for them; returns
  /// those for which it sent a command.
  ///
  /// A retired client that is still in use becomes a new client. One that was
  /// retired as absent continues as it is if it synchronizes before all other
  /// members have processed the command. Its edits arrive either way. Throws
  /// `clientUnknown`.
  @discardableResult
  public func retire(
    _ selection: RetirementSelection, onProgress: SyncProgress.Handler? = nil
  ) async throws -> [ClientIdentifier] {
    try await asking {
      try await run(makeRetireOperation(selection), onProgress: onProgress)
    }
  }

  /// Begins a new generation of the document with the content of this store.
  /// The other devices take over this content, and keep those of their edits
  /// that it does not have.
  ///
  /// The store becomes a new client. If the call is interrupted, the next one
  /// completes it.
  @discardableResult
  public func reset(onProgress: SyncProgress.Handler? = nil) async throws -> StoreBinding {
    try await asking {
      try await run(makeResetOperation(), onProgress: onProgress)
    }
  }

  /// Returns whether the document is complete in the directory. It is not after
  /// an interrupted reset, or an interrupted creation from a store that shared
  /// it; the next synchronization, or reset, completes it. Waits for other
  /// operations of the manager if it is not.
  public func isSetUp() async throws -> Bool {
    if try await ask("look after the document", { try StoreRecords($0).isSetUp() }) { return true }
    // An operation of this manager may be completing it.
    let store = store
    return try await run(
      StoreOperation("look after the document", environment: environment) {
        try StoreRecords(store).isSetUp()
      })
  }

  /// Closes the store after the operations that were begun, and ends the
  /// events. The manager cannot be used afterwards.
  public func close() async throws {
    let closing = CloseStoreOperation(store: store, environment: environment)
    for queue in [lookingQueue, questionQueue, longQuestionQueue, journalQueue] {
      for operation in queue.operations { closing.addDependency(operation) }
    }
    try await queue.run(closing, events: events)
    events.finish()
  }

  func run<Output>(
    _ operation: SyncOperation<Output>, onProgress: SyncProgress.Handler? = nil
  ) async throws -> Output {
    try checkHasNotLeft(operation.verb)
    return try await queue.run(operation, events: events, onProgress: onProgress)
  }

  /// Answers a question from the last committed state of the store (``LocalStore/lastCommitted``).
  /// Does not wait for operations that change the store.
  ///
  /// - Parameter isLong: Whether the question reads all rows. It may wait for others of that kind.
  func ask<Output: Sendable>(
    _ verb: String, isLong: Bool = false,
    _ question: @escaping @Sendable (LocalStore) throws -> Output
  ) async throws -> Output {
    try checkHasNotLeft(verb)
    let store = store.lastCommitted
    return try await (isLong ? longQuestionQueue : questionQueue).run(
      StoreOperation(verb, environment: environment) { try question(store) }, events: events)
  }

  /// Runs an operation that looks at the shared directory and the store, and changes nothing.
  ///
  /// If other operations of the manager run, it goes by the last committed state of the store, and
  /// does not wait for them. If it fails then, one of them may be moving the store to another document
  /// or generation, which is not in the directory yet: so another one runs after them, and its error
  /// counts. The first one has no events and no progress.
  ///
  /// - Parameter make: Makes the operation for a store.
  func look<Output>(
    _ onProgress: SyncProgress.Handler? = nil, _ make: (LocalStore) -> SyncOperation<Output>
  ) async throws -> Output {
    if queue.operationCount > 0 {
      let operation = make(store.lastCommitted)
      try checkHasNotLeft(operation.verb)
      do {
        return try await lookingQueue.run(operation)
      } catch let error as SyncError where error.code != .cancelled {
        environment.logger.debug("\(error.operation), while other operations run: \(error)")
      }
    }
    return try await run(make(store), onProgress: onProgress)
  }

  /// Throws `notUnderSync` if the store has left its document through this manager.
  func checkHasNotLeft(_ verb: String) throws {
    guard state == .left else { return }
    throw SyncError(
      .notUnderSync, operation: verb, path: store.path,
      message: "The store has left its document, and is an ordinary database.",
      remedy: "Close this manager. Put the database under sync with \(.create), or add its rows to "
        + "the document with \(.join).")
  }
}
