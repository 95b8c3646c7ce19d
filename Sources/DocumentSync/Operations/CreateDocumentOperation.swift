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
/// devices. If it is interrupted in between, the same call completes it, since
/// the store records its document. If another device has begun the document at
/// the same time, and that one counts, the operation takes the store out of
/// sync again.
public final class CreateDocumentOperation: SyncOperation<StoreBinding>, @unchecked Sendable {
  private let path: String
  private let directory: any SharedDirectory
  private let application: String
  private let document: String
  private let descriptions: SyncDescriptions
  private let configuration: StoreConfiguration
  let turns: SyncTurns
  private let created = Mutex<LocalStore?>(nil)

  /// The open store; `nil` until the operation has succeeded.
  package var store: LocalStore? { created.withLock(\.self) }

  /// Creates an operation for a database and a document.
  package init(
    storeAt path: String, directory: any SharedDirectory, application: String, document: String,
    descriptions: SyncDescriptions = SyncDescriptions(),
    configuration: StoreConfiguration = StoreConfiguration(),
    turns: SyncTurns, environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.path = path
    self.directory = environment.retrying(directory)
    self.application = application
    self.document = document
    self.descriptions = descriptions
    self.configuration = configuration
    self.turns = turns
    super.init("create the document", environment: environment)
  }

  override func perform() async throws -> StoreBinding {
    let store = try await blocking { [self] in
      try descriptions.check(verb)
      begin(.listing)
      let context = OperationContext(self)
      let files = SharedFiles(directory, context: context)
      let interrupted = try LocalStore.isUnderSync(at: path)
      if interrupted {
        try checkInterrupted()
      } else {
        _ = try LocalStore.plan(at: path, configuration: configuration)
      }
      try directory.check(for: .writing)
      return try StoreLock.hold(store: path, operation: verb) {
        let store =
          interrupted
          ? try LocalStore.open(at: path, options: environment.storeOptions)
          : try begin(files)
        let beginning = DocumentBeginning(
          session: SyncSession(files: files, store: store), turns: turns,
          descriptions: descriptions)
        // A store that has shared the document takes part in it, even if
        // another device has begun it.
        let hasShared = store.binding.ancestor != nil
        do {
          try files.publishing(for: store) {
            try hasShared ? beginning.completeOrYield() : beginning.complete()
          }
          return store
        } catch let error as SyncError
          where !hasShared
          && [.documentExists, .generationReplaced, .documentDeleted, .documentReplaced]
            .contains(error.code)
        {
          throw try undo(store, after: error)
        } catch {
          try store.close()
          throw error
        }
      }
    }
    created.withLock { $0 = store }
    return store.binding
  }

  /// Registers the client, and puts the database under sync.
  private func begin(_ files: SharedFiles) throws -> LocalStore {
    let applications = ApplicationSteps(files)
    let documents = DocumentSteps(files)
    // Refuses before it writes anything.
    if try applications.find() != nil {
      _ = try applications.require(application)
      try documents.checkReadable(document, of: application)
      try documents.checkAbsent(document)
    }
    var generator = environment.generator
    let client = ClientIdentifier.random(using: &generator)
    let found = try applications.findOrCreate(
      application, by: client, createIfMissing: true, described: descriptions
    ).file
    let deleted = try documents.checkAbsent(document)
    let name =
      deleted?.file.document ?? DocumentSteps.name(application: application, identifier: document)
    let clientDescription = descriptions.client ?? ProcessInfo.processInfo.hostName
    try applications.describe(
      client, as: clientDescription, ancestor: nil, userInfo: descriptions.clientInfo,
      document: name)
    let binding = StoreBinding(
      application: found.application, root: found.root, directory: directory.hint,
      documentIdentifier: document, document: name, generation: .random(using: &generator),
      generationOrdinal: Int(deleted?.nextOrdinal ?? 1), client: client,
      clientDescription: clientDescription)
    try checkCancellation()
    return try LocalStore.create(
      at: path, binding: binding, configuration: configuration,
      options: environment.storeOptions)
  }

  /// Takes the store out of sync if its set-up can never be completed: another
  /// device has begun the document at the same time and its generation counts,
  /// or has deleted what this one began. Returns the error to throw.
  private func undo(_ store: LocalStore, after error: SyncError) throws -> SyncError {
    let isUndone = Result { try store.removeBookkeeping() }
    try store.close()
    guard try isUndone.get(), error.code != .documentDeleted else { return error }
    return SyncError(
      .documentExists, operation: verb, path: error.path,
      message: "The document “\(document)” was begun on another device at the same time, and "
        + "that one counts; the database here is unchanged.",
      remedy: "Get it with \(.join), or choose another identifier.", detail: error.detail,
      underlying: error)
  }

  /// Throws unless a call like this one began the store's set-up and did not
  /// complete it.
  private func checkInterrupted() throws {
    let store = try LocalStore.open(at: path, options: environment.storeOptions)
    let (binding, isSetUp) = (store.binding, Result { try StoreRecords(store).isSetUp() })
    try store.close()
    guard try isSetUp.get() else {
      guard binding.documentIdentifier == document, binding.application == application else {
        throw SetUpState.unfinished(binding, path: path, operation: verb)
      }
      return
    }
    throw SyncError(
      .alreadyUnderSync, operation: verb, path: path,
      message: "The store is under sync already, as the document "
        + "“\(binding.documentIdentifier)” in \(binding.directory).",
      remedy: "Synchronize it with \(.synchronize).")
  }
}

/// The error of a store whose set-up is incomplete.
enum SetUpState {
  static func unfinished(
    _ binding: StoreBinding, path: String, operation: String
  ) -> SyncError {
    SyncError(
      .setUpUnfinished, operation: operation, path: path,
      message: "The set-up of the store as the document “\(binding.documentIdentifier)” of "
        + "“\(binding.application)” in \(binding.directory) was interrupted.",
      remedy: "Complete it with the same \(.create) as before. If another action was interrupted, "
        + "complete that with \(.synchronize).")
  }
}
