import DocumentSyncTesting
import SyncDirectory
import SyncModel

/// A directory that is wrong in one thing: it renames over what is there.
struct OverwritingDirectory: SharedDirectory {
  let base = MemoryDirectory()
  var location: String { base.location }

  func check(for access: DirectoryAccess) throws { try base.check(for: access) }
  func list(_ folder: RelativePath) throws -> [DirectoryEntry] { try base.list(folder) }
  func read(_ path: RelativePath, limit: Int) throws -> [UInt8] {
    try base.read(path, limit: limit)
  }
  func download(
    _ path: RelativePath, to localFile: String, limit: Int, progress: TransferProgress
  ) throws {
    try base.download(path, to: localFile, limit: limit, progress: progress)
  }
  func publish(_ content: [UInt8], at path: RelativePath, by client: ClientIdentifier) throws {
    if case .file = base.items[path] { base.take(path) }
    try base.publish(content, at: path, by: client)
  }
  func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier,
    progress: TransferProgress
  ) throws {
    try base.upload(localFile: localFile, to: path, by: client, progress: progress)
  }
  func remove(_ path: RelativePath) throws { try base.remove(path) }
  func removeLeftovers(of client: ClientIdentifier) throws {
    try base.removeLeftovers(of: client)
  }
}
