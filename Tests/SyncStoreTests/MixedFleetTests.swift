import SyncModel
import Testing

@testable import SyncStore

/// Devices of which some have a newer schema than others.
@Suite struct MixedFleetTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'a'), (2, 'b');
    CREATE TABLE k (k TEXT PRIMARY KEY COLLATE NOCASE, v); INSERT INTO k VALUES ('x', 1);
    """
  private static let columns = """
    ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 5; ALTER TABLE k ADD COLUMN w;
    """

  // MARK: - New columns

  @Test(arguments: [true, false])
  func anOldDeviceKeepsWhatItCannotSee(isOpen: Bool) throws {
    var devices = try scratch.devices(2, Self.schema)
    try devices[0].run(
      Self.columns + "UPDATE t SET n = 6 WHERE id = 1; INSERT INTO t VALUES (3, 'c', 7)")
    try devices[0].run("UPDATE k SET w = 'w'")
    try exchange(devices)
    // Edits by the old one, of every kind.
    try devices[1].run(
      "UPDATE t SET a = 'A' WHERE id = 1; UPDATE t SET a = 'C' WHERE id = 3; "
        + "INSERT INTO t (a) VALUES ('d'); REPLACE INTO k VALUES ('X', 2)")
    try exchange(devices)
    #expect(
      try devices[0].rows("SELECT a, n FROM t ORDER BY a") == ["A|6", "C|7", "b|5", "d|5"])
    #expect(try devices[0].rows("SELECT * FROM k") == ["X|2|w"])
    devices[1] = try devices[1].changed(isOpen: isOpen) { try $0.run(Self.columns) }
    try converge(
      devices, "SELECT a, n FROM t ORDER BY a", ["A|6", "C|7", "b|5", "d|5"])
    try converge(devices, "SELECT * FROM k", ["X|2|w"])
    #expect(try devices[1].store.status().unknownNames == [])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_foreign") == ["0"])
    // From now on both are equal.
    try devices[1].run("UPDATE t SET n = 8 WHERE id = 2; UPDATE k SET w = 'later'")
    try converge(devices, "SELECT a, n FROM t ORDER BY a", ["A|6", "C|7", "b|8", "d|5"])
  }

  @Test func aWholeStoreOfAnOldDeviceCarriesWhatItKeeps() throws {
    var devices = try scratch.devices(2, Self.schema)
    try devices[0].run(
      Self.columns + "UPDATE t SET n = 6; CREATE TABLE u (id INTEGER PRIMARY KEY, c)")
    try devices[0].run("INSERT INTO u (c) VALUES ('u')")
    try exchange(devices)
    let path = scratch.path + "/third.db"
    _ = try devices[1].outgoing()
    _ = try devices[1].store.snapshot(to: path)
    devices.append(
      try Device(
        store: try LocalStore.adopt(snapshotAt: path, binding: scratch.binding("third")),
        path: path))
    #expect(
      try devices[2].store.status().unknownNames == ["k.w", "t.n", "u"].filter { $0 != "k.w" })
    for device in devices[1...] {
      try device.run(Self.columns + "CREATE TABLE u (id INTEGER PRIMARY KEY, c)")
    }
    try converge(devices, "SELECT t.n, c FROM t, u ORDER BY t.id", ["6|u", "6|u"])
  }

  @Test func aRowThatWasDeletedAndMadeAgainHasNothingOfWhatWasThere() throws {
    for order in [[0, 1], [1, 0]] {
      let scratch = try Scratch()
      let devices = try scratch.devices(3, Self.schema)
      try devices[0].run(Self.columns)
      try exchange(devices)
      // Unseen by each other: an edit of the new column, and a deletion with a
      // new row of the same key by a device that does not have the column.
      try devices[0].run("UPDATE k SET w = 'old'")
      _ = try devices[0].store.seal()
      try devices[1].run("DELETE FROM k")
      _ = try devices[1].store.seal()
      try devices[1].run("INSERT INTO k VALUES ('x', 'new')")
      _ = try devices[1].store.seal()
      for number in order { try devices[2].receive(from: devices[number]) }
      for device in devices[1...] { try device.run(Self.columns) }
      try converge(devices, "SELECT * FROM k", ["x|new|NULL"])
    }
  }

  @Test func aDeletionThatLosesToAnOldDeviceStillOvertakesWhatIsOlder() throws {
    let devices = try scratch.devices(4, Self.schema)
    for device in [devices[0], devices[3]] { try device.run(Self.columns) }
    for (number, edit) in [
      "UPDATE k SET w = 'old'", "DELETE FROM k", "REPLACE INTO k VALUES ('x', 'new')",
    ].enumerated() {
      try devices[number].setClock(offset: Double(number * 60))
      try devices[number].run(edit)
      _ = try devices[number].store.seal()
    }
    for (device, order) in [(0, [2, 1]), (3, [0, 1, 2])] {
      for number in order { try devices[device].receive(from: devices[number]) }
    }
    for device in devices[1...2] { try device.run(Self.columns) }
    try converge(devices, "SELECT * FROM k", ["x|new|NULL"])
  }

  @Test func conditionsOfNewColumnsAreCheckedWhenTheyComeIn() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run(
      "ALTER TABLE t ADD COLUMN mail TEXT CHECK (mail <> 'bad'); CREATE UNIQUE INDEX m ON t (mail)")
    try devices[0].run("UPDATE t SET mail = 'one' WHERE id = 1")
    try exchange(devices)
    // The other migrates with another value for the same mail, unseen.
    try devices[1].run("ALTER TABLE t ADD COLUMN mail TEXT CHECK (mail <> 'bad')")
    try devices[1].run("UPDATE t SET mail = 'one' WHERE id = 2; CREATE UNIQUE INDEX m ON t (mail)")
    try converge(devices)
    #expect(try devices[0].rows("SELECT count(*) FROM t WHERE mail = 'one'") == ["1"])
  }

  @Test func aDefaultThatIsAnotherEverywhereIsShownAsNull() throws {
    let devices = try scratch.devices(2, Self.schema)
    let migration = """
      BEGIN; CREATE TABLE new_k (k TEXT PRIMARY KEY COLLATE NOCASE, v, r DEFAULT (random()));
      INSERT INTO new_k (k, v) SELECT k, v FROM k; UPDATE new_k SET r = 0;
      DROP TABLE k; ALTER TABLE new_k RENAME TO k; COMMIT;
      """
    try devices[0].run(migration)
    _ = try devices[0].store.seal()
    try devices[1].run("INSERT INTO k VALUES ('y', 2)")
    try exchange(devices)
    #expect(try devices[0].rows("SELECT r FROM k ORDER BY k") == ["0", "NULL"])
  }

  // MARK: - New tables

  @Test(arguments: [true, false])
  func rowsOfAnUnknownTableAppearWhenItIsMade(isOpen: Bool) throws {
    var devices = try scratch.devices(3, Self.schema)
    let tables = """
      CREATE TABLE kind (name TEXT PRIMARY KEY COLLATE NOCASE, c) WITHOUT ROWID;
      CREATE TABLE note (id INTEGER PRIMARY KEY, t INTEGER REFERENCES t ON DELETE CASCADE,
        kind TEXT REFERENCES kind, text);
      """
    try devices[0].run(
      tables + "INSERT INTO kind VALUES ('Work', 1); "
        + "INSERT INTO note VALUES (1, 2, 'work', 'first'), (2, 1, NULL, 'second')")
    try exchange(devices)
    #expect(try devices[1].store.status().unknownNames == ["kind", "note"])
    // The old one has rows of its own with the same keys by now.
    try devices[1].run("INSERT INTO t VALUES (7, 'seven')")
    try devices[0].run(
      "UPDATE note SET text = 'edited' WHERE id = 1; DELETE FROM note WHERE id = 2; "
        + "INSERT INTO note VALUES (3, 1, 'WORK', 'third'); UPDATE kind SET name = 'WORK'")
    try exchange(devices)
    devices[1] = try devices[1].changed(isOpen: isOpen) {
      try $0.run(tables + "INSERT INTO note VALUES (1, 7, NULL, 'own')")
    }
    devices[2] = try devices[2].changed(isOpen: isOpen) { try $0.run(tables) }
    try converge(
      devices, "SELECT text, a FROM note JOIN t ON t = t.id ORDER BY text",
      ["edited|b", "own|seven", "third|a"])
    #expect(try devices.map { try $0.store.status().parked } == [[], [], []])
  }

  @Test func anOldDeviceDeletesWhatNewTablesReferTo() throws {
    let devices = try scratch.devices(2, Self.schema)
    let table = "CREATE TABLE c (id INTEGER PRIMARY KEY, t REFERENCES t ON DELETE CASCADE);"
    try devices[0].run(table + "INSERT INTO c VALUES (1, 1), (2, 2)")
    try exchange(devices)
    try devices[1].run("DELETE FROM t WHERE id = 1")
    try exchange(devices)
    try devices[1].run(table)
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT t.a FROM c JOIN t ON t.id = t") == ["b"])
      try device.checkIntegrity()
    }
    #expect(try devices[0].store.digest().visible == devices[1].store.digest().visible)
  }

  // MARK: - Parents that are deleted by who does not know of their children

  private static let child = """
    CREATE TABLE c (id TEXT PRIMARY KEY, k TEXT REFERENCES k, x);
    """

  @Test func whoDoesNotKnowTheReferenceTakesTheCellsAlongEverywhere() throws {
    let devices = try scratch.devices(4, Self.schema)
    for device in devices[1...2] { try device.run(Self.child) }
    try exchange(devices)
    // Neither has seen the other's.
    try devices[0].run("DELETE FROM k")
    _ = try devices[0].store.seal()
    try devices[1].run("INSERT INTO c VALUES ('c', 'x', 1)")
    try exchange(devices)
    for device in [devices[0], devices[3]] { try device.run(Self.child) }
    try converge(devices, "SELECT k FROM k UNION ALL SELECT id FROM c", [])
    for device in devices {
      #expect(try device.store.status().parked.map(\.reason) == [.parentMissing])
    }
    // When the parent is there again, so is the child.
    try devices[3].run("INSERT INTO k VALUES ('X', 'new')")
    try converge(devices, "SELECT c.id, v FROM c JOIN k ON k.k = c.k", ["c|new"])
  }

  @Test func whoKnowsTheReferenceLeavesTheCellsEverywhere() throws {
    let devices = try scratch.devices(4, Self.schema)
    for device in devices[1...2] { try device.run(Self.child) }
    try exchange(devices)
    try devices[2].run("DELETE FROM k")
    _ = try devices[2].store.seal()
    try devices[1].run("INSERT INTO c VALUES ('c', 'x', 1)")
    // Two that do not have the table hear of the deletion first, and of the
    // child only when they have it.
    for device in [devices[0], devices[3]] { try device.receive(from: devices[2]) }
    try devices[3].receive(from: devices[1])
    for device in [devices[0], devices[3]] { try device.run(Self.child) }
    try converge(devices, "SELECT c.id, v FROM c JOIN k ON k.k = c.k", ["c|1"])
    #expect(try devices.map { try $0.store.status().parked } == [[], [], [], []])
  }

  @Test func aDeletionThatTakesTheCellsAlongOvertakesWhatAnUnknownTableHeld() throws {
    let devices = try scratch.devices(3, Self.schema)
    let table = "CREATE TABLE u (id TEXT PRIMARY KEY, a);"
    for device in devices[0...1] { try device.run(table + "INSERT INTO u VALUES ('r', 'first')") }
    try exchange(devices)
    try devices[0].run("ALTER TABLE u ADD COLUMN b; UPDATE u SET b = 'old'")
    _ = try devices[0].store.seal()
    try devices[1].setClock(offset: 3_600)
    try devices[1].run("DELETE FROM u")
    _ = try devices[1].store.seal()
    try devices[1].run("INSERT INTO u VALUES ('r', 'second')")
    try exchange(devices)
    for device in devices[1...] {
      try device.run((device === devices[2] ? table : "") + "ALTER TABLE u ADD COLUMN b")
    }
    try converge(devices, "SELECT * FROM u", ["r|second|NULL"])
  }
}
