import Synchronization

@testable import DocumentSync

/// A clock whose time passes only when a test says so.
final class ManualClock: Sendable {
  private struct Sleeper {
    var due: Duration
    var continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var now = Duration.zero
    var sleepers: [UInt64: Sleeper] = [:]
    /// The sleepers that were cancelled before they had begun to sleep.
    var cancelled: Set<UInt64> = []
    var next: UInt64 = 0
  }

  private let state = Mutex(State())

  /// The clock as an engine has it.
  var engineClock: EngineClock {
    EngineClock(
      now: { self.state.withLock { $0.now } }, sleep: { try await self.sleep($0) })
  }

  /// Lets time pass.
  func advance(by duration: Duration) {
    let woken = state.withLock { state in
      state.now += duration
      let due = state.sleepers.filter { $0.value.due <= state.now }
      for number in due.keys { state.sleepers[number] = nil }
      return due.values.sorted { $0.due < $1.due }
    }
    for sleeper in woken { sleeper.continuation.resume() }
  }

  private func sleep(_ duration: Duration) async throws {
    let number = state.withLock { state in
      state.next += 1
      return state.next
    }
    defer { state.withLock { _ = $0.cancelled.remove(number) } }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let isCancelled = state.withLock { state in
          guard !state.cancelled.contains(number) else { return true }
          state.sleepers[number] = Sleeper(due: state.now + duration, continuation: continuation)
          return false
        }
        if isCancelled { continuation.resume(throwing: CancellationError()) }
      }
    } onCancel: {
      let sleeper = state.withLock { state in
        state.cancelled.insert(number)
        return state.sleepers.removeValue(forKey: number)
      }
      sleeper?.continuation.resume(throwing: CancellationError())
    }
  }
}
