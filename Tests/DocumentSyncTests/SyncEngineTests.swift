import DocumentSyncTesting
import Foundation
import SyncModel
import SyncStore
import Synchronization
import Testing

@testable import DocumentSync

/// An engine beside another device, with a clock of the test.
@Suite struct SyncEngineTests {
  /// Two devices, of which the second is kept the same by an engine.
  private struct Pair {
    let fleet: TestFleet
    let clock = ManualClock()
    let engine: SyncEngine
    let events: AsyncStream<SyncEngineEvent>
    let running: Task<Void, any Error>?
    var path: String { fleet[1].path }

    init(
      automaticallySync: Bool = true, runs: Bool = true, delegate: (any SyncDelegate)? = nil
    ) async throws {
      fleet = try await TestFleet(2)
      try await fleet.settle()
      var timing = SyncTiming()
      timing.jitter = 0
      let engine = SyncEngine(
        documents: [
          .init(
            storeAt: fleet[1].path, directory: fleet.directories[1],
            options: .init(delegate: delegate, environment: fleet.environment))
        ], timing: timing, automaticallySync: automaticallySync, clock: clock.engineClock,
        random: { 0 })
      self.engine = engine
      let iterator = engine.events.makeAsyncIterator()
      let (events, continuation) = AsyncStream.makeStream(of: SyncEngineEvent.self)
      self.events = events
      Task {
        var iterator = iterator
        while let event = await iterator.next() { continuation.yield(event) }
        continuation.finish()
      }
      running = runs ? Task { try await engine.run() } : nil
    }

    /// Lets time pass until an event comes for which `body` returns a value.
    @discardableResult
    func wait<Result: Sendable>(
      _ what: Comment, for body: @escaping @Sendable (SyncEngineEvent) -> Result?,
      sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Result {
      let passing = Task {
        while !Task.isCancelled {
          clock.advance(by: .milliseconds(100))
          try await Task.sleep(for: .milliseconds(2))
        }
      }
      defer { passing.cancel() }
      for await event in events {
        if let result = body(event) { return result }
      }
      return try #require(nil, what, sourceLocation: sourceLocation)
    }

    /// Waits for a synchronization that succeeds and for which `condition` holds.
    @discardableResult
    func waitForReport(
      _ what: Comment = "a report",
      _ condition: @escaping @Sendable (SyncReport) -> Bool = { _ in true }
    ) async throws -> SyncReport {
      try await wait(what) {
        guard case .didSynchronize(_, let report) = $0, condition(report) else { return nil }
        return report
      }
    }

    func end() async throws {
      running?.cancel()
      try await running?.value
    }
  }

  @Test func editsOfBothArriveByThemselves() async throws {
    let pair = try await Pair()
    try await pair.waitForReport("the first")
    try pair.fleet[0].put("x", "1")
    try await pair.fleet[0].synchronize()
    try await pair.waitForReport("what the other has sent") { !$0.applied.isEmpty }
    #expect(try pair.fleet[1].notes().contains("x=1"))
    try pair.fleet[1].put("y", "2")
    try await pair.waitForReport("the own edit") { !$0.sent.isEmpty }
    try await pair.fleet[0].synchronize()
    #expect(try pair.fleet[0].notes().contains("y=2"))
    try await pair.end()
  }

  @Test func aDirectoryThatIsAwayIsWaitedForAndNothingIsLost() async throws {
    let pair = try await Pair()
    try await pair.waitForReport()
    pair.fleet.memory.isAway = true
    try pair.fleet[1].put("y", "2")
    try await pair.wait("it is away") { event -> Bool? in
      if case .directoryAway = event { true } else { nil }
    }
    #expect(await pair.engine.state.documents.map(\.phase) == [.directoryAway])
    pair.fleet.memory.isAway = false
    try await pair.wait("it has returned") { event -> Bool? in
      if case .directoryReturned = event { true } else { nil }
    }
    try await pair.waitForReport { !$0.sent.isEmpty }
    #expect(await pair.engine.state.documents.map(\.failures) == [0])
    try await pair.end()
  }

