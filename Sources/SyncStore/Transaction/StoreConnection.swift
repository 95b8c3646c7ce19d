import CSQLite
import Foundation
import GRDB
import SyncModel
import Synchronization

/// The connection of a local store, set up so that only the statements of bookkeeping take effect.
///
/// A commit is durable on return. In rollback mode, this takes a flush of the folder once the
/// journal is gone (`EXTRA`). Other devices are told of the commit: if the journal came back, it
/// would undo what they have, and the store would be an older state of itself.
///
/// Foreign keys are off: their actions arrive as changes. The triggers of the database do not
/// fire, neither the capture triggers nor the app's. The parts of the app's triggers that have to
/// run are copied to temporary triggers (``AppTrigger``), which SQLite fires nevertheless.
///
/// <https://www.sqlite.org/c3ref/c_dbconfig_defensive.html>, under
/// `SQLITE_DBCONFIG_ENABLE_TRIGGER`
final class StoreConnection: Sendable {
  let path: String
  let queue: DatabaseQueue
  /// The connections that only read the same file.
  let readers: StoreReaders
  let appTriggers = AppTriggerRuns()
  private let wait: LockWait
  /// The number of calls of ``use(_:)`` and ``useIfFree(_:)`` that run or wait.
  private let users = Atomic(0)

  /// The schema is trusted, also that of a store that was downloaded and not checked yet.
  /// Otherwise SQLite 3.40 and older refuse every row of a table with JSON functions in a CHECK,
  /// an index or a generated column, and `quick_check` with them, since they count these functions
  /// as unsafe (`pragma_function_list`). No view is read and no trigger fires here, so only
  /// deterministic functions are called.
  ///
  /// - Parameters:
  ///   - busyTimeout: How long to wait for other programs, in seconds.
  ///   - onStatement: Called with every statement that runs, its values included.
  init(
    path: String, busyTimeout: Double, onStatement: (@Sendable (String) -> Void)? = nil
  ) throws {
    self.path = path
    readers = StoreReaders(path, onStatement: onStatement)
    let wait = LockWait(busyTimeout, readers: readers)
    self.wait = wait
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    configuration.busyMode = .callback { wait.isWorthAnotherTry(after: $0) }
    configuration.label = "docsync"
    configuration.prepareDatabase { [appTriggers] database in
      appTriggers.addFunction(to: database)
      try database.execute(
        sql: "PRAGMA synchronous = EXTRA; PRAGMA ignore_check_constraints = OFF")
      try Self.prepare(database, onStatement)
    }
    queue = try DatabaseQueue(path: path, configuration: configuration)
  }

  /// A connection that only reads cannot remove the files beside the database, so it must not be the
  /// last one.
  deinit { readers.letGo() }

  /// Sets up a connection, one that only reads included, so that no trigger of the database fires and
  /// the schema is trusted.
  static func prepare(
    _ database: Database, _ onStatement: (@Sendable (String) -> Void)?
  ) throws {
    try database.execute(sql: "PRAGMA trusted_schema = ON; PRAGMA recursive_triggers = OFF")
    if let connection = database.sqliteConnection {
      csqlite_set_triggers_enabled(connection, 0)
    }
    guard let onStatement else { return }
    database.trace(options: .statement) { event in
      if case .statement(let statement) = event { onStatement(statement.expandedSQL) }
    }
  }

  /// Runs `body` outside of a transaction. Throws ``StoreError``.
  func use<Result>(_ body: (Database) throws -> Result) throws -> Result {
    users.add(1, ordering: .relaxed)
    defer { users.subtract(1, ordering: .relaxed) }
    return try StoreError.mapping(path) { try queue.writeWithoutTransaction(body) }
  }

  /// Does the same as ``use(_:)``, unless another call runs or waits: then it returns `nil` at once.
  func useIfFree<Result>(_ body: (Database) throws -> Result) throws -> Result? {
    let (isFree, _) = users.compareExchange(expected: 0, desired: 1, ordering: .relaxed)
    guard isFree else { return nil }
    defer { users.subtract(1, ordering: .relaxed) }
    return try StoreError.mapping(path) { try queue.writeWithoutTransaction(body) }
  }

