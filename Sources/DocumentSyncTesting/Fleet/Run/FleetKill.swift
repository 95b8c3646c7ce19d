import Foundation
import SyncStore

/// The simulated end of a process at a random point of its work. At that moment the simulation
/// copies the files of the process, and nothing that the process does afterwards reaches the shared
/// directory.
final class FleetKill: Sendable {
  /// The error that calls of a process throw after its end.
  struct Ended: Error {}

  private struct State {
    /// The number of points that are left, and the action at the last point.
    var pending: (rest: Int, end: @Sendable () -> Void)?
    var hasEnded = false
  }

  private let state = Locked(State())

  /// Ends the process after the given number of points, and calls `end`. There is a point each time
  /// the process reads the clock or draws a random number, and before and after each call on the
  /// directory.
  func arm(after points: Int, _ end: @escaping @Sendable () -> Void) {
    state.withLock { $0 = State(pending: (points, end)) }
  }

  /// Cancels a pending end. Returns whether the process has ended.
  func disarm() -> Bool {
    state.withLock { state in
      defer { state = State() }
      return state.hasEnded
    }
  }

  /// Marks a point at which no error can be thrown.
  func pass() {
    let end = state.withLock { state -> (@Sendable () -> Void)? in
      guard let pending = state.pending else { return nil }
      if pending.rest > 0 {
        state.pending = (pending.rest - 1, pending.end)
        return nil
      }
      state = State(hasEnded: true)
      return pending.end
    }
    end?()
  }

  /// Marks a point; throws ``Ended`` if the process has ended.
  func require() throws {
    pass()
    if state.withLock({ $0.hasEnded }) { throw Ended() }
  }
}

/// The files of a database, its journals and the file with its older conflicts included: copies and
/// restores them.
enum StoreFiles {
  private static let suffixes = ["", "-wal", "-journal", LocalStore.archiveSuffix]

  /// Returns copies of the existing files, by suffix.
  static func putAside(_ path: String) -> [String: Data] {
    Dictionary(
      uniqueKeysWithValues: suffixes.compactMap { suffix in
        FileManager.default.contents(atPath: path + suffix).map { (suffix, $0) }
      })
  }

  /// Replaces the files with the copies. The store must be closed.
  static func putBack(_ files: [String: Data], _ path: String) throws {
    for suffix in suffixes + ["-shm"] where FileManager.default.fileExists(atPath: path + suffix) {
      try FileManager.default.removeItem(atPath: path + suffix)
    }
    for (suffix, content) in files {
      try content.write(to: URL(fileURLWithPath: path + suffix))
    }
  }
}
