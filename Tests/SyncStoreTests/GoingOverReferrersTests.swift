import SyncModel
import Testing

@testable import SyncStore

/// What the rows of excluded tables refer to, when a store of one document goes over to another with
/// its rows: a row that the document has deleted can come back with them.
@Suite struct GoingOverReferrersTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let actions = ["ON DELETE CASCADE", "ON DELETE SET NULL", ""]

  /// The first device of a document of its own.
  private func document(_ name: String, _ sql: String) throws -> Device {
    try scratch.document(name, sql, configuration: AppTriggerTests.excluding("mark"))
  }

  private func goOver(_ device: Device, to other: Device) throws -> MergedRows {
    let path = scratch.path + "/whole-\(UInt64.random(in: 0 ... .max)).db"
    _ = try other.outgoing()
    _ = try other.store.snapshot(to: path)
    var binding = device.store.binding
    binding.generation = other.store.binding.generation
    let result = try device.store.replaceContent(withSnapshotAt: path, mergingInto: binding)
    return try #require(result.merged)
  }

  /// Checks what the device has, and that both are sound.
  private func expect(
    _ rows: [String], _ query: String, _ devices: [Device],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    #expect(try devices[1].rows(query) == rows, sourceLocation: sourceLocation)
    try converge(devices)
    #expect(try devices[1].rows(query) == rows, sourceLocation: sourceLocation)
    try expectSound(devices)
  }

  private static let marks =
    "SELECT mark.id, name, n FROM mark LEFT JOIN tag ON name = p ORDER BY 1"

  private func tags(_ action: String) -> String {
    """
    CREATE TABLE tag (name TEXT PRIMARY KEY, n INTEGER);
    CREATE TABLE mark (id INTEGER PRIMARY KEY, p TEXT UNIQUE REFERENCES tag \(action));
    """
  }

  /// It was deleted in a document that has nothing to do with the store's.
  @Test(arguments: actions)
  func aDeletedRowComesBackWithTheRowsThatReferToIt(action: String) throws {
    let winner = try document("winner", tags(action) + "INSERT INTO tag VALUES ('a', 1), ('b', 1)")
    try winner.run("DELETE FROM tag WHERE name = 'a'")
    let loser = try document(
      "loser",
      tags(action) + """
        INSERT INTO tag VALUES ('a', 2), ('b', 2), ('c', 2);
        INSERT INTO mark VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, NULL);
        """)
    let merged = try goOver(loser, to: winner)
    #expect(merged.refusedRows == 0)
    try expect(["1|a|2", "2|b|1", "3|c|2", "4|NULL|NULL"], Self.marks, [winner, loser])
  }

  /// Both documents stem from one, and the document has deleted the rows. One of them was changed
  /// later, so that it comes back.
  @Test(arguments: ["CASCADE", "SET NULL"])
  func onlyADeletionThatStandsIsFollowed(action: String) throws {
    let devices = try scratch.devices(
      2, tags("ON DELETE \(action)") + "INSERT INTO tag VALUES ('a', 1), ('b', 1), ('c', 1)",
      configuration: AppTriggerTests.excluding("mark"))
    let (winner, loser) = (devices[0], devices[1])
    try loser.run("INSERT INTO mark VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    try winner.setClock(milliseconds: 1_700_000_002_000)
    try winner.run("DELETE FROM tag WHERE name IN ('a', 'b')")
    try loser.setClock(milliseconds: 1_700_000_003_000)
    try loser.run("UPDATE tag SET n = 2 WHERE name = 'b'")
    _ = try winner.outgoing()
    var binding = winner.store.binding
    (binding.generation, binding.client) = (.random(), .random())
    try winner.store.beginAgain(as: binding, forgetting: [])
    let merged = try goOver(loser, to: winner)
    #expect(merged.refusedRows == 1)
    let first = action == "CASCADE" ? [] : ["1|NULL"]
    try expect(first + ["2|b", "3|c"], "SELECT id, p FROM mark ORDER BY 1", devices)
    #expect(try winner.rows("SELECT name, n FROM tag ORDER BY 1") == ["b|2", "c|1"])
  }

  /// Each row has the value that another row had in the store: a reference that is followed twice
  /// leads to that one.
  @Test func referencesToUniqueValuesAreFollowedOnce() throws {
    let schema = """
      CREATE TABLE tag (k TEXT PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE mark (id INTEGER PRIMARY KEY, p TEXT UNIQUE REFERENCES tag (name) ON UPDATE CASCADE);
      """
    let winner = try document(
      "winner", schema + "INSERT INTO tag VALUES ('x', 'b'), ('y', 'c'), ('z', 'd')")
    let loser = try document(
      "loser",
      schema + """
        INSERT INTO tag VALUES ('x', 'a'), ('y', 'b'), ('z', 'c');
        INSERT INTO mark VALUES (1, 'a'), (2, 'b'), (3, 'c');
        """)
    _ = try goOver(loser, to: winner)
    try expect(
      ["1|x", "2|y", "3|z"], "SELECT mark.id, k FROM mark LEFT JOIN tag ON name = p ORDER BY 1",
      [winner, loser])
  }
}
