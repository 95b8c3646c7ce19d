import CSQLite
import GRDB
import SyncModel

/// A prepared statement at the level of SQLite's C interface.
///
/// GRDB's statements take text as Swift strings, which would replace invalid UTF-8, and run half as
/// fast. All values of the app's own rows pass through this type.
final class SQLStatement {
  let handle: OpaquePointer
  private let connection: OpaquePointer
  private let sql: String
  /// Whether the database stores text in UTF-16.
  private let isWide: Bool
  /// The texts of the current row that SQLite cannot convert, converted here.
  private var converted: [UnsafeMutableRawBufferPointer] = []

  /// Prepares `sql`, which must be one statement.
  init(_ sql: String, on connection: OpaquePointer, isWide: Bool? = nil) throws {
    var handle: OpaquePointer?
    let code = sqlite3_prepare_v3(
      connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, nil)
    guard code == SQLITE_OK, let handle else {
      throw DatabaseError(
        resultCode: ResultCode(rawValue: sqlite3_extended_errcode(connection)),
        message: String(cString: sqlite3_errmsg(connection)), sql: sql)
    }
    self.handle = handle
    self.connection = connection
    self.sql = sql
    self.isWide = try isWide ?? Self.isWide(connection)
  }

  convenience init(_ sql: String, on database: Database) throws {
    guard let connection = database.sqliteConnection else {
      throw DatabaseError(resultCode: .SQLITE_MISUSE, message: "connection is closed", sql: sql)
    }
    // A connection never changes its encoding. To prepare this question costs as much as `sql`.
    let encoding = try String.fetchOne(database.cachedStatement(sql: "PRAGMA encoding"))
    try self.init(sql, on: connection, isWide: encoding != "UTF-8")
  }

  deinit {
    sqlite3_finalize(handle)
    forgetConverted()
  }

  private static func isWide(_ connection: OpaquePointer) throws -> Bool {
    var handle: OpaquePointer?
    defer { sqlite3_finalize(handle) }
    guard sqlite3_prepare_v2(connection, "PRAGMA encoding", -1, &handle, nil) == SQLITE_OK,
      sqlite3_step(handle) == SQLITE_ROW, let name = sqlite3_column_text(handle, 0)
    else {
      throw DatabaseError(
        resultCode: ResultCode(rawValue: sqlite3_extended_errcode(connection)),
        message: String(cString: sqlite3_errmsg(connection)), sql: "PRAGMA encoding")
    }
    return String(cString: name) != "UTF-8"
  }

  /// Steps once. Returns true for a row, and false at the end, when it resets the statement.
  ///
  /// Throws ``TransactionEnded`` if the failure made SQLite end the transaction, so that no caller
  /// continues outside of it.
  @inline(__always)
  func step() throws -> Bool {
    if !converted.isEmpty { forgetConverted() }
    let isInside = sqlite3_get_autocommit(connection) == 0
    let code = sqlite3_step(handle)
    if code == SQLITE_ROW { return true }
    if code == SQLITE_DONE {
      sqlite3_reset(handle)
      return false
    }
    throw failure(isInside: isInside)
  }

  /// Runs a statement that returns no rows.
  @inline(__always)
  func run() throws {
    if try step() { sqlite3_reset(handle) }
  }

  /// Ends a query before its last row.
  @inline(__always)
  func reset() { sqlite3_reset(handle) }

  private func forgetConverted() {
    for buffer in converted { buffer.deallocate() }
    converted = []
  }

  /// Returns the bytes that change sets contain for text that SQLite cannot convert to UTF-8, or
  /// `nil` for other text.
  private func convertedContent(at position: Int32) -> UnsafeRawBufferPointer? {
    guard let start = sqlite3_column_text16(handle, position) else { return nil }
    let units = UnsafeRawBufferPointer(
      start: start, count: Int(sqlite3_column_bytes16(handle, position)))
    guard let bytes = WideText.bytes(ifBroken: units) else { return nil }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    buffer.copyBytes(from: bytes)
    converted.append(buffer)
    return UnsafeRawBufferPointer(buffer)
  }

  private func failure(isInside: Bool) -> any Error {
    let error = DatabaseError(
      resultCode: ResultCode(rawValue: sqlite3_extended_errcode(connection)),
      message: String(cString: sqlite3_errmsg(connection)), sql: sql)
    sqlite3_reset(handle)
    guard isInside, sqlite3_get_autocommit(connection) != 0 else { return error }
    return TransactionEnded(cause: error)
  }
}

// MARK: - Binding. Positions count from 1. Content is bound without a copy
// where a pointer is given: it has to stay valid until the next reset.

extension SQLStatement {
  private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

  @inline(__always)
  func bind(null position: Int) { sqlite3_bind_null(handle, Int32(position)) }

