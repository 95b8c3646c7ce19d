import SyncModel

/// A closure that receives the number of transferred bytes and the total.
///
/// A transfer calls it before the first byte, now and then, and after the last. To cancel the
/// transfer, the closure throws: the transfer ends without publishing or downloading a file, and
/// throws the same error.
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
/// It knows folders and files of bytes, but not their meaning; see `DirectoryLayout` for the names.
/// A call may come from any thread, blocks it, and throws a ``DirectoryError`` or the error of a
/// progress closure. No call retries; ``RetryingDirectory`` repeats calls whose errors may pass.
///
/// A kind of directory is correct if it passes `DirectoryConformance` of DocumentSyncTesting.
public protocol SharedDirectory: Sendable {
  /// The name of the directory in messages: a path or an address.
  var location: String { get }

  /// Throws unless the root exists, is a folder, and seems to allow `access`. The check is cheap:
  /// it lists, reads and writes nothing.
  ///
  /// Codes: `away`, `notADirectory`, `notReadable`, `notWritable`.
  func check(for access: DirectoryAccess) throws

  /// Returns the entries of a folder in no particular order, without a call to the storage for each
  /// entry.
  ///
  /// A missing folder gives `notFound`, which proves nothing and is not retryable: on object stores
  /// an empty folder may never appear. A missing root gives `away`. A file or a symbolic link
  /// instead of a folder gives `notADirectory`.
  func list(_ folder: RelativePath) throws -> [DirectoryEntry]

  /// Returns the whole content of a regular file.
  ///
  /// The call compares the size with `limit` before it takes memory (`tooLarge`). It follows no
  /// symbolic link, neither to the file nor to a folder above it (`notRegularFile`,
  /// `notADirectory`). If fewer bytes arrive than the directory announced, it throws `transient`.
  /// `notFound` is retryable, since the caller has listed the file before.
  func read(_ path: RelativePath, limit: Int) throws -> [UInt8]

  /// Returns the length of a regular file in bytes, if possible without reading the file. The
  /// errors are those of ``read(_:limit:)``.
  func byteCount(of path: RelativePath) throws -> Int

  /// Copies a regular file to a new local file in constant memory.
  ///
  /// `localFile` must not exist yet. On return its bytes are durable; if the call throws, it
  /// removes the file. Otherwise the rules of ``read(_:limit:)`` apply.
  func download(
    _ path: RelativePath, to localFile: String, limit: Int, progress: TransferProgress
  ) throws

  /// Publishes a file under a new name.
  ///
  /// The call creates missing folders, writes the bytes below `Temporary/<client>`, flushes them,
  /// gives the file its name in one step, so that no reader sees a part of it, and reads it back.
  /// On return the file is as durable as the directory can make it.
  ///
  /// Publishing the same bytes again succeeds and changes nothing. If the file exists with other
  /// bytes, the call throws `exists` and does not change it. The author of a damaged file removes
  /// the file, then publishes it again.
  ///
  /// Paths that are not ``RelativePath/isPublishable`` give `invalidPath`.
  func publish(_ content: [UInt8], at path: RelativePath, by client: ClientIdentifier) throws

  /// Publishes a copy of a local file as ``publish(_:at:by:)`` does, in constant memory.
  func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier,
    progress: TransferProgress
  ) throws

  /// Removes a file or an empty folder; throws `notEmpty` if the folder has entries. Removing a
  /// file or folder that does not exist succeeds.
  func remove(_ path: RelativePath) throws

  /// Returns those of the named entries of a folder that other users cannot use although they share
  /// the root; `nil` if there are none, or if this kind of directory has no such permissions.
  ///
  /// Entries that do not exist are no such entries.
  func closedEntries(_ names: [String], in folder: RelativePath) throws -> ClosedEntries?

  /// Returns a stream with an element after files have changed, on whichever device; `nil` if this kind of directory
  /// cannot tell. Changes that come before the element is taken coalesce. The stream ends if the directory can
  /// no longer tell. Elements without a change do no harm.
  func changes() -> AsyncStream<Void>?

  /// Removes the files that a client's interrupted calls left in `Temporary/<client>`.
  ///
  /// Only that client calls it, and only while it publishes nothing: at start-up, not on every
  /// sync, since it costs a listing.
  func removeLeftovers(of client: ClientIdentifier) throws
}

extension SharedDirectory {
  /// Returns `nil`: changes are noticed only by looking.
  public func changes() -> AsyncStream<Void>? { nil }

  /// Returns `nil`, for kinds of directories that have no permissions.
  public func closedEntries(_ names: [String], in folder: RelativePath) throws -> ClosedEntries? {
    nil
  }

  /// Reads a file to get its length, for directories that have no better way.
  public func byteCount(of path: RelativePath) throws -> Int {
    try read(path, limit: .max).count
  }

  /// Calls ``download(_:to:limit:progress:)`` without progress.
  public func download(_ path: RelativePath, to localFile: String, limit: Int) throws {
    try download(path, to: localFile, limit: limit) { _, _ in }
  }

  /// Calls ``upload(localFile:to:by:progress:)`` without progress.
  public func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier
  ) throws {
    try upload(localFile: localFile, to: path, by: client) { _, _ in }
  }

  /// Lists a folder and separates our names, those that `Name` parses, from foreign ones.
  package func list<Name: DirectoryName>(
    _ folder: RelativePath, as type: Name.Type
  ) throws -> ParsedListing<Name> {
    ParsedListing(try list(folder))
  }

  /// Lists as ``list(_:as:)`` does, but treats a missing folder as empty: for folders that appear
  /// with their first file.
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
