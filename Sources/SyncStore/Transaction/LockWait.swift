import Foundation
import Synchronization

/// The wait of the connection that writes for a lock of the file: for other programs, for a limited
/// time, and for the store's own readings, for that time or ``readersLimit``, whichever is longer.
///
/// A transaction in rollback mode cannot write to the file while anyone reads it. At the first attempt
/// it gets the lock that keeps later readings out (`PENDING`), so only those that have begun are to be
/// waited for. Without this, a question would make the transaction fail if the time limit is short.
final class LockWait: Sendable {
  private struct State {
    var begin = ContinuousClock.now
    /// Whether a reading of the store may have been the reason for the last failed attempt.
    var mayBeRead = true
    /// Whether nothing is waited for.
    var isRefused = false
  }

  private let seconds: Double
  private let readers: StoreReaders
  private let state = Mutex(State())

  /// The most seconds of a wait for the store's own readings, so that one that hangs does not stop
  /// everything.
  private static let readersLimit = 5.0

  /// - Parameter seconds: How long to wait for other programs.
  init(_ seconds: Double, readers: StoreReaders) {
    self.seconds = seconds
    self.readers = readers
  }

  /// Runs `body`, for which nothing is waited.
  func refusing<Result>(_ body: () throws -> Result) rethrows -> Result {
    state.withLock { $0.isRefused = true }
    defer { state.withLock { $0.isRefused = false } }
    return try body()
  }

  /// Waits for a while. Returns whether SQLite should try again to get the lock.
  ///
  /// - Parameter tries: How often it has tried again already.
  func isWorthAnotherTry(after tries: Int) -> Bool {
    if state.withLock({ $0.isRefused }) { return false }
    let isRead = !readers.waitForCalls(atMost: 0)
    let (waited, mayBeRead) = state.withLock { state in
      if tries == 0 { state = State() }
      defer { state.mayBeRead = isRead }
      return ((ContinuousClock.now - state.begin) / .seconds(1), isRead || state.mayBeRead)
    }
    if mayBeRead, waited < max(seconds, Self.readersLimit) {
      // One that has ended since the attempt is not waited for.
      readers.waitForCalls(atMost: Self.delay(tries))
      return true
    }
    guard waited < seconds else { return false }
    Thread.sleep(forTimeInterval: min(Self.delay(tries), seconds - waited))
    return true
  }

  /// The seconds before a further try: those of SQLite's own busy timeout, since other programs
  /// should get their turn as before.
  private static func delay(_ tries: Int) -> Double {
    let milliseconds = [1.0, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100]
    return milliseconds[min(tries, milliseconds.count - 1)] / 1000
  }
}
