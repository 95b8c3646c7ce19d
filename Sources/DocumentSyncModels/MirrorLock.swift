import DocumentSync
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The lock that keeps two mirrors of one store from calling their adapters at once, in one process or in several.
///
/// It is an advisory lock on a file beside the store. The system releases it whenever the process ends. The file
/// stays: if it were removed, two processes could lock two files of one name.
struct MirrorLock: Sendable {
  private let descriptor: Int32

  static func path(for store: String) -> String { store + "-mirror-lock" }

  /// Takes the lock, for which it waits for a time; then throws `storeInUse`.
  static func take(
    store: String, timeLimit: Duration, operation: String
  ) async throws -> MirrorLock {
    let descriptor = open(path(for: store), O_RDWR | O_CREAT | O_CLOEXEC, mode(of: store))
    guard descriptor >= 0 else { throw failure(errno, store: store, operation) }
    let start = ContinuousClock.now
    do {
      while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
        let reason = errno
        if reason == EINTR { continue }
        guard reason == EWOULDBLOCK else { throw failure(reason, store: store, operation) }
        guard ContinuousClock.now - start < timeLimit else {
          throw SyncError(
            .storeInUse, operation: operation, path: store,
            message: "Another mirror of the store is at work.",
            remedy: "Wait until it has finished, then try again. Let a store have one mirror.")
        }
        try await Task.sleep(for: .milliseconds(20))
      }
    } catch {
      close(descriptor)
      throw error
    }
    return MirrorLock(descriptor: descriptor)
  }

  /// Closing the file is not enough: a child process that begins at the same moment has a copy of the descriptor.
  func unlock() {
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  /// A user who may write to the store may hold the lock.
  private static func mode(of store: String) -> mode_t {
    var information = stat()
    return stat(store, &information) == 0 ? information.st_mode & 0o666 : 0o666
  }

  private static func failure(_ reason: Int32, store: String, _ operation: String) -> SyncError {
    SyncError(
      .localFile, operation: operation, path: path(for: store),
      message: "The mirror could not be locked.",
      remedy: "Keep its store in a folder of this device to which this user may write.",
      detail: String(cString: strerror(reason)))
  }
}
