import SyncDirectory
import SyncModel

/// A device's clock and its source of random numbers.
final class FleetClock: Sendable {
  private struct State {
    var time: Int64
    var random: SeededRandom
  }

  private let state: Locked<State>
  /// What ends the process of the device that reads the clock.
  let kill = FleetKill()

  init(seed: UInt64, time: Int64) {
    state = Locked(State(time: time, random: SeededRandom(seed: seed)))
  }

  /// The time in milliseconds since 1970.
  var time: Int64 {
    get {
      kill.pass()
      return state.withLock { $0.time }
    }
    set { state.withLock { $0.time = newValue } }
  }

  /// Begins a new sequence of random numbers.
  func reseed(_ seed: UInt64) { state.withLock { $0.random = SeededRandom(seed: seed) } }

  func word() -> UInt64 {
    kill.pass()
    return state.withLock { $0.random.next() }
  }

  func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: word() >> 24) }
  }

  /// The result of SQL's `julianday('now')`.
  var julianDay: Double { Double(time) / 86_400_000 + 2_440_587.5 }
}
