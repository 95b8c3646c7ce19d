import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// A document that is reset from one device.
struct ResetTests {
  private let operation = SyncOperation<Void>("test", environment: SyncEnvironment())

  @Test func anotherGenerationTakesThePlaceOfThePresentOne() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try fleet[1].put("y", "2")
    try await fleet.settle()
    let before = fleet[0].binding
    let after = try await fleet[0].reset()
    #expect(after.generationOrdinal == before.generationOrdinal + 1)
    #expect(after.client != before.client && after.ancestor == before.client)
    #expect(after.document == before.document)
    let files = SharedFiles(fleet.memory, context: OperationContext(operation))
    let found = try #require(try DocumentSteps(files).find(after.document))
    #expect(found.file.generation == after.generation)
    #expect(found.file.previous == before.generation)
    // It says so in the generation that ends.
    let layout = DirectoryLayout.Document(before.document).generation(before.generation)
    let names = try files.list(layout.syncCommands(of: before.client), as: CommandName.self)
    let name = try #require(names.first)
    let command = try files.read(
      layout.path(of: name, by: before.client), as: SyncCommandFile.self, .syncCommand)
    #expect(command.command.reset?.generation == after.generation)
    #expect(command.command.reset?.ordinal == found.file.ordinal)
    // What the whole store contains of the old generation is known.
    let stores = try WholeStoreSteps(files).candidates(found.file)
    #expect(stores.first?.vector?.number(of: fleet[1].binding.client) == 1)
    // Who joins has everything, and it goes on.
    let late = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory,
      options: .init(client: "late", environment: fleet.environment))
    #expect(try late.notes() == fleet[0].notes())
    try late.put("z", "3")
    try await late.synchronize()
    try await fleet[0].synchronize()
    #expect(try late.notes() == fleet[0].notes())
  }

  /// One of two edits of one cell loses, whichever device resets the document.
  @Test(arguments: [[0, 1], [1, 0]])
  func whatLosesToAResetIsInTheJournal(order: [Int]) async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try fleet[0].put("y", "1")
    try await fleet.settle()
    for index in order { try fleet[index].put("x", "typed on \(index)") }
    // What is written over in knowledge of it contradicts nothing.
    try fleet[1].put("y", "2")
    try await fleet[1].reset()
    let report = try await fleet[0].synchronize()
    #expect(report.rebootstrap?.reason == .reset)
    try await fleet.settle()
    try fleet.expectEqual()
    let conflicts = try await fleet[0].conflicts()
    #expect(conflicts.count == 1)
    let conflict = try #require(conflicts.first)
    func says(_ side: Conflict.Side?, _ text: String) -> Bool {
      side?.cells?.contains { $0.value == .text(Array(text.utf8)) } ?? false
    }
    #expect(says(conflict.local, "typed on 0"))
    #expect(says(conflict.remote, "typed on 1"))
    #expect(try fleet[0].notes().contains("y=2"))
  }

  /// What was typed last is the device's side of the question, although its
  /// client is another by then.
  @Test func questionThatIsOpenKnowsWhatWasTypedLastAfterAReset() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "base")
    try await fleet.settle()
    try await fleet[0].setPolicies { $0.set(.ask) }
    try fleet[1].put("x", "theirs")
    try await fleet[1].synchronize()
    try fleet[0].put("x", "mine")
    try await fleet[0].synchronize()
    #expect(try await fleet[0].conflicts(onlyOpen: true).count == 1)
    try await fleet[1].synchronize()
    try fleet[1].put("x", "theirs again")
    try fleet[0].put("x", "typed last")
    try await fleet[1].reset()
    try await fleet[0].synchronize()
    let open = try await fleet[0].conflicts(onlyOpen: true)
    #expect(open.count == 1)
    let question = try #require(open.first)
    func value(_ side: Conflict.Side) -> Value? { side.cells?.first?.value }
    #expect(value(question.local) == .text(Array("typed last".utf8)))
    #expect(value(question.remote) == .text(Array("theirs again".utf8)))
    try await fleet[0].resolveConflict(question.number, by: .local)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[1].notes().contains("x=typed last"))
  }

  @Test func whatIsOverwrittenInKnowledgeOfItIsNoConflictAfterAReset() async throws {
    let fleet = try await TestFleet(2)
    try fleet[1].put("x", "first")
    try await fleet.settle()
    try fleet[0].put("x", "second")
    try fleet[1].put("other", "1")
    try await fleet[1].reset()
    try await fleet[0].synchronize()
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes().contains("x=second"))
    #expect(try await fleet[0].conflicts().isEmpty)
  }

  /// A copy that knows nothing of the changes resets the document. The whole store
  /// that contains the removed change sets belongs to the generation that ends.
  @Test func whatWasClearedAwayBeforeAResetByWhoDidNotHaveItComesBackWithTheRows() async throws {
    let fleet = try await TestFleet(1)
    try await fleet[0].close()
    let path = fleet.scratch.store("copy")
    func open(
      _ path: String, _ machine: String, _ directory: MemoryDirectory
    ) async throws -> DocumentSyncManager {
      var environment = fleet.environment
      environment.store.places = StorePlaces(machine: machine, folder: nil)
      return try await DocumentSyncManager.open(
        storeAt: path, directory: directory, options: .init(environment: environment))
    }
    // It notes where it is.
    try await open(fleet.scratch.store("0"), "one", fleet.memory).close()
    try FileManager.default.copyItem(atPath: fleet.scratch.store("0"), toPath: path)
    let stale = MemoryDirectory(seed: 7)
    stale.takeOver(fleet.memory.items)
    var copy = try await open(path, "two", stale)
    let first = try await open(fleet.scratch.store("0"), "one", fleet.memory)
    try first.put("x", "cleared away")
    try first.put("seed-0", "cleared away")
    try await first.synchronize()
    try await first.uploadWholeStore()
    for _ in 0..<2 { _ = try await first.vacuum() }
    #expect(fleet.paths { $0.name.hasSuffix(".syncchg") }.isEmpty)
    try first.put("y", "not sent")
    try copy.put("z", "of the copy")
    try await copy.reset()
    try await copy.close()
    fleet.memory.takeOver(stale.items)
    let report = try await first.synchronize()
    #expect(report.rebootstrap?.reason == .reset)
    #expect(report.rebootstrap?.merged?.insertedRows == 2)
    copy = try await open(path, "two", fleet.memory)
    for _ in 0..<4 { for device in [copy, first] { try await device.synchronize() } }
    for note in ["x=cleared away", "seed-0=cleared away", "y=not sent", "z=of the copy"] {
      #expect(try copy.notes().contains(note), "\(note)")
    }
    #expect(try first.store.digest() == copy.store.digest())
    for device in [copy, first] { #expect(try await device.synchronize().isIdle) }
  }

  /// The rows come back only when they are published again, or another device sends them.
  @Test func whatStaysOnTheDeviceOfRowsThatWereNotSentSurvivesAReset() async throws {
    let fleet = try await TestFleet(0)
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["p": ["loc"], "s": ["loc"]]
    let path = fleet.scratch.store("a")
    let queue = try DatabaseQueue(path: path)
    try await queue.write {
      try $0.execute(
        sql: """
          CREATE TABLE p (k TEXT PRIMARY KEY, v, loc);
          CREATE TABLE s (id INTEGER PRIMARY KEY, v, loc DEFAULT 'none');
          INSERT INTO p VALUES ('x', 1, NULL); INSERT INTO s VALUES (1, 1, NULL);
          """)
    }
    try queue.close()
    let first = try await DocumentSyncManager.create(
      storeAt: path, directory: fleet.memory, document: "main",
      options: .init(configuration: configuration, environment: fleet.environment))
    var others: [DocumentSyncManager] = []
    for name in ["b", "c"] {
      others.append(
        try await DocumentSyncManager.join(
          storeAt: fleet.scratch.store(name), directory: fleet.memory,
          options: .init(environment: fleet.environment)))
    }
    // One row comes from another, and what is noted of it is only here.
    try others[1].edit("INSERT INTO p VALUES ('z', 3, NULL)")
    try await others[1].synchronize()
    try await others[0].synchronize()
    try others[0].edit(
      """
      UPDATE p SET loc = 'of z' WHERE k = 'z'; INSERT INTO p VALUES ('y', 2, 'of y');
      INSERT INTO s VALUES (7, 2, 'of 7'), (8, 3, NULL);
      """)
    try await first.reset()
    for _ in 0..<3 {
      for device in [others[0], others[1], first] { try await device.synchronize() }
    }
    let shown = try DatabaseQueue(path: others[0].store.path)
    let rows = try await shown.read {
      try String.fetchAll(
        $0,
        sql: "SELECT k || v || coalesce(loc, '-') FROM p UNION ALL "
          + "SELECT 's' || v || coalesce(loc, '-') FROM s ORDER BY 1")
    }
    #expect(rows == ["s1none", "s2of 7", "s3-", "x1-", "y2of y", "z3of z"])
    try shown.close()
    #expect(try first.store.digest() == others[0].store.digest())
    // Nothing of it leaves the device.
    let copy = fleet.scratch.store("copy")
    _ = try others[0].store.snapshot(to: copy)
    let whole = try DatabaseQueue(path: copy)
    #expect(try await whole.read { try Int.fetchOne($0, sql: "SELECT count(loc) FROM p") } == 0)
    #expect(
      try await whole.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM docsync_aside") } == 0)
  }

  @Test func interruptedResetIsCompletedByTheNextCall() async throws {
    for call in 1...40 {
      let fleet = try await TestFleet(2, seed: UInt64(call))
      try fleet[0].put("x", "1")
      fleet.directories[0].script(
        FaultyDirectory.Fault(.stopAfterwards, on: .publish, occurrence: call))
      do {
        _ = try await fleet[0].reset()
        #expect(call > 3)
        break
      } catch {
        fleet.directories[0].restart()
      }
      let after = try await fleet[0].reset()
      #expect(after.generationOrdinal == 2, "call \(call)")
      let commands = fleet.paths { $0.components.contains("SyncCommands") }
      #expect(commands.count == 1, "call \(call)")
      let late = try await DocumentSyncManager.join(
        storeAt: fleet.scratch.store("late"), directory: fleet.memory,
        options: .init(client: "late", environment: fleet.environment))
      #expect(try late.notes() == fleet[0].notes(), "call \(call)")
    }
  }

  /// As by another process. What works on the document is refused until it is
  /// completed; what the store shows can be looked at.
  @Test(arguments: ["synchronize", "reset", "leave"])
  func interruptedResetIsCompletedAfterTheStoreWasOpenedAgain(by how: String) async throws {
    var unfinished = 0
    for call in 1...40 {
      var fleet = try await TestFleet(2, seed: UInt64(call))
      try fleet[0].put("x", "1")
      fleet.directories[0].script(
        FaultyDirectory.Fault(.stopAfterwards, on: .publish, occurrence: call))
      do {
        _ = try await fleet[0].reset()
        break
      } catch {
        try await fleet.reopen(0)
      }
      guard try await !fleet[0].isSetUp() else { continue }
      unfinished += 1
      let binding = fleet[0].binding
      #expect(binding.generationOrdinal == 2)
      #expect(try fleet[0].notes().contains("x=1"))
      let refused = await syncError {
        _ = try await RetireOperation(
          .notSeen(for: .milliseconds(1)), store: fleet[0].store, directory: fleet.memory,
          turns: fleet[0].turns, environment: fleet.environment
        ).perform()
      }
      #expect(refused?.code == .setUpUnfinished)
      switch how {
      case "synchronize": try await fleet[0].synchronize()
      case "reset": _ = try await fleet[0].reset()
      default:
        try await fleet[0].leave(abandoning: true)
        continue
      }
      #expect(try await fleet[0].isSetUp())
      #expect(fleet[0].binding.generation == binding.generation, "call \(call)")
      try fleet[1].put("y", "2")
      try await fleet.settle()
      try fleet.expectEqual()
      #expect(try fleet[0].notes().contains("y=2"))
    }
    #expect(unfinished > 0)
  }

  @Test func othersGoOverAndBringAlongWhatTheyHaveEdited() async throws {
    let fleet = try await TestFleet(3)
    try fleet[1].put("seen", "1")
    try await fleet.settle()
    let (former, generation) = (fleet[1].binding.client, fleet[1].binding.generation)
    // Published, and not seen by the device that resets; and not published.
    try fleet[1].put("unseen", "2")
    let before = fleet.memory.items
    try await fleet[1].synchronize()
    let after = fleet.memory.items
    for path in after.keys where before[path] == nil { fleet.memory.take(path) }
    fleet.memory.takeOver(before)
    let binding = try await fleet[0].reset()
    fleet.memory.takeOver(after)
    try fleet[1].put("unsent", "3")
    try fleet[2].put("from 2", "4")
    let report = try await fleet[1].synchronize()
    #expect(report.rebootstrap?.reason == .reset)
    #expect(fleet[1].binding.generation == binding.generation)
    #expect(fleet[1].binding.client != former)
    #expect(fleet[1].binding.generation != generation)
    try await fleet.settle()
    try fleet.expectEqual()
    let notes = try fleet[0].notes()
    for note in ["seen=1", "unseen=2", "unsent=3", "from 2=4"] {
      #expect(notes.contains(note), "\(note)")
    }
    for manager in fleet.managers {
      #expect(try await manager.synchronize().isIdle)
    }
  }
}
