#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension FolderDirectory {
  /// Opens the root; follows symbolic links.
  func openRoot() throws -> OpenFile {
    do {
      return try OpenFile(path: root, flags: O_RDONLY | O_DIRECTORY | O_NONBLOCK)
    } catch let failure as SystemFailure {
      throw RootFailure(failure: failure)
    }
  }

  /// Opens a folder name by name, so that it follows no link below the root.
  func openFolder(_ path: RelativePath) throws -> OpenFile {
    var folder = try openRoot()
    for name in path.components { folder = try Self.openFolder(name, in: folder) }
    return folder
  }

  /// Opens a folder as ``openFolder(_:)`` does; creates missing folders and flushes their names.
  /// Opens the folders of this user to the group that shares the root.
  func createFolder(_ path: RelativePath) throws -> OpenFile {
    var folder = try openRoot()
    let group = try SharedGroup(root: folder)
    var reached = RelativePath.root
    for name in path.components {
      let parent = reached
      reached = parent.appending(trusted: name)
      do {
        folder = try Self.openFolder(name, in: folder)
      } catch let failure as SystemFailure where failure.number == ENOENT {
        try tell(.makeFolder(reached))
        do {
          try SystemFailure.check("mkdir") { mkdirat(folder.descriptor, name, 0o777) }
        } catch let failure as SystemFailure where failure.number == EEXIST {
          // Another client was faster, or the lookup was stale.
        }
        try tell(.flushFolder(parent))
        try folder.flushWherePossible()
        folder = try Self.openFolder(name, in: folder)
      }
      try group?.open(folder)
    }
    return folder
  }

  private static func openFolder(
    _ name: String, in folder: OpenFile
  ) throws -> OpenFile {
    try OpenFile(in: folder, name: name, flags: O_RDONLY | O_DIRECTORY | O_NONBLOCK)
  }

  /// Opens a regular file of at most `limit` bytes.
  func openRegularFile(
    _ path: RelativePath, _ operation: DirectoryError.Operation, limit: Int
  ) throws -> (file: OpenFile, size: Int) {
    guard let parent = path.parent else { throw error(.notRegularFile, operation, path) }
    let folder = try openFolder(parent)
    let file: OpenFile
    do {
      // Without O_NONBLOCK a named pipe would wait for a writer.
      file = try OpenFile(in: folder, name: path.name, flags: O_RDONLY | O_NONBLOCK)
    } catch let failure as SystemFailure
      where [ELOOP, EMLINK, ENXIO, EISDIR].contains(failure.number)
    {
      throw error(.notRegularFile, operation, path, underlying: failure)
    }
    let status = try file.status()
    guard status.isRegular else { throw error(.notRegularFile, operation, path) }
    guard status.size <= limit else {
      throw error(.tooLarge, operation, path, "\(status.size) bytes, allowed are \(limit)")
    }
    return (file, status.size)
  }

  /// Throws `transient` unless as many bytes arrived as the directory announced.
  func expect(
    _ count: Int, announced size: Int, _ operation: DirectoryError.Operation, _ path: RelativePath
  ) throws {
    guard count != size else { return }
    let came = count < size ? "only \(count)" : "more"
    throw error(.transient, operation, path, "\(came) of \(size) bytes came")
  }

  /// Reads a folder's names, and their kinds if the file system lists them.
  func entries(of folder: OpenFile) throws -> [DirectoryEntry] {
    // The stream closes its descriptor, so it gets a copy.
    let copy = try SystemFailure.check("dup") { fcntl(folder.descriptor, F_DUPFD_CLOEXEC, 0) }
    guard let stream = fdopendir(copy) else {
      let failure = SystemFailure(number: errno, call: "fdopendir")
      _ = close(copy)
      throw failure
    }
    defer { closedir(stream) }
    var entries: [DirectoryEntry] = []
    while true {
      errno = 0
      guard let record = readdir(stream) else {
        let number = errno
        if number != 0 { throw SystemFailure(number: number, call: "readdir") }
        return entries
      }
      let bytes = UnsafeRawPointer(record) + Self.nameOffset
      let name = String(cString: bytes.assumingMemoryBound(to: UInt8.self))
      if name == "." || name == ".." { continue }
      entries.append(DirectoryEntry(name: name, kind: Self.kind(record.pointee.d_type)))
    }
  }

  private static let nameOffset: Int = {
    guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else {
      preconditionFailure("dirent stores its name")
    }
    return offset
  }()

  private static func kind(_ type: UInt8) -> DirectoryEntry.Kind {
    switch Int(type) {
    case Int(DT_REG): .file
    case Int(DT_DIR): .folder
    case Int(DT_UNKNOWN): .unknown
    default: .other
    }
  }

  /// Asks the file system for the kind of an entry; throws `ENOENT` if there is none.
  func kind(of name: String, in folder: OpenFile) throws -> DirectoryEntry.Kind {
    switch try systemStatus(of: name, in: folder).st_mode & S_IFMT {
    case S_IFREG: .file
    case S_IFDIR: .folder
    default: .other
    }
  }

  /// Returns what the system knows about an entry; throws `ENOENT` if there is none.
  func systemStatus(of name: String, in folder: OpenFile) throws -> stat {
    var status = stat()
    try SystemFailure.check("fstatat") {
      fstatat(folder.descriptor, name, &status, Int32(AT_SYMLINK_NOFOLLOW))
    }
    return status
  }
}
