import SyncModel

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension FolderDirectory {
  /// See ``SharedDirectory/publish(_:at:by:)``.
  public func publish(
    _ content: [UInt8], at path: RelativePath, by client: ClientIdentifier
  ) throws {
    try publish(.bytes(content), .publish, path, by: client) { _, _ in }
  }

  /// See ``SharedDirectory/upload(localFile:to:by:progress:)``.
  public func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier,
    progress: TransferProgress
  ) throws {
    let file = try LocalFile(opening: localFile)
    try publish(.file(file, size: try file.size()), .upload, path, by: client, progress)
  }

  /// The content of a file to publish.
  private enum Content {
    case bytes([UInt8])
    case file(LocalFile, size: Int)

    var size: Int {
      switch self {
      case .bytes(let bytes): bytes.count
      case .file(_, let size): size
      }
    }

    func piece(at offset: Int, count: Int) throws -> ArraySlice<UInt8> {
      switch self {
      case .bytes(let bytes): bytes[offset..<(offset + count)]
      case .file(let file, _): try file.read(exactly: count, at: offset)[...]
      }
    }
  }

  /// Whether a file exists under the name to publish, with the same or other content.
  private enum Presence {
    case absent, same, different
  }

  /// The greatest size, in bytes, of content that is compared byte by byte after publishing. For
  /// larger content only the size is compared.
  private static let readBackLimit = 1 << 16

  private func publish(
    _ content: Content, _ operation: DirectoryError.Operation, _ path: RelativePath,
    by client: ClientIdentifier, _ progress: TransferProgress
  ) throws {
    guard path.isPublishable, let parent = path.parent else {
      throw error(.invalidPath, operation, path)
    }
    try perform(operation, path) {
      let folder = try createFolder(parent)
      var presence = try presence(of: content, as: path.name, in: folder)
      if presence == .absent {
        presence = try place(content, as: path, in: folder, by: client, progress)
      }
      guard presence != .different else { throw error(.exists, operation, path) }
      let file = try OpenFile(in: folder, name: path.name, flags: O_RDONLY | O_NONBLOCK)
      // Flush even if the file existed: a crash may have come between an earlier renaming and this
      // flush. Flush the file once more, too: FAT stores its length in the folder, where renaming
      // at first writes 0.
      try tell(.flushFile(path))
      try file.flushWherePossible()
      try tell(.flushFolder(parent))
      try folder.flushWherePossible()
      guard try presence == .same || isWhole(file, content) else {
        throw error(.damaged, operation, path)
      }
    }
  }

  /// Writes a temporary file and renames it, unless the name has come to exist in the meantime.
  /// Returns what existed under the name before renaming.
  private func place(
    _ content: Content, as path: RelativePath, in folder: OpenFile, by client: ClientIdentifier,
    _ progress: TransferProgress
  ) throws -> Presence {
    let (name, temporaryFolder) = (path.name, DirectoryLayout.temporary(of: client))
    let unfinished = try createFolder(temporaryFolder)
    // No device reads this name, so a repeated simulation need not draw the same one.
    let temporaryName = ClientIdentifier.random().description
    let temporary = temporaryFolder.appending(trusted: temporaryName)
    func discard() {
      // If this fails, `removeLeftovers(of:)` removes the file later.
      _ = unlinkat(unfinished.descriptor, temporaryName, 0)
    }
    do {
      try tell(.create(temporary))
      let file = try OpenFile(
        in: unfinished, name: temporaryName, flags: O_WRONLY | O_CREAT | O_EXCL)
      try SharedGroup(root: try openRoot())?.open(file)
      try write(content, to: file, at: temporary, progress)
      try tell(.flushFile(temporary))
      try file.flush()
      try file.close()
      let presence = try presence(of: content, as: name, in: folder)
      if presence == .absent {
        try tell(.rename(temporary, to: path))
        try SystemFailure.check("rename") {
          renameat(unfinished.descriptor, temporaryName, folder.descriptor, name)
        }
        // Flush the temporary folder before the file's new folder: on FAT, if a power cut restored
        // the old name, it would share the space of the published file.
        try tell(.flushFolder(temporaryFolder))
        try unfinished.flushWherePossible()
      } else {
        discard()
      }
      return presence
    } catch let failure as SystemFailure where failure.call == "rename" {
      discard()
      // Some mounts rename and then report a failure. Others refuse if the name exists, with one of
      // several errors.
      let presence = try presence(of: content, as: name, in: folder)
      if presence == .absent { throw failure }
      return presence
    } catch {
      discard()
      throw error
    }
  }

  private func write(
    _ content: Content, to file: OpenFile, at path: RelativePath, _ progress: TransferProgress
  ) throws {
    let size = content.size
    try progress(0, size)
    var done = 0
    while done < size {
      let piece = try content.piece(at: done, count: min(Self.chunkSize, size - done))
      try tell(.write(path, Array(piece)))
      try piece.withUnsafeBytes { try file.write($0) }
      done += piece.count
      try progress(done, size)
    }
  }

  private func presence(
    of content: Content, as name: String, in folder: OpenFile
  ) throws -> Presence {
    do {
      guard try kind(of: name, in: folder) == .file else { return .different }
      let file = try OpenFile(in: folder, name: name, flags: O_RDONLY | O_NONBLOCK)
      return try holds(file, content) ? .same : .different
    } catch let failure as SystemFailure where failure.number == ENOENT {
      return .absent
    }
  }

  private func isWhole(_ file: OpenFile, _ content: Content) throws -> Bool {
    content.size <= Self.readBackLimit
      ? try holds(file, content) : try file.status().size == content.size
  }

  /// Returns whether a file has exactly the given bytes.
  private func holds(_ file: OpenFile, _ content: Content) throws -> Bool {
    let size = content.size
    let status = try file.status()
    guard status.isRegular, status.size == size else { return false }
    var buffer = [UInt8](repeating: 0, count: min(Self.chunkSize, size))
    var done = 0
    while done < size {
      let wanted = min(buffer.count, size - done)
      let count = try buffer.withUnsafeMutableBytes { bytes in
        try file.read(
          into: UnsafeMutableRawBufferPointer(start: bytes.baseAddress, count: wanted), at: done)
      }
      guard count == wanted, try content.piece(at: done, count: wanted) == buffer[..<wanted]
      else { return false }
      done += wanted
    }
    return true
  }
}
