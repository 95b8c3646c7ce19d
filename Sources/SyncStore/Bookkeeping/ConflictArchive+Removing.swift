import Foundation
import SyncModel

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension ConflictArchive {
  /// Removes the file beside a store that has left its document. Leaves a file alone that has blocks
  /// of other journals only.
  ///
  /// - Parameter journals: The journals of the store; `nil` if they are not known.
  static func remove(beside store: String, of journals: Set<[UInt8]>?) throws {
    let path = Self.path(beside: store)
    do {
      guard try exists(path) else { return }
      let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
      let found = Set(try ArchiveFile(handle).blocks.map(\.journal))
      try handle.close()
      if let journals, !found.isEmpty, found.isDisjoint(with: journals) { return }
    } catch let problem as ArchiveProblem where problem.kind == .notAFile {
      return
    } catch {
      // What cannot be read is removed nevertheless: the user asked for it.
      guard unlink(path) != 0, errno != ENOENT else { return }
      throw unremovable(path)
    }
    for path in [path, path + "-new"] where unlink(path) != 0 && errno != ENOENT {
      throw unremovable(path)
    }
  }

  /// Removes the file beside a store if it has no block of the store's journals, since it was that of a
  /// store whose place the store has taken. The caller has locked the store's database.
  static func removeFormer(beside store: String, unlessOf journals: Set<[UInt8]>) throws {
    let path = Self.path(beside: store)
    do {
      guard try exists(path) else { return }
      let file = try ArchiveFile(FileHandle(forReadingFrom: URL(fileURLWithPath: path)))
      guard journals.isDisjoint(with: file.blocks.map(\.journal)) else { return }
    } catch let problem as ArchiveProblem where problem.kind == .notAFile {
      return
    }
    guard unlink(path) == 0 || errno == ENOENT else { throw ArchiveProblem.ofLastCall }
  }

  private static func unremovable(_ path: String) -> StoreError {
    StoreError(
      .notWritable, path: path,
      message:
        "The database has left the document, but the file with its older conflicts could not "
        + "be removed.", remedy: "Remove it yourself.", detail: String(cString: strerror(errno)))
  }
}