  @Test func anEngineBeginsWhileTheDirectoryIsAway() async throws {
    let pair = try await Pair(runs: false)
    pair.fleet.memory.isAway = true
    let running = Task { [engine = pair.engine] in try await engine.run() }
    try await pair.wait("it is away") { event -> Bool? in
      if case .directoryAway = event { true } else { nil }
    }
    pair.fleet.memory.isAway = false
    try await pair.waitForReport()
    running.cancel()
    try await running.value
  }

  @Test func aFullDirectoryIsTriedAgain() async throws {
    let pair = try await Pair()
    try await pair.waitForReport()
    pair.fleet.memory.capacity = 0
    try pair.fleet[1].put("y", "2")
    let code = try await pair.wait("it fails") { event -> SyncError.Code? in
      if case .failed(_, let error, .later) = event { error.code } else { nil }
    }
    #expect(code == .noSharedSpace)
    pair.fleet.memory.capacity = .max
    try await pair.waitForReport { !$0.sent.isEmpty }
    try await pair.end()
  }

  @Test func withoutAutomaticSyncOnlyCallsSynchronize() async throws {
    let pair = try await Pair(automaticallySync: false)
    try pair.fleet[1].put("y", "2")
    pair.clock.advance(by: .seconds(10_000))
    #expect(try pair.fleet[1].store.status().unsealedEdits > 0)
    let results = try await pair.engine.synchronize()
    #expect(try results[pair.path]?.get().sent.count == 1)
    #expect(try await pair.engine.synchronize(.documents([])).isEmpty)
    try await pair.end()
  }

  @Test func callsThatComeTogetherShareSynchronizations() async throws {
    let pair = try await Pair(automaticallySync: false, runs: false)
    let engine = pair.engine
    let all = try await withThrowingTaskGroup(of: SyncEngine.Results.self) { group in
      for _ in 0..<20 { group.addTask { try await engine.synchronize() } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(all.count == 20)
    for results in all { _ = try results[pair.path]?.get() }
    await engine.close()
    var count = 0
    for await event in pair.events {
      if case .didSynchronize = event { count += 1 }
    }
    #expect((1..<20).contains(count))
  }

  private final class Impatient: SyncDelegate {
    let engine = Mutex<SyncEngine?>(nil)
    let error = Mutex<SyncError?>(nil)

    func decide(_ question: SyncQuestion) async -> SyncQuestion.Decision {
      guard let engine = engine.withLock({ $0 }) else { return .stop }
      do {
        _ = try await engine.synchronize()
      } catch let error as SyncError {
        self.error.withLock { $0 = error }
      } catch {
        Issue.record(error)
      }
      return .stop
    }
  }

  @Test func aDelegateThatWouldWaitForItselfGetsAnError() async throws {
    let delegate = Impatient()
    let pair = try await Pair(automaticallySync: false, delegate: delegate)
    delegate.engine.withLock { $0 = pair.engine }
    try await ApplicationSyncManager(
      directory: pair.fleet.memory, environment: pair.fleet.environment
    ).deleteDocument("main", by: pair.fleet[0].binding.client)
    let result = try await pair.engine.synchronize()[pair.path]
    #expect(throws: SyncError.self) { try result?.get() }
    #expect(delegate.error.withLock { $0?.operation } == "synchronize")
    #expect(await pair.engine.state.documents.map(\.phase) == [.paused])
    try await pair.end()
  }

  @Test func anEngineThatHasEndedSaysSo() async throws {
    let pair = try await Pair(runs: false)
    await pair.engine.close()
    #expect(await syncError { _ = try await pair.engine.synchronize() }?.code == .storeClosed)
    #expect(await syncError { try await pair.engine.run() }?.code == .storeClosed)
    for await _ in pair.engine.events { Issue.record("an event of an engine that has ended") }
  }

  @Test func anObserverThatIsTooSlowHearsThatItHasMissedEvents() async throws {
    let events = SyncEngineEvents(capacity: 4)
    var slow = events.makeAsyncIterator()
    for number in 0..<10 { events.send(.polling(document: "\(number)")) }
    events.finish()
    var missed = 0
    var seen: [String] = []
    while let event = await slow.next() {
      switch event {
      case .missed(let count): missed += count
      case .polling(let document): seen.append(document)
      default: Issue.record("another event")
      }
    }
    #expect(seen == ["0", "1", "2", "3"])
    #expect(missed == 6)
  }
}
