import Foundation
import SyncDirectory
import SyncModel
import SyncStore

extension DocumentSyncManager {
  /// Makes the database at `path` a synchronized store of the document: opens
  /// it if it is under sync; otherwise joins the document in the directory, or
  /// creates the document from the database.
  ///
  /// The call asks the delegate where there is something to decide; see
  /// ``SyncQuestion`` for the decisions without a delegate. If two devices
  /// create the document at the same moment and one of them finds the other's
  /// document, its delegate is asked as if that document had been there before.
  /// If neither finds the other's, the next synchronization of one device takes
  /// over the other's document and merges its own rows into it. A store that is
  /// under sync is opened even while the directory is away.
  ///
  /// Errors, besides those of
  /// ``create(storeAt:directory:document:options:onProgress:)`` and
  /// ``join(storeAt:directory:document:existing:options:onProgress:)``:
  /// `applicationMissing`, `documentMissing`, `documentDeleted`, `fileExists`
  /// if the document is neither created nor joined; nothing is changed then.
  ///
  /// - Parameters:
  ///   - path: The path of the database. To join a document, let there be no
  ///     file.
  ///   - directory: The shared directory.
  ///   - document: The identifier by which other devices find the document.
  ///   - options: The options; each has a default.
  ///   - onProgress: Called with the progress, on the thread of the operation.
  public static func register(
    storeAt path: String, directory: any SharedDirectory, document: String,
    options: Options = Options(), onProgress: SyncProgress.Handler? = nil
  ) async throws -> DocumentSyncManager {
    let events = options.events
    events.enter(.registering)
    do {
      return try await DocumentRegistration(
        path: path, directory: directory, document: document, options: options,
        onProgress: onProgress
      ).run()
    } catch {
      if events.state == .registering { events.enter(.unregistered) }
      throw SyncError.wrapping(error, operation: "register the document", path: path)
    }
  }
}

/// One registration: looks for the document, and makes a manager.
private struct DocumentRegistration {
  let path: String
  let directory: any SharedDirectory
  let document: String
  let options: DocumentSyncManager.Options
  let onProgress: SyncProgress.Handler?

  private var application: String { options.createdApplication }
  private var events: SyncEvents { options.events }
  private var environment: SyncEnvironment { options.environment }

  private static let verb = "register the document"

  func run() async throws -> DocumentSyncManager {
    if let manager = try await open() { return manager }
    let presence = try await OperationQueue().run(
      FindDocumentOperation(
        directory: directory, applicationIdentifier: application, document: document,
        environment: environment),
      events: events, onProgress: onProgress)
    switch presence {
    case .applicationMissing:
      guard isFileThere else { throw applicationMissing }
      let question = SyncQuestion.applicationMissing(
        application: application, directory: directory.location)
      guard try await decision(question) == .create else { throw applicationMissing }
      return try await create()
    case .missing(let others):
      let missing = missing(others)
      guard isFileThere else { throw missing }
      let question = SyncQuestion.documentMissing(identifier: document, others: others)
      guard try await decision(question) == .create else { throw missing }
      return try await create()
    case .deleted(_, let deletion):
      guard isFileThere else { throw deleted(deletion) }
      let question = SyncQuestion.documentDeleted(
        identifier: document, deletion, isUnderSync: false)
      guard try await decision(question) == .create else { throw deleted(deletion) }
      return try await create()
    case .present:
      return try await join()
    }
  }

  // MARK: The database at the path

  private var isFileThere: Bool { FileManager.default.fileExists(atPath: path) }

  /// Returns the manager of a store that is under sync; `nil` if it is not
  /// under sync.
  private func open() async throws -> DocumentSyncManager? {
    guard isFileThere, try LocalStore.isUnderSync(at: path) else { return nil }
    let manager: DocumentSyncManager
    do {
      manager = try await .open(
        storeAt: path, directory: directory, options: options, onProgress: onProgress)
    } catch let error as SyncError where error.code == .setUpUnfinished {
      return try await create()
    }
    do {
      try await check(manager)
    } catch {
      try manager.store.close()
      throw error
    }
    return manager
  }

