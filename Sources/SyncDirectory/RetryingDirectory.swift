import SyncModel

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A directory that repeats calls of another one if their errors may pass
/// (``DirectoryError/isRetryable``), a bounded number of times.
///
/// All calls can be repeated safely. A repeated transfer starts from its first byte, and so does
/// its progress.
public struct RetryingDirectory: SharedDirectory {
  /// The number of attempts and the waits between them.
  public struct Policy: Hashable, Sendable {
    /// The waits between attempts. There is one attempt more than there are waits.
    public var delays: [Duration]

    /// Creates a policy with the given waits.
    public init(delays: [Duration]) { self.delays = delays }

    /// Four attempts within about two thirds of a second.
    public static let standard = Policy(
      delays: [.milliseconds(20), .milliseconds(120), .milliseconds(500)])
    /// One attempt.
    public static let none = Policy(delays: [])
  }

  /// A function that waits on the calling thread. If it throws, the call ends with its error.
  public typealias Sleep = @Sendable (Duration) throws -> Void

  /// The directory whose calls this one repeats.
  public let base: any SharedDirectory
  private let policy: Policy
  private let sleep: Sleep

  /// Wraps `base`.
  public init(
    _ base: any SharedDirectory, policy: Policy = .standard,
    sleep: @escaping Sleep = { Self.sleepOnThread($0) }
  ) {
    self.base = base
    self.policy = policy
    self.sleep = sleep
  }

  /// Blocks the calling thread for the given time.
  public static func sleepOnThread(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    var remaining = timespec(
      tv_sec: time_t(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    var unslept = timespec()
    while nanosleep(&remaining, &unslept) < 0, errno == EINTR { remaining = unslept }
  }

  private func retrying<Result>(_ body: () throws -> Result) throws -> Result {
    for delay in policy.delays {
      do {
        return try body()
      } catch let error as DirectoryError where error.isRetryable {
        try sleep(delay)
      }
    }
    return try body()
  }

  /// The location of the base.
  public var location: String { base.location }

  /// See ``SharedDirectory/check(for:)``.
  public func check(for access: DirectoryAccess) throws {
    try retrying { try base.check(for: access) }
  }

  /// See ``SharedDirectory/changes()``.
  public func changes() -> AsyncStream<Void>? { base.changes() }

  /// See ``SharedDirectory/list(_:)``.
  public func list(_ folder: RelativePath) throws -> [DirectoryEntry] {
    try retrying { try base.list(folder) }
  }

  /// See ``SharedDirectory/closedEntries(_:in:)``.
  public func closedEntries(_ names: [String], in folder: RelativePath) throws -> ClosedEntries? {
    try retrying { try base.closedEntries(names, in: folder) }
  }

  /// See ``SharedDirectory/read(_:limit:)``.
  public func read(_ path: RelativePath, limit: Int) throws -> [UInt8] {
    try retrying { try base.read(path, limit: limit) }
  }

  /// See ``SharedDirectory/byteCount(of:)``.
  public func byteCount(of path: RelativePath) throws -> Int {
    try retrying { try base.byteCount(of: path) }
  }

  /// See ``SharedDirectory/download(_:to:limit:progress:)``.
  public func download(
    _ path: RelativePath, to localFile: String, limit: Int, progress: TransferProgress
  ) throws {
    try retrying {
      try base.download(path, to: localFile, limit: limit, progress: progress)
    }
  }

  /// See ``SharedDirectory/publish(_:at:by:)``.
  public func publish(
    _ content: [UInt8], at path: RelativePath, by client: ClientIdentifier
  ) throws {
    try retrying { try base.publish(content, at: path, by: client) }
  }

  /// See ``SharedDirectory/upload(localFile:to:by:progress:)``.
  public func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier,
    progress: TransferProgress
  ) throws {
    try retrying {
      try base.upload(localFile: localFile, to: path, by: client, progress: progress)
    }
  }

  /// See ``SharedDirectory/remove(_:)``.
  public func remove(_ path: RelativePath) throws {
    try retrying { try base.remove(path) }
  }

  /// See ``SharedDirectory/removeLeftovers(of:)``.
  public func removeLeftovers(of client: ClientIdentifier) throws {
    try retrying { try base.removeLeftovers(of: client) }
  }
}
