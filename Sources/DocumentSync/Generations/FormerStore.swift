import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// A store under sync that a new one replaces, and the changes that the new one
/// continues with.
struct FormerStore {
  /// Its description for the report.
  var replaced: ReplacedStore
  /// The change sets that it had not sent, in order.
  private var unsent: [[UInt8]] = []
  /// The change sets that it had sent and that the directory has lost.
  private var lost = LostChangeSets()
  /// Its clients, whose files may contain changes that no device has.
  private var ancestors = StoreRecords.Ancestors()
  /// The clients whose stores no longer exist.
  private var gone: [ClientIdentifier] = []
  /// Its former generations, if the new store is in the same one.
  private var formerGenerations: [StoreRecords.FormerGeneration] = []
  /// The generations that it has left, and its files there.
  private var lives: [StoreRecords.FormerLife] = []
  /// The application's commands that it had not sent.
  private var commands: [[UInt8]] = []
  /// The commands of others that the application has not acknowledged.
  private var events: [CommandEvent] = []

  /// Examines the file at `path`, and seals its edits. Returns `nil` if it is
  /// not under sync.
  ///
  /// If the file cannot be read at all, it is replaced all the same, and
  /// ``replaced`` contains the reason. Throws errors that may pass, such as
  /// `storeBusy`, and `newerVersionNeeded`.
  ///
  /// - Parameters:
  ///   - binding: The binding of the new store.
  ///   - vector: The change sets that the new store begins with.
  init?(
    at path: String, replacedBy binding: StoreBinding, with vector: VersionVector,
    _ files: SharedFiles
  ) throws {
    let context = files.context
    do {
      guard FileManager.default.fileExists(atPath: path),
        try LocalStore.isUnderSync(at: path)
      else { return nil }
      let store = try LocalStore.open(at: path, options: context.environment.storeOptions)
      do {
        replaced = ReplacedStore(
          client: store.binding.client, document: store.binding.documentIdentifier,
          directory: store.binding.directory,
          isSameDocument: store.binding.root == binding.root
            && store.binding.document == binding.document)
        try read(store, files)
        if store.binding.generation == binding.generation {
          formerGenerations = try StoreRecords(store).formerGenerations()
        }
        if replaced.isSameDocument, store.binding.generation == binding.generation {
          do {
            try compare(store, with: files, binding, vector)
          } catch let error as StoreError where Self.isOfTheStore(error.code) {
            // What it had not sent is known, and goes on.
            context.environment.logger.notice("\(path): \(error)")
          }
        }
      } catch {
        try store.close()
        throw error
      }
      try store.close()
    } catch let error as StoreError where Self.isOfTheStore(error.code) {
      // A file that is no database was never under sync, as far as this shows.
      guard error.code != .notADatabase else { return nil }
      context.environment.logger.notice("\(path): \(error)")
      replaced = ReplacedStore(unreadable: error.message)
    } catch let error as DecodingError {
      context.environment.logger.notice("\(path): \(error)")
      replaced = ReplacedStore(unreadable: "Its bookkeeping is damaged.")
    }
  }

  /// Returns whether an error shows that a store cannot be read, so that it is replaced all the same.
  static func isOfTheStore(_ code: StoreError.Code) -> Bool {
    ![.busy, .newerFormat, .notWritable, .noSpace].contains(code)
  }

  private mutating func read(_ store: LocalStore, _ files: SharedFiles) throws {
    let (records, context) = (StoreRecords(store), files.context)
    unsent = try store.unsentChangeSets(checkCancellation: context.checkCancellation)
    replaced.unsentChangeSets = unsent.count
    replaced.heldEdits = try store.heldEdits().count
    ancestors = try records.ancestors()
    ancestors.clients.removeAll { $0 == store.binding.client }
    ancestors.clients.append(store.binding.client)
    ancestors.lookedThrough = []
    lives = try records.formerLives()
    let layout = DirectoryLayout.Document(store.binding.document)
      .generation(store.binding.generation)
    // An interrupted synchronization may have sent some without noting it.
    let sent = Set(
      try files.listIfPresent(
        layout.syncCommands(of: store.binding.client), as: CommandName.self
      ).map(\.number))
    commands = try store.queuedCommands()
      .filter { !$0.isPublished && !($0.sealed.map { sent.contains($0.number) } ?? false) }
      .map(\.content).filter(CommandSteps.isForEveryGeneration)
    events = try store.pendingEvents()
    let incarnations = try store.unannouncedIncarnations()
    gone =
      try records.replaced() + incarnations.filter(\.isAncestorGone).map(\.ancestor)
      + [store.binding.client]
  }

  /// Compares what it had sent with what the directory has.
  private mutating func compare(
    _ store: LocalStore, with files: SharedFiles, _ binding: StoreBinding, _ vector: VersionVector
  ) throws {
    lost = try LostChangeSets(of: store, replacedBy: binding, with: vector, files)
    unsent = lost.returning + unsent
    replaced.restoredChangeSets = lost.restoredCount
    replaced.missingChangeSets = lost.missing
  }

  /// Publishes its change sets again that the directory has lost.
  func putBackLost(_ files: SharedFiles) throws {
    guard let client = replaced.client else { return }
    try lost.putBack(by: client, files)
  }

  /// Passes what only the former store knows on to a new store of the same
  /// document: its first synchronization sends the change sets and the commands,
  /// and retires the client.
  func hand(on store: LocalStore) throws {
    guard replaced.isSameDocument else { return }
    try store.keepReturning(unsent)
    let records = StoreRecords(store)
    try records.keep(ancestors)
    try records.keep(replaced: gone)
    if !formerGenerations.isEmpty { try records.keep(formerGenerations) }
    if !lives.isEmpty { try records.keep(lives) }
    for command in commands { try store.enqueueCommand(command) }
    try store.queueEvents(events)
  }
}