  @inline(__always)
  func bind(_ integer: Int64, at position: Int) {
    sqlite3_bind_int64(handle, Int32(position), integer)
  }

  func bind(_ text: String, at position: Int) {
    var text = text
    text.withUTF8 { bind(.text, UnsafeRawBufferPointer($0), at: position) }
  }

  func bind(blob: [UInt8], at position: Int) {
    blob.withUnsafeBytes { bind(.blob, $0, at: position) }
  }

  func bind(_ value: Value, at position: Int) {
    switch value {
    case .null: bind(null: position)
    case .integer(let integer): bind(integer, at: position)
    case .real(let real): sqlite3_bind_double(handle, Int32(position), real)
    case .text(let content): content.withUnsafeBytes { bind(.text, $0, at: position) }
    case .blob(let content): content.withUnsafeBytes { bind(.blob, $0, at: position) }
    case .identity(let row): row.bytes.withUnsafeBytes { bind(.blob, $0, at: position) }
    }
  }

  /// The number of bytes from which on a value is not copied.
  private static let longByteCount = 1 << 20

  /// Binds values from the given position on while the closure runs; long ones without a copy.
  func withBound(
    _ values: ArraySlice<Value>, at position: Int = 1, _ body: () throws -> Void
  ) throws {
    for (index, value) in zip(values.indices, values) {
      let position = position + index - values.startIndex
      switch value {
      case .text(let content) where content.count >= Self.longByteCount && !isWide,
        .blob(let content) where content.count >= Self.longByteCount:
        return try content.withUnsafeBytes { bytes in
          bind(long: bytes, isText: value.kind == .text, at: position)
          defer { bind(null: position) }
          try withBound(values[(index + 1)...], at: position + 1, body)
        }
      default: bind(value, at: position)
      }
    }
    try body()
  }

  /// Binds text or a blob without a copy.
  private func bind(long content: UnsafeRawBufferPointer, isText: Bool, at position: Int) {
    guard let start = content.baseAddress else { return }
    if isText {
      sqlite3_bind_text64(
        handle, Int32(position), start.assumingMemoryBound(to: CChar.self),
        UInt64(content.count), nil, UInt8(SQLITE_UTF8))
    } else {
      sqlite3_bind_blob64(handle, Int32(position), start, UInt64(content.count), nil)
    }
  }

  /// Binds a copy of text or a blob.
  private func bind(_ kind: ValueKind, _ content: UnsafeRawBufferPointer, at position: Int) {
    // A null pointer would bind NULL, so empty content needs another pointer.
    let start = content.baseAddress ?? UnsafeRawPointer(handle)
    switch kind {
    case .text:
      if isWide, bind(broken: content, at: position) { return }
      sqlite3_bind_text64(
        handle, Int32(position), start.assumingMemoryBound(to: CChar.self),
        UInt64(content.count), Self.transient, UInt8(SQLITE_UTF8))
    default:
      sqlite3_bind_blob64(handle, Int32(position), start, UInt64(content.count), Self.transient)
    }
  }

  /// Binds a copy of text that contains half a surrogate pair, which SQLite would not convert to
  /// UTF-16 as it is. Binds nothing and returns false for other text.
  private func bind(broken content: UnsafeRawBufferPointer, at position: Int) -> Bool {
    guard let units = WideText.units(ifBroken: content) else { return false }
    // SQLite removes a leading byte order mark: this one, and so none that belongs to the text.
    ([0xFEFF] + units).withUnsafeBytes { units in
      guard let start = units.baseAddress else { return }
      sqlite3_bind_text64(
        handle, Int32(position), start.assumingMemoryBound(to: CChar.self), UInt64(units.count),
        Self.transient, UInt8(SQLITE_UTF16))
    }
    return true
  }

  /// Binds a value as a ``ValueColumn`` stores it, without copying its content: `content` is where the
  /// content of the column begins.
  ///
  /// It takes the parts of the value, since the column would be retained and released for each value.
  func bind(kind: UInt8, word: UInt64, content: UnsafeRawPointer, at position: Int) {
    switch kind {
    case ValueKind.integer.rawValue:
      sqlite3_bind_int64(handle, Int32(position), Int64(bitPattern: word))
    case ValueKind.real.rawValue:
      sqlite3_bind_double(handle, Int32(position), Double(bitPattern: word))
    case ValueKind.text.rawValue:
      if isWide,
        bind(
          broken: UnsafeRawBufferPointer(
            start: content + Int(word >> 32), count: Int(word & 0xFFFF_FFFF)), at: position)
      {
        return
      }
      sqlite3_bind_text64(
        handle, Int32(position),
        (content + Int(word >> 32)).assumingMemoryBound(to: CChar.self), word & 0xFFFF_FFFF,
        nil, UInt8(SQLITE_UTF8))
    case ValueKind.blob.rawValue, ValueKind.identity.rawValue:
      sqlite3_bind_blob64(
        handle, Int32(position), content + Int(word >> 32), word & 0xFFFF_FFFF, nil)
    default:
      sqlite3_bind_null(handle, Int32(position))
    }
  }
}

