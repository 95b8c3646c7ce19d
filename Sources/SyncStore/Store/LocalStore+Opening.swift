import GRDB
import SyncModel

/// Putting a database under sync, opening it, and taking it out of sync.
extension LocalStore {
  /// Returns whether the database at `path` is under sync.
  ///
  /// Throws `missing` or `notADatabase`, and `damaged` if the bookkeeping exists without the table
  /// by which it is known.
  package static func isUnderSync(at path: String) throws -> Bool {
    try DatabaseQueue.reading(path, busyTimeout: StoreOptions().busyTimeout) {
      try Bookkeeping.exists(in: $0)
    }
  }

  /// Reads what the store at `path` is bound to, and one of its records, without opening the store:
  /// nothing is checked or changed.
  package static func look(
    at path: String, record key: String
  ) throws -> (binding: StoreBinding, configuration: StoreConfiguration, record: [UInt8]?) {
    try DatabaseQueue.reading(path, busyTimeout: StoreOptions().busyTimeout) {
      let stored = try StoreIdentity.read($0, path)
      return (stored.binding, stored.configuration, try DeviceRecords(database: $0).read(key))
    }
  }

  /// Returns what ``create(at:binding:configuration:options:)`` would do, without writing: the
  /// tables with their identities, and the tables that are left out, with the reasons. Throws the
  /// same errors.
  ///
  /// - Parameter ignoresBookkeeping: Whether to look at a database that is under sync as if it were
  ///   not.
  package static func plan(
    at path: String, configuration: StoreConfiguration, ignoresBookkeeping: Bool = false
  ) throws -> StorePlan {
    try DatabaseQueue.reading(path, busyTimeout: StoreOptions().busyTimeout) {
      try StoreSetUp(
        database: $0, path: path, configuration: configuration,
        ignoresBookkeeping: ignoresBookkeeping
      ).plan()
    }
  }

  /// Puts the database at `path` under sync: writes the bookkeeping tables and the capture triggers
  /// in one transaction. Rows that exist already are the document's beginning and are not sent as
  /// changes.
  ///
  /// Throws and changes nothing if the store is under sync, is not a database, or has a schema that
  /// cannot be synchronized.
  package static func create(
    at path: String, binding: StoreBinding, configuration: StoreConfiguration,
    options: StoreOptions = StoreOptions()
  ) throws -> LocalStore {
    LocalStore(try StoreSetUp.run(at: path, binding, configuration, options))
  }

  /// Opens a store that is under sync. Renews the triggers if the application changed its schema.
  package static func open(at path: String, options: StoreOptions = StoreOptions()) throws
    -> LocalStore
  {
    LocalStore(try StoreOpening(path: path, options: options).run())
  }

  /// Takes the database out of sync, in one transaction: removes the capture
  /// triggers and all bookkeeping, and leaves the rest as it is. Only
  /// ``close()`` may be called afterwards.
  ///
  /// - Parameter check: Called with what will be lost, in the same transaction. If it throws,
  ///   nothing is changed and the error is passed on.
  package func removeBookkeeping(_ check: (RemovalLoss) throws -> Void) throws {
    let marks = try store.write(isStoppedToo: true) { session in
      try check(RemovalLoss(session))
      let marks = try session.conflicts.journal.archiveMarks()
      try Bookkeeping.remove(session.database)
      return marks
    }
    try options.forgetTokens(of: binding.client)
    try ConflictArchive.remove(beside: path, of: marks)
  }

  /// Does the same as ``removeBookkeeping(_:)``, but changes nothing and returns `false` if there
  /// are rows or change sets that only bookkeeping holds.
  package func removeBookkeeping() throws -> Bool {
    struct Refusal: Error {}
    do {
      try removeBookkeeping { loss in
        if loss.holdsRows { throw Refusal() }
      }
      return true
    } catch is Refusal {
      return false
    }
  }

  /// Takes the database at `path` out of sync, in one transaction, even if its bookkeeping is
  /// damaged: does the same as ``removeBookkeeping(_:)`` without reading any of it.
  package static func removeBookkeeping(
    at path: String, of client: ClientIdentifier?, options: StoreOptions = StoreOptions()
  ) throws {
    try StoreError.checkFile(path)
    try StoreError.mapping(path) {
      let connection = try StoreConnection(
        path: path, busyTimeout: options.busyTimeout, onStatement: options.onStatement)
      try connection.queue.closing {
        try connection.use { database in
          try database.transaction(.immediate) { try Bookkeeping.remove(database) }
        }
      }
    }
    if let client { try options.forgetTokens(of: client) }
    try ConflictArchive.remove(beside: path, of: nil)
  }

  /// Checks the store at `path` against every rule, and changes nothing in it or beside it.
  ///
  /// The result contains the findings. Throws only if the store cannot be examined: `missing`,
  /// `notADatabase`, `notReadable`, `notUnderSync`, `busy`. In rollback journal mode other programs
  /// cannot commit meanwhile.
  ///
  /// - Parameters:
  ///   - findsReferences: Whether to look for columns that seem to be references and are not
  ///     declared.
  ///   - checkCancellation: Called often; its errors are thrown.
  ///   - onProgress: Called with the number of steps that are done, and the number of all steps.
  package static func verify(
    at path: String, options: StoreOptions = StoreOptions(), findsReferences: Bool = false,
    checkCancellation: @escaping () throws -> Void = {},
    onProgress: @escaping (Int, Int) -> Void = { _, _ in }
  ) throws -> StoreVerification {
    try StoreVerifier.verify(
      path, options, findsReferences: findsReferences, checkCancellation, onProgress)
  }
}
