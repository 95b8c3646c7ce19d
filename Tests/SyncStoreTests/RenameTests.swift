import SyncModel
import Testing

@testable import SyncStore

/// Columns and tables that are renamed, dropped, or made again, by programs
/// that know nothing of syncing.
@Suite struct RenameTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE t (id INTEGER PRIMARY KEY, a, b DEFAULT 'd');
    INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y');
    CREATE TABLE k (k TEXT PRIMARY KEY, t INTEGER REFERENCES t, v);
    INSERT INTO k VALUES ('one', 1, 10);
    """

  /// SQLite refuses to drop a column that a trigger names.
  private static func dropColumn(_ device: Device) throws {
    try device.run(
      """
      PRAGMA foreign_keys = OFF; BEGIN;
      CREATE TABLE new_t (id INTEGER PRIMARY KEY, a); INSERT INTO new_t SELECT id, a FROM t;
      DROP TABLE t; ALTER TABLE new_t RENAME TO t; COMMIT; PRAGMA foreign_keys = ON;
      """)
  }

  // MARK: - Renaming

  @Test(arguments: [true, false], [true, false])
  func aRenamedColumnIsTheSameColumn(isOpen: Bool, isSealed: Bool) throws {
    var devices = try scratch.devices(3, Self.schema)
    try devices[0].run("UPDATE t SET b = 'before' WHERE id = 1")
    if isSealed { _ = try devices[0].store.seal() }
    devices[0] = try devices[0].changed(isOpen: isOpen) {
      try $0.run(
        "ALTER TABLE t RENAME COLUMN b TO \"new \"\"name\"; ALTER TABLE k RENAME COLUMN k TO key")
    }
    try devices[0].run("UPDATE t SET \"new \"\"name\" = 'after' WHERE id = 2")
    try devices[1].run("INSERT INTO t VALUES (3, 'c', 'z'); UPDATE k SET v = 11")
    try exchange(devices)
    #expect(
      try devices[0].rows("SELECT \"new \"\"name\" FROM t ORDER BY id") == ["before", "after", "z"])
    #expect(try devices[1].rows("SELECT b FROM t ORDER BY id") == ["before", "after", "z"])
    try devices[2].run("ALTER TABLE k RENAME COLUMN k TO key; INSERT INTO k VALUES ('two', 3, 1)")
    try converge(devices, "SELECT * FROM k ORDER BY 1", ["one|1|11", "two|3|1"])
    #expect(try devices.map { try $0.store.status().unknownNames } == [[], [], []])
  }

  @Test(arguments: [true, false])
  func aRenamedTableIsTheSameTable(isOpen: Bool) throws {
    var devices = try scratch.devices(2, Self.schema)
    try devices[0].run("INSERT INTO t VALUES (3, 'before', 1)")
    devices[0] = try devices[0].changed(isOpen: isOpen) {
      try $0.run("ALTER TABLE t RENAME TO \"T's\"; ALTER TABLE k RENAME TO l")
    }
    try devices[0].run("INSERT INTO \"T's\" VALUES (4, 'after', 2); UPDATE l SET t = 4")
    try devices[1].run("UPDATE t SET a = 'old name' WHERE id = 1")
    try exchange(devices)
    #expect(
      try devices[0].rows("SELECT a FROM \"T's\" ORDER BY id") == [
        "old name", "b", "before", "after",
      ])
    try converge(devices)
    try devices[1].run("ALTER TABLE t RENAME TO u; ALTER TABLE k RENAME TO m")
    try converge(devices)
    #expect(try devices[1].rows("SELECT t FROM m") == ["4"])
    // A joiner takes the names over.
    let path = scratch.path + "/third.db"
    _ = try devices[0].outgoing()
    _ = try devices[0].store.snapshot(to: path)
    let third = try Device(
      store: try LocalStore.adopt(snapshotAt: path, binding: scratch.binding("third")), path: path)
    try third.run("UPDATE \"T's\" SET a = 'joined'")
    try converge([devices[0], devices[1], third])
    #expect(try devices[1].rows("SELECT DISTINCT a FROM u") == ["joined"])
  }

  @Test func aNameThatWasGivenUpCanBeTakenAgain() throws {
    for isAccessedBetween in [false, true] {
      let scratch = try Scratch()
      let devices = try scratch.devices(2, Self.schema)
      for (number, device) in devices.enumerated() {
        try device.run("ALTER TABLE t RENAME COLUMN a TO c")
        if isAccessedBetween == (number == 0) { _ = try device.store.seal() }
        try device.run("ALTER TABLE t ADD COLUMN a")
        try device.run("ALTER TABLE k RENAME TO l")
        if isAccessedBetween == (number == 1) { _ = try device.store.seal() }
        try device.run("CREATE TABLE k (k TEXT PRIMARY KEY, x)")
      }
      try devices[0].run("UPDATE t SET c = 'first'; INSERT INTO k VALUES ('new', 1)")
      try devices[1].run("UPDATE t SET a = 'second'; UPDATE l SET v = 7")
      try converge(devices, "SELECT DISTINCT a, c FROM t", ["second|first"])
      try converge(devices, "SELECT l.v, k.x FROM l, k", ["7|1"])
    }
  }

  @Test func anExcludedColumnStaysHereUnderItsNewName() throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["t": ["b"]]
    let devices = try scratch.devices(2, Self.schema, configuration: configuration)
    try devices[0].run(
      "ALTER TABLE t RENAME COLUMN b TO secret; UPDATE t SET secret = 's', a = 'z'")
    #expect(try devices[0].changes().flatMap(\.columns) == ["a"])
    try devices[0].run("ALTER TABLE t RENAME COLUMN secret TO s2; UPDATE t SET s2 = 't'")
    #expect(try devices[0].sealsNothing())
    try converge(devices)
  }

  /// The trigger that knows the new name goes with the table.
  @Test(arguments: [true, false])
  func anExcludedColumnThatWasRenamedStaysHereWhereItsTableIsMadeAgain(isOpen: Bool) throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["t": ["b"]]
    var devices = try scratch.devices(2, Self.schema, configuration: configuration)
    try devices[0].run("ALTER TABLE t RENAME COLUMN b TO secret; UPDATE t SET a = 'z'")
    try converge(devices)
    devices[0] = try devices[0].changed(isOpen: isOpen) {
      try $0.run(
        """
        PRAGMA foreign_keys = OFF; BEGIN;
        CREATE TABLE new_t (id INTEGER PRIMARY KEY, a, secret DEFAULT 'd');
        INSERT INTO new_t SELECT id, a, secret FROM t;
        DROP TABLE t; ALTER TABLE new_t RENAME TO t; COMMIT; PRAGMA foreign_keys = ON;
        UPDATE t SET secret = 's';
        """)
    }
    try devices[0].run("UPDATE t SET secret = 's2'")
    try converge(devices)
    #expect(try devices[0].changes().flatMap(\.columns).contains("secret") == false)
    #expect(try devices[1].store.status().unknownNames == [])
    #expect(try devices[0].rows("SELECT a, secret FROM t") == ["z|s2", "z|s2"])
  }

  // MARK: - Dropping

  @Test(arguments: [true, false])
  func aDroppedColumnStaysWithTheOthers(isOpen: Bool) throws {
    var devices = try scratch.devices(2, Self.schema)
    try devices[0].run("UPDATE t SET a = 'edited', b = 'too' WHERE id = 1")
    devices[0] = try devices[0].changed(isOpen: isOpen) { try Self.dropColumn($0) }
    try devices[1].run("UPDATE t SET b = 'kept' WHERE id = 2; UPDATE k SET v = 12")
    try exchange(devices)
    #expect(try devices[0].rows("SELECT * FROM t ORDER BY id") == ["1|edited", "2|b"])
    #expect(try devices[1].rows("SELECT a, b FROM t ORDER BY id") == ["edited|x", "b|kept"])
    #expect(try devices[0].store.status().unknownNames == ["t.b"])
    try devices[0].run("UPDATE t SET a = 'late' WHERE id = 2; INSERT INTO t VALUES (3, 'c')")
    try exchange(devices)
    #expect(
      try devices[1].rows("SELECT a, b FROM t ORDER BY id") == ["edited|x", "late|kept", "c|d"])
    try Self.dropColumn(devices[1])
    try converge(devices, "SELECT a FROM t ORDER BY id", ["edited", "late", "c"])
  }

  @Test func aDroppedTableStaysWithTheOthers() throws {
    let devices = try scratch.devices(3, Self.schema)
    try devices[0].run("DROP TABLE k")
    #expect(try devices[0].sealsNothing())
    try devices[1].run("INSERT INTO k VALUES ('two', 2, 0); INSERT INTO t VALUES (3, 'c', 'z')")
    try exchange(devices)
    #expect(try devices[2].rows("SELECT k FROM k ORDER BY k") == ["one", "two"])
    #expect(try devices[0].store.status().unknownNames == ["k"])
    for device in devices[1...] { try device.run("DROP TABLE k") }
    try converge(devices, "SELECT a FROM t ORDER BY id", ["a", "b", "c"])
  }

  @Test func whatComesBackAfterItWasDroppedIsReported() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run("DROP TABLE k")
    try devices[1].run("INSERT INTO k VALUES ('two', 2, 0)")
    try exchange(devices)
    try devices[0].run("CREATE TABLE k (k TEXT PRIMARY KEY, t INTEGER REFERENCES t, v)")
    try exchange(devices)
    #expect(try devices[0].rows("SELECT k FROM k") == ["two"])
    #expect(try devices[0].store.status().incompleteNames == ["k"])
    #expect(try devices[1].store.status().incompleteNames == [])
  }

  @Test func aTableOfTheSameNameWithAnotherKeyIsAnotherTable() throws {
    let devices = try scratch.devices(2, Self.schema)
    let migration = """
      DROP TABLE k; CREATE TABLE k (id INTEGER PRIMARY KEY, name TEXT);
      INSERT INTO k VALUES (1, 'made')
      """
    try devices[0].run(migration)
    try devices[1].run("UPDATE k SET v = 99")
    try exchange(devices)
    #expect(try devices[0].rows("SELECT * FROM k") == ["1|made"])
    #expect(try devices[1].rows("SELECT * FROM k") == ["one|1|99"])
    try devices[1].run(migration)
    try devices[0].run("INSERT INTO k (name) VALUES ('more')")
    try converge(devices, "SELECT name FROM k ORDER BY name", ["made", "more"])
    // No rows of this table are missing.
    for device in devices { #expect(try device.store.status().incompleteNames == []) }
  }

  /// A row that waits for a parent is found when that comes, whatever the parent's key is called.
  @Test(arguments: [true, false])
  func rowsThatWaitAreFoundByAKeyThatHasAnotherName(isOpen: Bool) throws {
    var devices = try scratch.devices(
      2,
      """
      CREATE TABLE folder (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE note (id INTEGER PRIMARY KEY, folder INTEGER REFERENCES folder);
      """)
    try devices[0].run("PRAGMA foreign_keys = OFF; INSERT INTO note VALUES (1, 4)")
    try converge(devices, "SELECT count(*) FROM note", ["0"])
    for index in devices.indices {
      devices[index] = try devices[index].changed(isOpen: isOpen) {
        try $0.run("ALTER TABLE folder RENAME COLUMN id TO number")
      }
      #expect(try devices[index].store.status().parked.count == 1)
      #expect(try LocalStore.verify(at: devices[index].path).report.findings == [])
    }
    try converge(devices, "SELECT count(*) FROM note", ["0"])
  }

  // MARK: - Made again

  @Test(arguments: [true, false])
  func whatWasEditedWhileATableHadNoTriggersIsSent(isOpen: Bool) throws {
    var devices = try scratch.devices(2, Self.schema)
    try devices[0].run("INSERT INTO k VALUES ('gone', 1, 1); UPDATE t SET b = 'seen' WHERE id = 1")
    devices[0] = try devices[0].changed(isOpen: isOpen) {
      try $0.run(
        """
        PRAGMA foreign_keys = OFF; BEGIN;
        CREATE TABLE new_t (id INTEGER PRIMARY KEY, b, a NOT NULL);
        INSERT INTO new_t SELECT id, b, upper(a) FROM t;
        DROP TABLE t; ALTER TABLE new_t RENAME TO t; COMMIT;
        INSERT INTO t VALUES (3, 'unseen', 'n'); UPDATE t SET b = 'unseen too' WHERE id = 2;
        """)
    }
    try devices[1].run("UPDATE t SET b = 'concurrent' WHERE id = 1")
    try converge(devices)
    #expect(
      try devices[1].rows("SELECT a, b FROM t ORDER BY id") == [
        "A|concurrent", "B|unseen too", "n|unseen",
      ])
  }
}
