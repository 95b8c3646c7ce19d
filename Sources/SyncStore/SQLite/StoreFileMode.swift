import Foundation
import SyncModel

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The users who may read and write a store's file. Files beside the store are for the same users,
/// whatever the umask of the process that creates them.
package struct StoreFileMode: Hashable, Sendable {
  /// The permissions of owner, group and others, without execution. The owner may always write: the store may be
  /// read-only only for a while.
  package let permissions: mode_t
  /// The group to which the group permissions apply.
  private let group: gid_t

  /// Reads the mode of the file at a path, following links. Returns `nil` if there is no file or
  /// its status cannot be read.
  package init?(of path: String) {
    var information = stat()
    guard stat(path, &information) == 0 else { return nil }
    permissions = information.st_mode & 0o666 | 0o200
    group = information.st_gid
  }

  /// Opens a file with the mode of a store, and creates it if it does not exist. Returns the
  /// descriptor, or -1 with `errno` set if that fails. If the store does not exist yet, the umask
  /// decides, as it will for the store.
  package static func open(_ path: String, _ flags: Int32, like store: String) -> Int32 {
    let mode = StoreFileMode(of: store)
    #if canImport(Glibc)
      let descriptor = Glibc.open(path, flags | O_CREAT | O_CLOEXEC, mode?.permissions ?? 0o666)
    #elseif canImport(Musl)
      let descriptor = Musl.open(path, flags | O_CREAT | O_CLOEXEC, mode?.permissions ?? 0o666)
    #else
      let descriptor = Darwin.open(path, flags | O_CREAT | O_CLOEXEC, mode?.permissions ?? 0o666)
    #endif
    if descriptor >= 0 { mode?.give(to: descriptor) }
    return descriptor
  }

  /// Creates an empty file with the mode of a store. Throws if the file exists or cannot be
  /// created.
  static func makeFile(at path: String, like store: String) throws {
    let descriptor = open(path, O_WRONLY | O_EXCL, like: store)
    guard descriptor >= 0 else {
      let reason = errno
      throw StoreError(
        reason == ENOSPC || reason == EDQUOT ? .noSpace : .notWritable, path: path,
        message: "A file beside the database could not be created.",
        remedy:
          "Free some space on the disk of the database, and check that its folder may be written to.",
        detail: String(cString: strerror(reason)))
    }
    close(descriptor)
  }

  /// Gives the mode to a file that this user owns. If the file system has no modes, the file stays
  /// as it is.
  private func give(to descriptor: Int32) {
    var information = stat()
    guard fstat(descriptor, &information) == 0, information.st_uid == geteuid() else { return }
    var permissions = permissions
    if information.st_gid != group, fchown(descriptor, uid_t.max, group) != 0 {
      // The file keeps its own group, which must not get the permissions of the store's group.
      permissions &= ~0o060
    }
    if information.st_mode & 0o777 != permissions { _ = fchmod(descriptor, permissions) }
  }
}
