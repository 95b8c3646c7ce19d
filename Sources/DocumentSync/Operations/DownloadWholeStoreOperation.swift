import Foundation
import SyncDirectory
import SyncModel
import SyncStore

extension WholeStoreDescription {
  /// The result of downloading a whole store.
  public struct Download: Sendable {
    /// The open store, at its path.
    package var store: LocalStore
    /// The whole store that it was made from.
    public var wholeStore: WholeStoreDescription
    /// The path of the backup of the file that was at the store's path, if
    /// there was one.
    public var backup: String?
    /// What became of that file's rows, if they were merged.
    public var merged: MergedRows?
    /// The store in that file, if it was a store under sync and was replaced.
    public var replaced: ReplacedStore?
  }
}

/// Downloads the whole store of a document and makes it a store of this device,
/// for a new client.
///
/// The operation takes the whole store that contains most, checks it, and
/// merges the rows of an existing database if asked to. It puts the store at
/// its path in one step at the end: an incomplete store is never at the path,
/// and no temporary file stays beside it. If a database is there, its file stays
/// and gets the content of the store, so that programs that have it open use
/// the store from then on. The next synchronization brings the
/// changes since the upload.
public final class DownloadWholeStoreOperation: SyncOperation<WholeStoreDescription.Download>,
  @unchecked Sendable
{
  private let directory: any SharedDirectory
  private let applicationIdentifier: String?
  private let document: String?
  private let path: String
  private let client: ClientIdentifier
  private let descriptions: SyncDescriptions
  private let existing: ExistingFile

  /// Creates an operation that downloads a document to a path.
  ///
  /// - Parameters:
  ///   - applicationIdentifier: The application; `nil` accepts any.
  ///   - document: The document's identifier; `nil` takes the only one.
  ///   - client: The client of the new store, which was never in use before.
  package init(
    directory: any SharedDirectory, applicationIdentifier: String? = nil, document: String?,
    to path: String, client: ClientIdentifier,
    descriptions: SyncDescriptions = SyncDescriptions(), existing: ExistingFile = .refuse,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = environment.retrying(directory)
    self.applicationIdentifier = applicationIdentifier
    self.document = document
    self.path = path
    self.client = client
    self.descriptions = descriptions
    self.existing = existing
    super.init("download the whole store", environment: environment)
  }

  override func perform() async throws -> WholeStoreDescription.Download {
    try await blocking { [self] in
      try descriptions.check(verb)
      begin(.listing)
      let siblings = LocalSiblings(store: path, operation: verb)
      try checkFree(siblings)
      try directory.check(for: .writing)
      try StoreLocation.check(path, isOutside: directory, operation: verb)
      let files = SharedFiles(directory, context: OperationContext(self))
      let application = try ApplicationSteps(files).require(applicationIdentifier)
      let found = try DocumentSteps(files).require(document)
      return try holdingLock(of: path) {
        do {
          return try get(found.file, of: application, files: files, siblings: siblings)
        } catch {
          try siblings.removeAll()
          throw error
        }
      }
    }
  }

  private func checkFree(_ siblings: LocalSiblings) throws {
    do {
      try siblings.checkFree(existing)
    } catch let error as SyncError where error.remedy.actions.contains(.synchronize) {
      guard let unfinished = try SetUpState.read(storeAt: path) else { throw error }
      throw SetUpState.unfinished(unfinished.binding, path: path, operation: verb)
    }
  }

  private func get(
    _ file: GenerationFile, of application: ApplicationFile, files: SharedFiles,
    siblings: LocalSiblings
  ) throws -> WholeStoreDescription.Download {
    try siblings.removeAll()
    if existing == .replaceKeepingBackup {
      try compareRemade(joining: file, SharedFiles(directory, context: files.context))
    }
    let database = siblings.temporary("database")
    let steps = WholeStoreSteps(files)
    let checked = try steps.download(file, beside: siblings)
    try checkCancellation()
    let clientDescription = descriptions.client ?? ProcessInfo.processInfo.hostName
    let binding = StoreBinding(
      application: application.application, root: file.root, directory: directory.hint,
      documentIdentifier: file.identifier, document: file.document, generation: file.generation,
      generationOrdinal: Int(file.ordinal), client: client, clientDescription: clientDescription)
    let (former, replacement) = try former(binding, checked.header.vector, files)
    do {
      let (adopted, merged) = try adopt(database, binding, files)
      try finish(adopted, checked, former, steps)
      let copy = siblings.temporary("backup")
      try replacement?.prepare(
        storeAt: database, backup: copy, checkCancellation: checkCancellation)
      try ApplicationSteps(files).describe(
        client, as: clientDescription,
        ancestor: former.flatMap { $0.replaced.isSameDocument ? $0.replaced.client : nil },
        userInfo: descriptions.clientInfo, document: file.document)
      try checkCancellation()
      let backup =
        if let replacement {
          try siblings.putIntoPlace(
            database, replacement, copy: copy, milliseconds: environment.now(), checkCancellation)
        } else {
          try siblings.moveIntoPlace(
            database, existing: existing, milliseconds: environment.now(),
            environment.storeOptions)
        } as String?
      try replacement?.close()
      try siblings.removeAll()
      let store = try LocalStore.open(at: path, options: environment.storeOptions)
      if backup != nil { removeFormerConflicts(store) }
      return WholeStoreDescription.Download(
        store: store, wholeStore: steps.description(checked), backup: backup, merged: merged,
        replaced: former?.replaced)
    } catch {
      try replacement?.close()
      throw error
    }
  }

  /// Removes the file with the older conflicts of the store that was replaced. If that fails, the
  /// first conflicts that leave the new store move it aside.
  private func removeFormerConflicts(_ store: LocalStore) {
    do {
      try store.removeFormerArchive()
    } catch {
      environment.logger.notice("\(verb): the former file with older conflicts stays: \(error)")
    }
  }

  /// Compares the tables that a program has made again in the store that is to be replaced. If they were
  /// sealed before that, all their rows would count as edited.
  private func compareRemade(joining file: GenerationFile, _ files: SharedFiles) throws {
    do {
      guard FileManager.default.fileExists(atPath: path), try LocalStore.isUnderSync(at: path)
      else { return }
      let store = try LocalStore.open(at: path, options: environment.storeOptions)
      do {
        if store.binding.root == file.root, store.binding.document == file.document {
          let steps = RemakeSteps(session: SyncSession(files: files, store: store))
          if store.binding.generation != file.generation,
            case .successor(let successor) = try DocumentSteps(files).lineage(of: store.binding)
          {
            try steps.run(before: successor)
          } else {
            try steps.run()
          }
        }
      } catch {
        try store.close()
        throw error
      }
      try store.close()
    } catch let error as StoreError where FormerStore.isOfTheStore(error.code) {
      // What is wrong with the store is reported when it is examined.
      environment.logger.notice("\(path): \(error)")
    } catch let error as DecodingError {
      environment.logger.notice("\(path): \(error)")
    }
  }

  /// How often a program may edit a store while it is examined.
  private static let attempts = 5

  /// Returns what the store at the path has not sent, if it is one that is to be
  /// replaced, and the replacement of the database there, if there is one. The
  /// replacement notices if a program writes to the database from now on.
  private func former(
    _ binding: StoreBinding, _ vector: VersionVector, _ files: SharedFiles
  ) throws -> (FormerStore?, DatabaseReplacement?) {
    guard existing != .refuse, FileManager.default.fileExists(atPath: path) else {
      return (nil, nil)
    }
    for _ in 0..<Self.attempts {
      let former =
        existing == .replaceKeepingBackup
        ? try FormerStore(at: path, replacedBy: binding, with: vector, files) : nil
      let replacement = try DatabaseReplacement(
        databaseAt: path, options: environment.storeOptions)
      let isRead = former.map { $0.replaced.unreadable == nil } ?? false
      guard isRead, let replacement, replacement.hasUnsealedEdits else {
        return (former, replacement)
      }
      try replacement.close()
    }
    throw SyncError(
      .storeBusy, operation: verb, path: path,
      message: "Other programs keep writing to the database.",
      remedy: "Close the programs that use it, then try again.")
  }

  /// Completes the new store, and closes it.
  private func finish(
    _ adopted: LocalStore, _ checked: WholeStoreFile.Checked, _ former: FormerStore?,
    _ steps: WholeStoreSteps
  ) throws {
    do {
      try former?.putBackLost(steps.files)
      try former?.hand(on: adopted)
      try steps.note(checked, in: adopted)
      try StoreRecords(adopted).noteAuthor(of: checked.header)
      try StoreRecords(adopted).noteSetUp()
    } catch {
      try adopted.close()
      throw error
    }
    try adopted.close()
    guard !FileManager.default.fileExists(atPath: adopted.path + "-wal") else {
      throw SyncError(
        .storeFailed, operation: verb, path: adopted.path,
        message: "The new store could not be closed.",
        remedy: "Make sure that no other program opens it, then try again.")
    }
  }

  private func adopt(
    _ database: String, _ binding: StoreBinding, _ files: SharedFiles
  ) throws -> (LocalStore, MergedRows?) {
    let options = environment.storeOptions
    guard case .merge(let prefer) = existing, FileManager.default.fileExists(atPath: path) else {
      return (
        try LocalStore.adopt(
          snapshotAt: database, binding: binding, options: options,
          checkCancellation: checkCancellation), nil
      )
    }
    let context = OperationContext(self)
    let (store, merged) = try LocalStore.adopt(
      snapshotAt: database, mergingDatabaseAt: path, prefer: prefer, binding: binding,
      options: options, checkCancellation: checkCancellation, onProgress: context.count(_:of:)
    ) { [environment] store in
      let turns = SyncTurns(environment: environment)
      try SyncPass(
        session: SyncSession(files: files, store: store), turns: turns, allowsDeletions: true
      ).catchUp()
      context.begin(.applying)
    }
    return (store, merged)
  }
}
