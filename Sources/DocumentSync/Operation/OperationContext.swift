import SyncModel

/// An operation's environment, cancellation, events and progress, for the steps
/// that it runs.
struct OperationContext: Sendable {
  let verb: String
  let environment: SyncEnvironment
  /// Throws `cancelled` once the operation is cancelled.
  let checkCancellation: @Sendable () throws -> Void
  /// Sends an event to all observers of the manager.
  private(set) var send: @Sendable (SyncEvent) -> Void
  private var changeProgress: @Sendable ((inout SyncProgress) -> Void) -> Void

  init<Output>(_ operation: SyncOperation<Output>) {
    verb = operation.verb
    environment = operation.environment
    // The operation outlives its steps, which run within it.
    checkCancellation = { [unowned operation] in try operation.checkCancellation() }
    send = { [unowned operation] in operation.send($0) }
    changeProgress = { [unowned operation] in operation.report($0) }
  }

  /// The context without progress reports.
  var silent: OperationContext {
    var silent = self
    silent.changeProgress = { _ in }
    return silent
  }

  /// The context without events.
  var unheard: OperationContext {
    var unheard = self
    unheard.send = { _ in }
    return unheard
  }

  /// Changes the progress and tells the observers.
  func report(_ change: (inout SyncProgress) -> Void) { changeProgress(change) }

  /// Begins a phase, with nothing done.
  func begin(_ phase: SyncProgress.Phase, count: Int = 0, bytes: Int = 0) {
    report {
      $0 = SyncProgress()
      $0.phase = phase
      $0.totalCount = count
      $0.totalBytes = bytes
    }
  }

  /// Reports the phase as complete, whose total is known by now.
  func endPhase() {
    report {
      $0.totalCount = max($0.totalCount, $0.completedCount)
      if $0.totalBytes == 0 { $0.totalBytes = $0.completedBytes }
      $0.completedCount = $0.totalCount
      $0.completedBytes = $0.totalBytes
    }
  }

  /// Reports how many items the store has done.
  func count(_ done: Int, of total: Int) {
    report {
      $0.completedCount = done
      $0.totalCount = total
    }
  }

  /// Reports how many bytes were written or moved.
  func count(bytes done: Int, of total: Int) {
    report {
      $0.completedBytes = done
      $0.totalBytes = total
    }
  }

  func error(
    _ code: SyncError.Code, path: String? = nil, _ message: String, remedy: Remedy,
    detail: String? = nil
  ) -> SyncError {
    SyncError(
      code, operation: verb, path: path, message: message, remedy: remedy, detail: detail)
  }
}
