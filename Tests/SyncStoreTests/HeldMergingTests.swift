import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// How edits that no change set can carry meet edits of other devices. The caps are small here:
/// 32 KiB.
@Suite struct HeldMergingTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE photo (k TEXT PRIMARY KEY, name TEXT, data BLOB NOT NULL DEFAULT x'00');
    CREATE TABLE mark (k TEXT PRIMARY KEY, photo TEXT REFERENCES photo);
    INSERT INTO photo VALUES ('1', 'Ann', x'01'), ('2', 'Bob', x'02');
    """

  private func devices(
    _ schema: String = Self.schema, _ type: TableMergeType? = nil, bytesPerChangeSet: Int? = nil
  ) throws -> [Device] {
    var options = StoreOptions.patient
    options.limits.memoryBytes = 64 << 10
    if let bytesPerChangeSet { options.bytesPerChangeSet = bytesPerChangeSet }
    var configuration = StoreConfiguration()
    if let type { configuration.tableMergeTypes = ["photo": type] }
    return try scratch.devices(3, schema, configuration: configuration, options: options)
  }

  private let base = Date()
  private let query = "SELECT name, hex(data) FROM photo ORDER BY k"

  private func run(_ sql: String, on device: Device, at offset: Double) throws {
    try device.setClock(offset: offset, from: base)
    try device.run(sql)
  }

  /// Cells that were edited by the same statement, and were sent, are known to other devices.
  @Test func whatWasSentIsNoConflict() throws {
    let devices = try devices()
    try run("UPDATE photo SET data = randomblob(40000), name = 'Anna'", on: devices[0], at: 10)
    try exchange(devices)
    try run("UPDATE photo SET name = 'Anne' WHERE k = '1'", on: devices[1], at: 20)
    try exchange(devices)
    #expect(try devices[0].rows("SELECT name FROM photo ORDER BY k") == ["Anne", "Anna"])
    #expect(try devices[0].store.conflicts().isEmpty)
    #expect(try devices[0].store.status().heldEdits.count == 2)
  }

  /// No change set has the value: the journal is the only place for it if it loses.
  @Test(arguments: 1...4)
  func aLargeValueThatLosesAgainstAStoredOneIsInTheJournal(number: Int) throws {
    var devices = try devices()
    let migration = "ALTER TABLE mark ADD COLUMN n"
    try devices[0].run("INSERT INTO mark (k) VALUES ('m')")
    try exchange(devices)
    devices[1] = try devices[1].changed(isOpen: true) {
      try $0.run(migration)
      try $0.run("UPDATE mark SET n = 'theirs'")
    }
    try exchange(devices)
    devices[0] = try devices[0].changed(isOpen: true) {
      try $0.run(migration)
      try $0.run("UPDATE mark SET n = zeroblob(40000)")
    }
    try exchange(devices)
    let isShown = try devices[0].rows("SELECT length(n) FROM mark") == ["40000"]
    let values = try devices[0].store.conflicts().flatMap { $0.local.cells ?? [] }.map(\.value)
    #expect(isShown || values == [.blob([UInt8](repeating: 0, count: 40_000))])
    #expect(try devices[0].store.status().heldEdits.isEmpty == !isShown)
  }

  /// A device holds such an edit: it is unpublished, so that the device's policy decides. In the end, an
  /// edit of each of two devices has the same time, and the greater client wins.
  @Test(arguments: 1...4) func policiesDecide(number: Int) throws {
    let devices = try devices()
    try devices[0].store.setPolicies { $0.set(.localWins, table: "photo", column: "data") }
    try run("UPDATE photo SET data = randomblob(40000) WHERE k = '1'", on: devices[0], at: 10)
    try exchange(devices)
    try run("UPDATE photo SET data = x'0B' WHERE k = '1'", on: devices[1], at: 20)
    try exchange(devices)
    #expect(try devices[0].rows("SELECT length(data) FROM photo WHERE k = '1'") == ["40000"])
    #expect(try devices[0].sealsNothing())
    #expect(try devices[0].store.status().heldEdits.count == 1)
    try devices[0].store.setPolicies { $0.set(.remoteWins, table: "photo", column: "data") }
    try run("UPDATE photo SET data = x'0C' WHERE k = '1'", on: devices[1], at: 5)
    try converge(devices, query, ["Ann|0C", "Bob|02"])
    #expect(try devices[0].store.status().heldEdits == [])
  }

  /// Other devices know a former row of the key, and one of them replaces the large value of the new
  /// one. What is left fits, and is sent as it was edited.
  @Test(arguments: [nil, TableMergeType.wholeRow]) func whatIsLeftOfALargeRowIsSent(
    type: TableMergeType?
  ) throws {
    let devices = try devices(Self.schema, type)
    try run(
      "INSERT OR REPLACE INTO photo VALUES ('1', 'New', randomblob(40000))", on: devices[0], at: 10)
    try exchange(devices)
    try run("UPDATE photo SET data = x'0B' WHERE k = '1'", on: devices[1], at: 20)
    try converge(devices, query, [type == nil ? "New|0B" : "Ann|0B", "Bob|02"])
    #expect(try devices[0].store.status().heldEdits == [])
    #expect(try devices[0].sealsNothing())
    #expect(try devices[0].store.conflicts().count == (type == nil ? 1 : 2))
  }

  /// Other devices know a former row of the key: its deletion does not erase that.
  @Test func aReplacedRowIsRescuedByAReferenceElsewhere() throws {
    let devices = try devices()
    try run(
      "INSERT OR REPLACE INTO photo VALUES ('1', 'Ann', randomblob(40000))", on: devices[0], at: 10)
    try exchange(devices)
    #expect(try devices[1].rows(query) == ["Ann|01", "Bob|02"])
    try run("DELETE FROM photo WHERE k = '1'", on: devices[0], at: 20)
    try run("INSERT INTO mark VALUES ('m', '1')", on: devices[1], at: 21)
    try converge(
      devices, "SELECT p.k, length(data) FROM photo AS p JOIN mark AS m ON photo = p.k", ["1|1"])
  }

  /// What a device deletes once more, since its tombstone has a value that no other device knows,
  /// has been inserted again meanwhile.
  @Test func aRowThatIsInsertedAgainLives() throws {
    let devices = try devices()
    try run("UPDATE photo SET data = randomblob(40000) WHERE k = '1'", on: devices[0], at: 10)
    try exchange(devices)
    try run("DELETE FROM photo WHERE k = '1'", on: devices[1], at: 5)
    try devices[0].receive(from: devices[1])
    try run("INSERT INTO photo VALUES ('1', 'New', x'0D')", on: devices[1], at: 7)
    try converge(devices, "SELECT name FROM photo ORDER BY k", ["New", "Bob"])
  }

  /// The row's update and another one of it are in two batches of one sealing.
  @Test func aVersionInTwoBatchesReplacesTheKnownOne() throws {
    let devices = try devices(Self.schema, .keepBoth, bytesPerChangeSet: 16 << 10)
    try devices[0].run(
      """
      UPDATE photo SET data = randomblob(40000) WHERE k = '1';
      UPDATE photo SET name = 'Bert' WHERE k = '2';
      UPDATE photo SET name = 'Anna' WHERE k = '1'
      """)
    try exchange(devices)
    #expect(try devices[0].store.status().heldEdits.count == 1)
    try devices[0].run("UPDATE photo SET data = x'03' WHERE k = '1'")
    try converge(devices, query, ["Anna|03", "Bert|02"])
  }

  /// The whole store that a device takes over has a version that the large one has not seen.
  @Test func bothVersionsAreKeptWhenTheContentIsExchanged() throws {
    let devices = try devices(Self.schema, .keepBoth)
    try run(
      "UPDATE photo SET data = randomblob(40000), name = 'large' WHERE k = '1'", on: devices[0],
      at: 10)
    try exchange(devices)
    try run("UPDATE photo SET name = 'elsewhere' WHERE k = '1'", on: devices[1], at: 20)
    _ = try devices[1].outgoing()
    let path = scratch.path + "/whole.db"
    _ = try devices[1].store.snapshot(to: path)
    _ = try devices[0].store.replaceContent(withSnapshotAt: path)
    let names = "SELECT name FROM photo ORDER BY name"
    #expect(try devices[0].rows(names) == ["Bob", "elsewhere", "large"])
  }

  /// A hidden row stays under its key if that of the row in it becomes too large.
  @Test func aHiddenRowDoesNotFollowAKeyThatIsTooLarge() throws {
    let devices = try devices(
      """
      CREATE TABLE page (name TEXT PRIMARY KEY, text TEXT);
      CREATE TABLE note (page TEXT PRIMARY KEY REFERENCES page ON UPDATE CASCADE,
        title TEXT, UNIQUE (title));
      INSERT INTO page VALUES ('a', 'A'), ('b', 'B');
      INSERT INTO note VALUES ('a', 'one')
      """)
    try run("UPDATE note SET title = 'same'", on: devices[0], at: 0)
    try run("INSERT INTO note VALUES ('b', 'same')", on: devices[1], at: 3_600)
    try converge(devices, "SELECT page FROM note", ["b"])
    try devices[0].run("UPDATE page SET name = printf('%.*c', 40000, 'y') WHERE name = 'a'")
    try devices[1].run("UPDATE page SET text = 'B2' WHERE name = 'b'")
    try exchange(devices)
    #expect(try devices[0].rows("SELECT text FROM page WHERE name = 'b'") == ["B2"])
    // The hidden note refers to the page that it stays with, which therefore stays as well.
    let pages = "SELECT substr(name, 1, 1) FROM page ORDER BY 1"
    #expect(try devices[0].rows(pages) == ["a", "b", "y"])
    #expect(try devices[1].rows(pages) == ["a", "b"])
    try devices[0].run("UPDATE page SET name = 'c' WHERE length(name) > 9")
    try converge(devices, pages, ["a", "b", "c"])
    #expect(try devices[0].store.status().heldEdits == [])
  }

  /// Of a row whose key is too large, nothing is left when it is deleted. If other devices have a former
  /// row of that key, the deletion stays on this device.
  @Test(arguments: [false, true]) func aRowUnderAKeyThatIsTooLargeIsDeleted(isKnown: Bool) throws {
    let long = "printf('%.*c', 40000, 'y')"
    let start = isKnown ? "INSERT INTO photo VALUES (\(long), 'Old', x'03');" : ""
    let devices = try devices(Self.schema + start)
    try devices[0].run("INSERT OR REPLACE INTO photo VALUES (\(long), 'New', x'04')")
    try exchange(devices)
    try devices[0].run("DELETE FROM photo WHERE name = 'New'")
    try exchange(devices)
    #expect(try devices[0].rows("SELECT name FROM photo ORDER BY name") == ["Ann", "Bob"])
    #expect(
      try devices[0].store.status().heldEdits.map(\.kind) == (isKnown ? [.deletion] : []))
    if !isKnown { try converge(devices, "SELECT name FROM photo ORDER BY name", ["Ann", "Bob"]) }
    // What is inserted again stays as well.
    try devices[0].run("INSERT INTO photo VALUES (\(long), 'Newer', x'05')")
    try exchange(devices)
    #expect(try devices[0].store.status().heldEdits.map(\.kind) == [.insertion])
    try devices[0].run("DELETE FROM photo WHERE name = 'Newer'")
    try exchange(devices)
    #expect(
      try devices[0].store.status().heldEdits.map(\.kind) == (isKnown ? [.deletion] : []))
    #expect(try devices[1].rows("SELECT count(*) FROM photo") == [isKnown ? "3" : "2"])
  }
}
