import Synchronization

/// Lets a number of tasks at a time continue: the one with the greatest priority first; of several with the
/// same priority, the one that has waited longest.
package final class AsyncTurn: Sendable {
  private struct Waiter {
    var number: UInt64
    var priority: Int
    var continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var free: Int
    var waiting: [Waiter] = []
    /// Those that were cancelled before they had begun to wait.
    var cancelled: Set<UInt64> = []
    /// Those that have their turn.
    var current: Set<UInt64> = []
  }

  /// The numbers of the turns that this task has, or had when a task was started in which this one was: a task inherits
  /// them, and may go on longer than the turn.
  @TaskLocal private static var held: Set<UInt64> = []

  /// The number of the last turn, of all objects of this class.
  private static let last = Mutex<UInt64>(0)

  private let state: Mutex<State>

  /// - Parameter count: How many tasks may have their turn at once.
  package init(count: Int = 1) { state = Mutex(State(free: count)) }

  /// Whether this task has the turn already: if it waited for it, it would wait for ever.
  package var isHeld: Bool {
    let held = Self.held
    return !held.isEmpty && state.withLock { !$0.current.isDisjoint(with: held) }
  }

  /// The number of tasks that wait for their turn.
  var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Waits for the turn, runs `body`, and passes the turn on.
  ///
  /// If the task is cancelled while it waits, throws `CancellationError` at once and does not call `body`.
  package func take<Output>(
    priority: Int = 0, isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws -> Output
  ) async throws -> Output {
    let number = try await wait(priority)
    defer {
      state.withLock { _ = $0.current.remove(number) }
      pass()
    }
    return try await Self.$held.withValue(Self.held.union([number])) { try await body() }
  }

  /// Runs `body`, which may take very long. If this task has the turn, others have it meanwhile; for a moment
  /// afterwards, one task more than the number may continue.
  func leaving<Output>(_ body: () async -> Output) async -> Output {
    guard isHeld else { return await body() }
    pass()
    defer { state.withLock { $0.free -= 1 } }
    return await body()
  }

  /// Waits for the turn. Returns its number.
  private func wait(_ priority: Int) async throws -> UInt64 {
    let number = Self.last.withLock { last in
      last += 1
      return last
    }
    defer { state.withLock { _ = $0.cancelled.remove(number) } }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let outcome: Result<Void, any Error>? = state.withLock { state in
          if state.cancelled.contains(number) { return .failure(CancellationError()) }
          if state.free > 0 {
            state.free -= 1
            return .success(())
          }
          state.waiting.append(
            Waiter(number: number, priority: priority, continuation: continuation))
          return nil
        }
        if let outcome { continuation.resume(with: outcome) }
      }
    } onCancel: {
      let waiter: Waiter? = state.withLock { state in
        guard let index = state.waiting.firstIndex(where: { $0.number == number }) else {
          state.cancelled.insert(number)
          return nil
        }
        return state.waiting.remove(at: index)
      }
      waiter?.continuation.resume(throwing: CancellationError())
    }
    state.withLock { _ = $0.current.insert(number) }
    return number
  }

  private func pass() {
    let next: Waiter? = state.withLock { state in
      // More continue than the number says.
      guard state.free >= 0 else {
        state.free += 1
        return nil
      }
      // The first of the greatest ones: the list is in the order of coming.
      let first = state.waiting.indices.max {
        (state.waiting[$0].priority, $1) < (state.waiting[$1].priority, $0)
      }
      guard let first else {
        state.free += 1
        return nil
      }
      return state.waiting.remove(at: first)
    }
    next?.continuation.resume()
  }
}
