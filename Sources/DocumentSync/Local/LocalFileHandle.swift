import Foundation
import SyncStore
import SyncModel

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A local file that is read or written in parts. Releasing it closes the file.
/// Its errors are ``SyncError``.
final class LocalFileHandle {
  private let handle: FileHandle
  private let path: String
  private let operation: String

  init(reading path: String, operation: String) throws {
    self.path = path
    self.operation = operation
    do {
      handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
    } catch {
      throw Self.failure(error, path: path, operation: operation)
    }
  }

  /// Creates a file, to write and to read.
  ///
  /// - Parameter store: The store whose permissions the file gets; without one,
  ///   only this user may read it.
  init(creating path: String, like store: String? = nil, operation: String) throws {
    self.path = path
    self.operation = operation
    let descriptor =
      if let store {
        StoreFileMode.open(path, O_RDWR | O_TRUNC, like: store)
      } else {
        open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
      }
    guard descriptor >= 0 else {
      throw Self.failure(
        POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO), path: path, operation: operation)
    }
    handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
  }

  deinit {
    do {
      try handle.close()
    } catch {
      // Everything that had to be durable was flushed before.
    }
  }

  func byteCount() throws -> Int {
    try perform {
      let end = try handle.seekToEnd()
      try handle.seek(toOffset: 0)
      return Int(end)
    }
  }

  /// Moves to a position.
  func seek(to offset: Int) throws { try perform { try handle.seek(toOffset: UInt64(offset)) } }

  /// Reads the next bytes: `count`, or fewer at the end.
  func read(_ count: Int) throws -> [UInt8] {
    try perform { Array(try handle.read(upToCount: count) ?? Data()) }
  }

  /// Reads to the end of the file, in chunks.
  func forEachChunk(of count: Int, _ body: ([UInt8]) throws -> Void) throws {
    while true {
      let chunk = try read(count)
      if chunk.isEmpty { return }
      try body(chunk)
    }
  }

  /// Writes at the position.
  func write(_ bytes: [UInt8]) throws { try perform { try handle.write(contentsOf: bytes) } }

  /// Makes the written bytes durable.
  func flush() throws { try perform { try handle.synchronize() } }

  private func perform<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch {
      throw Self.failure(error, path: path, operation: operation)
    }
  }

  private static func failure(
    _ error: any Error, path: String, operation: String
  ) -> SyncError {
    let full =
      (error as? CocoaError)?.code == .fileWriteOutOfSpace
      || (error as? POSIXError)?.code == .ENOSPC
    return SyncError(
      full ? .noLocalSpace : .localFile, operation: operation, path: path,
      message: full ? "The local disk is full." : "A local file could not be read or written.",
      remedy: full
        ? "Free some space, then try again."
        : "Check that the folder is there and that this user may write to it.",
      detail: "\(error)", underlying: error)
  }
}
