import Foundation
import GRDB
import SyncModel
import Synchronization

/// A store that is open: its connection, its binding and configuration as they are now, and its
/// transactions.
final class OpenStore: Sendable {
  let connection: StoreConnection
  let options: StoreOptions
  private let committedSchema: CommittedSchema
  /// The headers of the change sets that wait.
  let waitingItems = WaitingItems()
  private let schema: PresentSchema
  private let state: Mutex<State>

  private struct State {
    var binding: StoreBinding
    var configuration: StoreConfiguration
    /// The functions for policies, by name.
    var resolvers: [String: ConflictResolver] = [:]
    /// The function for all other names.
    var resolver: NamedConflictResolver?
    var changeObserver: RowChangeObserver?
    /// SQLite's number of the commits of other connections when the binding was last read.
    var dataVersion: Int?
    /// The binding and the configuration as they were in the store then.
    var identity: [DatabaseValue] = []
  }

  init(
    connection: StoreConnection, options: StoreOptions, binding: StoreBinding,
    configuration: StoreConfiguration
  ) {
    self.connection = connection
    self.options = options
    committedSchema = CommittedSchema(connection.path)
    schema = PresentSchema(connection, pause: options.schemaPause)
    state = Mutex(State(binding: binding, configuration: configuration))
  }

  var path: String { connection.path }

  var binding: StoreBinding { state.withLock { $0.binding } }

  var configuration: StoreConfiguration { state.withLock { $0.configuration } }

  /// Changes the binding, durably.
  func changeBinding(_ change: (inout StoreBinding) -> Void) throws {
    let after = try write { session in
      // Another process may have changed it since it was last read.
      let before = binding
      var after = before
      change(&after)
      if after != before {
        try MetaTable.write(.binding, to: Array(JSONEncoder().encode(after)), session.database)
      }
      return after
    }
    adopt(after)
  }

  /// Adopts a binding that was written to the store.
  func adopt(_ binding: StoreBinding) {
    state.withLock { ($0.binding, $0.identity) = (binding, []) }
  }

  /// Reads the binding and the configuration again, unless the store is sure to be the same. Changes
  /// nothing else, whatever the application has done to the schema.
  func renewIdentity(_ database: Database) throws {
    // Another process may have made the store another client since, or moved it to another document.
    let version = try Int.fetchOne(database.cachedStatement(sql: "PRAGMA main.data_version"))
    let isRead = state.withLock { $0.dataVersion == version }
    let hasSchema = try schema.isUnchanged(database)
    guard !isRead || !hasSchema else { return }
    // Most commits are edits of the application. With the same schema the table is there.
    let stored =
      hasSchema
      ? try DatabaseValue.fetchAll(database.cachedStatement(sql: MetaTable.identity)) : []
    let isSame = state.withLock { state in
      guard hasSchema, state.identity == stored else { return false }
      state.dataVersion = version
      return true
    }
    if isSame { return }
    guard try Bookkeeping.exists(in: database) else { throw StoreError(notUnderSync: path) }
    let (binding, configuration) = try StoreIdentity.read(database, path)
    if binding != self.binding || configuration != self.configuration {
      setIdentity(binding, configuration)
    }
    state.withLock { ($0.identity, $0.dataVersion) = (stored, version) }
  }

  /// Adopts the binding and the configuration that another transaction wrote.
  func setIdentity(_ binding: StoreBinding, _ configuration: StoreConfiguration) {
    state.withLock {
      ($0.binding, $0.configuration, $0.identity) = (binding, configuration, [])
    }
    schema.forget()
  }

  /// Registers a function for the policy `resolve:NAME`; `nil` removes it.
  func setResolver(_ name: String, _ resolver: ConflictResolver?) {
    state.withLock { $0.resolvers[name] = resolver }
  }

  /// Registers a function for the policies `resolve:NAME` that have no function of their own.
  func setResolver(_ resolver: NamedConflictResolver?) {
    state.withLock { $0.resolver = resolver }
  }

