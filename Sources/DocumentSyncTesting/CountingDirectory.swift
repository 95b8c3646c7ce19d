import SyncDirectory
import SyncModel

/// A directory that counts the calls that it passes to another one.
public final class CountingDirectory: SharedDirectory {
  /// The number of calls of each kind, failed ones included.
  public struct Counts: Hashable, Sendable {
    /// Calls of `check(for:)`.
    public var checks = 0
    /// Calls of `list(_:)`.
    public var listings = 0
    /// Calls of `read` and `download`.
    public var reads = 0
    /// Calls of `byteCount(of:)`.
    public var measurements = 0
    /// Calls of `publish` and `upload`.
    public var writes = 0
    /// Calls of `remove` and `removeLeftovers`.
    public var removals = 0
    /// The paths listed, in order of the calls.
    public var listed: [RelativePath] = []
    /// The paths read, in order of the calls.
    public var read: [RelativePath] = []
    /// The paths published, in order of the calls.
    public var written: [RelativePath] = []

    /// Creates counts of zero.
    public init() {}
  }

  /// The directory that does the work.
  public let base: any SharedDirectory
  private let state = Locked(Counts())

  /// Wraps `base`.
  public init(_ base: any SharedDirectory) { self.base = base }

  /// The calls since the last reset.
  public var counts: Counts { state.withLock { $0 } }

  /// Resets the counts to zero; returns the former counts.
  @discardableResult
  public func reset() -> Counts {
    state.withLock { counts in
      defer { counts = Counts() }
      return counts
    }
  }

  /// The location of the base.
  public var location: String { base.location }

  /// See `SharedDirectory`.
  public func check(for access: DirectoryAccess) throws {
    state.withLock { $0.checks += 1 }
    try base.check(for: access)
  }

  /// See `SharedDirectory.changes()`.
  public func changes() -> AsyncStream<Void>? { base.changes() }

  /// See `SharedDirectory`.
  public func list(_ folder: RelativePath) throws -> [DirectoryEntry] {
    state.withLock {
      $0.listings += 1
      $0.listed.append(folder)
    }
    return try base.list(folder)
  }

  /// See `SharedDirectory`.
  public func read(_ path: RelativePath, limit: Int) throws -> [UInt8] {
    countRead(path)
    return try base.read(path, limit: limit)
  }

  /// See `SharedDirectory`.
  public func byteCount(of path: RelativePath) throws -> Int {
    state.withLock { $0.measurements += 1 }
    return try base.byteCount(of: path)
  }

  /// See `SharedDirectory`.
  public func download(
    _ path: RelativePath, to localFile: String, limit: Int, progress: TransferProgress
  ) throws {
    countRead(path)
    try base.download(path, to: localFile, limit: limit, progress: progress)
  }

  /// See `SharedDirectory`.
  public func publish(
    _ content: [UInt8], at path: RelativePath, by client: ClientIdentifier
  ) throws {
    countWrite(path)
    try base.publish(content, at: path, by: client)
  }

  /// See `SharedDirectory`.
  public func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier,
    progress: TransferProgress
  ) throws {
    countWrite(path)
    try base.upload(localFile: localFile, to: path, by: client, progress: progress)
  }

  /// See `SharedDirectory`.
  public func remove(_ path: RelativePath) throws {
    state.withLock { $0.removals += 1 }
    try base.remove(path)
  }

  /// See `SharedDirectory`.
  public func removeLeftovers(of client: ClientIdentifier) throws {
    state.withLock { $0.removals += 1 }
    try base.removeLeftovers(of: client)
  }

  private func countRead(_ path: RelativePath) {
    state.withLock {
      $0.reads += 1
      $0.read.append(path)
    }
  }

  private func countWrite(_ path: RelativePath) {
    state.withLock {
      $0.writes += 1
      $0.written.append(path)
    }
  }
}
