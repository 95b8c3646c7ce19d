import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The lock of a folder, for the time in which a file in it is read, changed and replaced.
///
/// The file itself cannot have the lock: a process that waits would get the lock of a file that was replaced. The system
/// releases the lock whenever the process ends.
struct FolderLock {
  private let descriptor: Int32
  private let path: String

  /// Another adapter has the lock for too long.
  struct Busy: Error {}

  /// Waits for the lock, and throws ``Busy`` after a time. Some network file systems have none: then nothing is
  /// locked.
  init(_ path: String, timeLimit: Duration) throws {
    self.path = path
    descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Self.failure(errno, path) }
    let start = ContinuousClock.now
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      let reason = errno
      if reason == EINTR { continue }
      guard reason == EWOULDBLOCK else { return }
      guard ContinuousClock.now - start < timeLimit else {
        close(descriptor)
        throw Busy()
      }
      usleep(10_000)
    }
  }

  /// Makes the names of the files in the folder durable.
  func flush() throws {
    while fsync(descriptor) != 0 {
      // Some file systems cannot do it, and need not.
      if errno == EINVAL || errno == ENOTSUP { return }
      guard errno == EINTR else { throw Self.failure(errno, path) }
    }
  }

  func unlock() {
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  private static func failure(_ reason: Int32, _ path: String) -> CocoaError {
    CocoaError(
      reason == ENOENT ? .fileNoSuchFile : .fileWriteUnknown,
      userInfo: [
        NSFilePathErrorKey: path,
        NSUnderlyingErrorKey: NSError(domain: NSPOSIXErrorDomain, code: Int(reason)),
      ])
  }
}
