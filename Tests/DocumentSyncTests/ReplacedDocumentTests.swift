import DocumentSync
import DocumentSyncTesting
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

/// A document that was deleted and created again, and a store that merges its
/// rows into the new one.
@Suite struct ReplacedDocumentTests {
  private func delete(_ fleet: TestFleet) async throws {
    try await ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
      .deleteDocument("main", by: .random(), described: "attic")
  }

  /// Deletes it, and has device 0 create it again.
  private func replace(_ fleet: TestFleet) async throws {
    try await delete(fleet)
    fleet[0].setDelegate(Answering(.create))
    try await fleet[0].synchronize()
  }

  @Test func rowsAreMergedIfThatIsDecided() async throws {
    let fleet = try await TestFleet(3)
    try fleet[1].put("x", "sealed")
    _ = try fleet[1].store.seal()
    try fleet[1].put("y", "not sealed")
    try fleet[1].put("seed-0", "changed here")
    try fleet[2].put("z", "of 2")
    try await replace(fleet)
    let before = fleet[1].binding
    let delegate = Answering(.merge)
    fleet[1].setDelegate(delegate)
    let events = fleet[1].events.stream()
    let report = try await fleet[1].synchronize()
    #expect(report.rebootstrap?.reason == .begunAgain)
    #expect(report.rebootstrap?.merged?.insertedRows == 2)
    #expect(delegate.questions.count == 1 && fleet[1].state == .registered)
    #expect(fleet[1].binding.generation == fleet[0].binding.generation)
    #expect(fleet[1].binding.ancestor == before.client)
    // The other is asked on its own account.
    #expect(await syncError { try await fleet[2].synchronize() }?.code == .documentReplaced)
    fleet[2].setDelegate(delegate)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(delegate.questions.count == 2)
    let notes = try fleet[0].notes()
    for note in ["x=sealed", "y=not sealed", "z=of 2"] { #expect(notes.contains(note)) }
    // It was said later than what the document has.
    #expect(notes.contains("seed-0=changed here"))
    try await fleet[1].close()
    let heard = await names(of: events)
    #expect(
      heard.filter { $0.hasPrefix("state") }
        == ["state replaced", "state waiting", "state replaced", "state registered"])
  }

  @Test func rowsAreMergedIntoADocumentOfAStranger() async throws {
    let fleet = try await TestFleet(2)
    try fleet[1].put("x", "kept")
    try await delete(fleet)
    let stranger = try await DocumentSyncManager.create(
      storeAt: try fleet.scratch.makeNotes("stranger", rows: 5), directory: fleet.memory,
      document: "main", options: .init(environment: fleet.environment))
    try stranger.put("of the stranger", "1")
    try await stranger.synchronize()
    fleet[1].setDelegate(Answering(.merge))
    #expect(try await fleet[1].synchronize().rebootstrap?.merged?.insertedRows == 1)
    try await stranger.synchronize()
    #expect(try stranger.notes().count == 7)
    #expect(try stranger.store.digest() == fleet[1].store.digest())
  }

