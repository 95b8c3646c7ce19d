import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The flushing of local files, so that they survive a power failure.
package enum FileFlush {
  /// Flushes a file, or the names in a folder, to the disk, if the file system supports that.
  ///
  /// The file must not be a database that this process has open: closing any descriptor of it
  /// releases the locks that SQLite holds (<https://www.sqlite.org/howtocorrupt.html>, section 2.2).
  package static func flush(_ path: String) throws {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    defer { close(descriptor) }
    guard fsync(descriptor) != 0, errno == EIO || errno == ENOSPC else { return }
    throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
  }
}
