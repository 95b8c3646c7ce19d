import Foundation
import SyncModel
import SyncStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The lock that keeps two operations from working on one store at once, in one
/// process or in several.
///
/// It is an advisory lock on a file beside the store: the system releases it
/// whenever the process ends, so it never has to be broken. The file stays,
/// with the permissions of the store: a user who may read it may hold the lock.
/// If it were removed, two processes could lock two files of one name. It
/// contains the time of the last synchronization, for people.
final class StoreLock: Sendable {
  private let descriptor: Int32

  static func path(for store: String) -> String {
    StoreFilePath.beside(store, "-docsync-lock")
  }

  /// Takes the lock, or throws `storeInUse` at once.
  init(store: String, operation: String) throws {
    let path = Self.path(for: store)
    descriptor = StoreFileMode.open(path, O_RDWR, like: store)
    guard descriptor >= 0 else {
      throw Self.failure(errno, store: store, operation: operation)
    }
    try Self.lock(descriptor, store: store, operation: operation)
  }

  /// Takes the lock for an operation that changes nothing, or throws
  /// `storeInUse` at once.
  ///
  /// Returns `nil` if there is no file to lock, which it does not create, or if
  /// it may not be opened: then no process of this user synchronizes the store
  /// either.
  init?(reading store: String, operation: String) throws {
    descriptor = open(Self.path(for: store), O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    try Self.lock(descriptor, store: store, operation: operation)
  }

  /// Locks an opened file; closes it if that fails.
  private static func lock(_ descriptor: Int32, store: String, operation: String) throws {
    let path = Self.path(for: store)
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

  /// The error if the lock's file could not be created or opened. The cause is
  /// the folder, unless the file exists.
  private static func failure(_ reason: Int32, store: String, operation: String) -> SyncError {
    let folder = StorePath(store).folder
    var code = SyncError.Code.storeNotWritable
    var path = folder
    let (message, remedy): (String, Remedy)
    switch reason {
    case ENOENT, ENOTDIR:
      code = .storeMissing
      message = "The folder of the database does not exist."
      remedy = "Check the path of the store, or make that folder first."
    case ENOSPC, EDQUOT:
      code = .noLocalSpace
      message = "The disk of the store is full."
      remedy = "Free some space, then try again."
    default:
      if FileManager.default.fileExists(atPath: Self.path(for: store)) {
        path = Self.path(for: store)
        message = "The lock file beside the database may not be written to."
        remedy = "Give this user permission to write to it."
      } else {
        message = "The folder of the store may not be written to."
        remedy = "Give this user permission to write to the folder, or keep the store in another."
      }
    }
    return SyncError(
      code, operation: operation, path: path, message: message, remedy: remedy,
      detail: String(cString: strerror(reason)))
  }

  /// Notes in the file that a synchronization has ended without an error. Returns whether that could
  /// be written.
  func noteSynchronization(at milliseconds: Int64) -> Bool {
    let text = Array("\(milliseconds)\n".utf8)
    return text.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, text.count, 0) == text.count }
      && ftruncate(descriptor, off_t(text.count)) == 0
  }

  /// Returns the time that ``noteSynchronization(at:)`` has noted last; `nil` if there is none, or it
  /// cannot be read.
  static func lastSynchronization(of store: String) -> Date? {
    guard let data = FileManager.default.contents(atPath: path(for: store)),
      data.last == UInt8(ascii: "\n"),
      let milliseconds = Int64(String(decoding: data.dropLast(), as: UTF8.self))
    else { return nil }
    return Date(milliseconds: milliseconds)
  }

  /// Releases the lock. Closing the file is not enough: a child process that this process starts at
  /// the same moment has a copy of the descriptor until its program runs.
  func unlock() {
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }
}
