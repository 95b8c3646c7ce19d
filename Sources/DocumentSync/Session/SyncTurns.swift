import Foundation

/// Chooses the folder that is listed although no marker asks for it: one in
/// turn at each synchronization.
///
/// Kept in memory. The first turn is drawn at random, so that a program that
/// synchronizes once and ends reaches every folder in time as well.
package final class SyncTurns: Sendable {
  private let lock = NSLock()
  nonisolated(unsafe) private var next: UInt64
  nonisolated(unsafe) private var nextFile: Int
  nonisolated(unsafe) private var hasPublished = false

  /// Draws the first turn.
  package init(environment: SyncEnvironment) {
    next = environment.random()
    nextFile = Int(next >> 33)
  }

  /// Whether nothing was published before in this process: then unfinished
  /// files of an earlier process may be cleared away.
  func isFirstPublication() -> Bool {
    lock.withLock {
      defer { hasPublished = true }
      return !hasPublished
    }
  }

  /// Notes that unfinished files of an earlier process were cleared away.
  func notePublication() { lock.withLock { hasPublished = true } }

  /// Which of `total` files are looked at: the last ``newest``, which a power
  /// cut would have damaged, and ``inTurn`` others in turn; the following call
  /// goes on after these.
  func files(of total: Int) -> [Int] {
    let older = max(0, total - Self.newest)
    return lock.withLock {
      let chosen = (0..<min(older, Self.inTurn)).map { (nextFile + $0) % older }
      nextFile = older == 0 ? 0 : (nextFile + chosen.count) % older
      return chosen + Array(older..<total)
    }
  }

  /// How many of the newest own files are looked at each time.
  static let newest = 8
  /// How many of the others are.
  static let inTurn = 24

  /// The turn among `count`, at least 1; the following call gives the next.
  func take(of count: Int) -> Int {
    lock.withLock {
      defer { next &+= 1 }
      return Int(next % UInt64(count))
    }
  }
}
