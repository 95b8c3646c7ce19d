import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Answers and restored sides, where the number of a row that is gone is that of another row, or the row has got
/// another number.
@Suite struct AnsweredRowsTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE note (id INTEGER PRIMARY KEY, a TEXT); INSERT INTO note VALUES (1, 'x');
    """

  /// The row of an entry is gone, and a new row that is not sealed yet has its number.
  @Test func aNewRowIsNotTheOneThatWasDeleted() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run("UPDATE note SET a = 'A'")
    usleep(2_000)
    try devices[1].run("UPDATE note SET a = 'B'")
    try converge(devices, "SELECT * FROM note", ["1|B"])
    try devices[0].run("DELETE FROM note")
    try converge(devices)
    try devices[0].run("INSERT INTO note (a) VALUES ('shopping')")
    let number = try #require(try devices[0].store.conflicts().first { $0.kind == .cell }?.number)
    #expect(throws: StoreError.self) {
      try devices[0].store.restoreConflict(number, side: .local)
    }
    try converge(devices, "SELECT a FROM note", ["shopping"])
    try expectSound(devices)
  }

  /// The answer brings the row back under another number.
  @Test func aRowComesBackBesideOneWithItsNumber() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].setPolicy(.ask)
    try devices[0].run("DELETE FROM note")
    usleep(2_000)
    try devices[1].run("UPDATE note SET a = 'B'")
    try devices[0].receive(from: devices[1])
    try devices[0].run("INSERT INTO note (a) VALUES ('new')")
    let question = try #require(try devices[0].store.conflicts().first { $0.status == .open })
    try devices[0].store.resolveConflict(question.number, by: .remote)
    #expect(try devices[0].rows("SELECT a FROM note ORDER BY a") == ["B", "new"])
    try converge(devices, "SELECT a FROM note ORDER BY a", ["B", "new"])
    try expectSound(devices)
  }

  /// A row that has come back under another number is there at once: it does not come back once more.
  @Test func aRowComesBackOnce() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run("DELETE FROM note")
    _ = try devices[0].outgoing()
    try devices[0].run("INSERT INTO note (a) VALUES ('new')")
    _ = try devices[0].outgoing()
    try devices[1].run("UPDATE note SET a = 'B1'")
    _ = try devices[1].outgoing()
    try devices[1].run("UPDATE note SET a = 'B2'")
    try converge(devices, "SELECT a FROM note", ["new"])
    let entries = try devices[0].store.conflicts().filter { $0.kind == .existence }
    try #require(entries.count == 2)
    try devices[0].store.restoreConflict(entries[0].number)
    let present = try devices[0].store.conflicts().first { $0.number == entries[0].number }
    #expect(present?.status == .restored)
    #expect(throws: StoreError.self) { try devices[0].store.restoreConflict(entries[1].number) }
    #expect(try devices[0].rows("SELECT count(*) FROM note") == ["2"])
    try converge(devices, "SELECT count(*) FROM note", ["2"])
    try expectSound(devices)
  }

  /// The policy brings back a folder and the one in it, whose key is the lesser one.
  @Test func aPolicyBringsBackParentsAndChildren() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE folder (id TEXT PRIMARY KEY, up TEXT REFERENCES folder ON DELETE CASCADE, n INTEGER);
      INSERT INTO folder VALUES ('c', NULL, 0), ('b', 'c', 0), ('a', 'b', 0);
      """)
    try devices[0].setPolicy(.localWins)
    try devices[0].run("UPDATE folder SET n = 1")
    usleep(2_000)
    try devices[1].run("DELETE FROM folder WHERE id = 'c'")
    try devices[0].receive(from: devices[1])
    #expect(
      try devices[0].rows("SELECT id, up, n FROM folder ORDER BY id") == [
        "a|b|1", "b|c|1", "c|NULL|1",
      ])
    #expect(try devices[0].store.conflicts().filter { $0.status == .open } == [])
    try converge(
      devices, "SELECT id, up, n FROM folder ORDER BY id", ["a|b|1", "b|c|1", "c|NULL|1"])
    try expectSound(devices)
  }

  /// Another device has edited the row that is deleted here, and has deleted it as well.
  @Test func aPolicyDoesNotBringBackWhatBothHaveDeleted() throws {
    let devices = try scratch.devices(
      2, "CREATE TABLE note (id TEXT PRIMARY KEY, a TEXT); INSERT INTO note VALUES ('x', '1')")
    try devices[0].setPolicy(.remoteWins)
    try devices[0].run("DELETE FROM note")
    usleep(2_000)
    try devices[1].run("UPDATE note SET a = 'B'")
    _ = try devices[1].outgoing()
    try devices[1].run("DELETE FROM note")
    try devices[0].receive(from: devices[1])
    #expect(try devices[0].rows("SELECT * FROM note") == [])
    try converge(devices, "SELECT * FROM note", [])
    try expectSound(devices)
  }

  /// A third device edits the row, too: that it stays deleted is still an answer.
  @Test(arguments: [true, false])
  func aQuestionAboutADeletionKeepsIt(isDeletionKept: Bool) throws {
    let devices = try scratch.devices(
      3, "CREATE TABLE note (id TEXT PRIMARY KEY, a TEXT); INSERT INTO note VALUES ('x', '1')")
    try devices[0].setPolicy(.ask)
    try devices[0].run("UPDATE note SET a = 'A'")
    try devices[1].run("DELETE FROM note")
    try devices[2].run("UPDATE note SET a = 'C'")
    try devices[0].receive(from: devices[1])
    try devices[0].receive(from: devices[2])
    let question = try #require(try devices[0].store.conflicts().first { $0.status == .open })
    try devices[0].store.resolveConflict(question.number, by: isDeletionKept ? .remote : .local)
    try converge(devices, "SELECT * FROM note", isDeletionKept ? [] : ["x|A"])
    try expectSound(devices)
  }

  /// The answers to many questions are one change set.
  @Test func answersAreSealedTogether() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, a TEXT);
      INSERT INTO note VALUES (1, 'x'), (2, 'x'), (3, 'x');
      """)
    try devices[0].setPolicy(.ask)
    try devices[0].run("UPDATE note SET a = 'A'; DELETE FROM note WHERE id = 3")
    usleep(2_000)
    try devices[1].run("UPDATE note SET a = 'B'")
    try devices[0].receive(from: devices[1])
    let before = try devices[0].store.sealedChangeSets().count
    let questions = try devices[0].store.conflicts().filter { $0.status == .open }
    try #require(questions.count == 3)
    for question in questions {
      try devices[0].store.resolveConflict(
        question.number, by: question.kind == .cell ? .local : .remote)
    }
    _ = try devices[0].outgoing()
    #expect(try devices[0].store.sealedChangeSets().count == before + 1)
    try converge(devices, "SELECT a FROM note ORDER BY id", ["A", "A", "B"])
    try expectSound(devices)
  }
}
