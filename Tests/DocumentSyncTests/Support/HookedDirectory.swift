import Foundation
import SyncDirectory
import SyncModel
import Testing

/// Runs a closure before one call on another directory, the first unless
/// said otherwise.
final class HookedDirectory: SharedDirectory, @unchecked Sendable {
  private let base: any SharedDirectory
  private let lock = NSLock()
  private let hook: @Sendable () -> Void
  private var callsLeft: Int

  init(
    _ base: any SharedDirectory, beforeCall number: Int = 1, _ hook: @escaping @Sendable () -> Void
  ) {
    self.base = base
    self.hook = hook
    callsLeft = number
  }

  /// Whether the call came.
  var wasCalled: Bool { lock.withLock { callsLeft <= 0 } }

  /// Waits until the calls that a cancelled operation has abandoned return: until then they may
  /// change the directory.
  func waitForAbandonedCalls() async throws {
    let limited = TimeLimitedDirectory(self, limit: .zero)
    for _ in 0..<120_000 {
      if limited.stuckCallCount == 0 { return }
      try await Task.sleep(for: .milliseconds(2))
    }
    Issue.record("abandoned calls do not return")
  }

  private var next: any SharedDirectory {
    let isDue = lock.withLock {
      callsLeft -= 1
      return callsLeft == 0
    }
    if isDue { hook() }
    return base
  }

  var location: String { base.location }
  func check(for access: DirectoryAccess) throws { try next.check(for: access) }
  func list(_ folder: RelativePath) throws -> [DirectoryEntry] { try next.list(folder) }
  func read(_ path: RelativePath, limit: Int) throws -> [UInt8] {
    try next.read(path, limit: limit)
  }
  func byteCount(of path: RelativePath) throws -> Int { try next.byteCount(of: path) }
  func download(
    _ path: RelativePath, to localFile: String, limit: Int, progress: TransferProgress
  ) throws { try next.download(path, to: localFile, limit: limit, progress: progress) }
  func publish(_ content: [UInt8], at path: RelativePath, by client: ClientIdentifier) throws {
    try next.publish(content, at: path, by: client)
  }
  func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier,
    progress: TransferProgress
  ) throws { try next.upload(localFile: localFile, to: path, by: client, progress: progress) }
  func remove(_ path: RelativePath) throws { try next.remove(path) }
  func removeLeftovers(of client: ClientIdentifier) throws {
    try next.removeLeftovers(of: client)
  }
}

/// Runs a closure after each publication of a file whose path contains a part.
final class HookedPublication: SharedDirectory, @unchecked Sendable {
  private let base: any SharedDirectory
  private let part: String
  private let hook: @Sendable () -> Void

  init(_ base: any SharedDirectory, part: String, _ hook: @escaping @Sendable () -> Void) {
    self.base = base
    self.part = part
    self.hook = hook
  }

  var location: String { base.location }
  func check(for access: DirectoryAccess) throws { try base.check(for: access) }
  func list(_ folder: RelativePath) throws -> [DirectoryEntry] { try base.list(folder) }
  func read(_ path: RelativePath, limit: Int) throws -> [UInt8] {
    try base.read(path, limit: limit)
  }
  func download(
    _ path: RelativePath, to localFile: String, limit: Int, progress: TransferProgress
  ) throws { try base.download(path, to: localFile, limit: limit, progress: progress) }
  func publish(_ content: [UInt8], at path: RelativePath, by client: ClientIdentifier) throws {
    try base.publish(content, at: path, by: client)
    if path.description.contains(part) { hook() }
  }
  func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier,
    progress: TransferProgress
  ) throws {
    try base.upload(localFile: localFile, to: path, by: client, progress: progress)
    if path.description.contains(part) { hook() }
  }
  func remove(_ path: RelativePath) throws { try base.remove(path) }
  func removeLeftovers(of client: ClientIdentifier) throws {
    try base.removeLeftovers(of: client)
  }
}

/// Runs a closure before the first read or download of a file whose path
/// contains a part.
final class HookedRead: SharedDirectory, @unchecked Sendable {
  private let base: any SharedDirectory
  private let part: String
  private let lock = NSLock()
  private let hook: @Sendable () -> Void
  private var isDone = false

  init(_ base: any SharedDirectory, part: String, _ hook: @escaping @Sendable () -> Void) {
    self.base = base
    self.part = part
    self.hook = hook
  }

  /// Whether the read came.
  var wasCalled: Bool { lock.withLock { isDone } }

  var location: String { base.location }
  func check(for access: DirectoryAccess) throws { try base.check(for: access) }
  func list(_ folder: RelativePath) throws -> [DirectoryEntry] { try base.list(folder) }
  func read(_ path: RelativePath, limit: Int) throws -> [UInt8] {
    runHook(path)
    return try base.read(path, limit: limit)
  }
  func download(
    _ path: RelativePath, to localFile: String, limit: Int, progress: TransferProgress
  ) throws {
    runHook(path)
    try base.download(path, to: localFile, limit: limit, progress: progress)
  }
  private func runHook(_ path: RelativePath) {
    lock.withLock {
      guard !isDone, path.description.contains(part) else { return }
      isDone = true
      hook()
    }
  }
  func publish(_ content: [UInt8], at path: RelativePath, by client: ClientIdentifier) throws {
    try base.publish(content, at: path, by: client)
  }
  func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier,
    progress: TransferProgress
  ) throws { try base.upload(localFile: localFile, to: path, by: client, progress: progress) }
  func remove(_ path: RelativePath) throws { try base.remove(path) }
  func removeLeftovers(of client: ClientIdentifier) throws {
    try base.removeLeftovers(of: client)
  }
}
