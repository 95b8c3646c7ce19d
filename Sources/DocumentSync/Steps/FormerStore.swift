import Foundation
import SyncModel
import SyncStore

/// A store under sync that stands where another is to be, and what of it has
/// to go on in that one.
struct FormerStore {
  /// What is told of it.
  var replaced: ReplacedStore
  /// What it had not sent, in order.
  private var unsent: [[UInt8]] = []
  /// Clients that it was, whose files may hold what nobody has.
  private var ancestors = StoreRecords.Ancestors()
  /// Clients of which nobody is a store any more.
  private var gone: [ClientIdentifier] = []

  /// Looks at the file at `path`, and seals its edits. Gives `nil` if it is
  /// not under sync.
  ///
  /// One that cannot be read any more says why: it is what is replaced. Thrown
  /// is what may pass, such as `storeBusy`, and `newerVersionNeeded`.
  ///
  /// - Parameter binding: What the new one is bound to.
  init?(at path: String, replacedBy binding: StoreBinding, _ context: OperationContext) throws {
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
        try read(store, context)
      } catch {
        try store.close()
        throw error
      }
      try store.close()
    } catch let error as StoreError where Self.isOfTheStore(error.code) {
      // What is no database was never under sync, as far as can be seen.
      guard error.code != .notADatabase else { return nil }
      context.environment.logger.notice("\(path): \(error)")
      replaced = ReplacedStore(unreadable: error.message)
    } catch let error as DecodingError {
      context.environment.logger.notice("\(path): \(error)")
      replaced = ReplacedStore(unreadable: "What it remembers of its syncing is damaged.")
    }
  }

  private static func isOfTheStore(_ code: StoreError.Code) -> Bool {
    ![.busy, .newerFormat, .notWritable, .noSpace].contains(code)
  }

  private mutating func read(_ store: LocalStore, _ context: OperationContext) throws {
    let records = StoreRecords(store)
    unsent = try store.unsentChangeSets(checkCancellation: context.checkCancellation)
    replaced.unsentChangeSets = unsent.count
    ancestors = try records.ancestors()
    ancestors.clients.removeAll { $0 == store.binding.client }
    ancestors.clients.append(store.binding.client)
    ancestors.lookedThrough = []
    let incarnations = try store.unannouncedIncarnations()
    gone =
      try records.replaced() + incarnations.filter(\.isAncestorGone).map(\.ancestor)
      + [store.binding.client]
  }

  /// Gives a new store of the same document what goes on in it: its first
  /// synchronization sends what was not sent, and retires the client.
  func hand(on store: LocalStore) throws {
    guard replaced.isSameDocument else { return }
    try store.keepReturning(unsent)
    let records = StoreRecords(store)
    try records.keep(ancestors)
    try records.keep(replaced: gone)
  }
}
