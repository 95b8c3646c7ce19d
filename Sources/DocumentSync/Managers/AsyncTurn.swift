import Synchronization

/// Lets one task at a time continue, in the order in which the tasks came.
final class AsyncTurn: Sendable {
  private struct Waiter {
    var number: UInt64
    var continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var isTaken = false
    var waiting: [Waiter] = []
    /// The tasks that were cancelled before they had begun to wait.
    var cancelled: Set<UInt64> = []
    var next: UInt64 = 0
  }

  private let state = Mutex(State())

  /// The number of tasks that wait for their turn.
  var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Waits for the turn, runs `body`, and passes the turn on.
  ///
  /// If the task is cancelled while it waits, throws `CancellationError` at
  /// once and does not call `body`.
  func take<Output>(_ body: () async throws -> Output) async throws -> Output {
    try await wait()
    defer { pass() }
    return try await body()
  }

  private func wait() async throws {
    let number = state.withLock { state in
      defer { state.next += 1 }
      return state.next
    }
    // A cancellation that came too late has left its number in the set.
    defer { state.withLock { _ = $0.cancelled.remove(number) } }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let outcome: Result<Void, any Error>? = state.withLock { state in
          if state.cancelled.contains(number) { return .failure(CancellationError()) }
          guard state.isTaken else {
            state.isTaken = true
            return .success(())
          }
          state.waiting.append(Waiter(number: number, continuation: continuation))
          return nil
        }
        if let outcome { continuation.resume(with: outcome) }
      }
    } onCancel: {
      cancel(number)
    }
  }

  private func cancel(_ number: UInt64) {
    let waiter: Waiter? = state.withLock { state in
      guard let index = state.waiting.firstIndex(where: { $0.number == number }) else {
        state.cancelled.insert(number)
        return nil
      }
      return state.waiting.remove(at: index)
    }
    waiter?.continuation.resume(throwing: CancellationError())
  }

  private func pass() {
    let next: Waiter? = state.withLock { state in
      guard !state.waiting.isEmpty else {
        state.isTaken = false
        return nil
      }
      return state.waiting.removeFirst()
    }
    next?.continuation.resume()
  }
}
