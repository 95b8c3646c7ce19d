import CSQLite

/// A call of SQLite that failed.
struct SQLiteFailure: Error, CustomStringConvertible {
  var code: Int32
  var message: String
  var operation: String

  var description: String { "\(operation): \(message) (\(code))" }
}

/// A connection as a program has it that knows nothing of synchronization.
final class Database {
  let handle: OpaquePointer
  let path: String

  /// Opens or creates the file in WAL mode with `synchronous=NORMAL`.
  init(path: String) throws {
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(
      path, &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nil)
    guard code == SQLITE_OK, let opened else {
      sqlite3_close(opened)
      throw SQLiteFailure(
        code: code, message: String(cString: sqlite3_errstr(code)), operation: "open \(path)")
    }
    handle = opened
    self.path = path
    try execute("PRAGMA journal_mode=WAL")
    try execute("PRAGMA synchronous=NORMAL")
  }

  deinit { sqlite3_close_v2(handle) }

  /// Throws unless `code` is one of success.
  func check(_ code: Int32, _ operation: @autoclosure () -> String) throws {
    guard code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE else {
      throw SQLiteFailure(
        code: code, message: String(cString: sqlite3_errmsg(handle)), operation: operation())
    }
  }

  /// Runs statements and drops their rows.
  func execute(_ sql: String) throws {
    try check(sqlite3_exec(handle, sql, nil, nil, nil), sql)
  }

  /// Compiles one statement.
  func prepare(_ sql: String) throws -> Statement {
    var compiled: OpaquePointer?
    try check(sqlite3_prepare_v2(handle, sql, -1, &compiled, nil), sql)
    guard let compiled else {
      throw SQLiteFailure(code: SQLITE_MISUSE, message: "no statement", operation: sql)
    }
    return Statement(compiled, of: self)
  }

  /// The integer in the first column of the first row; 0 without a row.
  func integer(_ sql: String) throws -> Int64 {
    let statement = try prepare(sql)
    return try statement.step() ? sqlite3_column_int64(statement.handle, 0) : 0
  }

  /// Runs `body` in a transaction.
  func transaction<Result>(_ body: () throws -> Result) throws -> Result {
    try execute("BEGIN IMMEDIATE")
    do {
      let result = try body()
      try execute("COMMIT")
      return result
    } catch {
      if sqlite3_get_autocommit(handle) == 0 { try execute("ROLLBACK") }
      throw error
    }
  }

  /// Moves everything from the WAL into the file.
  func checkpoint() throws {
    try check(
      sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil),
      "checkpoint \(path)")
  }
}

/// A compiled statement.
final class Statement {
  let handle: OpaquePointer
  private let database: Database

  init(_ handle: OpaquePointer, of database: Database) {
    self.handle = handle
    self.database = database
  }

  deinit { sqlite3_finalize(handle) }

  /// Binds text that stays where it is until the statement is reset.
  func bind(_ text: UnsafeRawBufferPointer, at index: Int32) {
    sqlite3_bind_text(
      handle, index, text.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(text.count), nil)
  }

  /// Binds an integer.
  func bind(_ integer: Int64, at index: Int32) {
    sqlite3_bind_int64(handle, index, integer)
  }

  /// The integer in a column of the current row.
  func integer(at column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

  /// The text in a column of the current row.
  func text(at column: Int32) -> String {
    sqlite3_column_text(handle, column).map { String(cString: $0) } ?? ""
  }

  /// Steps to the next row; `false` if there is none.
  func step() throws -> Bool {
    let code = sqlite3_step(handle)
    if code == SQLITE_ROW { return true }
    if code == SQLITE_DONE { return false }
    try database.check(code, String(cString: sqlite3_sql(handle)))
    return false
  }

  /// Runs a statement that gives no rows and makes it ready to run again.
  func run() throws {
    let code = sqlite3_step(handle)
    sqlite3_reset(handle)
    guard code == SQLITE_DONE else {
      return try database.check(
        code == SQLITE_ROW ? SQLITE_MISUSE : code, String(cString: sqlite3_sql(handle)))
    }
  }
}
