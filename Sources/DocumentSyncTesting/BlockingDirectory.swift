import Foundation
import SyncDirectory
import SyncModel

/// A directory whose calls, from a chosen one on, do not return until the test releases them, as if
/// its server had stopped.
public final class BlockingDirectory: SharedDirectory, @unchecked Sendable {
  private let base: any SharedDirectory
  private let condition = NSCondition()
  private var calls = 0
  private var first = Int.max
  private var blocked = 0

  /// Wraps `base`. No call blocks yet.
  public init(_ base: any SharedDirectory) { self.base = base }

  /// The number of calls so far.
  public var callCount: Int { condition.withLock { calls } }

  /// The number of calls that are blocked now.
  public var blockedCount: Int { condition.withLock { blocked } }

  /// Blocks the call with the given number, counted from now on, and all later calls.
  public func block(fromCall number: Int) {
    condition.withLock { first = calls + number }
  }

  /// Lets all blocked calls and all later calls continue.
  public func release() {
    condition.withLock {
      first = .max
      condition.broadcast()
    }
  }

  private func pass() -> any SharedDirectory {
    condition.withLock {
      calls += 1
      let number = calls
      blocked += 1
      while number >= first { condition.wait() }
      blocked -= 1
    }
    return base
  }

  /// See `SharedDirectory.changes()`.
  public func changes() -> AsyncStream<Void>? { base.changes() }

  /// The location of the base.
  public var location: String { base.location }
  /// See `SharedDirectory`.
  public func check(for access: DirectoryAccess) throws { try pass().check(for: access) }
  /// See `SharedDirectory`.
  public func list(_ folder: RelativePath) throws -> [DirectoryEntry] { try pass().list(folder) }
  /// See `SharedDirectory`.
  public func read(_ path: RelativePath, limit: Int) throws -> [UInt8] {
    try pass().read(path, limit: limit)
  }
  /// See `SharedDirectory`.
  public func byteCount(of path: RelativePath) throws -> Int { try pass().byteCount(of: path) }
  /// See `SharedDirectory`.
  public func download(
    _ path: RelativePath, to localFile: String, limit: Int, progress: TransferProgress
  ) throws {
    try pass().download(path, to: localFile, limit: limit, progress: progress)
  }
  /// See `SharedDirectory`.
  public func publish(_ content: [UInt8], at path: RelativePath, by client: ClientIdentifier) throws
  {
    try pass().publish(content, at: path, by: client)
  }
  /// See `SharedDirectory`.
  public func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier,
    progress: TransferProgress
  ) throws {
    try pass().upload(localFile: localFile, to: path, by: client, progress: progress)
  }
  /// See `SharedDirectory`.
  public func remove(_ path: RelativePath) throws { try pass().remove(path) }
  /// See `SharedDirectory`.
  public func removeLeftovers(of client: ClientIdentifier) throws {
    try pass().removeLeftovers(of: client)
  }
}
