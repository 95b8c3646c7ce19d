import Synchronization

/// Lets one task at a time go on, in the order in which they came.
final class AsyncTurn: Sendable {
  private struct State {
    var isTaken = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  /// Waits for the turn, has `body` run, and gives the turn on.
  func take<Output>(_ body: () async throws -> Output) async rethrows -> Output {
    await withCheckedContinuation { continuation in
      let goesOn = state.withLock { state in
        guard state.isTaken else {
          state.isTaken = true
          return true
        }
        state.waiting.append(continuation)
        return false
      }
      if goesOn { continuation.resume() }
    }
    defer { pass() }
    return try await body()
  }

  private func pass() {
    let next: CheckedContinuation<Void, Never>? = state.withLock { state in
      guard !state.waiting.isEmpty else {
        state.isTaken = false
        return nil
      }
      return state.waiting.removeFirst()
    }
    next?.resume()
  }
}
