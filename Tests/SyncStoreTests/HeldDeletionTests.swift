import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Deletions of rows with edits that no change set can carry. The caps are small here: 32 KiB.
@Suite struct HeldDeletionTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A mark holds its photo.
  private static let schemas = [
    """
    CREATE TABLE photo (k TEXT PRIMARY KEY, name TEXT, data BLOB NOT NULL DEFAULT x'00');
    CREATE TABLE mark (k TEXT PRIMARY KEY, photo TEXT REFERENCES photo);
    INSERT INTO photo VALUES ('1', 'Ann', x'01'), ('2', 'Bob', x'02');
    """,
    """
    CREATE TABLE photo (k INTEGER PRIMARY KEY, name TEXT, data BLOB NOT NULL);
    CREATE TABLE mark (k TEXT PRIMARY KEY, photo INTEGER REFERENCES photo);
    INSERT INTO photo VALUES (1, 'Ann', x'01'), (2, 'Bob', x'02');
    """,
  ]

  private func devices(
    _ schema: String, _ type: TableMergeType? = nil, count: Int = 3
  ) throws -> [Device] {
    var options = StoreOptions.patient
    options.limits.memoryBytes = 64 << 10
    var configuration = StoreConfiguration()
    if let type { configuration.tableMergeTypes = ["photo": type] }
    return try scratch.devices(count, schema, configuration: configuration, options: options)
  }

  private let base = Date()

  private func grow(_ device: Device, at offset: Double) throws {
    try device.setClock(offset: offset, from: base)
    try device.run("UPDATE photo SET data = randomblob(40000) WHERE k = 1")
  }

  /// The tombstone of the device with the large value agrees with the others, whichever edit is the
  /// later one, and so does the row when a new reference brings it back.
  @Test(arguments: schemas, [5.0, 20.0])
  func aRowThatAnotherDeviceDeletesIsTheSameOnAll(schema: String, offset: Double) throws {
    let devices = try devices(schema)
    try grow(devices[0], at: 10)
    try exchange(devices)
    try devices[2].setClock(offset: 8, from: base)
    try devices[2].run("INSERT INTO mark VALUES ('m', 1)")
    try devices[1].setClock(offset: offset, from: base)
    try devices[1].run("DELETE FROM photo WHERE k = 1")
    // The deletion is everywhere before the reference is.
    for _ in 0..<2 {
      try devices[0].receive(from: devices[1])
      try devices[1].receive(from: devices[0])
    }
    #expect(try devices[0].store.digest() == devices[1].store.digest())
    #expect(try devices[0].store.status().heldEdits == [])
    #expect(try LocalStore.verify(at: devices[0].path).report.findings == [])
    try converge(
      devices, "SELECT name, length(data) < 2 FROM photo ORDER BY k", ["Ann|1", "Bob|1"])
    #expect(try devices.allSatisfy { try $0.sealsNothing() })
    // The journal has the large value.
    let lost = try devices[0].store.conflicts().flatMap { ($0.local.cells ?? []).map(\.value) }
    #expect(
      lost.contains { if case .blob(let bytes) = $0 { bytes.count == 40_000 } else { false } })
    try devices[0].run("UPDATE photo SET data = x'0C' WHERE k = 1")
    try converge(devices, "SELECT name, hex(data) FROM photo ORDER BY k", ["Ann|0C", "Bob|02"])
  }

  /// Where a reference arrives before the deletion, the row stays as it is, until nothing holds it.
  /// The deletions of rows of one table are in one change set.
  @Test(arguments: schemas) func severalRowsAreDeletedOnceMoreTogether(schema: String) throws {
    let devices = try devices(schema)
    try devices[0].run(
      "INSERT INTO photo VALUES (3, 'Carl', x'03'); INSERT INTO mark VALUES ('m', 3)")
    try exchange(devices)
    try devices[0].setClock(offset: 10, from: base)
    try devices[0].run("UPDATE photo SET data = randomblob(40000) WHERE k < 3")
    try devices[1].setClock(offset: 20, from: base)
    try devices[1].run("DELETE FROM photo WHERE k < 3")
    try converge(devices, "SELECT name FROM photo", ["Carl"])
    #expect(try devices[0].store.status().heldEdits == [])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
  }

  @Test(arguments: schemas) func aRowThatIsHeldKeepsTheValue(schema: String) throws {
    let devices = try devices(schema)
    try grow(devices[0], at: 10)
    try devices[2].run("INSERT INTO mark VALUES ('m', 1)")
    try devices[0].receive(from: devices[2])
    try devices[1].setClock(offset: 20, from: base)
    try devices[1].run("DELETE FROM photo WHERE k = 1")
    try exchange(devices)
    #expect(try devices[0].rows("SELECT length(data) FROM photo WHERE k = 1") == ["40000"])
    #expect(try devices[1].rows("SELECT length(data) FROM photo WHERE k = 1") == ["1"])
    #expect(try devices[0].store.status().heldEdits.count == 1)
    try devices[2].run("DELETE FROM mark")
    try converge(devices, "SELECT name FROM photo", ["Bob"])
    #expect(try devices[0].store.status().heldEdits == [])
  }

  @Test(arguments: schemas, [TableMergeType.wholeRow, .keepBoth])
  func aRowOfOneRegisterIsTheSameOnAll(schema: String, type: TableMergeType) throws {
    let devices = try devices(schema.replacing("BLOB NOT NULL", with: "BLOB"), type)
    try grow(devices[0], at: 10)
    try devices[1].setClock(offset: 20, from: base)
    try devices[1].run("DELETE FROM photo WHERE k = 1")
    try converge(devices, "SELECT name FROM photo", ["Bob"])
    try devices[2].run("INSERT OR REPLACE INTO photo VALUES (1, 'New', x'0D')")
    try converge(devices, "SELECT name, hex(data) FROM photo ORDER BY 1", ["Bob|02", "New|0D"])
  }

  /// An edit wins over a deletion by a device that did not know it, also one that stays. The row
  /// comes back everywhere when it is edited.
  @Test(arguments: schemas) func aLargeEditWins(schema: String) throws {
    let devices = try devices(schema, .editWins)
    try grow(devices[0], at: 10)
    try devices[1].setClock(offset: 20, from: base)
    try devices[1].run("DELETE FROM photo WHERE k = 1")
    try exchange(devices)
    #expect(try devices[0].rows("SELECT name FROM photo ORDER BY k") == ["Ann", "Bob"])
    #expect(try devices[1].rows("SELECT name FROM photo ORDER BY k") == ["Bob"])
    #expect(try devices[0].store.status().heldEdits.count == 1)
    try devices[0].run("UPDATE photo SET data = x'0E' WHERE k = 1")
    try converge(devices, "SELECT name, hex(data) FROM photo ORDER BY k", ["Ann|0E", "Bob|02"])
    #expect(try devices[0].store.status().heldEdits == [])
    // Who knows of the edit deletes it.
    try grow(devices[0], at: 30)
    try exchange(devices)
    try devices[0].run("DELETE FROM photo WHERE k = 1")
    try converge(devices, "SELECT name FROM photo", ["Bob"])
  }

  /// A deletion here, with a reference elsewhere: the row comes back with a value that all can have.
  @Test(arguments: schemas) func theOwnDeletionIsUndoneByAReferenceElsewhere(schema: String) throws
  {
    let devices = try devices(schema)
    try grow(devices[0], at: 10)
    try exchange(devices)
    try devices[0].run("DELETE FROM photo WHERE k = 1")
    try devices[1].run("INSERT INTO mark VALUES ('m', 1)")
    try converge(
      devices, "SELECT name, length(data) < 2 FROM photo ORDER BY k", ["Ann|1", "Bob|1"])
    // Written and deleted between two synchronizations, too.
    try devices[0].run(
      "UPDATE photo SET data = randomblob(40000) WHERE k = 2; DELETE FROM photo WHERE k = 2")
    try devices[1].run("INSERT INTO mark VALUES ('n', 2)")
    try converge(
      devices, "SELECT name, length(data) < 2 FROM photo ORDER BY k", ["Ann|1", "Bob|1"])
    #expect(try devices[0].store.status().heldEdits == [])
  }

  @Test func aRowThatMovesLeavesTheValueInTheJournal() throws {
    let devices = try devices(Self.schemas[0])
    try grow(devices[0], at: 10)
    try exchange(devices)
    try devices[1].setClock(offset: 20, from: base)
    try devices[1].run("UPDATE photo SET k = '3' WHERE k = '1'")
    try converge(
      devices, "SELECT k, name, hex(data) FROM photo ORDER BY k", ["2|Bob|02", "3|Ann|01"])
    #expect(try devices[0].store.conflicts().count == 1)
    #expect(try devices[0].store.status().heldEdits == [])
  }

  /// Two devices hold a value of one cell each.
  @Test(arguments: schemas) func twoDevicesHoldEdits(schema: String) throws {
    let devices = try devices(schema)
    try grow(devices[0], at: 10)
    try grow(devices[1], at: 11)
    try exchange(devices)
    #expect(try devices[0].store.status().heldEdits.count == 1)
    #expect(try devices[1].store.status().heldEdits.count == 1)
    try devices[2].setClock(offset: 20, from: base)
    try devices[2].run("DELETE FROM photo WHERE k = 1")
    try converge(devices, "SELECT name FROM photo", ["Bob"])
    #expect(try devices.allSatisfy { try $0.store.status().heldEdits == [] })
  }

  /// A number in a column of reals is a real in the tombstones of all devices.
  @Test func aColumnOfRealsThatMayNotBeNullIsTheSameOnAll() throws {
    let devices = try devices(
      """
      CREATE TABLE photo (k TEXT PRIMARY KEY, data BLOB, size REAL NOT NULL) WITHOUT ROWID;
      CREATE TABLE mark (k TEXT PRIMARY KEY, photo TEXT REFERENCES photo);
      INSERT INTO photo VALUES ('1', x'01', 2.0);
      """, count: 2)
    try devices[1].setClock(offset: 10, from: base)
    try devices[1].run("DELETE FROM photo")
    try devices[1].run("INSERT INTO photo VALUES ('1', randomblob(80000), 0.5)")
    try devices[0].setClock(offset: 1000, from: base)
    try devices[0].run("DELETE FROM photo")
    try converge(devices, "SELECT k FROM photo", [])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
  }

  /// A change set has room for one large key, and not for two: the row is deleted and inserted instead
  /// of moved, and nothing of the former row is stored.
  @Test func aRowThatCannotBeMovedLeavesNoEntry() throws {
    var options = StoreOptions.patient
    options.limits.memoryBytes = 16 << 10
    var configuration = StoreConfiguration()
    configuration.identities = ["tag": .columns(["name", "kind"])]
    configuration.references = ["mark": ["tag": "tag"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE tag (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, UNIQUE (name, kind));
      CREATE TABLE mark (k TEXT PRIMARY KEY, tag INTEGER);
      """, configuration: configuration, options: options)
    try devices[0].run("INSERT INTO tag VALUES (4, printf('%.*c', 5000, 'y'), 'a')")
    try converge(devices, "SELECT kind FROM tag", ["a"])
    try devices[0].run("UPDATE tag SET kind = 'b'")
    try converge(devices, "SELECT kind FROM tag", ["b"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
  }
}
