import DocumentSyncTesting
import Foundation
import GRDB
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
    let events: AsyncStream<SyncEngine.Event>
    let running: Task<Void, any Error>?
    var path: String { fleet[1].path }

    init(
      automaticallySync: Bool = true, runs: Bool = true, holdsChanges: Bool = false,
      delegate: (any SyncDelegate)? = nil
    ) async throws {
      fleet = try await TestFleet(2)
      try await fleet.settle()
      var timing = SyncEngine.Timing()
      timing.jitter = 0
      let engine = SyncEngine(
        documents: [
          .init(
            storeAt: fleet[1].path, directory: fleet.directories[1],
            options: .init(delegate: delegate, environment: fleet.environment),
            holdsChanges: holdsChanges)
        ], timing: timing, automaticallySync: automaticallySync, clock: clock.engineClock,
        random: { 0 })
      self.engine = engine
      let iterator = engine.events.makeAsyncIterator()
      let (events, continuation) = AsyncStream.makeStream(of: SyncEngine.Event.self)
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
      _ what: Comment, for body: @escaping @Sendable (SyncEngine.Event) -> Result?,
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

    /// Deletes the document in the directory.
    func deleteDocument() async throws {
      try await ApplicationSyncManager(
        directory: fleet.memory, environment: fleet.environment
      ).deleteDocument("main", by: fleet[0].binding.client)
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
    try await engine.close()
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
    try await pair.deleteDocument()
    let result = try await pair.engine.synchronize()[pair.path]
    #expect(throws: SyncError.self) { try result?.get() }
    #expect(delegate.error.withLock { $0?.operation } == "synchronize")
    #expect(await pair.engine.state.documents.map(\.phase) == [.paused])
    try await pair.end()
  }

  @Test func anEngineThatHasEndedSaysSo() async throws {
    let pair = try await Pair(runs: false)
    try await pair.engine.close()
    #expect(await syncError { _ = try await pair.engine.synchronize() }?.code == .storeClosed)
    #expect(await syncError { try await pair.engine.run() }?.code == .storeClosed)
    for await _ in pair.engine.events { Issue.record("an event of an engine that has ended") }
  }

  @Test func anObserverThatIsTooSlowHearsThatItHasMissedEvents() async throws {
    let events = SyncEngine.Events(capacity: 4)
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

  /// The first call fails before the engine runs; then the engine waits for the directory all the same.
  @Test func anEngineThatHasFailedBeforeItRunsWaitsForTheDirectory() async throws {
    let pair = try await Pair(runs: false)
    pair.fleet.memory.isAway = true
    let error = await syncError {
      _ = try await pair.engine.synchronize()[pair.path]?.get()
    }
    #expect(error?.code == .directoryAway)
    let running = Task { [engine = pair.engine] in try await engine.run() }
    pair.fleet.memory.isAway = false
    try await pair.waitForReport()
    running.cancel()
    try await running.value
  }

  /// While a backup is being restored, the file is incomplete.
  @Test func aFileThatIsIncompleteForAWhileIsTriedAgainWhenItChanges() async throws {
    let pair = try await Pair()
    try await pair.waitForReport()
    try pair.fleet[1].store.checkpoint()
    let file = URL(fileURLWithPath: pair.path)
    let content = try Data(contentsOf: file)
    try Data().write(to: file)
    try await pair.wait("it fails") { event -> Bool? in
      if case .failed(_, _, .never) = event { true } else { nil }
    }
    #expect(await pair.engine.state.documents.map(\.phase) == [.failed])
    try content.write(to: file)
    try await pair.waitForReport("it goes on")
    #expect(await pair.engine.state.documents.map(\.phase) == [.idle])
    try await pair.end()
  }

  @Test func theLogIsEmptyAfterASynchronization() async throws {
    let pair = try await Pair()
    try await pair.waitForReport()
    try await DatabaseQueue(path: pair.path).writeWithoutTransaction {
      try $0.execute(sql: "PRAGMA journal_mode = WAL")
    }
    try pair.fleet[1].put("y", "2")
    try await pair.waitForReport { !$0.sent.isEmpty }
    let copy = pair.fleet.scratch.store("copy")
    try FileManager.default.copyItem(atPath: pair.path, toPath: copy)
    let rows = try await DatabaseQueue(path: copy).read {
      try String.fetchAll($0, sql: "SELECT quote(id) FROM notes")
    }
    #expect(rows.contains("'y'"))
    try await pair.end()
  }

  // MARK: - Ending

  @Test func closingEndsTheRun() async throws {
    let pair = try await Pair()
    try await pair.waitForReport()
    try await pair.engine.close()
    try await pair.running?.value
    // A second time, it waits for the same end.
    try await pair.engine.close()
  }

  @Test func aCallDuringTheEndReturns() async throws {
    for _ in 0..<20 {
      let pair = try await Pair(runs: false)
      async let result = pair.engine.synchronize()
      async let end: Void = pair.engine.close()
      do {
        for outcome in try await result.values {
          if case .failure(let error) = outcome {
            #expect([.storeClosed, .cancelled].contains(error.code), "\(error)")
          }
        }
      } catch let error as SyncError {
        #expect(error.code == .storeClosed)
      }
      try await end
    }
  }

  @Test func aCallerThatIsCancelledReturnsAndTheSynchronizationGoesOn() async throws {
    let delegate = Silent()
    let pair = try await Pair(runs: false, delegate: delegate)
    try await pair.deleteDocument()
    let call = Task { [engine = pair.engine] in try await engine.synchronize() }
    await delegate.isAsked()
    call.cancel()
    let outcome = try await call.value[pair.path]
    #expect(throws: SyncError.self) { try outcome?.get() }
    #expect(await pair.engine.state.documents.map(\.phase) == [.synchronizing])
    // The delegate never answers; the end does not wait for it.
    try await pair.engine.close()
  }

  @Test func anEngineThatIsLetGoEndsItsEvents() async throws {
    let fleet = try await TestFleet(1)
    var engine: SyncEngine? = SyncEngine(
      documents: [.init(storeAt: fleet[0].path, directory: fleet.directories[0])])
    var events = try #require(engine?.events.makeAsyncIterator())
    engine = nil
    #expect(await events.next() == nil)
  }

  // MARK: - Delegates

  /// Is asked, and never answers.
  private final class Silent: SyncDelegate {
    private let asked = AsyncStream.makeStream(of: Void.self)
    let count = Mutex(0)

    func isAsked() async { for await _ in asked.stream { return } }

    func decide(_ question: SyncQuestion) async -> SyncQuestion.Decision {
      count.withLock { $0 += 1 }
      asked.continuation.yield()
      await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
      return .stop
    }
  }

  /// Answers “stop”, and calls the engine in all ways before.
  private final class Meddling: SyncDelegate {
    let engine = Mutex<SyncEngine?>(nil)
    let codes = Mutex<[SyncError.Code?]>([])
    let count = Mutex(0)

    func decide(_ question: SyncQuestion) async -> SyncQuestion.Decision {
      count.withLock { $0 += 1 }
      guard let engine = engine.withLock({ $0 }) else { return .stop }
      var codes: [SyncError.Code?] = []
      codes.append(await syncError { _ = try await engine.synchronize() }?.code)
      codes.append(await syncError { try await engine.cancelOperations() }?.code)
      codes.append(await syncError { try await engine.close() }?.code)
      // A detached task is none of the delegate's.
      let task = Task.detached {
        do { return try await engine.sendChanges(.documents([])).isEmpty } catch {
          Issue.record(error)
          return false
        }
      }
      codes.append(await task.value ? nil : .internalFault)
      self.codes.withLock { [codes] in $0 = codes }
      return .stop
    }
  }

  @Test func aDelegateThatCallsItsEngineGetsErrors() async throws {
    let delegate = Meddling()
    let pair = try await Pair(automaticallySync: false, delegate: delegate)
    delegate.engine.withLock { $0 = pair.engine }
    try await pair.deleteDocument()
    _ = try await pair.engine.synchronize()
    #expect(delegate.codes.withLock { $0 } == [.storeInUse, .storeInUse, .storeInUse, nil])
    try await pair.end()
  }

  @Test func aQuestionThatWasDeclinedIsAskedAgainOnRequestAlone() async throws {
    let delegate = Meddling()
    let pair = try await Pair(delegate: delegate)
    try await pair.waitForReport()
    try await pair.deleteDocument()
    try await pair.wait("it pauses") { event -> Bool? in
      if case .paused = event { true } else { nil }
    }
    for _ in 0..<3 {
      try await pair.wait("it tries again") { event -> Bool? in
        if case .failed(_, _, .afterDecision) = event { true } else { nil }
      }
    }
    #expect(delegate.count.withLock { $0 } == 1)
    _ = try await pair.engine.synchronize()
    #expect(delegate.count.withLock { $0 } == 2)
    try await pair.end()
  }

  private struct Longer: SyncDelegate {
    func resolve(_ values: Conflict.Values, by name: String) throws -> Value? { .text("longer") }
  }

  @Test func aDelegateResolvesConflictsUnderAnEngine() async throws {
    let pair = try await Pair(automaticallySync: false, delegate: Longer())
    let manager = try await pair.engine.manager(storeAt: pair.path)
    try await manager.setPolicies { $0.set(.resolve("longer"), table: "notes") }
    try pair.fleet[0].put("seed-0", "other")
    try pair.fleet[1].put("seed-0", "own")
    try await pair.fleet[0].synchronize()
    _ = try await pair.engine.synchronize()[pair.path]?.get()
    #expect(try pair.fleet[1].notes().contains("seed-0=longer"))
    try await pair.end()
  }

  @Test func theNumberOfEditsToSendIsTold() async throws {
    let pair = try await Pair()
    let counts: @Sendable (SyncEngine.Event) -> StoreStatus.PendingCount? = { event in
      if case .pendingCountChanged(_, let count) = event { count } else { nil }
    }
    try await pair.wait("the first synchronization") { event in
      if case .didSynchronize = event { true } else { nil }
    }
    #expect(await pair.engine.state.documents.map { $0.pending?.total } == [0])
    try pair.fleet[1].put("own", "1")
    #expect(try await pair.wait("an edit to send", for: counts).unsealed == 1)
    #expect(try await pair.wait("nothing to send", for: counts).total == 0)
    #expect(await pair.engine.state.documents.map { $0.pending?.total } == [0])
    #expect(
      try await pair.engine.manager(storeAt: pair.path).pendingChanges().changes.isEmpty)
    try pair.fleet[1].put("own", "2")
    let pending = try await pair.engine.manager(storeAt: pair.path).pendingChanges(limit: 5)
    #expect(pending.changes.count <= 1)
    #expect(
      pending.changes.allSatisfy { $0.table == "notes" && $0.key == [.text(Array("own".utf8))] })
    try await pair.end()
  }

  // MARK: - Halves

  @Test func changesAreFetchedWithoutSendingAndSentWithoutFetching() async throws {
    let pair = try await Pair(automaticallySync: false)
    try pair.fleet[1].put("own", "1")
    try pair.fleet[0].put("other", "1")
    try await pair.fleet[0].synchronize()
    let before = pair.fleet.changeSets(of: 1)
    let fetched = try await pair.engine.fetchChanges()[pair.path]?.get()
    #expect(fetched?.applied.count == 1 && fetched?.sent.isEmpty == true)
    #expect(pair.fleet.changeSets(of: 1) == before)
    #expect(try await pair.engine.manager(storeAt: pair.path).hasUnsentEdits())
    try pair.fleet[0].put("other", "2")
    try await pair.fleet[0].synchronize()
    let sent = try await pair.engine.sendChanges()[pair.path]?.get()
    #expect(sent?.applied.isEmpty == true && sent?.sent.count == 1)
    #expect(try pair.fleet[1].notes().contains("other=1"))
    try await pair.fleet[0].synchronize()
    #expect(try pair.fleet[0].notes().contains("own=1"))
    try await pair.fleet.settle()
    try pair.fleet.expectEqual()
    try await pair.end()
  }

  @Test(arguments: [false, true])
  func changesAreHeldAndReleased(fromTheBeginning: Bool) async throws {
    let pair = try await Pair(holdsChanges: fromTheBeginning)
    try await pair.waitForReport("the first")
    if !fromTheBeginning { try await pair.engine.holdChanges() }
    let before = pair.fleet.changeSets(of: 1)
    try pair.fleet[1].put("own", "1")
    try await pair.wait("an edit to send") { event in
      if case .pendingCountChanged(_, let count) = event, count.total == 1 { true } else { nil }
    }
    try pair.fleet[0].put("other", "1")
    try await pair.fleet[0].synchronize()
    try await pair.waitForReport("what the other has sent") { !$0.applied.isEmpty }
    #expect(try pair.fleet[1].notes().contains("other=1"))
    #expect(try await pair.engine.synchronize()[pair.path]?.get().sent.isEmpty == true)
    #expect(pair.fleet.changeSets(of: 1) == before)
    let state = try #require(await pair.engine.state.documents.first)
    #expect(state.holdsChanges && state.pending?.total == 1)

    #expect(try await pair.engine.sendChanges()[pair.path]?.get().sent.count == 1)
    try pair.fleet[1].put("own", "2")
    #expect(try await pair.engine.synchronize()[pair.path]?.get().sent.isEmpty == true)
    try await pair.engine.releaseChanges()
    try await pair.waitForReport("what was held") { !$0.sent.isEmpty }
    #expect(await pair.engine.state.documents.first?.holdsChanges == false)
    try await pair.fleet[0].synchronize()
    #expect(try pair.fleet[0].notes().contains("own=2"))
    try await pair.end()
  }

  @Test func sendingKeepsWhatIsWaitedFor() async throws {
    let pair = try await Pair(automaticallySync: false)
    try pair.fleet[0].put("other", "1")
    try await pair.fleet[0].synchronize()
    let path = try #require(pair.fleet.changeSets(of: 0).last)
    let bytes = try pair.fleet.memory.bytes(at: path)
    try pair.fleet.memory.remove(path)
    let waiting = try await pair.engine.synchronize()[pair.path]?.get().waiting
    #expect(waiting?.isEmpty == false)
    try pair.fleet[1].put("own", "1")
    #expect(try await pair.engine.sendChanges()[pair.path]?.get().waiting == waiting)
    #expect(try await pair.engine.manager(storeAt: pair.path).waits() == waiting)
    pair.fleet.memory.put(.file(bytes), at: path)
    #expect(try await pair.engine.fetchChanges()[pair.path]?.get().waiting == [])
    try await pair.end()
  }

  @Test func aFullDirectoryIsReceivedFromAtOnce() async throws {
    let pair = try await Pair()
    try await pair.waitForReport()
    pair.fleet.memory.capacity = 0
    try pair.fleet[1].put("own", "1")
    await pair.engine.noteExternalChange()
    try await pair.wait("it cannot send") { event -> Bool? in
      if case .failed(_, let error, _) = event { error.code == .noSharedSpace } else { nil }
    }
    #expect(await pair.engine.state.documents.map(\.phase) == [.cannotSend])
    pair.fleet.memory.capacity = .max
    try pair.fleet[0].put("other", "1")
    try await pair.fleet[0].synchronize()
    pair.fleet.memory.capacity = 0
    try await pair.wait("it receives") { event -> Bool? in
      guard case .documentEvent(_, .rowsChanged) = event else { return nil }
      return true
    }
    pair.fleet.memory.capacity = .max
    try await pair.waitForReport { !$0.sent.isEmpty }
    try await pair.end()
  }

  // MARK: - Documents

  @Test func rowsThatHaveChangedAreToldBeforeTheReport() async throws {
    let pair = try await Pair(automaticallySync: false)
    try pair.fleet[0].put("other", "1")
    try await pair.fleet[0].synchronize()
    _ = try await pair.engine.synchronize()
    try await pair.engine.close()
    var seen: [String] = []
    for await event in pair.events {
      switch event {
      case .documentEvent(_, .rowsChanged(let changes)):
        seen += changes.tables.flatMap(\.inserted).map { "\($0)" }
      case .didSynchronize: seen.append("end")
      default: break
      }
    }
    #expect(seen == ["\([Value.text("other")])", "end"])
  }

  @Test func progressWarningsAndConflictsComeBeforeTheReport() async throws {
    let pair = try await Pair(automaticallySync: false)
    try pair.fleet[0].put("same", "0")
    try await pair.fleet[0].synchronize()
    _ = try await pair.engine.synchronize()
    for device in 0..<2 { try pair.fleet[device].put("same", "\(device + 1)") }
    try await pair.fleet[0].synchronize()
    try await DatabaseQueue(path: pair.path).write {
      try $0.execute(sql: "CREATE TABLE loose AS SELECT 1 AS number")
    }
    let report = try await #require(pair.engine.synchronize()[pair.path]).get()
    // The clock of the test stands still, so there is a warning of a clock, too.
    #expect(report.conflicts == 1 && report.warnings.contains { $0.code == .tableUnsuitable })
    try await pair.engine.close()
    var seen: [String] = []
    var phases: Set<SyncProgress.Phase> = []
    for await event in pair.events {
      switch event {
      case .willSynchronize: seen = []
      case .progress(let document, let progress):
        #expect(document == pair.path)
        phases.insert(progress.phase)
      case .warning(_, let warning): seen.append("warning \(warning.code.rawValue)")
      case .conflicts(_, let count, let questions): seen.append("\(count) conflict \(questions)")
      case .didSynchronize(_, let last): seen.append(last == report ? "report" : "another report")
      default: break
      }
    }
    #expect(
      seen == report.warnings.map { "warning \($0.code.rawValue)" } + ["1 conflict []", "report"])
    #expect(phases.isSuperset(of: [.listing, .applying]), "\(phases)")
  }

  /// Progress does not take the place of other events, and does not count as missed.
  @Test func anObserverThatDoesNotKeepUpGetsLessProgress() async throws {
    let events = SyncEngine.Events(capacity: 20)
    var iterator = events.makeAsyncIterator()
    for _ in 0..<100 { events.send(.progress(document: "a", SyncProgress()), isDispensable: true) }
    for _ in 0..<18 { events.send(.resumed(document: "a")) }
    events.finish()
    var counts = [0, 0, 0]
    while let event = await iterator.next() {
      switch event {
      case .progress: counts[0] += 1
      case .resumed: counts[1] += 1
      default: counts[2] += 1
      }
    }
    #expect(counts == [2, 18, 0])
  }

  @Test func anotherFileInThePlaceOfTheStoreIsOpened() async throws {
    let pair = try await Pair(automaticallySync: false)
    _ = try await pair.engine.synchronize()
    let copy = pair.path + ".copy"
    try DatabaseQueue(path: pair.path).backup(to: DatabaseQueue(path: copy))
    _ = try await pair.fleet.managers[1].close()
    for suffix in ["-wal", "-shm", "-journal"]
    where FileManager.default.fileExists(atPath: pair.path + suffix) {
      try FileManager.default.removeItem(atPath: pair.path + suffix)
    }
    try FileManager.default.removeItem(atPath: pair.path)
    try FileManager.default.moveItem(atPath: copy, toPath: pair.path)
    try await DatabaseQueue(path: pair.path).write {
      try $0.execute(sql: "INSERT INTO notes VALUES('new', 'file')")
    }
    #expect(try await pair.engine.synchronize()[pair.path]?.get().sent.isEmpty == false)
    try await pair.fleet[0].synchronize()
    #expect(try pair.fleet[0].notes().contains("new=file"))
    // The events of the document go on.
    try pair.fleet[0].put("other", "1")
    try await pair.fleet[0].synchronize()
    _ = try await pair.engine.synchronize()
    try await pair.end()
    var changes = 0
    for await event in pair.events {
      if case .documentEvent(_, .rowsChanged) = event { changes += 1 }
    }
    #expect(changes == 1)
  }

  /// A program changes a table so that it cannot be synchronized, and mends it.
  @Test func aTableThatIsMendedIsSynchronizedAgain() async throws {
    let pair = try await Pair()
    try await pair.waitForReport()
    var configuration = Configuration()
    configuration.busyMode = .timeout(60)
    let database = try DatabaseQueue(path: pair.path, configuration: configuration)
    try await database.write { database in
      try database.execute(
        sql: "CREATE TABLE new AS SELECT * FROM notes; DROP TABLE notes; "
          + "ALTER TABLE new RENAME TO notes")
    }
    await pair.engine.noteExternalChange()
    try await pair.wait("it cannot be synchronized") { event -> Bool? in
      guard case .failed(_, let error, let retry) = event else { return nil }
      return error.code == .storeUnsuitable && retry == .never
    }
    try await database.write { database in
      try database.execute(
        sql:
          "CREATE TABLE new (id TEXT PRIMARY KEY, body TEXT); INSERT INTO new SELECT * FROM notes; "
          + "DROP TABLE notes; ALTER TABLE new RENAME TO notes; INSERT INTO notes VALUES ('later', '1')"
      )
    }
    try await pair.waitForReport { !$0.sent.isEmpty }
    try await pair.fleet[0].synchronize()
    #expect(try pair.fleet[0].notes().contains("later=1"))
    try await pair.end()
  }

  @Test func documentsAreAddedAndRemoved() async throws {
    let pair = try await Pair(automaticallySync: false)
    try await pair.engine.add(
      .init(
        storeAt: pair.fleet[0].path, directory: pair.fleet.directories[0],
        options: .init(environment: pair.fleet.environment)))
    // The same store in another spelling is the same document.
    try await pair.engine.add(.init(storeAt: pair.fleet.scratch.path + "/./0.db"))
    #expect(await pair.engine.state.documents.count == 2)
    #expect(try await pair.engine.synchronize().count == 2)
    try await pair.engine.remove(storeAt: pair.fleet[0].path)
    #expect(try await pair.engine.synchronize().count == 1)
    let error = await syncError {
      _ = try await pair.engine.synchronize(.documents([pair.fleet[0].path]))
    }
    #expect(error?.code == .storeMissing && error?.path == pair.fleet[0].path)
    try await pair.end()
  }

  private final class Order: Sendable {
    let list = Mutex<[Int]>([])
  }

  @Test func theGreatestPriorityComesFirst() async throws {
    let slots = AsyncTurn(count: 1)
    let order = Order()
    let (holds, release) = AsyncStream.makeStream(of: Void.self)
    let (begins, begun) = AsyncStream.makeStream(of: Void.self)
    async let first: Void = slots.take(priority: 0) {
      begun.yield()
      for await _ in holds { break }
    }
    for await _ in begins { break }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, priority) in [1, 3, 2, 3].enumerated() {
        group.addTask {
          try await slots.take(priority: priority) { order.list.withLock { $0.append(index) } }
        }
        while slots.waitingCount <= index { await Task.yield() }
      }
      release.yield()
      try await group.waitForAll()
    }
    try await first
    // One that leaves its slot lets another in.
    try await slots.take(priority: 0) {
      await slots.leaving {
        do {
          try await slots.take(priority: 0) { order.list.withLock { $0.append(9) } }
        } catch {
          Issue.record(error)
        }
      }
    }
    #expect(order.list.withLock { $0.popLast() } == 9)
    #expect(order.list.withLock { $0 } == [1, 3, 2, 0])
  }
}
