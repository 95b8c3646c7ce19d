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
/// whatever the umask of the process that makes them, like the companion files that SQLite makes.
package struct StoreFileMode: Hashable, Sendable {
  /// The permissions of owner, group and others, without execution.
  package let permissions: mode_t
  /// The group that the group permissions are for.
  private let group: gid_t

  /// The mode of the file at a path, following links; `nil` if there is no file or its status
  /// cannot be read.
  package init?(of path: String) {
    var information = stat()
    guard stat(path, &information) == 0 else { return nil }
    permissions = information.st_mode & 0o666
    group = information.st_gid
  }

  /// Opens a file that is to have the mode of a store, and makes it if it does not exist. Returns
  /// -1 and sets `errno` if that fails. If the store does not exist yet, the umask decides, as it
  /// will for the store.
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

  /// Makes an empty file with the mode of a store.
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

  /// Gives the mode to a file of this user. A file system without modes refuses, and the file
  /// stays as it is.
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
