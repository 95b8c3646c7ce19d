import Foundation
import SyncModel
import Synchronization

/// A directory that stops waiting for calls of another one that do not return, because a server has
/// stopped or a mount has lost its daemon.
///
/// The system cannot interrupt such a call, so each runs on a thread of its own. The caller
/// abandons that thread when the time is up (`noAnswer`) or when ``DirectoryPatience/check``
/// throws. While an abandoned thread is stuck, later calls on that directory throw `noAnswer` at
/// once. So there are never more abandoned threads than there were simultaneous calls.
package struct TimeLimitedDirectory: SharedDirectory {
  /// The assumed speed of publishing, in bytes per second, by which a call gets more time.
  static let bytesPerSecond = 256 << 10

  /// The directory that does the work.
  package let base: any SharedDirectory
  private let limit: Duration
  private let now: @Sendable () -> ContinuousClock.Instant
  private let stuck: StuckCalls

  /// Wraps `base`.
  ///
  /// - Parameters:
  ///   - limit: How long a call may take without progress. A call that publishes gets one more
  ///     second for each 256 KiB, since some mounts send the bytes when the file is closed.
  ///   - now: Returns the present time, by which the limit is measured.
  package init(
    _ base: any SharedDirectory, limit: Duration,
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.base = base
    self.limit = limit
    self.now = now
    stuck = StuckCalls(of: base)
  }

  /// The number of abandoned calls on the base that have not returned.
  package var stuckCallCount: Int { stuck.count }

  /// The location of the base.
  package var location: String { base.location }

  /// See ``SharedDirectory/check(for:)``.
  package func check(for access: DirectoryAccess) throws {
    try call(.check, .root) { [base] _ in try base.check(for: access) }
  }

  /// See ``SharedDirectory/changes()``.
  package func changes() -> AsyncStream<Void>? {
    do {
      return try call(.list, .root) { [base] _ in base.changes() }
    } catch {
      // A directory that does not answer cannot tell either.
      return nil
    }
  }

  /// See ``SharedDirectory/list(_:)``.
  package func list(_ folder: RelativePath) throws -> [DirectoryEntry] {
    try call(.list, folder) { [base] _ in try base.list(folder) }
  }

  /// See ``SharedDirectory/closedEntries(_:in:)``.
  package func closedEntries(
    _ names: [String], in folder: RelativePath
  ) throws -> ClosedEntries? {
    try call(.list, folder) { [base] _ in try base.closedEntries(names, in: folder) }
  }

  /// See ``SharedDirectory/read(_:limit:)``.
  package func read(_ path: RelativePath, limit: Int) throws -> [UInt8] {
    try call(.read, path) { [base] _ in try base.read(path, limit: limit) }
  }

  /// See ``SharedDirectory/byteCount(of:)``.
  package func byteCount(of path: RelativePath) throws -> Int {
    try call(.read, path) { [base] _ in try base.byteCount(of: path) }
  }

  /// See ``SharedDirectory/download(_:to:limit:progress:)``.
  package func download(
    _ path: RelativePath, to localFile: String, limit: Int, progress: TransferProgress
  ) throws {
    try call(.download, path, progress) { [base] progress in
      try base.download(path, to: localFile, limit: limit, progress: progress)
    }
  }

  /// See ``SharedDirectory/publish(_:at:by:)``.
  package func publish(
    _ content: [UInt8], at path: RelativePath, by client: ClientIdentifier
  ) throws {
    try call(.publish, path, bytes: content.count) { [base] _ in
      try base.publish(content, at: path, by: client)
    }
  }

  /// See ``SharedDirectory/upload(localFile:to:by:progress:)``.
  package func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier,
    progress: TransferProgress
  ) throws {
    let bytes = try LocalFile(opening: localFile).size()
    try call(.upload, path, bytes: bytes, progress) { [base] progress in
      try base.upload(localFile: localFile, to: path, by: client, progress: progress)
    }
  }

  /// See ``SharedDirectory/remove(_:)``.
  package func remove(_ path: RelativePath) throws {
    try call(.remove, path) { [base] _ in try base.remove(path) }
  }

  /// See ``SharedDirectory/removeLeftovers(of:)``.
  package func removeLeftovers(of client: ClientIdentifier) throws {
    try call(.removeLeftovers, DirectoryLayout.temporary(of: client)) { [base] _ in
      try base.removeLeftovers(of: client)
    }
  }

  private func call<Output: Sendable>(
    _ operation: DirectoryError.Operation, _ path: RelativePath, bytes: Int = 0,
    _ progress: TransferProgress = { _, _ in },
    _ body: @escaping @Sendable (TransferProgress) throws -> Output
  ) throws -> Output {
    func noAnswer(_ detail: String) -> DirectoryError {
      DirectoryError(
        .noAnswer, operation, path: path == .root ? location : "\(location)/\(path)",
        detail: detail)
    }
    let check = DirectoryPatience.check
    try check?()
    guard stuck.count == 0 else { throw noAnswer("an earlier call has not returned") }
    let pending = PendingCall<Output>(stuck, now: now)
    CallThreads.shared.run { pending.run(body) }
    let allowed = limit + .seconds(bytes / Self.bytesPerSecond)
    guard let output = try pending.wait(allowed, progress, check) else {
      throw noAnswer("no answer within \(allowed)")
    }
    return output
  }
}

