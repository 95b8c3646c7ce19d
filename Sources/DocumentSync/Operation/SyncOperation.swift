import Foundation
import SyncDirectory
import SyncModel

/// The base of all operations: one way to finish, cancellable at every step.
///
/// An operation runs once, on an `OperationQueue` or by calling `start()`. Its
/// value or its error becomes ``result``, exactly once, whatever happens in
/// between; every error becomes a ``SyncError``. The result is there before the
/// queue knows that the operation has finished: operations that depend on it,
/// its completion block and observers of `isFinished` find it. One that was
/// cancelled before it began does nothing.
///
/// A subclass overrides `perform()` and nothing else. Properties may be read,
/// and `cancel()` called, from any thread.
public class SyncOperation<Output: Sendable>: Operation, @unchecked Sendable {
  private enum State {
    /// Not begun. Handlers wait for the result.
    case ready
    /// Asked to begin; observers are told that it will execute.
    case beginning
    /// Begun, and about to have its task.
    case starting
    /// ``perform()`` runs in the task.
    case executing(Task<Void, Never>)
    /// The result is known; observers are told that it will be finished.
    case finishing(wasExecuting: Bool)
    /// Over. The result never changes again.
    case finished(Result<Output, SyncError>)
  }

  /// The handlers that wait for the end, and those that observe the progress.
  private struct Audience {
    var completions: [@Sendable (Result<Output, SyncError>) -> Void] = []
    var observers: [SyncProgress.Handler] = []
  }

  /// What the operation does, as a verb phrase for errors and logs.
  public let verb: String
  /// What it needs from the world.
  package let environment: SyncEnvironment
  /// Counts files, or bytes where they are known. Cancelling it cancels the
  /// operation.
  public let progress = Progress(totalUnitCount: 0)

  private let lock = NSLock()
  private var observersOfAll: SyncEvents?
  private var activity: SyncEvent.Activity?
  private var state = State.ready
  private var audience = Audience()
  private var current = SyncProgress()
  private let thread: DispatchQueue

  /// An operation that does `verb`.
  init(_ verb: String, environment: SyncEnvironment) {
    self.verb = verb
    self.environment = environment
    thread = DispatchQueue(label: "DocumentSync: \(verb)")
    super.init()
    progress.cancellationHandler = { [weak self] in self?.cancel() }
  }

  // MARK: For subclasses

  /// Does the work. Called once, and not if the operation was cancelled
  /// before it began.
  ///
  /// Work that blocks belongs in ``blocking(_:)``. Long work calls
  /// ``checkCancellation()`` between its steps.
  func perform() async throws -> Output {
    throw SyncError(
      .internalFault, operation: verb, message: "This operation does nothing.",
      remedy: "Report this as a defect of DocumentSync.", detail: "\(type(of: self))")
  }

  /// Throws ``SyncError/Code/cancelled`` once the operation is cancelled.
  package final func checkCancellation() throws {
    if isCancelled { throw SyncError.cancelled(verb) }
  }

  /// Runs work that blocks on the operation's own thread, so that it takes
  /// none from the pool that tasks share.
  package final func blocking<Value: Sendable>(
    _ work: @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    try checkCancellation()
    return try await withCheckedThrowingContinuation { continuation in
      thread.async { [self] in
        // Cancelling works even while a call on the directory does not return.
        let result = DirectoryPatience.result(
          with: { [self] in try checkCancellation() }, of: work)
        continuation.resume(with: result)
      }
    }
  }

  /// Changes the progress and tells the observers.
  package final func report(_ change: (inout SyncProgress) -> Void) {
    let (snapshot, observers) = lock.withLock {
      change(&current)
      return (current, audience.observers)
    }
    publish(snapshot, to: observers)
  }

  /// Begins a phase with nothing of it done.
  package final func begin(_ phase: SyncProgress.Phase, count: Int = 0, bytes: Int = 0) {
    report {
      $0 = SyncProgress()
      $0.phase = phase
      $0.totalCount = count
      $0.totalBytes = bytes
    }
  }

  /// Tells all observers of the manager what happened.
  package final func send(_ event: SyncEvent) { events?.send(event) }

  // MARK: For callers

  /// Where to send the activity and what happens in it; to be set before the
  /// operation is started.
  package final var events: SyncEvents? {
    get { lock.withLock { observersOfAll } }
    set { lock.withLock { observersOfAll = newValue } }
  }

  /// How far the operation has come.
  package final var snapshot: SyncProgress { lock.withLock { current } }

  /// The result of the operation; `nil` until it has finished.
  public final var result: Result<Output, SyncError>? {
    lock.withLock {
      if case .finished(let result) = state { result } else { nil }
    }
  }

  /// Why the operation failed; `nil` if it did not, or not yet.
  package final var error: SyncError? {
    if case .failure(let error) = result { error } else { nil }
  }

  /// Calls `handler` whenever the operation makes progress, for the last time
  /// with ``SyncProgress/Phase/finished``.
  package final func observe(_ handler: @escaping SyncProgress.Handler) {
    lock.withLock { audience.observers.append(handler) }
  }

