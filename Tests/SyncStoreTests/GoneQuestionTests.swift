import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Open questions about cells of rows that are deleted then.
@Suite struct GoneQuestionTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Two devices, the second of which has an open question about a note.
  private func question(asks: SQLName? = "a") throws -> (Device, Device) {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE folder (id TEXT PRIMARY KEY);
      CREATE TABLE note (id TEXT PRIMARY KEY, f REFERENCES folder ON DELETE CASCADE, a, b);
      INSERT INTO folder VALUES ('f');
      INSERT INTO note VALUES ('x', 'f', 1, 1), ('y', 'f', 1, 1);
      """)
    let (one, two) = (devices[0], devices[1])
    try one.setClock(offset: -100)
    try two.setClock(offset: -50)
    try two.setPolicy(.ask, table: "note", column: asks)
    try one.run("UPDATE note SET a = 'one' WHERE id = 'x'")
    try two.run("UPDATE note SET a = 'two' WHERE id = 'x'")
    try two.receive(from: one)
    try #require(try two.store.openConflictCount() == 1)
    return (one, two)
  }

  private func expectClosed(
    _ device: Device, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    #expect(try device.store.openConflictCount() == 0, sourceLocation: sourceLocation)
    let conflict = try device.store.conflict(1)
    #expect(conflict.status == .superseded, sourceLocation: sourceLocation)
    #expect(
      conflict.message == "The row does not exist any more.", sourceLocation: sourceLocation)
    #expect(
      conflict.local.cells?.map(\.value) == [.text("two")], sourceLocation: sourceLocation)
    #expect(
      conflict.remote.cells?.map(\.value) == [.text("one")], sourceLocation: sourceLocation)
  }

  @Test(arguments: ["DELETE FROM note WHERE id = 'x'", "DELETE FROM folder"])
  func theSealedDeletionClosesTheQuestion(deletion: String) throws {
    let (one, two) = try question()
    try two.run(deletion)
    _ = try two.store.seal()
    try expectClosed(two)
    try converge([one, two])
  }

  @Test(arguments: ["DELETE FROM note WHERE id = 'x'", "DELETE FROM folder"])
  func theDeletionOfAnotherDeviceClosesTheQuestion(deletion: String) throws {
    let (one, two) = try question()
    try one.receive(from: two)
    try one.run(deletion)
    try two.receive(from: one)
    try expectClosed(two)
    try converge([one, two])
  }

  /// Then the cells of the deleted row are kept, and the row counts as hidden.
  @Test func aDeletionThatMeetsALaterEditClosesTheQuestion() throws {
    let (one, two) = try question()
    try one.run("DELETE FROM note WHERE id = 'x'")
    try two.run("UPDATE note SET b = 'later' WHERE id = 'x'")
    try two.receive(from: one)
    try expectClosed(two)
    try converge([one, two], "SELECT id FROM note", ["y"])
  }

  @Test(arguments: [Conflict.Answer.local, .remote, .value(.text("other"))])
  func anyAnswerClosesTheQuestionOnceTheRowIsGone(answer: Conflict.Answer) throws {
    let (one, two) = try question()
    try two.run("DELETE FROM note WHERE id = 'x'")
    try two.store.resolveConflict(1, by: answer)
    try expectClosed(two)
    try converge([one, two], "SELECT id FROM note", ["y"])
  }

  @Test func theValuesAreThereWhenTheRowComesBack() throws {
    let (one, two) = try question()
    try two.run("DELETE FROM note WHERE id = 'x'")
    _ = try two.store.seal()
    try two.run("INSERT INTO note VALUES ('x', 'f', 'again', 2)")
    try two.store.restoreConflict(1, side: .remote)
    try converge([one, two], "SELECT a, b FROM note WHERE id = 'x'", ["one|2"])
  }

  /// A row that is there again before its deletion was sealed was never gone.
  @Test func aRowThatIsReplacedKeepsItsQuestion() throws {
    let (one, two) = try question()
    try two.run("INSERT OR REPLACE INTO note VALUES ('x', 'f', 'replaced', 2)")
    _ = try two.store.seal()
    #expect(try two.store.openConflictCount() == 1)
    try two.store.resolveConflict(1, by: .remote)
    try converge([one, two], "SELECT a, b FROM note WHERE id = 'x'", ["one|2"])
  }

  /// The row may come back by the answer to another question.
  @Test(arguments: [true, false])
  func theQuestionWaitsForThatAboutTheRow(isBack: Bool) throws {
    let (one, two) = try question(asks: nil)
    try one.run("DELETE FROM note WHERE id = 'x'")
    try two.receive(from: one)
    #expect(try two.store.openConflictCount() == 2)
    let existence = try #require(
      try two.store.conflicts(onlyOpen: true).first { $0.kind == .existence })
    try two.store.resolveConflict(existence.number, by: isBack ? .local : .remote)
    guard isBack else { return try expectClosed(two) }
    try two.store.resolveConflict(1, by: .remote)
    try converge([one, two], "SELECT a, b FROM note WHERE id = 'x'", ["one|1"])
  }

  /// No answer about a cell is thrown away while another one may bring the row back.
  @Test(arguments: [Conflict.Answer.local, .remote])
  func theQuestionAboutTheRowIsAnsweredFirst(answer: Conflict.Answer) throws {
    let (one, two) = try question(asks: nil)
    try one.run("DELETE FROM note WHERE id = 'x'")
    try two.receive(from: one)
    let existence = try #require(
      try two.store.conflicts(onlyOpen: true).first { $0.kind == .existence })
    let error = #expect(throws: StoreError.self) {
      try two.store.resolveConflict(1, by: answer)
    }
    #expect(error?.code == .editRefused)
    #expect(error?.message.contains("Answer conflict \(existence.number) first") == true)
    #expect(try two.store.openConflictCount() == 2)
    try two.store.resolveConflict(existence.number, by: .local)
    try two.store.resolveConflict(1, by: answer)
    try converge(
      [one, two], "SELECT a FROM note WHERE id = 'x'", [answer == .local ? "two" : "one"])
  }

  /// A row whose key changes is another row from then on. The entry says so if other rows may refer to it.
  @Test(arguments: [true, false])
  func aRowWithAnotherKeyClosesItsQuestion(isReferredTo: Bool) throws {
    let devices = try scratch.devices(
      2,
      "CREATE TABLE note (id TEXT PRIMARY KEY, a); INSERT INTO note VALUES ('x', 1);"
        + (isReferredTo ? "CREATE TABLE part (id TEXT PRIMARY KEY, n REFERENCES note);" : ""))
    let (one, two) = (devices[0], devices[1])
    try one.setClock(offset: -100)
    try two.setClock(offset: -50)
    try two.setPolicy(.ask, table: "note", column: "a")
    try one.run("UPDATE note SET a = 'one'")
    try two.run("UPDATE note SET a = 'two'")
    try two.receive(from: one)
    try two.run("UPDATE note SET id = 'z'")
    _ = try two.store.seal()
    let conflict = try two.store.conflict(1)
    #expect(conflict.status == .superseded)
    #expect(
      conflict.message
        == (isReferredTo ? "The row has another key now." : "The row does not exist any more."))
    try converge([one, two], "SELECT id, a FROM note", ["z|two"])
  }
}
