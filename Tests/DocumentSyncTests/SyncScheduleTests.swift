import Testing

@testable import DocumentSync

/// When a document is due, without a clock.
@Suite struct SyncScheduleTests {
  private static let timing: SyncEngine.Timing = {
    var timing = SyncEngine.Timing()
    timing.quietTime = .milliseconds(20)
    timing.longestDelay = .seconds(2)
    timing.interval = .seconds(300)
    timing.pollingInterval = .seconds(15)
    timing.firstPause = .seconds(1)
    timing.longestPause = .seconds(60)
    timing.jitter = 0
    return timing
  }()

  private func schedule(isManual: Bool = false) -> SyncSchedule {
    var schedule = SyncSchedule(Self.timing, isManual: isManual)
    schedule.isWatched = true
    return schedule
  }

  /// Begins and ends one synchronization.
  private func synchronize(_ schedule: inout SyncSchedule, at now: Duration) {
    _ = schedule.begin(at: now)
    schedule.succeed(at: now, random: 0)
  }

  @Test func nothingIsDueBeforeThereIsAReason() {
    #expect(schedule().due == nil)
  }

  @Test func launchingIsDueAtOnceAndThenTheInterval() {
    var schedule = schedule()
    schedule.note(.launch, at: .seconds(5))
    #expect(schedule.due == .seconds(5))
    #expect(schedule.begin(at: .seconds(5)) == [.launch])
    #expect(schedule.due == nil)
    schedule.succeed(at: .seconds(6), random: 0)
    #expect(schedule.due == .seconds(306))
    #expect(schedule.begin(at: .seconds(306)) == [.timer])
    schedule.isWatched = false
    schedule.succeed(at: .seconds(306), random: 0)
    #expect(schedule.due == .seconds(321))
  }

  @Test func editsWaitUntilItIsQuietButNotForEver() {
    var schedule = schedule()
    schedule.note(.localChange, at: .seconds(1))
    #expect(schedule.due == .seconds(1) + .milliseconds(20))
    schedule.note(.localChange, at: .seconds(1) + .milliseconds(15))
    #expect(schedule.due == .seconds(1) + .milliseconds(35))
    for step in 2...400 { schedule.note(.localChange, at: .seconds(1) + .milliseconds(15 * step)) }
    #expect(schedule.due == .seconds(3))
    // The earliest of several reasons counts.
    schedule.note(.request, at: .seconds(2))
    #expect(schedule.due == .seconds(2))
    #expect(schedule.begin(at: .seconds(2)) == [.localChange, .request])
  }

  @Test func whatComesWhileOneRunsIsAReasonForTheNext() {
    var schedule = schedule()
    schedule.note(.launch, at: .zero)
    _ = schedule.begin(at: .zero)
    schedule.note(.directoryChange, at: .seconds(1))
    schedule.note(.request, at: .seconds(2))
    #expect(schedule.due == nil)
    schedule.succeed(at: .seconds(3), random: 0)
    #expect(schedule.due == .seconds(2))
    #expect(schedule.begin(at: .seconds(3)) == [.directoryChange, .request])
  }

  @Test func pausesGrowAfterFailuresAndEndWithASuccess() {
    var schedule = schedule()
    schedule.note(.localChange, at: .zero)
    var now = Duration.zero
    for pause in [1, 2, 4, 8, 16, 32, 60, 60] as [Int] {
      #expect(schedule.begin(at: now).contains(.localChange))
      schedule.fail(.later, at: now, random: 0)
      #expect(schedule.hold == nil)
      #expect(schedule.due == now + .seconds(pause))
      // Edits do not shorten the pause.
      schedule.note(.localChange, at: now)
      #expect(schedule.due == now + .seconds(pause))
      now += .seconds(pause)
    }
    #expect(schedule.failures == 8)
    synchronize(&schedule, at: now)
    #expect(schedule.failures == 0)
    schedule.note(.localChange, at: now)
    #expect(schedule.due == now + .milliseconds(20))
  }