  /// Brings the write-ahead log into the database file and empties it, unless another program reads or
  /// writes at the moment; waits for none. Does nothing in other journal modes.
  ///
  /// While this connection is open, no other one does so when it is closed. The file alone would be an
  /// older state for long, and SQLite would play the log into a backup that is put in its place.
  ///
  /// <https://www.sqlite.org/wal.html#ckpt>
  func checkpoint() throws {
    try use { database in
      // SQLite would begin an empty log again as well, and every connection would drop its pages. If
      // another file is in the place, the log may be that file's.
      guard let connection = database.sqliteConnection, readers.isFileInPlace, readers.hasLog
      else { return }
      // Writers can go on during the first step, and the second has nothing left to write.
      guard try checkpoint(connection, SQLITE_CHECKPOINT_PASSIVE) else { return }
      _ = try checkpoint(connection, SQLITE_CHECKPOINT_TRUNCATE)
    }
  }

  /// Returns whether the file has the whole log.
  private func checkpoint(_ connection: OpaquePointer, _ mode: Int32) throws -> Bool {
    var (frames, done) = (Int32(0), Int32(0))
    let code = wait.refusing {
      sqlite3_wal_checkpoint_v2(connection, "main", mode, &frames, &done)
    }
    // The kind of the error is in the lower byte.
    switch code & 0xFF {
    case SQLITE_OK: return frames == done
    case SQLITE_BUSY, SQLITE_LOCKED: return false
    default:
      throw DatabaseError(
        resultCode: ResultCode(rawValue: code), message: "The log cannot be emptied.")
    }
  }

  /// Closes this connection and those that only read, this one last: then SQLite removes the files
  /// beside the database. Throws the first error, after all were closed.
  func close() throws {
    let reading = Result { try readers.close() }
    try queue.close()
    try reading.get()
  }

  /// Runs `body` while another database is attached.
  func attaching<Result>(
    _ other: String, as name: String, _ body: () throws -> Result
  ) throws -> Result {
    try use { try $0.execute(sql: "ATTACH DATABASE ? AS \(name)", arguments: [other]) }
    let result: Result
    do {
      result = try body()
    } catch {
      try use { try $0.execute(sql: "DETACH DATABASE \(name)") }
      throw error
    }
    try use { try $0.execute(sql: "DETACH DATABASE \(name)") }
    return result
  }

  /// Makes the temporary triggers for a schema, in place of earlier ones. They
  /// are gone if the transaction is rolled back.
  func copyTriggers(for schema: StoreSchema, _ database: Database) throws {
    let copies = try SQLName.fetchAll(
      database,
      sql: "SELECT name FROM temp.sqlite_schema WHERE type = 'trigger' AND name GLOB 'docsync_*'")
    for name in copies { try database.execute(sql: "DROP TRIGGER temp.\(quoted(name))") }
    let tables = try SQLName.fetchSet(
      database, sql: "SELECT lower(name) FROM main.sqlite_schema WHERE type = 'table'")
    let rollingBack = Set(
      try String.fetchAll(
        database,
        sql: "SELECT name FROM main.sqlite_schema WHERE type = 'table' "
          + "AND (sql LIKE '%rollback%' OR sql LIKE '%fail%')"
      ).map { SQLName($0).folded })
    let triggers = try String.fetchAll(
      database,
      sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger' "
        + "AND name NOT LIKE 'docsync~_%' ESCAPE '~' ORDER BY rowid")
    appTriggers.removeAll()
    var count = 0
    for trigger in triggers.compactMap(AppTrigger.init) {
      guard tables.contains(trigger.tableName.folded) else { continue }
      let original = AppTriggerRuns.Trigger(name: trigger.triggerName, table: trigger.tableName)
      if let failure = appTriggers.ending(of: original) {
        appTriggers.addUnusable(failure)
        continue
      }
      let name: SQLName = "docsync_run_\(count)"
      let copy = trigger.temporary(
        named: name, condition: "\(AppTriggerRuns.function)(\(appTriggers.nextNumber))",
        endsTransaction: { rollingBack.contains($0.folded) }
      ) { table in
        tables.contains(table.folded) && schema.table(named: table) == nil
      }
      guard let copy else { continue }
      try database.execute(sql: copy)
      count += 1
      do {
        _ = try SQLStatement("EXPLAIN " + trigger.firingStatement(database), on: database)
        appTriggers.add(original)
      } catch let error as DatabaseError {
        try database.execute(sql: "DROP TRIGGER temp.\(quoted(name))")
        appTriggers.addUnusable(
          AppTriggerRuns.Failure(trigger: original, message: error.message ?? "\(error)"))
      }
    }
  }
}
