import Foundation

/// Whose folder is looked at without being asked for: one in turn at each
/// synchronization.
///
/// Kept in memory. The first turn is drawn at random, so that a program that
/// synchronizes once and ends comes round to everyone as well.
public final class SyncTurns: Sendable {
  private let lock = NSLock()
  nonisolated(unsafe) private var next: UInt64
  nonisolated(unsafe) private var hasPublished = false

  /// Draws the first turn.
  public init(environment: SyncEnvironment) { next = environment.random() }

  /// Whether nothing was published before in this process: then what an
  /// earlier one left unfinished may be cleared away.
  func isFirstPublication() -> Bool {
    lock.withLock {
      defer { hasPublished = true }
      return !hasPublished
    }
  }

  /// The turn among `count`, at least 1; the following call gives the next.
  func take(of count: Int) -> Int {
    lock.withLock {
      defer { next &+= 1 }
      return Int(next % UInt64(count))
    }
  }
}
