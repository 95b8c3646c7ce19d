import Foundation

/// Ends a process at a drawn point of its work, as far as its files and the
/// shared directory can tell: its files are copied as they are at that
/// moment, and nothing that it does afterwards reaches the directory.
final class FleetKill: Sendable {
  /// The error that a process gets after its end.
  struct Ended: Error {}

  private struct State {
    /// The number of points left, and the action at the last point.
    var pending: (rest: Int, end: @Sendable () -> Void)?
    var hasEnded = false
  }

  private let state = Locked(State())

  /// Ends the process after so many points. There is a point each time it reads the clock
  /// or draws, and before and after each call on the directory.
  func arm(after points: Int, _ end: @escaping @Sendable () -> Void) {
    state.withLock { $0 = State(pending: (points, end)) }
  }

  /// Does not end the process any more; true if it has ended.
  func disarm() -> Bool {
    state.withLock { state in
      defer { state = State() }
      return state.hasEnded
    }
  }

  /// A point at which no error can be thrown.
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

  /// A point at which a process that has ended gets an error.
  func require() throws {
    pass()
    if state.withLock({ $0.hasEnded }) { throw Ended() }
  }
}

/// Copies a database with the journals beside it, and puts the copy back.
enum StoreFiles {
  private static let suffixes = ["", "-wal", "-journal"]

  /// Copies the existing files.
  static func putAside(_ path: String) -> [String: Data] {
    Dictionary(
      uniqueKeysWithValues: suffixes.compactMap { suffix in
        FileManager.default.contents(atPath: path + suffix).map { (suffix, $0) }
      })
  }

  /// Replaces the files by the copies. The store must be closed.
  static func putBack(_ files: [String: Data], _ path: String) throws {
    for suffix in suffixes + ["-shm"] where FileManager.default.fileExists(atPath: path + suffix) {
      try FileManager.default.removeItem(atPath: path + suffix)
    }
    for (suffix, content) in files {
      try content.write(to: URL(fileURLWithPath: path + suffix))
    }
  }
}
