import Synchronization

/// The progress of the synchronizations of one document, as events of an engine: each new phase, and
/// otherwise at most ten a second.
final class EngineProgress: Sendable {
  private static let interval = Duration.milliseconds(100)

  private let document: String
  private let events: SyncEngine.Events
  private let clock: EngineClock
  private let last = Mutex<(phase: SyncProgress.Phase, time: Duration)?>(nil)

  init(_ document: String, _ events: SyncEngine.Events, _ clock: EngineClock) {
    self.document = document
    self.events = events
    self.clock = clock
  }

  /// Sends a progress, unless one of the same phase was sent just before.
  func take(_ progress: SyncProgress) {
    let now = clock.now()
    let isDue = last.withLock { last in
      if let last, last.phase == progress.phase, now - last.time < Self.interval { return false }
      last = (progress.phase, now)
      return true
    }
    if isDue { events.send(.progress(document: document, progress), isDispensable: true) }
  }
}

extension SyncEngine.Events {
  /// Sends what a report has that an application may want to show by itself.
  func send(partsOf report: SyncReport, of document: String) {
    for warning in report.warnings { send(.warning(document: document, warning)) }
    guard report.conflicts > 0 || !report.questions.isEmpty else { return }
    send(
      .conflicts(document: document, count: report.conflicts, questions: report.questions))
  }
}
