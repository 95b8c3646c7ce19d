import SyncModel

/// Receives the number of bytes that have been moved, and the number of all bytes.
///
/// Called before the first byte, now and then, and after the last. If it
/// throws, the transfer ends, leaves nothing behind that counts, and throws
/// the error unchanged: this is how a transfer is cancelled.
public typealias TransferProgress = (_ done: Int, _ total: Int) throws -> Void

/// The access to a shared directory that a caller needs.
public enum DirectoryAccess: Hashable, Sendable {
  /// List and read.
  case reading
  /// Publish and remove as well.
  case writing
}

/// The directory that devices share, whatever kind of storage it uses.
///
/// It knows folders and files of bytes, but not their meaning; see
/// `DirectoryLayout` for the names. Every call blocks its thread, may be
/// made from any thread, and throws a ``DirectoryError`` or the error of a
/// progress closure. No call retries; ``RetryingDirectory`` does, for
/// errors that may pass.
///
/// A kind of directory is correct if it passes `DirectoryConformance` of
/// DocumentSyncTesting.
public protocol SharedDirectory: Sendable {
  /// The name of the directory in messages: a path or an address.
  var location: String { get }

  /// Throws unless the root exists, is a folder, and seems to allow
  /// `access`. Cheap: lists, reads and writes nothing.
  ///
  /// Codes: `away`, `notADirectory`, `notReadable`, `notWritable`.
  func check(for access: DirectoryAccess) throws

  /// The entries of a folder in no particular order, without a call for
  /// each of them.
  ///
  /// A missing folder gives `notFound`, which proves nothing and
  /// is not retryable: on object stores an empty folder may never appear. A
  /// missing root gives `away`. A file or a symbolic link instead of a
  /// folder gives `notADirectory`.
  func list(_ folder: RelativePath) throws -> [DirectoryEntry]

  /// The whole content of a regular file.
  ///
  /// The call compares the size with `limit` before it takes memory (`tooLarge`).
  /// It follows no symbolic link, neither to the file nor to a folder above it
  /// (`notRegularFile`, `notADirectory`). Fewer bytes than the directory
  /// announced give `transient`; `notFound` is retryable, since the caller
  /// has listed the file before.
  func read(_ path: RelativePath, limit: Int) throws -> [UInt8]

  /// The length of a regular file in bytes, without reading the file if the
  /// directory can tell. Otherwise as ``read(_:limit:)``.
  func byteCount(of path: RelativePath) throws -> Int

  /// Copies a regular file into a new local file, at constant memory.
  ///
  /// `localFile` must not exist yet; its bytes are durable on return, and
  /// the call removes it again if it throws. Otherwise as
  /// ``read(_:limit:)``.
  func download(
    _ path: RelativePath, to localFile: String, limit: Int, progress: TransferProgress
  ) throws

  /// Publishes a file under a name that was never used before.
  ///
  /// The bytes are written below `Temporary/<client>`, flushed, given their
  /// name in one step and read back, so that no reader sees a part of them;
  /// missing folders are created. On return the file is as durable as the
  /// directory can make it. Publishing the same bytes again succeeds and
  /// changes nothing; if the file has other bytes the call throws
  /// `exists`, and the file stays as it is. An author whose file was damaged
  /// removes it and then publishes it again.
  ///
  /// Paths that are not ``RelativePath/isPublishable`` give `invalidPath`.
  func publish(_ content: [UInt8], at path: RelativePath, by client: ClientIdentifier) throws

  /// Publishes a copy of a local file, at constant memory; otherwise as
  /// ``publish(_:at:by:)``.
  func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier,
    progress: TransferProgress
  ) throws

  /// Removes a file, or a folder that is empty (`notEmpty` otherwise).
  /// Removing a file or folder that does not exist succeeds.
  func remove(_ path: RelativePath) throws

  /// Removes the files that a client's unfinished calls left in `Temporary/<client>`.
  ///
  /// That client alone calls it, while it publishes nothing: after a call that
  /// did not end, not on every sync, since it costs a listing.
  func removeLeftovers(of client: ClientIdentifier) throws
}

extension SharedDirectory {
  /// Reads a file to find its length, for directories that have no better
  /// way.
  public func byteCount(of path: RelativePath) throws -> Int {
    try read(path, limit: .max).count
  }

  /// ``download(_:to:limit:progress:)`` without progress.
  public func download(_ path: RelativePath, to localFile: String, limit: Int) throws {
    try download(path, to: localFile, limit: limit) { _, _ in }
  }

  /// ``upload(localFile:to:by:progress:)`` without progress.
  public func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier
  ) throws {
    try upload(localFile: localFile, to: path, by: client) { _, _ in }
  }

  /// Lists a folder and tells our names from foreign ones; only names that `Name`
  /// parses count.
  package func list<Name: DirectoryName>(
    _ folder: RelativePath, as type: Name.Type
  ) throws -> ParsedListing<Name> {
    ParsedListing(try list(folder))
  }

  /// As ``list(_:as:)``, but a missing folder counts as empty.
  /// For folders that appear with their first file.
  package func listIfPresent<Name: DirectoryName>(
    _ folder: RelativePath, as type: Name.Type
  ) throws -> ParsedListing<Name> {
    do {
      return try list(folder, as: type)
    } catch let error as DirectoryError where error.code == .notFound {
      return ParsedListing([])
    }
  }
}
