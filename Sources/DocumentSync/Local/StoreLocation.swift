import Foundation
import SyncDirectory
import SyncModel

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The place of a store in relation to the shared directory.
enum StoreLocation {
  /// Throws `storeInDirectory` if a store at `path` is, or would be, inside a shared directory that
  /// is a folder: the program that copies the folder would copy the database while it is in use, and
  /// put copies of other devices in its place.
  static func check(
    _ path: String, isOutside directory: any SharedDirectory, operation: String
  ) throws {
    guard let root = directory.folder.flatMap({ resolved($0.root) }) else { return }
    let parts = StorePath(path)
    let places = [resolved(parts.folder).map { $0 + "/" + parts.name }, resolved(path)]
    let prefix = root == "/" ? root : root + "/"
    guard places.contains(where: { $0?.hasPrefix(prefix) ?? false }) else { return }
    throw SyncError(
      .storeInDirectory, operation: operation, path: path,
      message: "The database is inside the shared directory \(root).",
      remedy: "Keep the database in a folder that is not shared: programs that copy the shared "
        + "directory would damage it. Move it there, or use another shared directory.")
  }

  /// Returns a path without symbolic links; `nil` if nothing is there.
  private static func resolved(_ path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(cString: resolved)
  }
}
