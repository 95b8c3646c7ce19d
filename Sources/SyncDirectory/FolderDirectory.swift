import SyncModel

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A shared directory that is a folder of the file system: on a disk, a network mount or a USB
/// stick, or copied by a synchronizer.
///
/// The path of the root may contain symbolic links, since the user chose it; below the root no call
/// follows a link. Every call opens the root by its path, so that it finds a mount that was away
/// and has returned. No call creates the root. No call relies on links, locks or exclusive
/// creation, which do not work on most mounts.
public struct FolderDirectory: SharedDirectory {
  /// The absolute or relative path of the root.
  public let root: String
  /// A closure that receives each change to the disk before the directory makes it; see
  /// ``DiskStep``.
  package var observer: (@Sendable (DiskStep) throws -> Void)?

  /// Creates a directory at `root`, which need not exist yet.
  public init(root: String) {
    var root = root
    while root.utf8.count > 1, root.hasSuffix("/") { root.removeLast() }
    self.root = root
  }

  /// The path of the root.
  public var location: String { root }

  /// See ``SharedDirectory/check(for:)``.
  public func check(for access: DirectoryAccess) throws {
    try perform(.check, .root) {
      let folder = try openRoot()
      try SystemFailure.check("access") { faccessat(folder.descriptor, ".", R_OK | X_OK, 0) }
    }
    guard access == .writing else { return }
    // With `writes: true` a refusal gives `notWritable`.
    try perform(.check, .root, writes: true) {
      let folder = try openRoot()
      try SystemFailure.check("access") { faccessat(folder.descriptor, ".", W_OK | X_OK, 0) }
    }
  }

  /// See ``SharedDirectory/changes()``. `nil` on network mounts and FUSE, and on systems without inotify.
  public func changes() -> AsyncStream<Void>? {
    let temporary = DirectoryLayout.temporary.name
    return FolderWatch.changes(
      in: root,
      FolderWatch.Interest(isRecursive: true, includesWriting: false) {
        $0 != temporary && !$0.hasPrefix(".")
      })
  }

  /// See ``SharedDirectory/list(_:)``.
  public func list(_ folder: RelativePath) throws -> [DirectoryEntry] {
    try perform(.list, folder) { try entries(of: try openFolder(folder)) }
  }

  /// See ``SharedDirectory/read(_:limit:)``.
  public func read(_ path: RelativePath, limit: Int) throws -> [UInt8] {
    try perform(.read, path) {
      let (file, size) = try openRegularFile(path, .read, limit: limit)
      // Read one byte more than announced, to notice a file that grows.
      let content = try [UInt8](unsafeUninitializedCapacity: size + 1) { buffer, count in
        let space = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: size + 1)
        count = try file.read(into: space, at: 0)
      }
      try expect(content.count, announced: size, .read, path)
      return content
    }
  }

  /// See ``SharedDirectory/byteCount(of:)``.
  public func byteCount(of path: RelativePath) throws -> Int {
    try perform(.read, path) { try openRegularFile(path, .read, limit: .max).size }
  }

  /// See ``SharedDirectory/download(_:to:limit:progress:)``.
  public func download(
    _ path: RelativePath, to localFile: String, limit: Int, progress: TransferProgress
  ) throws {
    try perform(.download, path) {
      let (file, size) = try openRegularFile(path, .download, limit: limit)
      let local = try LocalFile(creating: localFile)
      do {
        try progress(0, size)
        var done = 0
        var chunk = [UInt8](repeating: 0, count: Self.chunkSize)
        while true {
          let count = try chunk.withUnsafeMutableBytes { try file.read(into: $0, at: done) }
          guard count > 0 else { break }
          try local.write(chunk[..<count])
          done += count
          guard done <= size else { break }
          try progress(done, size)
        }
        try expect(done, announced: size, .download, path)
        try local.finish()
      } catch {
        local.discard()
        throw error
      }
    }
  }

  /// See ``SharedDirectory/remove(_:)``.
  public func remove(_ path: RelativePath) throws {
    guard let parent = path.parent else {
      throw self.error(.invalidPath, .remove, path, "the root is not removed")
    }
    try perform(.remove, path) {
      do {
        let folder = try openFolder(parent)
        let isFolder = try kind(of: path.name, in: folder) == .folder
        try tell(.remove(path))
        if isFolder {
          try SystemFailure.check("rmdir") {
            unlinkat(folder.descriptor, path.name, Int32(AT_REMOVEDIR))
          }
        } else {
          try SystemFailure.check("unlink") { unlinkat(folder.descriptor, path.name, 0) }
        }
      } catch let failure as SystemFailure where failure.number == ENOENT {
        return
      }
    }
  }

  /// See ``SharedDirectory/removeLeftovers(of:)``.
  public func removeLeftovers(of client: ClientIdentifier) throws {
    let path = DirectoryLayout.temporary(of: client)
    try perform(.removeLeftovers, path) {
      do {
        let folder = try openFolder(path)
        for entry in try entries(of: try openFolder(path)) where entry.kind != .folder {
          if let leftover = path.appending(entry.name) { try tell(.remove(leftover)) }
          do {
            try SystemFailure.check("unlink") { unlinkat(folder.descriptor, entry.name, 0) }
          } catch let failure as SystemFailure where [ENOENT, EISDIR].contains(failure.number) {
            continue
          }
        }
      } catch let failure as SystemFailure where failure.number == ENOENT {
        return
      }
    }
  }

  /// The number of bytes that a copy reads and writes at a time.
  static let chunkSize = 1 << 20
}