  /// A whole store may be old: what was published after it is the document.
  @Test func rowsAreComparedWithTheDocumentAsItIsNow() async throws {
    let fleet = try await TestFleet(1)
    try fleet[0].edit("CREATE TABLE u (id INTEGER PRIMARY KEY, e TEXT UNIQUE, v TEXT)")
    try await fleet[0].synchronize()
    try fleet[0].put("x", "the document's")
    try fleet[0].edit("INSERT INTO u (e, v) VALUES ('e1', 'the document''s')")
    try await fleet[0].synchronize()
    func makeStranger(_ name: String) throws {
      let path = try fleet.scratch.makeNotes(name)
      let queue = try DatabaseQueue(path: path)
      try queue.write {
        try $0.execute(
          sql: """
            CREATE TABLE u (id INTEGER PRIMARY KEY, e TEXT UNIQUE, v TEXT);
            INSERT INTO u (e, v) VALUES ('e1', 'old'); INSERT INTO notes VALUES ('x', 'old');
            """)
      }
      try queue.close()
    }
    try makeStranger("stranger")
    let joined = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("stranger"), directory: fleet.memory,
      existing: .merge(prefer: .document), options: .init(environment: fleet.environment))
    #expect(joined.merged?.insertedRows == 0)
    #expect(joined.merged?.differingRows == 2)
    // The same of a document of the same name that was created elsewhere.
    try makeStranger("other")
    try await delete(fleet)
    let other = try await DocumentSyncManager.create(
      storeAt: fleet.scratch.store("other"), directory: fleet.memory, document: "main",
      options: .init(environment: fleet.environment))
    try other.put("late", "the document's")
    try await other.synchronize()
    try joined.put("late", "of who comes over")
    try other.put("late", "the document's, later")
    try await other.synchronize()
    joined.setDelegate(Answering(.merge))
    let report = try await joined.synchronize()
    // Two notes that the other does not have.
    #expect(report.rebootstrap?.merged?.insertedRows == 2)
    try await other.synchronize()
    #expect(try other.notes() == joined.notes())
    #expect(try joined.store.openConflictCount() == 0)
    for manager in [other, joined] {
      let queue = try DatabaseQueue(path: manager.store.path)
      #expect(try await queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM u") } == 1)
    }
  }

  @Test func decisionIsGoodForOneDocumentAlone() async throws {
    let fleet = try await TestFleet(2)
    try fleet[1].put("x", "kept")
    try await replace(fleet)
    // Interrupted before anything was done.
    fleet[1].setDelegate(Answering(.merge))
    fleet.directories[1].script(FaultyDirectory.Fault(.stop, occurrence: 8))
    await #expect(throws: SyncError.self) { try await fleet[1].synchronize() }
    fleet.directories[1].restart()
    #expect(fleet[1].binding.generationOrdinal == 1)
    // Meanwhile it is another one again.
    try await replace(fleet)
    let delegate = Answering(.stop)
    fleet[1].setDelegate(delegate)
    #expect(await syncError { try await fleet[1].synchronize() }?.code == .documentReplaced)
    #expect(delegate.questions.count == 1 && fleet[1].binding.generationOrdinal == 1)
    fleet[1].setDelegate(Answering(.merge))
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes().contains("x=kept"))
  }

  @Test func rowsThatCannotBeMergedAreRefused() async throws {
    let fleet = try await TestFleet(2)
    try await replace(fleet)
    try fleet[1].put("x", "kept")
    try fleet[1].edit("ALTER TABLE notes ADD COLUMN color TEXT")
    fleet[1].setDelegate(Answering(.merge))
    let error = await syncError { try await fleet[1].synchronize() }
    #expect(error?.code == .documentReplaced)
    #expect(error?.message.contains("notes.color") == true)
    #expect(fleet[1].binding.generationOrdinal == 1)
    #expect(try fleet[1].notes().contains("x=kept"))
  }

  @Test func mergingThatIsStruckAtAnyCallIsCompletedByTheNextSync() async throws {
    var call = 0
    while true {
      call += 1
      let fleet = try await TestFleet(2, seed: UInt64(call))
      try fleet[1].put("x", "not sent")
      try await replace(fleet)
      fleet[1].setDelegate(Answering(.merge))
      fleet.directories[1].script(
        FaultyDirectory.Fault(call % 2 == 0 ? .stop : .stopAfterwards, occurrence: call))
      do {
        try await fleet[1].synchronize()
      } catch {
        fleet.directories[1].restart()
      }
      guard !fleet.directories[1].firedFaults.isEmpty else { break }
      try await fleet.settle()
      try fleet.expectEqual()
      #expect(try fleet[0].notes().contains("x=not sent"))
    }
    #expect(call > 15)
  }
}
