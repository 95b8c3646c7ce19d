/// When a document is to be synchronized next, and why.
///
/// A value without clock, tasks and files: the engine tells it what has happened, and asks it what is
/// due. It keeps a reason until a synchronization that began after it succeeds, or is cancelled.
struct SyncSchedule {
  /// Why no synchronization is due by itself.
  enum Hold: Hashable, Sendable {
    /// The directory is away: its return ends the hold.
    case directoryAway
    /// A person or the application has to decide. It may happen in another process, so the interval goes on.
    case decision
    /// It would fail again.
    case failed
  }

  /// The times of one reason.
  private struct Noted {
    var first: Duration
    var last: Duration
  }

  let timing: SyncEngine.Timing
  /// Whether only requests are a reason to synchronize.
  var isManual: Bool
  /// Whether the store and the directory report their changes; otherwise they are looked at in shorter
  /// intervals.
  var isWatched = false
  private(set) var hold: Hold?
  /// The failures since the last success.
  private(set) var failures = 0
  private var noted: [SyncEngine.SyncReason: Noted] = [:]
  private var begun: [SyncEngine.SyncReason: Noted]?
  /// The end of the pause after a failure.
  private var notBefore: Duration?
  /// Whether only sending has failed: changes of others do not wait for the end of the pause.
  private var receivesMeanwhile = false
  private var timerDue: Duration?

  init(_ timing: SyncEngine.Timing, isManual: Bool = false) {
    self.timing = timing
    self.isManual = isManual
  }

  /// Whether a synchronization runs.
  var isRunning: Bool { begun != nil }

  /// The reasons that no synchronization has begun for yet.
  var reasons: Set<SyncEngine.SyncReason> { Set(noted.keys) }

  /// Notes a reason. A request ends every hold. The return of the directory ends the hold `directoryAway`.
  /// Both end the pause after a failure.
  mutating func note(_ reason: SyncEngine.SyncReason, at now: Duration) {
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
    case nil: times = noted.map { pausing($0, time(of: $0, $1)) }
    }
    if let timerDue { times.append(pausing(.timer, timerDue)) }
    return times.min()
  }

  private func pausing(_ reason: SyncEngine.SyncReason, _ time: Duration) -> Duration {
    if receivesMeanwhile, [.directoryChange, .timer].contains(reason) { return time }
    return max(time, notBefore ?? time)
  }

  private func time(of reason: SyncEngine.SyncReason, _ noted: Noted) -> Duration {
    switch reason {
    case .localChange, .directoryChange:
      min(noted.last + timing.quietTime, noted.first + timing.longestDelay)
    case .launch, .timer, .externalChange, .directoryReturned, .retry, .request: noted.first
    }
  }

  /// Begins a synchronization, and returns its reasons.
  mutating func begin(at now: Duration) -> Set<SyncEngine.SyncReason> {
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
    receivesMeanwhile = false
    hold = nil
    notBefore = nil
    setTimer(now, random)
  }

  /// Ends a synchronization that failed. What was a reason for it is one for the next.
  ///
  /// - Parameter hasReceived: Whether the changes of others were applied, and only sending has failed.
  mutating func fail(
    _ retry: SyncError.Retry, hasReceived: Bool = false, at now: Duration, random: UInt64
  ) {
    receivesMeanwhile = hasReceived
    for (reason, times) in begun ?? [:] where reason != .request {
      if hasReceived, [.directoryChange, .timer].contains(reason) { continue }
      noted[reason] = Noted(first: times.first, last: noted[reason]?.last ?? times.last)
    }
    // Who asked has the error; what was asked for is still to be done.
    let lacksReason = noted.keys.allSatisfy { $0 == .directoryChange }
    if begun?[.request] != nil || lacksReason { note(.retry, at: now) }
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

  /// Ends the hold after a failure that cannot pass by itself: what made it fail is another now.
  mutating func endFailure() { if hold == .failed { hold = nil } }

  /// Ends a synchronization that was cancelled, and drops its reasons: the next one is due at the next
  /// reason, at the latest after the interval.
  ///
  /// What it has written before is reported as a change: the next one comes after the first pause at the
  /// earliest, unless it is asked for.
  mutating func cancel(at now: Duration, random: UInt64) {
    begun = nil
    notBefore = now + timing.firstPause
    setTimer(now, random)
  }

  private mutating func setTimer(_ now: Duration, _ random: UInt64) {
    let interval = isWatched ? timing.interval : timing.pollingInterval
    timerDue = now + timing.jittered(interval, random)
  }
}