  @Test func aRequestDoesNotWaitForThePause() {
    var schedule = schedule()
    schedule.note(.launch, at: .zero)
    _ = schedule.begin(at: .zero)
    schedule.fail(.later, at: .zero, random: 0)
    schedule.note(.request, at: .milliseconds(100))
    #expect(schedule.due == .milliseconds(100))
    #expect(schedule.begin(at: .milliseconds(100)) == [.launch, .request])
    // Who asked has the error; the work is still to be done.
    schedule.fail(.later, at: .milliseconds(100), random: 0)
    #expect(schedule.reasons == [.launch, .retry])
    #expect(schedule.due == .milliseconds(2_100))
  }

  @Test func aDirectoryThatIsAwayIsWaitedFor() {
    var schedule = schedule()
    schedule.note(.localChange, at: .zero)
    _ = schedule.begin(at: .zero)
    schedule.fail(.whenDirectoryReturns, at: .zero, random: 0)
    schedule.note(.localChange, at: .seconds(1))
    #expect(schedule.hold == .directoryAway)
    #expect(schedule.due == nil)
    schedule.note(.directoryReturned, at: .seconds(9))
    #expect(schedule.hold == nil)
    #expect(schedule.due == .seconds(1) + .milliseconds(20))
    #expect(schedule.begin(at: .seconds(9)) == [.localChange, .directoryReturned])
  }

  @Test func aDecisionIsWaitedForAndLookedAfterInIntervals() {
    var schedule = schedule()
    schedule.note(.launch, at: .zero)
    _ = schedule.begin(at: .zero)
    schedule.fail(.afterDecision, at: .zero, random: 0)
    schedule.note(.localChange, at: .seconds(1))
    #expect(schedule.due == .seconds(300))
    schedule.note(.directoryReturned, at: .seconds(2))
    #expect(schedule.hold == .decision)
    schedule.note(.request, at: .seconds(3))
    #expect(schedule.due == .seconds(3))
  }

  @Test func whatWouldFailAgainWaitsForARequest() {
    var schedule = schedule()
    schedule.note(.launch, at: .zero)
    _ = schedule.begin(at: .zero)
    schedule.fail(.never, at: .zero, random: 0)
    for reason in SyncEngine.SyncReason.allCases where reason != .request {
      schedule.note(reason, at: .seconds(1))
    }
    #expect(schedule.due == nil)
    schedule.note(.request, at: .seconds(3))
    #expect(schedule.due == .seconds(3))
  }

  @Test func withoutAutomaticSyncOnlyRequestsCount() {
    var schedule = schedule(isManual: true)
    for reason in SyncEngine.SyncReason.allCases where reason != .request {
      schedule.note(reason, at: .zero)
    }
    #expect(schedule.due == nil)
    schedule.note(.request, at: .seconds(1))
    #expect(schedule.due == .seconds(1))
    synchronize(&schedule, at: .seconds(1))
    #expect(schedule.due == nil)
  }

  @Test func whatIsCancelledComesBackWithTheInterval() {
    var schedule = schedule()
    schedule.note(.localChange, at: .zero)
    _ = schedule.begin(at: .zero)
    schedule.cancel(at: .seconds(1), random: 0)
    #expect(schedule.due == .seconds(301))
  }

  @Test func jitterOnlyMakesTimesLonger() {
    var timing = Self.timing
    timing.jitter = 0.2
    #expect(timing.jittered(.seconds(10), 0) == .seconds(10))
    let longest = timing.jittered(.seconds(10), .max)
    #expect(longest > .seconds(11.9) && longest <= .seconds(12))
    #expect(timing.pause(afterFailures: .max) == .seconds(60))
  }

  /// Each code has a rule, and those that say that the directory is away are waited for.
  @Test func codesOfADirectoryThatIsAwayWaitForIt() {
    for code in [
      SyncError.Code.directoryAway, .applicationMissing, .rootMissing, .generationMissing,
    ] {
      #expect(code.classification == .directoryAway)
      #expect(code.retry == .whenDirectoryReturns)
    }
    for code in [SyncError.Code.storeInUse, .storeBusy] { #expect(code.retry == .later) }
    #expect(SyncError.Code(rawValue: "of a later version").retry == .later)
  }
}
