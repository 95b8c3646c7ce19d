import SyncModel
import SyncStore
import Synchronization

/// The delegate of a document of an engine. While it decides, calls of the engine throw an error, since the
/// engine waits for the delegate.
///
/// After the answer ``SyncQuestion/Decision/stop``, it does not ask the same question again before the
/// application calls ``SyncEngine/synchronize(_:)``, ``SyncEngine/fetchChanges(_:)`` or
/// ``SyncEngine/sendChanges(_:)``: the engine tries again by itself, and would disturb a person each time.
final class EngineDelegate: SyncDelegate {
  /// Stands for an engine.
  final class Engine: Sendable {}

  /// The engines with a delegate that decides in this task.
  @TaskLocal private static var engines: Set<ObjectIdentifier> = []

  private let base: any SyncDelegate
  private let engine: ObjectIdentifier
  /// Other documents need not wait while a person decides about this one.
  private let slots: AsyncTurn
  private let declined = Mutex<Set<SyncQuestion>>([])

  init(_ base: any SyncDelegate, of engine: Engine, slots: AsyncTurn) {
    self.base = base
    self.slots = slots
    self.engine = ObjectIdentifier(engine)
  }

  /// Returns whether a delegate of the engine decides in this task.
  static func isCalled(by engine: Engine) -> Bool { engines.contains(ObjectIdentifier(engine)) }

  /// Lets all questions be asked again.
  func askAgain() { declined.withLock { $0.removeAll() } }

  func decide(_ question: SyncQuestion) async -> SyncQuestion.Decision {
    if declined.withLock({ $0.contains(question) }) { return .stop }
    let decision =
      await slots.leaving { await unlessCancelled { [base] in await base.decide(question) } }
      ?? .stop
    if decision == .stop, !Task.isCancelled {
      _ = declined.withLock { $0.insert(question) }
    }
    return decision
  }

  func answer(_ conflict: Conflict) async throws -> Conflict.Answer? {
    let engines = Self.engines.union([engine])
    return try await Self.$engines.withValue(engines) { try await base.answer(conflict) }
  }

  // The next two run on a thread without a task, which must not bind a task-local value; see
  // `DirectoryPatience`. They are no asynchronous functions, so they cannot wait for the engine.

  func resolve(_ values: Conflict.Values, by name: String) throws -> Value? {
    try base.resolve(values, by: name)
  }

  func willCommit(_ changes: RowChanges) { base.willCommit(changes) }

  /// Runs `body`, and returns `nil` at once if the task is cancelled, even if `body` does not notice.
  private func unlessCancelled<Output: Sendable>(
    _ body: @escaping @Sendable () async -> Output
  ) async -> Output? {
    let (outputs, continuation) = AsyncStream.makeStream(of: Output.self)
    let engines = Self.engines.union([engine])
    let task = Task {
      continuation.yield(await Self.$engines.withValue(engines) { await body() })
      continuation.finish()
    }
    for await output in outputs { return output }
    task.cancel()
    return nil
  }
}