  /// Calls `handler` with the result, exactly once: at the end, or at once
  /// if the operation has finished.
  package final func whenFinished(
    _ handler: @escaping @Sendable (Result<Output, SyncError>) -> Void
  ) {
    let finished: Result<Output, SyncError>? = lock.withLock {
      if case .finished(let result) = state { return result }
      audience.completions.append(handler)
      return nil
    }
    if let finished { handler(finished) }
  }

  // MARK: Operation

  /// Operations run beside the thread that starts them.
  public final override var isAsynchronous: Bool { true }

  /// Whether it has begun and not finished.
  public final override var isExecuting: Bool {
    lock.withLock {
      switch state {
      case .starting, .executing: true
      case .finishing(let wasExecuting): wasExecuting
      case .ready, .beginning, .finished: false
      }
    }
  }

  /// Whether it is over.
  public final override var isFinished: Bool { result != nil }

  /// Begins. Called by the queue; later calls do nothing.
  public final override func start() {
    let begins = lock.withLock {
      guard case .ready = state else { return false }
      state = .beginning
      return true
    }
    guard begins else { return }
    guard !isCancelled else {
      finish(with: .failure(SyncError.cancelled(verb)))
      return
    }
    change(["isExecuting"]) { lock.withLock { state = .starting } }
    if let events {
      let activity = SyncEvent.Activity(verb: verb)
      lock.withLock { self.activity = activity }
      events.send(.activityBegan(activity))
    }
    let task = Task {
      do {
        try self.checkCancellation()
        self.finish(with: .success(try await self.perform()))
      } catch {
        self.finish(with: .failure(error))
      }
    }
    let runs = lock.withLock {
      // The task may have finished before it could be noted.
      guard case .starting = state else { return false }
      state = .executing(task)
      return true
    }
    // A cancellation may have come while there was no task to tell.
    if runs, isCancelled { task.cancel() }
  }

  /// Asks the operation to stop at its next step. It then finishes with
  /// ``SyncError/Code/cancelled``, unless it was done before it noticed.
  public final override func cancel() {
    super.cancel()
    let task: Task<Void, Never>? = lock.withLock {
      if case .executing(let task) = state { task } else { nil }
    }
    task?.cancel()
  }

  /// The one way to finish; calls after the first one are ignored.
  private func finish(with outcome: Result<Output, any Error>) {
    let result = outcome.mapError { SyncError.wrapping($0, operation: verb) }
    let keys: [String]? = lock.withLock {
      switch state {
      case .finishing, .finished: return nil
      case .ready, .beginning:
        state = .finishing(wasExecuting: false)
        return ["isFinished"]
      case .starting, .executing:
        state = .finishing(wasExecuting: true)
        return ["isExecuting", "isFinished"]
      }
    }
    guard let keys else { return }
    if case .failure(let error) = result {
      environment.logger.debug("\(verb): \(error)")
    }
    progress.cancellationHandler = nil
    let (snapshot, observers) = lock.withLock {
      current.phase = .finished
      return (current, audience.observers)
    }
    publish(snapshot, to: observers)
    var completions: [@Sendable (Result<Output, SyncError>) -> Void] = []
    // Before the handlers: code that they wake finds the queue done with this
    // operation.
    change(keys) {
      lock.withLock {
        state = .finished(result)
        completions = audience.completions
        audience = Audience()
      }
    }
    if let activity = lock.withLock({ activity }) {
      let error: SyncError? = if case .failure(let error) = result { error } else { nil }
      events?.send(.activityEnded(activity, error: error))
    }
    for completion in completions { completion(result) }
  }

  /// Changes properties that others observe: tells the observers before and
  /// after, outside the lock, since the queue reads the properties in answer.
  private func change(_ keys: [String], _ change: () -> Void) {
    for key in keys { willChange(key) }
    change()
    for key in keys { didChange(key) }
  }

  /// Tells the observers of a property that its value is about to change.
  func willChange(_ key: String) { willChangeValue(forKey: key) }

  /// Tells the observers of a property that its value has changed.
  func didChange(_ key: String) { didChangeValue(forKey: key) }

  private func publish(_ snapshot: SyncProgress, to observers: [SyncProgress.Handler]) {
    let inBytes = snapshot.totalBytes > 0
    let total = inBytes ? snapshot.totalBytes : snapshot.totalCount
    if total > 0 {
      // Foundation on Linux multiplies all totals that it is ever given, and
      // crashes if the product is too great: the first total stays.
      if progress.totalUnitCount == 0 {
        progress.totalUnitCount = Int64(total < 10 ? total * 1_000 : min(total, 1 << 40))
      }
      let completed = inBytes ? snapshot.completedBytes : snapshot.completedCount
      // Files of other devices may announce impossible lengths.
      let share = min(Double(completed) / Double(total), 1)
      progress.completedUnitCount = Int64((Double(progress.totalUnitCount) * share).rounded())
    }
    for observer in observers { observer(snapshot) }
  }
}