// MARK: - Reading. Positions count from 0.

extension SQLStatement {
  @inline(__always)
  func integer(at position: Int) -> Int64 { sqlite3_column_int64(handle, Int32(position)) }

  /// Returns an integer in bookkeeping. Throws if the value is no integer, or does not fit.
  func number<Number: FixedWidthInteger>(at position: Int) throws -> Number {
    guard sqlite3_column_type(handle, Int32(position)) == SQLITE_INTEGER,
      let number = Number(exactly: integer(at: position))
    else {
      let found = value(at: position)
      reset()
      throw StoreError(damagedIn: sql, "column \(position) holds \(found)")
    }
    return number
  }

  @inline(__always)
  func real(at position: Int) -> Double { sqlite3_column_double(handle, Int32(position)) }

  @inline(__always)
  func isText(at position: Int) -> Bool {
    sqlite3_column_type(handle, Int32(position)) == SQLITE_TEXT
  }

  @inline(__always)
  func isNull(at position: Int) -> Bool {
    sqlite3_column_type(handle, Int32(position)) == SQLITE_NULL
  }

  /// Returns the bytes of text or a blob, valid until the next step.
  @inline(__always)
  func content(at position: Int) -> UnsafeRawBufferPointer {
    let isText = sqlite3_column_type(handle, Int32(position)) == SQLITE_TEXT
    if isText, isWide, let content = convertedContent(at: Int32(position)) { return content }
    // Asked in this order, so that the length is that of the UTF-8 form.
    let start =
      isText
      ? UnsafeRawPointer(sqlite3_column_text(handle, Int32(position)))
      : sqlite3_column_blob(handle, Int32(position))
    return UnsafeRawBufferPointer(
      start: start, count: Int(sqlite3_column_bytes(handle, Int32(position))))
  }

  func bytes(at position: Int) -> [UInt8] { Array(content(at: position)) }

  func text(at position: Int) -> String { String(decoding: content(at: position), as: UTF8.self) }

  func value(at position: Int) -> Value {
    switch sqlite3_column_type(handle, Int32(position)) {
    case SQLITE_INTEGER: .integer(integer(at: position))
    case SQLITE_FLOAT: .real(sqlite3_column_double(handle, Int32(position)))
    case SQLITE_TEXT: .text(bytes(at: position))
    case SQLITE_BLOB: .blob(bytes(at: position))
    default: .null
    }
  }

  /// Appends the canonical form of a key's value.
  @inline(__always)
  func appendKey(at position: Int, collation: KeyCollation, to bytes: inout [UInt8]) {
    switch sqlite3_column_type(handle, Int32(position)) {
    case SQLITE_INTEGER: IdentityEncoding.append(integer: integer(at: position), to: &bytes)
    case SQLITE_FLOAT: IdentityEncoding.append(real: real(at: position), to: &bytes)
    case SQLITE_TEXT:
      IdentityEncoding.append(text: content(at: position), collation: collation, to: &bytes)
    case SQLITE_BLOB: IdentityEncoding.append(blob: content(at: position), to: &bytes)
    default: IdentityEncoding.appendNull(to: &bytes)
    }
  }

  /// Appends a value of the current row to a column, with one copy.
  @inline(__always)
  func append(at position: Int, to column: inout ValueColumn) {
    switch sqlite3_column_type(handle, Int32(position)) {
    case SQLITE_INTEGER: column.append(integer: integer(at: position))
    case SQLITE_FLOAT: column.append(real: sqlite3_column_double(handle, Int32(position)))
    case SQLITE_TEXT: column.append(.text, content: content(at: position))
    case SQLITE_BLOB: column.append(.blob, content: content(at: position))
    default: column.appendNull()
    }
  }
}

/// Returns a name in double quotes, as in SQL.
func quoted(_ name: SQLName) -> String { name.quoted }

/// Returns text as an SQL literal.
func literal(_ text: String) -> String {
  // Byte by byte: a quotation mark with a combining mark after it is a different character.
  var bytes: [UInt8] = [UInt8(ascii: "'")]
  for byte in text.utf8 {
    if byte == UInt8(ascii: "'") { bytes.append(byte) }
    bytes.append(byte)
  }
  bytes.append(UInt8(ascii: "'"))
  return String(decoding: bytes, as: UTF8.self)
}
