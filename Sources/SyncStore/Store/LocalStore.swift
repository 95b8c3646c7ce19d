import Foundation
import GRDB
import SyncModel
import Synchronization

/// One database that is under sync: the entry to this module.
///
/// All bookkeeping is in the store itself, in tables whose names begin with `docsync_`, so that it
/// is atomic with the data. Other programs may read and write the file at any time; waiting for
/// them is bounded by ``StoreOptions/busyTimeout``. Methods block, may be called from any thread,
/// and run one at a time. All throw ``StoreError``.
package final class LocalStore: Sendable {
  let connection: StoreConnection
  let options: StoreOptions
  /// The headers of the change sets that wait.
  let waitingItems = WaitingItems()
  private let state: Mutex<State>

  private struct State {
    var binding: StoreBinding
    var configuration: StoreConfiguration
    /// The schema, and the schema version of SQLite for which it was read.
    var schema: (version: Int, schema: StoreSchema)?
    /// The schema version for which the connection's own triggers were made.
    var triggersVersion: Int?
    /// The functions for policies, by name.
    var resolvers: [String: ConflictResolver] = [:]
    /// The function for all other names.
    var resolver: NamedConflictResolver?
  }

  init(
    connection: StoreConnection, options: StoreOptions, binding: StoreBinding,
    configuration: StoreConfiguration
  ) {
    self.connection = connection
    self.options = options
    state = Mutex(State(binding: binding, configuration: configuration, schema: nil))
  }

  /// The path of the store.
  package var path: String { connection.path }

  /// Returns the hash of a change set's file, computed by ``StoreOptions/hash``.
  package func hash(of bytes: [UInt8]) -> ContentHash { options.hash(bytes) }

  /// The document, the client and the directory to which the store is bound.
  package var binding: StoreBinding { state.withLock { $0.binding } }

  /// The choice of what is synchronized.
  package var configuration: StoreConfiguration { state.withLock { $0.configuration } }

  /// Replaces the recorded place of the directory, which is a hint.
  package func setDirectory(_ directory: String) throws {
    try changeBinding { $0.directory = directory }
  }

  private func changeBinding(_ change: (inout StoreBinding) -> Void) throws {
    var after = binding
    change(&after)
    guard after != binding else { return }
    try write { try MetaTable.write(.binding, to: Array(JSONEncoder().encode(after)), $0.database) }
    adopt(after)
  }

  /// Adopts a binding that was written to the store.
  func adopt(_ binding: StoreBinding) { state.withLock { $0.binding = binding } }

  /// Adopts the binding and the configuration that another transaction wrote.
  func setIdentity(_ binding: StoreBinding, _ configuration: StoreConfiguration) {
    state.withLock {
      $0.binding = binding
      $0.configuration = configuration
      $0.schema = nil
    }
  }

  /// Replaces the user's name for this device.
  package func setClientDescription(_ description: String) throws {
    try changeBinding { $0.clientDescription = description }
  }

  /// Registers a function for the policy `resolve:NAME`, for as long as this
  /// object lives; `nil` removes it.
  package func setResolver(_ name: String, _ resolver: ConflictResolver?) {
    state.withLock { $0.resolvers[name] = resolver }
  }

  /// Registers one function for the policies `resolve:NAME` of all names that have no function of
  /// their own.
  package func setResolver(_ resolver: NamedConflictResolver?) {
    state.withLock { $0.resolver = resolver }
  }

  /// Closes the database. Further calls throw.
  package func close() throws {
    try StoreError.mapping(path) { try connection.queue.close() }
  }

  /// The identity of the store, as seen on its connection.
  func identity(_ database: Database) -> StoreIdentity {
    StoreIdentity(database: database, path: path, options: options)
  }

  // MARK: - Transactions

  /// Runs `body` in a transaction that may write. Waits for another program's write, at most for
  /// the busy timeout.
  ///
  /// Stores the warnings that `body` does not report, for the next synchronization
  /// (``UnreportedWarnings``).
  func write<Result>(_ body: (StoreSession) throws -> Result) throws -> Result {
    try connection.use { database in
      do {
        return try database.transaction(.immediate) {
          let renewed = try renewedSchema(database)
          let session = try session(database, renewed.schema)
          if let concerned = renewed.concerned { try arrive(session, concerned) }
          try EarlierPlainValues(session: session).settle()
          let result = try body(session)
          try UnreportedWarnings.add(session.conflicts.takeWarnings(), to: session.records)
          try session.conflicts.journal.finish()
          try TransactionEnded.check(database)
          return result
        }
      } catch {
        // The triggers that were made for the schema may have been rolled back.
        state.withLock { $0.triggersVersion = nil }
        throw error
      }
    }
  }

  /// Runs `body`, which writes. If SQLite ends the transaction during a trigger of the application,
  /// runs it again without that trigger: a damaged full-text index must not keep the document from
  /// being synchronized.
  func passingOverTriggers<Result>(_ body: () throws -> Result) throws -> Result {
    let triggers = connection.appTriggers
    if triggers.endedCount > 0 {
      triggers.forgetEnded()
      state.withLock { $0.triggersVersion = nil }
    }
    while true {
      let count = triggers.endedCount
      do {
        return try body()
      } catch {
        guard triggers.endedCount > count else { throw error }
      }
    }
  }

  /// Runs `body` on a single state of the store, without writing, unless the application changed
  /// its schema: then it renews bookkeeping first.
  func read<Result>(_ body: (StoreSession) throws -> Result) throws -> Result {
    if let result = try readIfCurrent(body) { return result }
    // The schema may change once more, but not for ever.
    try write { _ in }
    return try readIfCurrent(body) ?? write(body)
  }

  private func readIfCurrent<Result>(
    _ body: (StoreSession) throws -> Result
  ) throws -> Result? {
    try connection.use { database in
      try database.transaction(.deferred, .rollback) {
        try currentSchema(database).map { try body(session(database, $0)) }
      }
    }
  }

  /// Returns a session on the present schema, within the transaction of another session. The caller
  /// cannot use the other session any more.
  func renewedSession(_ database: Database) throws -> StoreSession {
    forgetSchema()
    let renewed = try renewedSchema(database)
    let session = try session(database, renewed.schema)
    if let concerned = renewed.concerned { try arrive(session, concerned) }
    return session
  }

  private func session(_ database: Database, _ schema: StoreSchema) throws -> StoreSession {
    try StoreSession(
      database: database, schema: schema, client: binding.client, now: options.now(),
      appTriggers: connection.appTriggers,
      settings: StoreSession.Settings(
        stampBlockBytes: options.stampBlockBytes,
        journal: ConflictJournal.Bound(
          entries: options.conflictEntries, bytes: options.conflictBytes),
        resolvers: state.withLock { PolicyCache.Resolvers(named: $0.resolvers, other: $0.resolver) }
      ))
  }

  private func version(_ database: Database) throws -> Int {
    try Int.fetchOne(database.cachedStatement(sql: "PRAGMA main.schema_version")) ?? 0
  }

  /// Reads the binding and the configuration: whenever the schema may have changed, another process
  /// may have changed these too.
  private func readIdentity(_ database: Database) throws {
    guard let binding = try MetaTable.value(.binding, as: StoreBinding.self, database),
      let configuration = try MetaTable.value(
        .configuration, as: StoreConfiguration.self, database)
    else { return }
    state.withLock { ($0.binding, $0.configuration) = (binding, configuration) }
  }

  private func readSchema(_ database: Database) throws -> StoreSchema {
    try RecordedSchema.read(from: database, configuration: configuration, path: path)
  }

  /// Makes the next transaction read the schema again, including what depends on policies.
  func forgetSchema() { state.withLock { $0.schema = nil } }

  /// Returns the schema as it is now; `nil` if bookkeeping is not in line with it.
  private func currentSchema(_ database: Database) throws -> StoreSchema? {
    let version = try version(database)
    if let known = state.withLock({ $0.schema }), known.version == version { return known.schema }
    try readIdentity(database)
    let schema = try readSchema(database)
    guard try !SchemaRenewal(schema: schema, path: path).isNeeded(database) else { return nil }
    state.withLock { $0.schema = (version, schema) }
    return schema
  }

  /// Returns the schema as it is now. If the application changed it, registers tables and columns
  /// and renews the triggers; `concerned` then names the tables for which earlier edits matter.
  private func renewedSchema(
    _ database: Database
  ) throws -> (schema: StoreSchema, concerned: SchemaRenewal.Concerned?) {
    let current = try currentSchema(database)
    var concerned: SchemaRenewal.Concerned?
    if current == nil {
      concerned = try SchemaRenewal(schema: try readSchema(database), path: path).run(database)
    }
    let renewed = try current ?? readSchema(database)
    let version = try version(database)
    if state.withLock({ $0.triggersVersion }) != version {
      try connection.copyTriggers(for: renewed, database)
      state.withLock { $0.triggersVersion = version }
    }
    return (renewed, concerned)
  }

  /// Brings the rows in line with a changed schema. Seals earlier edits for this, as a change set
  /// of their own.
  private func arrive(_ session: StoreSession, _ concerned: SchemaRenewal.Concerned) throws {
    let arrival = SchemaArrival(session: session)
    try arrival.forgetClaims()
    // Edits that triggers have seen are sealed; the others have to be found.
    try session.noteRemade(concerned.remade)
    let unseen = UnseenRows(session: session)
    for table in concerned.remade { try unseen.name(in: table) }
    for table in try session.tablesToCompare() { try session.findUnseenRows(of: table) }
    try seal(
      session, comparesRemade: false, lackingDeletedCells: concerned.lackingDeletedCells,
      checkCancellation: {})
    try arrival.bringIn()
    try arrival.settle()
  }
}
