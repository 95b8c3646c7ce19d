import CSQLite
import Foundation

/// The bytes of a database file, read through SQLite.
///
/// If a program opens such a file by itself, and closes it, the operating system releases all locks that
/// connections of the program have on the file. SQLite takes care of that. This reads nothing else, and
/// takes no lock.
///
/// <https://www.sqlite.org/howtocorrupt.html>, section 2.2
final class DatabaseFile {
  private let path: String
  private let connection: OpaquePointer

  /// Opens the file. Throws `CocoaError` if that is not possible.
  init(_ path: String) throws {
    self.path = path
    var opened: OpaquePointer?
    let result = sqlite3_open_v2(path, &opened, SQLITE_OPEN_READONLY, nil)
    guard result == SQLITE_OK, let opened else {
      sqlite3_close_v2(opened)
      throw Self.error(result, path)
    }
    connection = opened
  }

  deinit { sqlite3_close_v2(connection) }

  /// Returns the bytes at an offset, fewer at the end of the file.
  func read(_ count: Int, at offset: Int) throws -> [UInt8] {
    let present = min(count, try size() - offset)
    guard present > 0 else { return [] }
    return try [UInt8](unsafeUninitializedCapacity: present) { buffer, initialized in
      let result = csqlite_file_read(
        connection, buffer.baseAddress, Int32(present), sqlite3_int64(offset))
      // A file that has become shorter meanwhile is filled up with zeros.
      guard result == SQLITE_OK || result == SQLITE_IOERR | 2 << 8 else {
        throw Self.error(result, path)
      }
      initialized = present
    }
  }

  /// Copies the file to a new one that only this user may read.
  func copy(to copy: String) throws {
    let isMade = FileManager.default.createFile(
      atPath: copy, contents: nil, attributes: [.posixPermissions: 0o600])
    guard isMade else { throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: copy]) }
    let output = try FileHandle(forWritingTo: URL(fileURLWithPath: copy))
    var offset = 0
    while true {
      let part = try read(1 << 20, at: offset)
      if part.isEmpty { break }
      try output.write(contentsOf: part)
      offset += part.count
    }
    try output.close()
  }

  private func size() throws -> Int {
    var size: sqlite3_int64 = 0
    let result = csqlite_file_size(connection, &size)
    guard result == SQLITE_OK else { throw Self.error(result, path) }
    return Int(size)
  }

  private static func error(_ result: Int32, _ path: String) -> CocoaError {
    CocoaError(
      .fileReadNoPermission,
      userInfo: [
        NSFilePathErrorKey: path,
        NSLocalizedDescriptionKey: String(cString: sqlite3_errstr(result)),
      ])
  }
}
