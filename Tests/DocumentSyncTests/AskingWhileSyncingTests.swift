import DocumentSyncTesting
import Foundation
import GRDB
import SyncModel
import SyncStore
import Synchronization
import Testing

@testable import DocumentSync

/// What an application asks a manager while a synchronization applies changes.
struct AskingWhileSyncingTests {
  /// Stops the first thread that begins a certain statement, or asks for the time under a condition,
  /// until it is released.
  private final class Stop: Sendable {
    private let isWanted = Mutex(false)
    private let condition = Mutex<(@Sendable () -> Bool)?>(nil)
    private let stopped = DispatchSemaphore(value: 0)
    private let released = DispatchSemaphore(value: 0)

    func watch(_ environment: inout SyncEnvironment) {
      environment.store.onStatement = { sql in
        guard sql.contains("docsync_history"), sql.hasPrefix("INSERT") else { return }
        let stops = self.isWanted.withLock { wanted in
          defer { wanted = false }
          return wanted
        }
        if stops { self.stop() }
      }
      environment.now = { [now = environment.now] in
        let stops = self.condition.withLock { condition in
          guard condition?() == true else { return false }
          condition = nil
          return true
        }
        if stops { self.stop() }
        return now()
      }
    }

    private func stop() {
      stopped.signal()
      released.wait()
    }

    /// Runs a synchronization, and `body` while it is stopped in the middle of a transaction.
    func during<Result: Sendable>(
      _ manager: DocumentSyncManager, _ body: () async throws -> Result
    ) async throws -> Result {
      isWanted.withLock { $0 = true }
      return try await during({ _ = try await manager.synchronize() }, body)
    }

    /// Runs `work`, and `body` while it is stopped where it asks for the time and `condition` is true.
    func during<Result: Sendable>(
      _ work: @escaping @Sendable () async throws -> Void,
      when condition: @escaping @Sendable () -> Bool, _ body: () async throws -> Result
    ) async throws -> Result {
      self.condition.withLock { $0 = condition }
      return try await during(work, body)
    }

    private func during<Result: Sendable>(
      _ work: @escaping @Sendable () async throws -> Void, _ body: () async throws -> Result
    ) async throws -> Result {
      let working = Task { try await work() }
      await withCheckedContinuation { continuation in
        Thread { [stopped] in
          stopped.wait()
          continuation.resume()
        }.start()
      }
      let result: Swift.Result<Result, any Error>
      do { result = .success(try await body()) } catch { result = .failure(error) }
      released.signal()
      try await working.value
      return try result.get()
    }
  }

  /// Returns what `question` answers, if that comes in time.
  ///
  /// A question that waits for the synchronization gets no answer, since the synchronization is stopped
  /// until all questions are asked. So the default limit only ends a test that fails. It is long because
  /// other tests run at the same time.
  private func inTime<Answer: Sendable>(
    _ name: String, seconds: Double = 300,
    _ question: @escaping @Sendable () async throws -> Answer
  ) async throws -> Answer? {
    let answer = Mutex<Result<Answer, any Error>?>(nil)
    let asking = Task {
      do {
        let given = try await question()
        answer.withLock { $0 = .success(given) }
      } catch {
        answer.withLock { $0 = .failure(error) }
      }
    }
    let begin = ContinuousClock.now
    while ContinuousClock.now - begin < .seconds(seconds) {
      if let given = answer.withLock({ $0 }) { return try given.get() }
      try await Task.sleep(for: .milliseconds(2))
    }
    asking.cancel()
    return nil
  }

  private typealias Ask = @Sendable (DocumentSyncManager) async throws -> String

  /// All questions; those that read all rows only if `withLong`.
  private static func questions(withLong: Bool) -> [(name: String, ask: Ask)] {
    let short: [(String, Ask)] = [
      ("status", { "\(try await $0.status())" }), ("waits", { "\(try await $0.waits())" }),
      ("history", { "\(try await $0.history())" }),
      ("order of history", { "\(try await $0.history().map(\.number))" }),
      ("order of conflicts", { "\(try await $0.conflicts().map(\.number))" }),
      ("parkedRows", { "\(try await $0.parkedRows())" }),
      ("conflicts", { "\(try await $0.conflicts())" }),
      ("page", { "\(try await $0.conflicts(before: nil, limit: 3))" }),
      ("openConflictCount", { "\(try await $0.openConflictCount())" }),
      ("conflictPlaces", { "\(try await $0.conflictPlaces())" }),
      ("droppedConflicts", { "\(try await $0.droppedConflicts())" }),
      ("policies", { "\(try await $0.policies())" }),
      ("pendingCommands", { "\(try await $0.pendingCommands())" }),
      ("isSetUp", { "\(try await $0.isSetUp())" }),
      ("listClients", { "\(try await $0.listClients().map(\.client))" }),
      ("unreceived", { "\(try await $0.unreceived())" }),
    ]
    let long: [(String, Ask)] = [
      ("rowCount", { "\(try await $0.rowCount())" }), ("digest", { "\(try await $0.digest())" }),
      ("removalLoss", { "\(try await $0.removalLoss())" }),
    ]
    return withLong ? short + long : short
  }

