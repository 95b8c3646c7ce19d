import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Synchronization

/// Puts a database under sync as a new document, uploads it, and tells the
/// other devices.
///
/// The operation refuses before it writes anything anywhere. It then writes the
/// application, the store, and last the files that show the document to other
/// devices. If it fails in between, or if another device has begun the document
/// at the same time and that one counts, it takes everything back that no other
/// device can use yet. If it is interrupted, the same call completes it, since
/// the store records its document; a call with other options, or with another
/// directory, ends that set-up and begins again, unless other devices can join
/// its document.
public final class CreateDocumentOperation: SyncOperation<StoreBinding>, @unchecked Sendable {
  private struct Created: Sendable {
    var store: LocalStore
    var resumption: SetUpState.Resumption?
  }

  private let path: String
  private let directory: any SharedDirectory
  private let application: String
  private let document: String
  private let descriptions: SyncDescriptions
  private let configuration: StoreConfiguration
  private let policies: SyncPolicies?
  let turns: SyncTurns
  private let created = Mutex<Created?>(nil)

  /// The open store; `nil` until the operation has succeeded.
  package var store: LocalStore? { created.withLock { $0?.store } }
  /// What the operation has done with a set-up that was interrupted before.
  package var resumption: SetUpState.Resumption? { created.withLock { $0?.resumption } }

  /// Creates an operation for a database and a document.
  package init(
    storeAt path: String, directory: any SharedDirectory, application: String, document: String,
    descriptions: SyncDescriptions = SyncDescriptions(),
    configuration: StoreConfiguration = StoreConfiguration(), policies: SyncPolicies? = nil,
    turns: SyncTurns, environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.path = path
    self.directory = environment.retrying(directory)
    self.application = application
    self.document = document
    self.descriptions = descriptions
    self.configuration = configuration
    self.policies = policies
    self.turns = turns
    super.init("create the document", environment: environment)
  }

  override func perform() async throws -> StoreBinding {
    let result = try await blocking { [self] () throws -> Created in
      try descriptions.check(verb)
      begin(.listing)
      let files = SharedFiles(directory, context: OperationContext(self))
      let isUnderSync = try LocalStore.isUnderSync(at: path)
      if isUnderSync {
        try checkUnfinished()
      } else {
        _ = try LocalStore.plan(at: path, configuration: configuration)
      }
      try checkWritable(isUnfinished: isUnderSync)
      try StoreLocation.check(path, isOutside: directory, operation: verb)
      return try holdingLock(of: path) {
        guard isUnderSync else { return Created(store: try beginAndSetUp(files)) }
        return try resume(files)
      }
    }
    created.withLock { $0 = result }
    return result.store.binding
  }

  private func checkWritable(isUnfinished: Bool) throws {
    do {
      try directory.check(for: .writing)
    } catch let error as DirectoryError where isUnfinished {
      throw SetUpState.left(SyncError.wrapping(error, operation: verb))
    }
  }

  // MARK: Beginning

  /// Registers the client, and puts the database under sync.
  private func begin(_ files: SharedFiles) throws -> LocalStore {
    let (applications, documents) = (ApplicationSteps(files), DocumentSteps(files))
    try checkDirectory(files)
    var generator = environment.generator
    let client = ClientIdentifier.random(using: &generator)
    do {
      let found = try applications.findOrCreate(
        application, by: client, createIfMissing: true, described: descriptions
      ).file
      let deleted = try documents.checkAbsent(document)
      let name =
        deleted?.file.document
        ?? DocumentSteps.name(application: application, identifier: document)
      let binding = StoreBinding(
        application: found.application, root: found.root, directory: directory.hint,
        documentIdentifier: document, document: name, generation: .random(using: &generator),
        generationOrdinal: Int(deleted?.nextOrdinal ?? 1), client: client,
        clientDescription: descriptions.client ?? ProcessInfo.processInfo.hostName)
      try checkCancellation()
      return try LocalStore.create(
        at: path, binding: binding, configuration: configuration,
        options: environment.storeOptions)
    } catch {
      try removeBeginnings(of: client, files, after: error)
      throw error
    }
  }

  /// Throws unless the document can be begun in the directory; writes nothing.
  private func checkDirectory(_ files: SharedFiles) throws {
    let (applications, documents) = (ApplicationSteps(files), DocumentSteps(files))
    guard try applications.find() != nil else { return }
    _ = try applications.require(application)
    try documents.checkReadable(document, of: application)
    try documents.checkAbsent(document)
  }

  /// Removes what this call has written before the database was under sync.
  private func removeBeginnings(
    of client: ClientIdentifier, _ files: SharedFiles, after error: any Error
  ) throws {
    guard !isCancelled else { return }
    do {
      try SetUpFiles.removeBeginnings(of: client, files)
    } catch let next {
      // The files that are left do no harm: the next call uses them.
      environment.logger.notice("\(verb): \(next), after \(error)")
    }
  }

