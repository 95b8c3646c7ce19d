#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The file on this device that a transfer reads or creates. Its errors have the code `localFile`,
/// since they do not come from the shared directory.
public final class LocalFile {
  private let path: String
  private let file: OpenFile
  private let operation: DirectoryError.Operation

  /// Creates a file for a download, which only this user may read. The file must not exist yet.
  public init(creating path: String) throws {
    self.path = path
    operation = .download
    file = try Self.perform(path, .download) {
      try OpenFile(path: path, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    }
  }

  /// Opens a file for an upload.
  public init(opening path: String) throws {
    self.path = path
    operation = .upload
    file = try Self.perform(path, .upload) {
      try OpenFile(path: path, flags: O_RDONLY | O_NONBLOCK)
    }
    guard try Self.perform(path, .upload, { try file.status() }).isRegular else {
      throw DirectoryError(.localFile, .upload, path: path, detail: "not a regular file")
    }
  }

  /// Returns the number of bytes in the file.
  public func size() throws -> Int {
    try Self.perform(path, operation) { try file.status().size }
  }

  /// Reads up to `count` bytes from `offset` on; returns fewer only at the end.
  public func read(_ count: Int, at offset: Int) throws -> [UInt8] {
    try Self.perform(path, operation) {
      try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
        filled = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
      }
    }
  }

  /// Reads exactly `count` bytes from `offset` on; throws if there are fewer.
  func read(exactly count: Int, at offset: Int) throws -> [UInt8] {
    let bytes = try read(count, at: offset)
    guard bytes.count == count else {
      throw DirectoryError(
        .localFile, operation, path: path, detail: "the file became shorter while it was read")
    }
    return bytes
  }

  /// Appends bytes.
  public func write(_ bytes: ArraySlice<UInt8>) throws {
    try Self.perform(path, operation) { try bytes.withUnsafeBytes { try file.write($0) } }
  }

  /// Flushes the written bytes to the medium and closes the file.
  public func finish() throws {
    try Self.perform(path, operation) {
      try file.flush()
      try file.close()
    }
  }

  /// Removes the created file. Ignores a failure: the transfer has failed already, and its error is
  /// more helpful.
  public func discard() {
    _ = unlink(path)
  }

  private static func perform<Result>(
    _ path: String, _ operation: DirectoryError.Operation, _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch let failure as SystemFailure {
      throw DirectoryError(
        .localFile, operation, path: path, detail: "\(failure.call) failed",
        underlying: failure.systemError)
    }
  }
}
