import DocumentSyncTesting
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// A table that a program makes again, and what is found in the shared
/// directory of what it was.
@Suite struct RemakeTests {
  private static let remake = """
    CREATE TABLE new__notes AS SELECT * FROM notes; DROP TABLE notes;
    CREATE TABLE notes (id TEXT PRIMARY KEY, body TEXT);
    INSERT INTO notes SELECT * FROM new__notes; DROP TABLE new__notes;
    """

  private static let edits = """
    UPDATE notes SET body = 'unseen' WHERE id = 'a'; DELETE FROM notes WHERE id = 'seed-0';
    INSERT INTO notes VALUES ('n', 'new');
    """

  private func wholeStores(_ fleet: TestFleet) -> [RelativePath] {
    fleet.paths { $0.components.contains("WholeStore") }
  }

  @Test func whatNoTriggerSawIsFoundInTheDocument() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("a", "zero")
    try await fleet.settle()
    try fleet[0].edit(Self.remake)
    try fleet[0].edit(Self.edits)
    try fleet[1].put("seed-1", "one")
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes() == ["a=unseen", "n=new", "seed-1=one"])
    #expect(try fleet[0].store.remadeTables() == [])
    #expect(try fleet.scratch.names().filter { $0.contains("docsync-tmp") } == [])
    try fleet[1].edit(Self.remake)
    try fleet[1].put("a", "later")
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes() == ["a=later", "n=new", "seed-1=one"])
  }

  @Test func aRemakeAloneSendsNothing() async throws {
    let fleet = try await TestFleet(2)
    try fleet[1].put("a", "one")
    try await fleet.settle()
    let before = [0, 1].map { fleet.changeSets(of: $0) }
    for index in [0, 1] {
      try fleet[index].edit(Self.remake)
      let report = try await fleet[index].synchronize()
      #expect(report.warnings == [])
    }
    try await fleet.settle()
    #expect([0, 1].map { fleet.changeSets(of: $0) } == before)
    try fleet.expectEqual()
  }

  /// A row comes unseen, and an edit of it that triggers saw is sealed before the comparison finds the
  /// row, since the schema changes once more.
  @Test(arguments: [TableMergeType.latestWins, .wholeRow, .keepBoth])
  func aRowThatCameUnseenIsInsertedAlthoughItsEditIsSealed(type: TableMergeType) async throws {
    var configuration = StoreConfiguration()
    configuration.tableMergeTypes = ["notes": type]
    let fleet = try await TestFleet(2, configuration: configuration)
    try await fleet.settle()
    try fleet[0].edit(Self.remake)
    try fleet[0].edit("INSERT INTO notes VALUES ('n', 'new')")
    _ = try fleet[0].store.status()
    try fleet[0].edit(
      "ALTER TABLE notes ADD COLUMN colour TEXT; UPDATE notes SET body = 'seen' WHERE id = 'n'")
    try fleet[1].edit("ALTER TABLE notes ADD COLUMN colour TEXT")
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[1].notes() == ["n=seen", "seed-0=body 0", "seed-1=body 1"])
    #expect(try fleet[1].store.status().parked.isEmpty)
  }

  /// What this store has sealed and not published is not in the directory.
  @Test func whatIsNotPublishedIsKnownAsWell() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("a", "zero")
    _ = try fleet[0].store.seal()
    try fleet[0].edit(Self.remake)
    try fleet[0].edit(Self.edits)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[1].notes() == ["a=unseen", "n=new", "seed-1=body 1"])
  }

  /// Of a whole store that is newer than this one only what both know is
  /// compared: what others have edited since stands.
  @Test func aNewerWholeStoreTellsWhatBothKnow() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("a", "zero")
    try await fleet.settle()
    try fleet[1].put("seed-1", "one")
    try fleet[1].put("b", "one")
    try await fleet[1].synchronize()
    let former = wholeStores(fleet)
    _ = try await fleet[1].uploadWholeStore()
    for path in former { try fleet.memory.remove(path) }
    try fleet[0].edit(Self.remake)
    try fleet[0].edit(Self.edits)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes() == ["a=unseen", "b=one", "n=new", "seed-1=one"])
  }

  /// Without any whole store all rows are said, as of 1970.
  @Test func withoutAWholeStoreAllRowsAreSaid() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("a", "zero")
    try await fleet.settle()
    for path in wholeStores(fleet) { try fleet.memory.remove(path) }
    try fleet[0].edit(Self.remake)
    try fleet[0].edit("UPDATE notes SET body = 'unseen' WHERE id = 'a'")
    try fleet[1].put("seed-1", "one")
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes() == ["a=unseen", "seed-0=body 0", "seed-1=one"])
  }
}
