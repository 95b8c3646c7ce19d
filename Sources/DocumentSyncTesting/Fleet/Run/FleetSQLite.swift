import CSQLite
import SyncModel

/// A plain connection to a database, as in any program.
final class FleetSQLite {
  /// The error of a statement that SQLite refuses.
  struct Refusal: Error, CustomStringConvertible {
    var extendedCode: Int32
    var description: String
  }

  private let connection: OpaquePointer
  private var statements: [[UInt8]: OpaquePointer] = [:]
  /// Whether text is stored in UTF-16; `nil` until that is read.
  private var knownWidth: Bool?
  private var isClosed = false

  init(_ path: String) throws {
    var connection: OpaquePointer?
    let code = sqlite3_open(path, &connection)
    guard code == SQLITE_OK, let connection else {
      throw Refusal(extendedCode: code, description: "cannot open \(path)")
    }
    self.connection = connection
    sqlite3_busy_timeout(connection, 5_000)
  }

  /// Opens a database in memory with the content of another.
  convenience init(content: [UInt8]) throws {
    try self.init(":memory:")
    // SQLite frees the memory, even if the call fails.
    guard let memory = sqlite3_malloc64(UInt64(content.count)) else {
      throw Refusal(extendedCode: SQLITE_NOMEM, description: "no memory for a database")
    }
    memory.copyMemory(from: content, byteCount: content.count)
    let code = sqlite3_deserialize(
      connection, "main", memory.assumingMemoryBound(to: UInt8.self), Int64(content.count),
      Int64(content.count),
      UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE))
    guard code == SQLITE_OK else {
      throw Refusal(extendedCode: code, description: "cannot copy a database")
    }
  }

  deinit { close() }

  /// Returns the whole content of the database, for ``init(content:)``.
  func content() throws -> [UInt8] {
    var count: Int64 = 0
    guard let memory = sqlite3_serialize(connection, "main", &count, 0) else {
      throw Refusal(extendedCode: SQLITE_NOMEM, description: "cannot read a database")
    }
    defer { sqlite3_free(memory) }
    return Array(UnsafeBufferPointer(start: memory, count: Int(count)))
  }

  /// Closes the connection, which must not be used afterwards.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    for statement in statements.values { sqlite3_finalize(statement) }
    statements = [:]
    sqlite3_close_v2(connection)
  }

  /// Runs statements that return nothing.
  func run(_ sql: String) throws {
    guard sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK else { throw refusal(sql) }
  }

  var isInTransaction: Bool { sqlite3_get_autocommit(connection) == 0 }

  /// Returns the rows of a query. Prepares each query only once.
  func rows(_ sql: String, _ values: [Value] = []) throws -> [[Value]] {
    let statement = try statement(sql)
    defer { sqlite3_reset(statement) }
    for (index, value) in values.enumerated() { bind(value, at: Int32(index + 1), statement) }
    var rows: [[Value]] = []
    while true {
      switch sqlite3_step(statement) {
      case SQLITE_ROW:
        rows.append((0..<sqlite3_column_count(statement)).map { value(at: $0, statement) })
      case SQLITE_DONE: return rows
      default: throw refusal(sql)
      }
    }
  }

  /// Runs statements and returns their rows. Does not reuse the prepared statements.
  func rowsOnce(_ sql: String) throws -> [[Value]] {
    var rows: [[Value]] = []
    var bytes = Array(sql.utf8CString)
    while bytes.count > 1 {
      var statement: OpaquePointer?
      var used = 0
      let code = bytes.withUnsafeBufferPointer { text -> Int32 in
        var tail: UnsafePointer<CChar>?
        let code = sqlite3_prepare_v2(connection, text.baseAddress, -1, &statement, &tail)
        if let tail, let start = text.baseAddress { used = tail - start }
        return code
      }
      guard code == SQLITE_OK else { throw refusal(sql) }
      bytes.removeFirst(used)
      guard let statement else { continue }
      defer { sqlite3_finalize(statement) }
      var step = sqlite3_step(statement)
      while step == SQLITE_ROW {
        rows.append((0..<sqlite3_column_count(statement)).map { value(at: $0, statement) })
        step = sqlite3_step(statement)
      }
      guard step == SQLITE_DONE else { throw refusal(sql) }
    }
    return rows
  }

  /// The results of `changes()` and `last_insert_rowid()`.
  var counts: (changes: Int64, lastRowid: Int64) {
    (sqlite3_changes64(connection), sqlite3_last_insert_rowid(connection))
  }

  /// Makes `changes()` and `last_insert_rowid()` return 0.
  func forgetCounts() throws {
    try run("CREATE TEMP TABLE IF NOT EXISTS counted (x); DELETE FROM temp.counted")
    forgetRowid()
  }

  /// Makes `last_insert_rowid()` return 0.
  func forgetRowid() { sqlite3_set_last_insert_rowid(connection, 0) }

  /// Replaces the SQL function `name` with one that returns the result of `body`, whatever its
  /// arguments.
  func override(_ name: String, with body: @escaping () -> Value) throws {
    let box = Unmanaged.passRetained(FunctionBody(body)).toOpaque()
    let code = sqlite3_create_function_v2(
      connection, name, -1, SQLITE_UTF8, box,
      { context, _, _ in
        guard let data = sqlite3_user_data(context) else { return }
        switch Unmanaged<FunctionBody>.fromOpaque(data).takeUnretainedValue().body() {
        case .real(let real): sqlite3_result_double(context, real)
        case .blob(let bytes):
          bytes.withUnsafeBytes {
            sqlite3_result_blob64(context, $0.baseAddress, UInt64($0.count), FleetSQLite.transient)
          }
        default: sqlite3_result_null(context)
        }
      }, nil, nil, { if let data = $0 { Unmanaged<FunctionBody>.fromOpaque(data).release() } })
    guard code == SQLITE_OK else { throw refusal(name) }
  }

  private final class FunctionBody {
    let body: () -> Value
    init(_ body: @escaping () -> Value) { self.body = body }
  }

  private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

  private func refusal(_ sql: String) -> Refusal {
    Refusal(
      extendedCode: sqlite3_extended_errcode(connection),
      description: "\(String(cString: sqlite3_errmsg(connection))): \(sql)")
  }

  private func statement(_ sql: String) throws -> OpaquePointer {
    let bytes = Array(sql.utf8)
    if let statement = statements[bytes] { return statement }
    var statement: OpaquePointer?
    guard sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK, let statement
    else { throw refusal(sql) }
    statements[bytes] = statement
    return statement
  }

  private var isWide: Bool {
    if let knownWidth { return knownWidth }
    var statement: OpaquePointer?
    defer { sqlite3_finalize(statement) }
    let isWide =
      sqlite3_prepare_v2(connection, "PRAGMA encoding", -1, &statement, nil) == SQLITE_OK
      && sqlite3_step(statement) == SQLITE_ROW
      && sqlite3_column_bytes(statement, 0) > 5
    knownWidth = isWide
    return isWide
  }

  private func bind(_ value: Value, at position: Int32, _ statement: OpaquePointer) {
    switch value {
    case .null: sqlite3_bind_null(statement, position)
    case .integer(let integer): sqlite3_bind_int64(statement, position, integer)
    case .real(let real): sqlite3_bind_double(statement, position, real)
    case .text(let bytes):
      bytes.withUnsafeBytes { content in
        if isWide, let units = WideText.units(ifBroken: content) {
          return ([0xFEFF] + units).withUnsafeBytes { units in
            _ = sqlite3_bind_text64(
              statement, position, units.baseAddress?.assumingMemoryBound(to: CChar.self),
              UInt64(units.count), Self.transient, UInt8(SQLITE_UTF16))
          }
        }
        let start = content.baseAddress ?? UnsafeRawPointer(statement)
        _ = sqlite3_bind_text64(
          statement, position, start.assumingMemoryBound(to: CChar.self), UInt64(content.count),
          Self.transient, UInt8(SQLITE_UTF8))
      }
    case .blob(let bytes):
      bytes.withUnsafeBytes { content in
        let start = content.baseAddress ?? UnsafeRawPointer(statement)
        _ = sqlite3_bind_blob64(
          statement, position, start, UInt64(content.count), Self.transient)
      }
    case .identity(let row): bind(.blob(row.bytes), at: position, statement)
    }
  }

  private func value(at position: Int32, _ statement: OpaquePointer) -> Value {
    switch sqlite3_column_type(statement, position) {
    case SQLITE_INTEGER: return .integer(sqlite3_column_int64(statement, position))
    case SQLITE_FLOAT: return .real(sqlite3_column_double(statement, position))
    case SQLITE_TEXT:
      if isWide {
        let units = UnsafeRawBufferPointer(
          start: sqlite3_column_text16(statement, position),
          count: Int(sqlite3_column_bytes16(statement, position)))
        if let bytes = WideText.bytes(ifBroken: units) { return .text(bytes) }
      }
      let start = UnsafeRawPointer(sqlite3_column_text(statement, position))
      return .text(bytes(start, sqlite3_column_bytes(statement, position)))
    case SQLITE_BLOB:
      let start = sqlite3_column_blob(statement, position)
      return .blob(bytes(start, sqlite3_column_bytes(statement, position)))
    default: return .null
    }
  }

  private func bytes(_ start: UnsafeRawPointer?, _ count: Int32) -> [UInt8] {
    Array(UnsafeRawBufferPointer(start: start, count: Int(count)))
  }
}