  /// Asks everything, and returns the answers.
  private func ask(
    _ manager: DocumentSyncManager, withLong: Bool,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> [String: String] {
    var answers: [String: String] = [:]
    for (name, ask) in Self.questions(withLong: withLong) {
      let answer = try await inTime(name) { try await ask(manager) }
      // Dictionaries have no order, so the members are sorted; numbers alone stay in order.
      answers[name] =
        name.hasPrefix("order")
        ? answer
        : answer?.split { ",[]()".contains($0) }.map { $0.drop { $0 == " " } }.sorted()
          .joined(separator: ",")
      #expect(answers[name] != nil, "\(name)", sourceLocation: sourceLocation)
    }
    return answers
  }

  private func setJournal(_ mode: String, of manager: DocumentSyncManager) async throws {
    let queue = try DatabaseQueue(path: manager.path)
    #expect(
      try await queue.writeWithoutTransaction {
        try String.fetchOne($0, sql: "PRAGMA journal_mode = \(mode)")
      } == mode)
    try queue.close()
  }

  private func fleet(_ stop: Stop, _ mode: String) async throws -> TestFleet {
    let fleet = try await TestFleet(2, change: stop.watch)
    try fleet[0].put("x", "0")
    try await fleet.settle()
    var changed = fleet
    try await changed[1].close()
    let path = fleet.scratch.store("1")
    let queue = try DatabaseQueue(path: path)
    _ = try await queue.writeWithoutTransaction {
      try String.fetchOne($0, sql: "PRAGMA journal_mode = \(mode)")
    }
    try queue.close()
    changed.replace(
      1,
      with: try await DocumentSyncManager.open(
        storeAt: path, directory: fleet.directories[1],
        options: .init(environment: fleet.environment)))
    try await changed.settle()
    return changed
  }

  @Test(arguments: ["wal", "delete"])
  func everythingIsAnsweredFromTheLastCommittedState(_ mode: String) async throws {
    let stop = Stop()
    let fleet = try await fleet(stop, mode)
    let isWAL = mode == "wal"
    for round in 0..<2 {
      for index in 0..<2 { try fleet[index].put("x", "\(round) of \(index)") }
      try await fleet[0].synchronize()
      // Its own edit is sealed by then, so that the transaction is that of applying.
      _ = try fleet[1].store.seal()
      let before = try await ask(fleet[1], withLong: isWAL)
      let meanwhile = try await stop.during(fleet[1]) { try await ask(fleet[1], withLong: isWAL) }
      #expect(meanwhile == before)
      let after = try await ask(fleet[1], withLong: isWAL)
      for name in ["status", "history", "conflicts"] {
        #expect(after[name] != before[name], "\(name)")
      }
    }
    try await fleet.settle()
    try fleet.expectEqual()
  }

