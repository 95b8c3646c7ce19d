/// When a document is to be synchronized next, and why.
///
/// A value without clock, tasks and files: the engine tells it what has happened, and asks it what is
/// due. A reason that is noted stays until a synchronization that began after it has succeeded.
struct SyncSchedule {
  /// Why no synchronization is due by itself.
  enum Hold: Hashable, Sendable {
    /// The directory is away: its return ends the hold.
    case directoryAway
    /// Somebody has to decide. It may happen in another process, so the interval goes on.
    case decision
    /// It would fail again.
    case failed
  }

  /// The times of one reason.
  private struct Noted {
    var first: Duration
    var last: Duration
  }

  let timing: SyncTiming
  /// Whether only requests are a reason to synchronize.
  let isManual: Bool
  /// Whether the directory reports its changes; otherwise it is looked at in shorter intervals.
  var isDirectoryWatched = false
  private(set) var hold: Hold?
  /// The failures since the last success.
  private(set) var failures = 0
  private var noted: [SyncReason: Noted] = [:]
  private var begun: [SyncReason: Noted]?
  /// The end of the pause after a failure.
  private var notBefore: Duration?
  private var timerDue: Duration?

  init(_ timing: SyncTiming, isManual: Bool = false) {
    self.timing = timing
    self.isManual = isManual
  }

  /// Whether a synchronization runs.
  var isRunning: Bool { begun != nil }

  /// The reasons that no synchronization has begun for yet.
  var reasons: Set<SyncReason> { Set(noted.keys) }

  /// Notes a reason. A request ends each hold, and a directory that returns ends that of a directory
  /// that was away; both end the pause after a failure.
  mutating func note(_ reason: SyncReason, at now: Duration) {
    noted[reason] = Noted(first: noted[reason]?.first ?? now, last: now)
    switch reason {
    case .request:
      hold = nil
      notBefore = nil
    case .directoryReturned:
      if hold == .directoryAway { hold = nil }
      notBefore = nil
    default: break
    }
  }

  /// The time from which a synchronization is due; `nil` if none is before something is noted, or while
  /// one runs.
  var due: Duration? {
    guard !isRunning else { return nil }
    if let request = noted[.request] { return request.first }
    guard !isManual else { return nil }
    var times: [Duration] = []
    switch hold {
    case .directoryAway, .failed: return nil
    case .decision: break
    case nil: times = noted.map { time(of: $0, $1) }
    }
    if let timerDue { times.append(timerDue) }
    guard let first = times.min() else { return nil }
    return max(first, notBefore ?? first)
  }

  private func time(of reason: SyncReason, _ noted: Noted) -> Duration {
    switch reason {
    case .localChange, .directoryChange:
      min(noted.last + timing.quietTime, noted.first + timing.longestDelay)
    case .launch, .timer, .directoryReturned, .retry, .request: noted.first
    }
  }

  /// Begins a synchronization, and returns its reasons.
  mutating func begin(at now: Duration) -> Set<SyncReason> {
    if let timerDue, timerDue <= now { note(.timer, at: now) }
    begun = noted
    noted = [:]
    timerDue = nil
    return Set((begun ?? [:]).keys)
  }

  /// Ends a synchronization that succeeded.
  mutating func succeed(at now: Duration, random: UInt64) {
    begun = nil
    failures = 0
    hold = nil
    notBefore = nil
    setTimer(now, random)
  }

  /// Ends a synchronization that failed. What was a reason for it is one for the next.
  mutating func fail(_ retry: SyncError.Retry, at now: Duration, random: UInt64) {
    for (reason, times) in begun ?? [:] where reason != .request {
      noted[reason] = Noted(first: times.first, last: noted[reason]?.last ?? times.last)
    }
    // Who asked has the error; what was asked for is still to be done.
    if begun?[.request] != nil || noted.isEmpty { note(.retry, at: now) }
    begun = nil
    failures += 1
    switch retry {
    case .later:
      hold = nil
      notBefore = now + timing.jittered(timing.pause(afterFailures: failures), random)
    case .whenDirectoryReturns: hold = .directoryAway
    case .afterDecision: hold = .decision
    case .never: hold = .failed
    }
    setTimer(now, random)
  }

  /// Ends a synchronization that was cancelled: it is as if it had not begun, and is not due by itself
  /// before the next reason.
  mutating func cancel(at now: Duration, random: UInt64) {
    begun = nil
    setTimer(now, random)
  }

  private mutating func setTimer(_ now: Duration, _ random: UInt64) {
    let interval = isDirectoryWatched ? timing.interval : timing.pollingInterval
    timerDue = now + timing.jittered(interval, random)
  }
}
