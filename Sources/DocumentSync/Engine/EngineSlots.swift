import Synchronization

/// Limits how many synchronizations run at once. The one with the greatest priority comes first; of several
/// with the same priority, the one that has waited longest.
final class EngineSlots: Sendable {
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
    var next: UInt64 = 0
  }

  /// Whether this task has a slot.
  @TaskLocal private static var isHeld = false

  private let state: Mutex<State>

  init(count: Int) { state = Mutex(State(free: count)) }

  /// The number of those that wait.
  var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Runs `body` when there is room. Throws `CancellationError` if the task is cancelled before.
  func take<Output>(
    priority: Int, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Output
  ) async throws -> Output {
    try await wait(priority)
    defer { pass() }
    return try await Self.$isHeld.withValue(true) { try await body() }
  }

  /// Runs `body`, which may take very long, and lets others run meanwhile if this task has a slot. For a
  /// moment afterwards, one more may run than there are slots.
  func leaving<Output>(_ body: () async -> Output) async -> Output {
    guard Self.isHeld else { return await body() }
    pass()
    defer { state.withLock { $0.free -= 1 } }
    return await body()
  }

  private func wait(_ priority: Int) async throws {
    let number = state.withLock { state in
      state.next += 1
      return state.next
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
  }

  private func pass() {
    let next: Waiter? = state.withLock { state in
      // More run than there are slots.
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