  private func beginAndSetUp(_ files: SharedFiles) throws -> LocalStore {
    try set(up: try begin(files), files, isNew: true)
  }

  /// Publishes the document of a store that is under sync. If that fails, takes everything back.
  ///
  /// - Parameter isNew: Whether this call has begun the set-up.
  private func set(up store: LocalStore, _ files: SharedFiles, isNew: Bool) throws -> LocalStore {
    let beginning = DocumentBeginning(
      session: SyncSession(files: files, store: store), turns: turns, descriptions: descriptions)
    let binding = store.binding
    do {
      if let policies { try store.setPolicies { $0 = policies } }
      try files.publishing(for: store) {
        // A store that has shared the document takes part in it, even if
        // another device has begun it.
        guard binding.ancestor == nil else { return try beginning.completeOrYield() }
        try describe(binding, files)
        try beginning.complete()
      }
      return store
    } catch let error as SyncError
      where binding.ancestor == nil
      && [.documentExists, .generationReplaced, .documentDeleted, .documentReplaced]
        .contains(error.code)
    {
      throw try undo(store, files, after: error)
    } catch {
      guard binding.ancestor == nil else {
        try store.close()
        throw error
      }
      throw try takeBack(store, files, isNew: isNew, after: error)
    }
  }

  private func describe(_ binding: StoreBinding, _ files: SharedFiles) throws {
    // After an interruption, the directory may be another one.
    try files.checkRoot(binding)
    try ApplicationSteps(files).describe(
      binding.client, as: binding.clientDescription, ancestor: nil,
      userInfo: descriptions.clientInfo, document: binding.document)
  }

  // MARK: Ending

  /// Takes a failed set-up back, unless it was cancelled or another device can join the document.
  /// Closes the store, and returns the error to throw.
  private func takeBack(
    _ store: LocalStore, _ files: SharedFiles, isNew: Bool, after error: any Error
  ) throws -> any Error {
    var error = SyncError.wrapping(error, operation: verb, path: path)
    if try StoreRecords(store).isSetUp() {
      try store.close()
      error.message += " The set-up is complete."
      error.remedy = error.remedy + " Then continue with \(.synchronize)."
      return error
    }
    guard error.code != .cancelled, !isCancelled else {
      try store.close()
      return error
    }
    let isUndone = Result { [error] in
      try remove(store, files, isNew: isNew, after: error)
    }
    try store.close()
    return try isUndone.get() ? SetUpState.takenBack(error) : SetUpState.left(error)
  }

  /// Removes the files of a set-up and its bookkeeping. Returns whether it could.
  private func remove(
    _ store: LocalStore, _ files: SharedFiles, isNew: Bool, after error: SyncError
  ) throws -> Bool {
    // Another attempt would only take time.
    guard error.code != .directoryAway else { return false }
    do {
      let outcome = try SetUpFiles(
        files: files, binding: store.binding,
        hasUploaded: try StoreRecords(store).hasUploaded(), isNew: isNew
      ).remove()
      return try outcome == .removed && store.removeBookkeeping()
    } catch let next {
      // The store remembers what is in the directory, for the call that completes or ends it.
      environment.logger.notice("\(verb): \(next), after \(error)")
      return false
    }
  }

  /// Takes the store out of sync if its set-up can never be completed: another
  /// device has begun the document at the same time and its generation counts,
  /// or has deleted what this one began. Returns the error to throw.
  private func undo(
    _ store: LocalStore, _ files: SharedFiles, after error: SyncError
  ) throws -> SyncError {
    let binding = store.binding
    let isUndone = Result { try store.removeBookkeeping() }
    try store.close()
    guard try isUndone.get() else { return error }
    do {
      _ = try SetUpFiles(files: files, binding: binding).remove()
    } catch let next {
      environment.logger.notice("\(verb): \(next), after \(error)")
    }
    var result = error
    // The document that counts may have been deleted since.
    if error.code != .documentDeleted, let deletion = try deletion(files) { result = deletion }
    guard result.code != .documentDeleted else {
      result.message += " The database here is unchanged, and not under sync."
      result.remedy = "To share it again, begin with \(.create)."
      return result
    }
    return SyncError(
      .documentExists, operation: verb, path: error.path,
      message: "The document “\(document)” was begun on another device at the same time, and "
        + "that one counts; the database here is unchanged.",
      remedy: "Get it with \(.join), or choose another identifier.", detail: error.detail,
      underlying: error)
  }