  /// Sets the observer of changed rows; `nil` removes it.
  func setChangeObserver(_ observer: RowChangeObserver?) {
    state.withLock { $0.changeObserver = observer }
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
  ///
  /// - Parameter isStoppedToo: Whether to run `body` also if a table that was synchronized cannot be
  ///   at present, with the other tables. Otherwise the error says so.
  func write<Result>(
    isStoppedToo: Bool = false, _ body: (StoreSession) throws -> Result
  ) throws -> Result {
    while true {
      try awaitSettledSchema()
      do {
        return try writeOnce(isStoppedToo: isStoppedToo, body)
      } catch is PresentSchema.Unsettled {
        // A program has changed tables meanwhile.
        continue
      }
    }
  }

  /// Waits, without a lock, until programs are done with changes of tables
  /// (``StoreOptions/schemaPause``).
  private func awaitSettledSchema() throws {
    guard options.schemaPause > .zero, try !connection.use(schema.isUnchanged) else { return }
    while try !connection.use({ database in
      try database.transaction(.deferred, .rollback) {
        try schema.isSettled(database) { try readIdentity(database) }
      }
    }) {
      Thread.sleep(forTimeInterval: options.schemaPause / .seconds(10))
    }
  }

  private func writeOnce<Result>(
    isStoppedToo: Bool, _ body: (StoreSession) throws -> Result
  ) throws -> Result {
    try connection.use { database in
      let observer = state.withLock { $0.changeObserver }
      let log = RowChangeLog(isWanted: observer != nil)
      var changes: RowChanges?
      do {
        let result = try database.transaction(.immediate) {
          try renewIdentity(database)
          let stopped =
            isStoppedToo ? try schema.stopped(database) { try readIdentity(database) } : nil
          let session =
            try stopped.map { try self.session(database, $0, log) } ?? presentSession(database, log)
          try EarlierPlainValues(session: session).settle()
          let result = try body(session)
          try UnreportedWarnings.add(session.conflicts.takeWarnings(), to: session.records)
          try session.conflicts.journal.finish()
          try TransactionEnded.check(database)
          changes = log.changes(hasTriggers: connection.appTriggers.nextNumber > 0)
          if let changes { observer?.willCommit(changes) }
          return result
        }
        // On the connection's own queue, so that the changes come in the order of the commits.
        if let changes { observer?.didCommit(changes) }
        return result
      } catch {
        // The triggers that were made for the schema may have been rolled back.
        schema.forgetTriggers()
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
      schema.forgetTriggers()
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
  /// its schema: then it renews bookkeeping first. If a table that was synchronized cannot be at
  /// present, the session has the other tables only.
  func read<Result>(_ body: (StoreSession) throws -> Result) throws -> Result {
    if let result = try connection.use({ try readIfCurrent($0, body) }) { return result }
    // The schema may change once more, but not for ever.
    try write { _ in }
    return try connection.use { try readIfCurrent($0, body) } ?? write(body)
  }

  /// Runs `body` in a transaction that only reads. Returns `nil`, without running it, if bookkeeping
  /// has to be renewed first.
  func readIfCurrent<Result>(
    _ database: Database, _ body: (StoreSession) throws -> Result
  ) throws -> Result? {
    try database.transaction(.deferred, .rollback) {
      try renewIdentity(database)
      let current =
        try schema.current(database) { try readIdentity(database) }
        ?? schema.stopped(database) { try readIdentity(database) }
      return try current.map { try body(session(database, $0)) }
    }
  }

  // MARK: - The last committed state

  /// Runs `body` on the last committed state: if a transaction runs on the connection of the store,
  /// on another connection, which only reads.
  ///
  /// Waits for that transaction only if
  /// - bookkeeping has to be renewed first, since the application changed its schema,
  /// - the store is in rollback mode and the transaction is writing to the file (``StoreReaders``),
  /// - the store is in rollback mode and `isLong`,
  /// - anything else keeps the other connection from answering, such as an error: `body` may then run
  ///   twice, and what the connection of the store answers counts.
  ///
  /// - Parameter isLong: Whether `body` reads many rows. In rollback mode it would keep the
  ///   transaction from committing.
  func readCommitted<Result>(
    isLong: Bool = false, _ body: (StoreSession) throws -> Result
  ) throws -> Result {
    if !isLong, let answer = try connection.useIfFree({ try readIfCurrent($0, body) }) {
      return try answer ?? read(body)
    }
    let answer: Result?? = connection.readers.use { database in
      try database.transaction(.deferred, .rollback) {
        let (binding, configuration) = try StoreIdentity.read(database, path)
        if isLong, try String.fetchOne(database, sql: "PRAGMA main.journal_mode") != "wal" {
          return nil
        }
        guard let schema = try committedSchema.read(database, configuration) else { return nil }
        return try body(
          session(
            database, schema, client: binding.client, AppTriggerRuns(), isContinuing: false,
            needsWholeArchive: true))
      }
    }
    return try (answer ?? nil) ?? read(body)
  }

  /// Does the same as ``readCommitted(isLong:_:)`` where the schema does not matter.
  func useCommitted<Result>(_ body: (Database) throws -> Result) throws -> Result {
    try connection.useIfFree(body) ?? connection.readers.use(body) ?? connection.use(body)
  }

  /// Closes all connections.
  func close() throws { try StoreError.mapping(path) { try connection.close() } }

  // MARK: - Sessions

  /// Returns a session on the present schema, within the transaction of another session. The caller
  /// cannot use the other session any more.
  func renewedSession(
    _ database: Database, continuing session: StoreSession
  ) throws -> StoreSession {
    schema.forget()
    return try presentSession(database, session.changes, isContinuing: true)
  }

  /// Returns a session on the present schema. If the application changed the schema, brings the rows
  /// in line with it, and seals earlier edits for this, as a change set of their own.
  ///
  /// - Parameter isContinuing: Whether the transaction has had another session before.
  private func presentSession(
    _ database: Database, _ log: RowChangeLog, isContinuing: Bool = false
  ) throws -> StoreSession {
    let renewed = try schema.renewed(database, isOwnChange: isContinuing) {
      try readIdentity(database)
    }
    let session = try session(database, renewed.schema, log, isContinuing: isContinuing)
    guard let concerned = renewed.concerned else { return session }
    // Questions about tables and columns that are gone are settled.
    session.conflicts.journal.mayHaveClosed = true
    let arrival = SchemaArrival(session: session)
    try arrival.begin(concerned)
    try seal(
      session, comparesRemade: false, lackingDeletedCells: concerned.lackingDeletedCells,
      checkCancellation: {})
    try RequiredCells(session).fill(binding, options)
    let unseen = try UnseenCells(session, concerned, arrival)
    try arrival.bringIn()
    try arrival.settle()
    try unseen.finish()
    return session
  }

  private func session(
    _ database: Database, _ schema: StoreSchema, _ log: RowChangeLog = RowChangeLog(),
    isContinuing: Bool = false
  ) throws -> StoreSession {
    try session(
      database, schema, client: binding.client, connection.appTriggers, log,
      isContinuing: isContinuing)
  }

  private func session(
    _ database: Database, _ schema: StoreSchema, client: ClientIdentifier,
    _ appTriggers: AppTriggerRuns, _ log: RowChangeLog = RowChangeLog(), isContinuing: Bool,
    needsWholeArchive: Bool = false
  ) throws -> StoreSession {
    try StoreSession(
      database: database, schema: schema, client: client, now: options.now(),
      appTriggers: appTriggers, changes: log,
      settings: StoreSession.Settings(
        stampBlockBytes: options.stampBlockBytes,
        journal: ConflictJournal.Bound(
          entries: options.conflictEntries, bytes: options.conflictBytes),
        archive: ConflictArchive(
          store: path, bound: options.conflictArchiveBytes, isContinuing: isContinuing,
          mustBeWhole: needsWholeArchive, onStep: options.onArchiveStep),
        resolvers: state.withLock { PolicyCache.Resolvers(named: $0.resolvers, other: $0.resolver) }
      ))
  }

  /// Reads the binding and the configuration: whenever the schema may have changed, another process
  /// may have changed these too. Returns the configuration.
  private func readIdentity(_ database: Database) throws -> StoreConfiguration {
    if let binding = try MetaTable.value(.binding, as: StoreBinding.self, database),
      let configuration = try MetaTable.value(
        .configuration, as: StoreConfiguration.self, database)
    {
      state.withLock { ($0.binding, $0.configuration) = (binding, configuration) }
    }
    return configuration
  }

  /// Makes the next transaction read the schema again, including what depends on policies.
  func forgetSchema() { schema.forget() }
}
