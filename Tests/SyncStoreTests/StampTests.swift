import SyncModel
import Testing

@testable import SyncStore

/// Stamps are those of the edits, and respect causality.
@Suite struct StampTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE t (k TEXT PRIMARY KEY, a, b); CREATE TABLE i (id INTEGER PRIMARY KEY, a);
    INSERT INTO t VALUES ('x', 0, 0); INSERT INTO i VALUES (1, 0);
    """

  @Test func anEarlierEditThatIsSyncedLaterLoses() throws {
    let devices = try scratch.devices(3, Self.schema)
    try devices[0].setClock(offset: -500)
    try devices[1].setClock(offset: -400)
    try devices[2].setClock(offset: -450)
    try devices[0].run("UPDATE t SET a = 'early', b = 'early'; UPDATE i SET a = 'early'")
    try devices[1].run("UPDATE t SET a = 'late'; UPDATE i SET a = 'late'")
    try devices[2].run("UPDATE t SET b = 'middle'; UPDATE t SET a = 'middle'")
    try devices[2].receive(from: devices[1])
    try devices[2].receive(from: devices[0])
    try converge(devices, "SELECT t.*, i.a FROM t, i", ["x|late|middle|late"])
  }

  @Test func anEditIsLaterThanWhatItOverwritesWhateverTheClockSays() throws {
    let devices = try scratch.devices(3, Self.schema)
    try devices[0].setClock(offset: 50_000)
    try devices[0].run(
      "UPDATE t SET a = 'future'; INSERT INTO t VALUES ('y', 1, 1); UPDATE i SET a = 1")
    try devices[1].receive(from: devices[0])
    try devices[1].setClock(offset: -50_000)
    try devices[1].run("UPDATE t SET a = 'after'; UPDATE i SET a = 'after'")
    try devices[2].receive(from: devices[1], devices[0])
    try converge(devices, "SELECT k, a FROM t ORDER BY k", ["x|after", "y|after"])
    try devices[2].run("DELETE FROM t")
    try devices[1].receive(from: devices[2])
    try devices[1].run("INSERT INTO t VALUES ('x', 'again', 0)")
    try converge(devices, "SELECT * FROM t", ["x|again|0"])
  }

  /// Of equal times that of the greater client wins; the greatest one here only
  /// repeats what another has said.
  @Test func aRewrittenChangeSetOfAnotherLosesAsItDidBefore() throws {
    let clients = (0..<3).map { _ in ClientIdentifier.random() }.sorted()
    let devices = try scratch.devices(3, Self.schema, clients: clients)
    for (index, text) in ["loses", "wins"].enumerated() {
      try devices[index].setClock(milliseconds: 4_000_000_000_000)
      try devices[index].run(
        "UPDATE t SET a = '\(text)'; INSERT INTO t VALUES ('y', '\(text)', '\(text)')")
    }
    try devices[2].receive(from: devices[1])
    let lost = try devices[0].outgoing()
    try devices[2].store.rewrite(lost)
    let rows = ["x|wins|0", "y|wins|wins"]
    #expect(try devices[2].rows("SELECT * FROM t ORDER BY k") == rows)
    // Everything of it is here already.
    #expect(try devices[2].store.rewrite(lost) == .taken(writtenCount: 0))
    try converge(devices, "SELECT * FROM t ORDER BY k", rows)
  }

  @Test func aClockThatGoesBackBetweenEditsKeepsTheirOrder() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].setClock(offset: 1_000)
    try devices[0].run("UPDATE t SET a = 1; DELETE FROM i; INSERT INTO t VALUES ('y', 1, 1)")
    try devices[0].setClock(offset: -1_000)
    try devices[0].run("UPDATE t SET a = 2, b = 2; INSERT INTO i VALUES (1, 'again')")
    try devices[1].setClock(offset: 0)
    try devices[1].run("UPDATE t SET a = 'between'; UPDATE i SET a = 'between'")
    try converge(devices, "SELECT k, a FROM t ORDER BY k", ["x|2", "y|2"])
    #expect(try devices[1].rows("SELECT a FROM i") == ["again"])
  }

  @Test func columnsOfOneRowKeepTheirOwnTimes() throws {
    let devices = try scratch.devices(2, Self.schema)
    for (number, offset) in [(0, -300.0), (1, -200.0), (0, -100.0)] {
      try devices[number].setClock(offset: offset)
      let column = offset == -100 ? "b" : "a"
      try devices[number].run("UPDATE t SET \(column) = '\(column)\(number)', a = a || 'x'")
      try devices[number].run("UPDATE t SET \(column) = '\(column)\(number)'")
    }
    // Device 1 wrote a at −300 and again, by appending, at −100.
    try converge(devices, "SELECT a, b FROM t", ["a0x|b0"])
    try devices[0].setClock(offset: -50)
    try devices[0].run("INSERT INTO t VALUES ('n', 0, 0)")
    try devices[0].setClock(offset: -40)
    try devices[0].run("UPDATE t SET b = 1 WHERE k = 'n'")
    let changes = try devices[0].changes(after: 1)
    #expect(changes.map(\.letters) == ["i"])
    #expect(changes[0].exceptions.map(\.column) == [1])
    #expect(changes[0].exceptions.allSatisfy { $0.stamp.time > changes[0].times[0] })
    try converge(devices, "SELECT * FROM t WHERE k = 'n'", ["n|0|1"])
  }

  @Test(arguments: [-1e12, 1e12, 4e14])
  func absurdClocksAreClamped(offset: Double) throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].setClock(offset: offset)
    try devices[0].run("UPDATE t SET a = 1; INSERT INTO t VALUES ('y', 1, 1)")
    try exchange(devices)
    try devices[1].run("UPDATE t SET a = 2")
    try devices[1].run("DELETE FROM t WHERE k = 'y'")
    try converge(devices)
  }
}
