import Foundation
import SyncDirectory
import SyncModel

/// The base class of all operations. Every operation finishes exactly once, and
/// can be cancelled at every step.
///
/// An operation runs once, on an `OperationQueue` or by calling `start()`. Its
/// value or its error becomes ``result``; every error becomes a ``SyncError``.
/// The result is set before the operation counts as finished, so that dependent
/// operations, the completion block and observers of `isFinished` find it. An
/// operation that was cancelled before it began does nothing.
///
/// A subclass overrides `perform()` and nothing else. Properties may be read,
/// and `cancel()` called, from any thread.
public class SyncOperation<Output: Sendable>: Operation, @unchecked Sendable {
  private enum State {
    /// Not begun. The handlers wait for the result.
    case ready
    /// Asked to begin; the observers are about to learn that it executes.
    case beginning
    /// Begun; the task does not exist yet.
    case starting
    /// ``perform()`` runs in the task.
    case executing(Task<Void, Never>)
    /// The result is known; the observers are about to learn that the operation
    /// is finished.
    case finishing(wasExecuting: Bool)
    /// Finished. The result never changes again.
    case finished(Result<Output, SyncError>)
  }

  /// The handlers that wait for the result, and those that observe the
  /// progress.
  private struct Audience {
    var completions: [@Sendable (Result<Output, SyncError>) -> Void] = []
    var observers: [SyncProgress.Handler] = []
  }

  /// The operation as a verb phrase, for errors and logs.
  public let verb: String
  /// The clock, the random numbers and the limits for the operation.
  package let environment: SyncEnvironment
  /// The progress in files, or in bytes if the lengths are known. Cancelling it
  /// cancels the operation.
  public let progress = Progress(totalUnitCount: 0)

  private let lock = NSLock()
  private var observersOfAll: SyncEvents?
  private var activity: SyncEvent.Activity?
  private var state = State.ready
  private var audience = Audience()
  private var current = SyncProgress()
  private let thread: DispatchQueue

  /// Creates an operation that does `verb`.
  init(_ verb: String, environment: SyncEnvironment) {
    self.verb = verb
    self.environment = environment
    thread = DispatchQueue(label: "DocumentSync: \(verb)")
    super.init()
    progress.cancellationHandler = { [weak self] in self?.cancel() }
  }

  // MARK: For subclasses

  /// Does the work. The operation calls it once, or never if it was cancelled
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

  /// Runs blocking work on the operation's own thread, so that it occupies no
  /// thread of the pool that tasks share.
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

  /// Begins a phase, with nothing done.
  package final func begin(_ phase: SyncProgress.Phase, count: Int = 0, bytes: Int = 0) {
    report {
      $0 = SyncProgress()
      $0.phase = phase
      $0.totalCount = count
      $0.totalBytes = bytes
    }
  }

  /// Sends an event to all observers of the manager.
  package final func send(_ event: SyncEvent) { events?.send(event) }

  // MARK: For callers

  /// The receiver of the operation's events. Set it before the operation is
  /// started.
  package final var events: SyncEvents? {
    get { lock.withLock { observersOfAll } }
    set { lock.withLock { observersOfAll = newValue } }
  }

  /// The progress of the operation.
  package final var snapshot: SyncProgress { lock.withLock { current } }

  /// The result of the operation; `nil` until it has finished.
  public final var result: Result<Output, SyncError>? {
    lock.withLock {
      if case .finished(let result) = state { result } else { nil }
    }
  }

  /// The error of the operation; `nil` if it has succeeded or not finished.
  package final var error: SyncError? {
    if case .failure(let error) = result { error } else { nil }
  }

  /// Calls `handler` whenever the operation makes progress; the last call has
  /// the phase ``SyncProgress/Phase/finished``.
  package final func observe(_ handler: @escaping SyncProgress.Handler) {
    lock.withLock { audience.observers.append(handler) }
  }

  /// Calls `handler` exactly once with the result: at the end, or at once if
  /// the operation has finished.
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

  /// Operations do not run on the thread that starts them.
  public final override var isAsynchronous: Bool { true }

  /// Whether the operation has begun and not finished.
  public final override var isExecuting: Bool {
    lock.withLock {
      switch state {
      case .starting, .executing: true
      case .finishing(let wasExecuting): wasExecuting
      case .ready, .beginning, .finished: false
      }
    }
  }

  /// Whether the operation has finished.
  public final override var isFinished: Bool { result != nil }

  /// Begins the operation. The queue calls it; later calls do nothing.
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
      // The task may have finished before this line.
      guard case .starting = state else { return false }
      state = .executing(task)
      return true
    }
    // A cancellation may have come before the task was noted.
    if runs, isCancelled { task.cancel() }
  }

  /// Asks the operation to stop at its next step. It then finishes with
  /// ``SyncError/Code/cancelled``, unless it completes before it notices.
  public final override func cancel() {
    super.cancel()
    let task: Task<Void, Never>? = lock.withLock {
      if case .executing(let task) = state { task } else { nil }
    }
    task?.cancel()
  }

  /// Finishes the operation, on every path; calls after the first one are
  /// ignored.
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
    // Before the handlers, so that the code which they wake finds the operation
    // finished in its queue.
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

  /// Changes properties that observers watch, and tells the observers before
  /// and after. It holds no lock meanwhile, since the queue then reads the
  /// properties.
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
      // Foundation on Linux multiplies all totals that it ever gets, and
      // crashes if the product is too large: so the first total stays.
      if progress.totalUnitCount == 0 {
        progress.totalUnitCount = Int64(total < 10 ? total * 1_000 : min(total, 1 << 40))
      }
      let completed = inBytes ? snapshot.completedBytes : snapshot.completedCount
      // Files of other devices may claim impossible lengths.
      let share = min(Double(completed) / Double(total), 1)
      progress.completedUnitCount = Int64((Double(progress.totalUnitCount) * share).rounded())
    }
    for observer in observers { observer(snapshot) }
  }
}
