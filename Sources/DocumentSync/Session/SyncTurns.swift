import Foundation

/// Selects the folder that a synchronization lists although no marker asks for
/// it: one in turn each time.
///
/// The turn is in memory only. The first one is drawn at random, so that a
/// program that synchronizes once and ends also reaches every folder in time.
package final class SyncTurns: Sendable {
  private let lock = NSLock()
  nonisolated(unsafe) private var next: [SyncHalf: UInt64] = [:]
  private let first: UInt64
  nonisolated(unsafe) private var nextFile: Int
  nonisolated(unsafe) private var hasPublished = false

  /// Draws the first turn.
  package init(environment: SyncEnvironment) {
    first = environment.random()
    nextFile = Int(first >> 33)
  }

  /// Whether this process has published nothing before: then the unfinished
  /// files of an earlier process may be removed.
  func isFirstPublication() -> Bool {
    lock.withLock {
      defer { hasPublished = true }
      return !hasPublished
    }
  }

  /// Notes that unfinished files of an earlier process were removed.
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

  /// How many of the newest own files are measured each time.
  static let newest = 8
  /// How many of the other own files are measured each time.
  static let inTurn = 24

  /// Returns the turn among `count`, at least 1; the following call for this
  /// half returns the next one. Each half has its own turns, so that it reaches
  /// all of its folders, however calls of the halves alternate.
  func take(of count: Int, for half: SyncHalf) -> Int {
    lock.withLock {
      let turn = next[half] ?? first
      next[half] = turn &+ 1
      return Int(turn % UInt64(count))
    }
  }
}