/// The number of abandoned calls on one directory that are stuck.
private final class StuckCalls: Sendable {
  private enum Place: Hashable {
    case object(ObjectIdentifier)
    case location(String)
  }

  private static let counts = Mutex<[Place: Int]>([:])
  private let place: Place

  init(of directory: any SharedDirectory) {
    place =
      type(of: directory) is AnyClass
      ? .object(ObjectIdentifier(directory as AnyObject)) : .location(directory.location)
  }

  var count: Int { Self.counts.withLock { $0[place] ?? 0 } }

  func add(_ change: Int) {
    Self.counts.withLock { counts in
      let count = (counts[place] ?? 0) + change
      counts[place] = count == 0 ? nil : count
    }
  }
}

/// One call: the state that its thread and the waiting caller share.
private final class PendingCall<Output: Sendable>: @unchecked Sendable {
  private struct Left: Error {}

  private let condition = NSCondition()
  /// Wakes the waiting caller. A semaphore waits by a clock that is never set: the waiting of a condition
  /// returns at once if the wall clock is before 1970, and fails if it is thousands of years off.
  private let wake = DispatchSemaphore(value: 0)
  private let stuck: StuckCalls
  private let now: @Sendable () -> ContinuousClock.Instant
  private var result: Result<Output, any Error>?
  private var isLeft = false
  /// The progress that the waiting caller has yet to report.
  private var told: (done: Int, total: Int)?
  /// The error that the progress closure threw.
  private var refusal: (any Error)?

  init(_ stuck: StuckCalls, now: @escaping @Sendable () -> ContinuousClock.Instant) {
    self.stuck = stuck
    self.now = now
  }

  /// Makes the call. Its own thread runs this.
  func run(_ body: (TransferProgress) throws -> Output) {
    let outcome = Result { try body(tell) }
    condition.withLock {
      result = outcome
      if isLeft { stuck.add(-1) }
    }
    wake.signal()
  }

  /// Passes progress to the waiting caller, which reports it on its own thread.
  private func tell(_ done: Int, _ total: Int) throws {
    try condition.withLock {
      if let refusal { throw refusal }
      told = (done, total)
      wake.signal()
      while told != nil, !isLeft { condition.wait() }
      if isLeft { throw Left() }
      if let refusal { throw refusal }
    }
  }

  /// Waits for the call and returns its result; `nil` if the time is up. Rethrows the error of
  /// `check`. In both cases the call is abandoned.
  func wait(
    _ limit: Duration, _ progress: TransferProgress, _ check: (@Sendable () throws -> Void)?
  ) throws -> Output? {
    var deadline = now() + limit
    condition.lock()
    defer { condition.unlock() }
    while true {
      if let result { return try result.get() }
      if let told {
        condition.unlock()
        let thrown = Result { try progress(told.done, told.total) }
        condition.lock()
        if case .failure(let error) = thrown { refusal = error }
        self.told = nil
        condition.broadcast()
        deadline = now() + limit
        continue
      }
      do {
        try check?()
      } catch {
        leave()
        throw error
      }
      guard now() < deadline else {
        leave()
        return nil
      }
      condition.unlock()
      _ = wake.wait(timeout: .now() + .milliseconds(50))
      condition.lock()
    }
  }

  private func leave() {
    isLeft = true
    stuck.add(1)
    condition.broadcast()
  }
}

/// A pool of threads that make calls.
private final class CallThreads: Sendable {
  static let shared = CallThreads()
  /// The greatest number of threads that wait for a next call.
  private static let idleCount = 8
  private let idle = Mutex<[Worker]>([])

  func run(_ call: @escaping @Sendable () -> Void) {
    if let worker = idle.withLock({ $0.popLast() }) { return worker.take(call) }
    let worker = Worker()
    worker.take(call)
    let thread = Thread { [self] in
      repeat { worker.runNext() } while keep(worker)
    }
    thread.name = "DocumentSync: directory"
    thread.start()
  }

  private func keep(_ worker: Worker) -> Bool {
    idle.withLock { idle in
      guard idle.count < Self.idleCount else { return false }
      idle.append(worker)
      return true
    }
  }

  private final class Worker: Sendable {
    private let ready = DispatchSemaphore(value: 0)
    private let call = Mutex<(@Sendable () -> Void)?>(nil)

    func take(_ next: @escaping @Sendable () -> Void) {
      call.withLock { $0 = next }
      ready.signal()
    }

    func runNext() {
      ready.wait()
      let next = call.withLock { call in
        defer { call = nil }
        return call
      }
      next?()
    }
  }
}