  /// A question does not wait for one who waits to write either.
  @Test(arguments: ["wal", "delete"])
  func questionsPassThoseWhoWrite(_ mode: String) async throws {
    let stop = Stop()
    let fleet = try await fleet(stop, mode)
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    let manager = fleet[1]
    let writing = try await stop.during(manager) { () async throws -> Task<Void, any Error> in
      let writing = Task {
        try await manager.setPolicies { $0.document = .ask }
        try await manager.sendCommand(name: "hello")
      }
      #expect(
        try await inTime("setPolicies", seconds: 0.3) { try await writing.value } == nil)
      #expect(try await inTime("policies") { try await manager.policies() } == SyncPolicies())
      #expect(try await inTime("status") { try await manager.status() } != nil)
      return writing
    }
    try await writing.value
    #expect(try await manager.policies().document == .ask)
  }

  /// More questions that read all rows than run at a time hold up no other question.
  @Test func longQuestionsDoNotHoldUpShortOnes() async throws {
    let areHeld = Mutex(false)
    let held = DispatchSemaphore(value: 0)
    let released = DispatchSemaphore(value: 0)
    let fleet = try await TestFleet(1) { environment in
      environment.store.onStatement = { sql in
        guard areHeld.withLock({ $0 }), sql.contains("count(*)"), sql.contains("WHERE NOT (") else {
          return
        }
        held.signal()
        released.wait()
        released.signal()
      }
    }
    func release() {
      areHeld.withLock { $0 = false }
      released.signal()
    }
    // Also if an expectation throws.
    defer { release() }
    let manager = fleet[0]
    try manager.put("x", "1")
    areHeld.withLock { $0 = true }
    let long = (0..<10).map { _ in Task { try await manager.rowCount() } }
    await withCheckedContinuation { continuation in
      Thread {
        held.wait()
        continuation.resume()
      }.start()
    }
    let status = try await inTime("status") { try await manager.status() }
    release()
    #expect(status != nil)
    for question in long { #expect(try await question.value == manager.notes().count) }
  }

  @Test func twoManagersOfOneStore() async throws {
    for mode in ["wal", "delete"] {
      let stop = Stop()
      let fleet = try await fleet(stop, mode)
      let second = try await DocumentSyncManager.open(
        storeAt: fleet[1].path, directory: fleet.memory,
        options: .init(environment: fleet.environment))
      try fleet[0].put("x", "1")
      try await fleet[0].synchronize()
      let before = try await ask(second, withLong: false)
      try await stop.during(fleet[1]) { () async throws in
        #expect(try await ask(second, withLong: false) == before)
        #expect(try await ask(fleet[1], withLong: false) == before)
      }
      #expect(try await ask(second, withLong: true) == ask(fleet[1], withLong: true))
      try await second.close()
    }
  }

  /// The document was reset on the other device, and the store took over its content in place.
  @Test(arguments: ["wal", "delete"])
  func resetDocumentIsAnsweredFor(_ mode: String) async throws {
    let stop = Stop()
    let fleet = try await fleet(stop, mode)
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    let former = try await stop.during(fleet[1]) { try await ask(fleet[1], withLong: false) }
    try fleet[0].edit("CREATE TABLE stars (note TEXT PRIMARY KEY)")
    try await fleet[0].reset()
    let generation = fleet[0].binding.generation
    #expect(try await fleet[1].synchronize().rebootstrap != nil)
    try await fleet.settle()
    try fleet[0].put("x", "2")
    try await fleet[0].synchronize()
    let before = try await ask(fleet[1], withLong: false)
    #expect(before["status"] != former["status"])
    try await stop.during(fleet[1]) { () async throws in
      #expect(try await ask(fleet[1], withLong: false) == before)
      let status = try await inTime("status") { try await fleet[1].status() }
      #expect(status?.tables.map(\.name) == ["notes", "stars"])
    }
    #expect(fleet[1].binding.generation == generation)
  }

  /// While the manager itself resets the document, the store is of a generation that is not in the
  /// directory yet.
  @Test func whoAsksAfterTheDirectoryDuringOwnResetHearsOfNoMissingGeneration() async throws {
    let stop = Stop()
    let fleet = try await fleet(stop, "wal")
    let manager = fleet[1]
    let former = manager.binding
    let (listing, counting, looking) = try await stop.during(
      { _ = try await manager.reset() },
      when: { manager.binding.generation != former.generation }
    ) { () async throws in
      let listing = Task { try await manager.listClients().map(\.client) }
      let counting = Task { try await manager.unreceived() }
      let looking = Task { try await manager.isSetUp() }
      #expect(try await inTime("listClients", seconds: 0.3) { try await listing.value } == nil)
      #expect(try await inTime("unreceived", seconds: 0.3) { try await counting.value } == nil)
      #expect(try await inTime("isSetUp", seconds: 0.3) { try await looking.value } == nil)
      #expect(try await inTime("status") { try await manager.status() } != nil)
      return (listing, counting, looking)
    }
    #expect(manager.binding.generation != former.generation)
    #expect(try await listing.value.contains(manager.binding.client))
    #expect(try await counting.value == [:])
    #expect(try await looking.value)
    // Errors that stay are told.
    try await fleet[0].synchronize()
    try await ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
      .deleteDocument("main", by: former.client)
    for ask in [
      { _ = try await manager.listClients() }, { _ = try await manager.unreceived() },
    ] as [@Sendable () async throws -> Void] {
      #expect(await syncError { try await ask() }?.code == .documentDeleted)
    }
  }

  @Test(arguments: ["wal", "delete"])
  func closedManagerAnswersNothing(_ mode: String) async throws {
    let stop = Stop()
    let fleet = try await fleet(stop, mode)
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    try await stop.during(fleet[1]) { _ = try await ask(fleet[1], withLong: false) }
    try await fleet[1].close()
    for (name, ask) in Self.questions(withLong: true) {
      let error = await syncError { _ = try await ask(fleet[1]) }
      #expect(error?.code == .storeClosed, "\(name)")
    }
  }
}