  /// Checks the document of a store that is under sync.
  ///
  /// A directory that is away is no error: it may be back the next time. Nor is
  /// the decision ``SyncQuestion/Decision/stop``: the next synchronization
  /// throws the error again.
  private func check(_ manager: DocumentSyncManager) async throws {
    let binding = manager.binding
    guard binding.documentIdentifier == document, binding.application == application else {
      throw SyncError(
        .alreadyUnderSync, operation: Self.verb, path: path,
        message: "The store is under sync already, as the document "
          + "“\(binding.documentIdentifier)” of “\(binding.application)”.",
        remedy: "Open it as that document, or take it out of sync first.")
    }
    do {
      try await manager.askAfterDocument()
    } catch let error as SyncError
      where error.classification == .directoryAway || error.code == .documentDeleted
      || error.code == .documentReplaced || error.code == .generationReplaced
    {
      environment.logger.notice("\(Self.verb): \(error)")
      events.send(.registered(binding))
      return
    }
    events.send(.registered(manager.binding))
  }

  // MARK: Creating and joining

  private func create() async throws -> DocumentSyncManager {
    do {
      return try await .create(
        storeAt: path, directory: directory, document: document, options: options,
        onProgress: onProgress)
    } catch let error as SyncError where error.code == .documentExists {
      // Another device was faster; both meant the same document.
      return try await join(afterLosing: true)
    }
  }

  /// - Parameter hasLost: Whether another device has created the document at
  ///   the same moment. Then, unless a delegate decides, the rows of the
  ///   database at the path are merged into that document.
  private func join(afterLosing hasLost: Bool = false) async throws -> DocumentSyncManager {
    var existing = ExistingFile.refuse
    if isFileThere {
      let question = SyncQuestion.databaseInTheWay(identifier: document, path: path)
      switch hasLost && options.delegate == nil ? .merge : try await decision(question) {
      case .replace: existing = .replaceKeepingBackup
      case .merge: existing = .merge(prefer: .document)
      default:
        throw SyncError(
          .documentExists, operation: Self.verb, path: path,
          message: "The document “\(document)” is in the directory already, and this path has "
            + "a database of its own, which is unchanged.",
          remedy: "Move it away, or have it replaced or merged, which keeps it as a backup.")
      }
    }
    var options = options
    options.application = application
    return try await .join(
      storeAt: path, directory: directory, document: document, existing: existing,
      options: options, onProgress: onProgress)
  }

  private func decision(_ question: SyncQuestion) async throws -> SyncQuestion.Decision {
    let decision = await events.decision(of: options.delegate, on: question, before: .registering)
    if Task.isCancelled { throw SyncError.cancelled(Self.verb) }
    return decision
  }

  // MARK: Errors

  private var applicationMissing: SyncError {
    SyncError(
      .applicationMissing, operation: Self.verb, path: directory.location,
      message: "Nothing has been synchronized through this directory yet.",
      remedy: "Check that this is the shared directory and that it has arrived on this device.")
  }

  private func missing(_ others: [String]) -> SyncError {
    SyncError(
      .documentMissing, operation: Self.verb, path: directory.location,
      message: "There is no document “\(document)” in the shared directory.",
      remedy: others.isEmpty
        ? "Create the document on the device that has it, and wait until it has arrived here."
        : "There are: \(others.map { "“\($0)”" }.joined(separator: ", ")).")
  }

  private func deleted(_ deletion: DocumentDescription.Deletion) -> SyncError {
    SyncError(
      .documentDeleted, operation: Self.verb, path: directory.location,
      message: "The document “\(document)” was deleted"
        + (deletion.clientDescription.map { " on “\($0)”." } ?? "."),
      remedy: "Create it again from a database that has its rows.",
      detail: "by \(deletion.client)")
  }
}
