import SyncModel

/// Told how many bytes have been moved and how many there are.
///
/// Called before the first byte, now and then, and after the last. What it
/// throws ends the transfer, which then leaves nothing behind that counts,
/// and is thrown on unchanged: this is how a transfer is cancelled.
public typealias TransferProgress = (_ done: Int, _ total: Int) throws -> Void

/// What a caller is about to do with a shared directory.
public enum DirectoryAccess: Hashable, Sendable {
  /// List and read.
  case reading
  /// Publish and remove as well.
  case writing
}

/// The place that devices share, whatever kind of place it is.
///
/// It knows folders and files of bytes, and nothing of what they mean; see
/// ``DirectoryLayout`` for the names. Every call blocks its thread, may be
/// made from any thread, and throws a ``DirectoryError`` or whatever a
/// progress closure throws. No call retries; ``RetryingDirectory`` does, for
/// the errors that say they may pass.
///
/// A kind of directory is right when it passes `DirectoryConformance` of
/// DocumentSyncTesting.
public protocol SharedDirectory: Sendable {
  /// What to call the directory in a sentence: a path or an address.
  var location: String { get }

  /// Throws unless the root is there, is a folder, and seems to allow
  /// `access`. Cheap: lists, reads and writes nothing.
  ///
  /// Codes: `away`, `notADirectory`, `notReadable`, `notWritable`.
  func check(for access: DirectoryAccess) throws

  /// The entries of a folder in no particular order, without looking at
  /// each of them.
  ///
  /// A folder that is not there gives `notFound`, which proves nothing and
  /// is not retryable: on object stores an empty folder may never appear. A
  /// root that is not there gives `away`. A file or a symbolic link where a
  /// folder should be gives `notADirectory`.
  func list(_ folder: RelativePath) throws -> [DirectoryEntry]

  /// The whole content of a regular file.
  ///
  /// The size is compared with `limit` before memory is taken (`tooLarge`).
  /// No symbolic link is followed, neither here nor above
  /// (`notRegularFile`, `notADirectory`). Fewer bytes than the directory
  /// announced give `transient`; `notFound` is retryable, for whoever reads
  /// has listed before.
  func read(_ path: RelativePath, limit: Int) throws -> [UInt8]

  /// The length of a regular file in bytes, without reading it where the
  /// directory can tell. Otherwise as ``read(_:limit:)``.
  func byteCount(of path: RelativePath) throws -> Int

  /// Copies a regular file into a new local file, at constant memory.
  ///
  /// `localFile` must not exist yet; its bytes are durable on return, and
  /// it is removed again when the call throws. Otherwise as
  /// ``read(_:limit:)``.
  func download(
    _ path: RelativePath, to localFile: String, limit: Int, progress: TransferProgress
  ) throws

  /// Publishes a file under a name that was never used before.
  ///
  /// The bytes are written below `Temporary/<client>`, flushed, given their
  /// name in one step and read back, so that no reader sees a part of them;
  /// missing folders are created. On return the file is as durable as the
  /// directory can make it. To publish the same bytes again succeeds and
  /// changes nothing; if the name holds other bytes the call throws
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
  /// Removing what is not there succeeds.
  func remove(_ path: RelativePath) throws

  /// Removes what a client's unfinished calls left in `Temporary/<client>`.
  ///
  /// Called by that client alone, while it publishes nothing: at start-up,
  /// not on every sync, since it costs a listing.
  func removeLeftovers(of client: ClientIdentifier) throws
}

extension SharedDirectory {
  /// The length of a file by reading it, for directories that have no better
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

  /// Lists a folder and tells our names from foreign ones; what `Name`
  /// parses are the only names that count.
  public func list<Name: DirectoryName>(
    _ folder: RelativePath, as type: Name.Type
  ) throws -> ParsedListing<Name> {
    ParsedListing(try list(folder))
  }

  /// As ``list(_:as:)``, with a folder that is not there taken as empty.
  /// For folders that appear with their first file.
  public func listIfPresent<Name: DirectoryName>(
    _ folder: RelativePath, as type: Name.Type
  ) throws -> ParsedListing<Name> {
    do {
      return try list(folder, as: type)
    } catch let error as DirectoryError where error.code == .notFound {
      return ParsedListing([])
    }
  }
}