  /// Returns the error that the document was deleted; `nil` if it is there.
  private func deletion(_ files: SharedFiles) throws -> SyncError? {
    let documents = DocumentSteps(files)
    do {
      _ = try documents.checkAbsent(document)
    } catch let error as SyncError where error.code == .documentExists {
      return nil
    }
    return SyncError(
      .documentDeleted, operation: verb, path: directory.location,
      message: "The document “\(document)” was begun on another device at the same time, and "
        + "deleted since.",
      remedy: "To share it again, begin with \(.create).")
  }

  // MARK: After an interruption

  /// Throws unless a set-up of the store was begun and is not complete.
  private func checkUnfinished() throws {
    let store = try LocalStore.open(at: path, options: environment.storeOptions)
    let isUnfinished = Result { try checkUnfinished(store) }
    try store.close()
    try isUnfinished.get()
  }

  private func checkUnfinished(_ store: LocalStore) throws {
    guard try StoreRecords(store).isSetUp() else { return }
    let binding = store.binding
    throw SyncError(
      .alreadyUnderSync, operation: verb, path: path,
      message: "The store is under sync already, as the document "
        + "“\(binding.documentIdentifier)” in \(binding.directory).",
      remedy: "Synchronize it with \(.synchronize).")
  }

  /// Completes the set-up that was interrupted, or ends it and begins this one.
  private func resume(_ files: SharedFiles) throws -> Created {
    let store = try LocalStore.open(at: path, options: environment.storeOptions)
    let binding = store.binding
    let isThisOne: Bool
    var wasDeleted = false
    do {
      // Another process may have completed it since.
      try checkUnfinished(store)
      isThisOne = try self.isThisOne(store, files)
      if isThisOne, binding.ancestor == nil,
        case .deleted = try DocumentSteps(files).rival(of: binding)
      {
        // The document was deleted after the interruption, and is begun again: what this store would
        // publish for its generation would count as deleted.
        guard try store.removeBookkeeping() else {
          throw SetUpState.unfinished(binding, path: path, operation: verb)
        }
        wasDeleted = true
      }
      if !isThisOne {
        guard binding.ancestor == nil else {
          throw SetUpState.unfinished(binding, path: path, operation: verb)
        }
        _ = try LocalStore.plan(at: path, configuration: configuration, ignoresBookkeeping: true)
        try end(store, files)
      }
    } catch {
      try store.close()
      throw error
    }
    guard isThisOne, !wasDeleted else {
      try store.close()
      return Created(store: try beginAndSetUp(files), resumption: .replaced)
    }
    do {
      return Created(store: try set(up: store, files, isNew: false), resumption: .completed)
    } catch let error as SyncError where error.code == .documentDeleted && binding.ancestor == nil {
      // It was deleted after the interruption, and is begun again.
      return Created(store: try beginAndSetUp(files), resumption: .completed)
    }
  }

  /// Whether the store's set-up is the one of this call. Throws if that is not known.
  private func isThisOne(_ store: LocalStore, _ files: SharedFiles) throws -> Bool {
    let binding = store.binding
    let roots = try files.roots()
    if binding.ancestor == nil, roots.isEmpty, binding.directory == directory.hint {
      // What should be the same directory is empty: it may not be mounted.
      do {
        try files.checkRoot(binding)
      } catch let error as SyncError {
        throw SetUpState.left(error)
      }
    }
    guard binding.documentIdentifier == document, binding.application == application else {
      return false
    }
    if binding.ancestor != nil { return true }
    guard store.configuration == configuration,
      descriptions.client.map({ $0 == binding.clientDescription }) ?? true
    else { return false }
    return roots.contains(binding.root)
  }

  /// Takes the store out of sync, and removes the files of its set-up as far as they can be reached.
  private func end(_ store: LocalStore, _ files: SharedFiles) throws {
    let binding = store.binding
    let isHere = try files.roots().contains(binding.root)
    if !isHere { try checkDirectory(files) }
    let there =
      isHere
      ? files
      : SharedFiles(
        environment.retrying(try environment.openDirectory(binding.directory)),
        context: OperationContext(self))
    do {
      let hasUploaded = try StoreRecords(store).hasUploaded()
      switch try SetUpFiles(files: there, binding: binding, hasUploaded: hasUploaded).remove() {
      case .removed, .elsewhere: break
      // A device may have joined whose files have not arrived.
      case .joinable:
        throw SetUpState.irreplaceable(binding, hasOthers: false, path: path, operation: verb)
      case .shared:
        throw SetUpState.irreplaceable(binding, hasOthers: true, path: path, operation: verb)
      }
    } catch let error
      where !isHere && !isCancelled
      && (error as? SyncError)?.code != .setUpUnfinished
    {
      // That directory is gone, or may not be written to; nothing depends on what is left there.
      environment.logger.notice("\(verb): \(error)")
    }
    guard try store.removeBookkeeping() else {
      throw SetUpState.unfinished(binding, path: path, operation: verb)
    }
  }
}
