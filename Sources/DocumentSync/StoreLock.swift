import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Keeps two operations from working on one store at once, in one process or
/// in several.
///
/// An advisory lock on a file beside the store: the system gives it up when
/// the process ends, however that happens, so it never has to be broken. The
/// file stays; to remove it would let two processes lock two files of one
/// name.
final class StoreLock: Sendable {
  private let descriptor: Int32

  /// The path of the lock's file.
  static func path(for store: String) -> String { store + "-docsync-lock" }

  /// Takes the lock, or throws `storeInUse` at once.
  init(store: String, operation: String) throws {
    let path = Self.path(for: store)
    descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else {
      throw SyncError(
        errno == ENOENT ? .storeMissing : .storeNotWritable, operation: operation, path: path,
        message: "The folder of the store cannot be written to.",
        remedy: "Check that the folder is there and that this user may write to it.",
        detail: String(cString: strerror(errno)))
    }
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      let reason = errno
      if reason == EINTR { continue }
      close(descriptor)
      guard reason == EWOULDBLOCK else {
        throw SyncError(
          .localFile, operation: operation, path: path, message: "The store could not be locked.",
          remedy: "Keep the store on a disk of this device.",
          detail: String(cString: strerror(reason)))
      }
      throw SyncError(
        .storeInUse, operation: operation, path: store,
        message: "The store is being synchronized by another process.",
        remedy: "Wait until that has finished, then try again.")
    }
  }

  /// Gives the lock up.
  func unlock() { close(descriptor) }

  /// Runs `body` while the lock is held.
  static func hold<Value>(
    store: String, operation: String, _ body: () throws -> Value
  ) throws -> Value {
    let lock = try StoreLock(store: store, operation: operation)
    defer { lock.unlock() }
    return try body()
  }
}
