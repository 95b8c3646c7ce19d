import SyncModel
import Testing

@testable import SyncStore

/// Changes of the schema by another program, and other work on the file.
@Suite struct SchemaChangeTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'a'), (2, 'b');
    """

  /// A device without the reference erases the row that another one refers to.
  @Test(arguments: ["INSERT", "REPLACE"])
  func aRowWhoseParentWasErasedHoldsNoUniqueValue(verb: String) throws {
    var devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT UNIQUE); INSERT INTO t VALUES (6, '')
      """)
    devices[1] = try devices[1].changed(isOpen: true) {
      try $0.run("ALTER TABLE t ADD COLUMN up INTEGER REFERENCES t ON DELETE CASCADE")
    }
    try devices[1].run("\(verb) INTO t (id, a, up) VALUES (5, 'x', 6)")
    try devices[0].run("DELETE FROM t")
    try exchange(devices)
    #expect(try devices[1].store.status().parked.map(\.reason) == [.parentDeleted])
    #expect(try LocalStore.verify(at: devices[1].path).report.findings == [])
    // It is decided once more, with a row that wants the value.
    try devices[1].run("INSERT INTO t (id, a) VALUES (7, 'x')")
    try devices[0].run("UPDATE t SET a = 'y' WHERE a = 'x'")
    _ = try devices[1].store.seal()
    #expect(try devices[1].rows("SELECT a FROM t") == ["x"])
    try exchange(devices)
    #expect(try devices[1].rows("SELECT a FROM t") == ["x"])
    #expect(try devices[0].rows("SELECT a FROM t ORDER BY 1") == ["x", "y"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  /// Neither side has seen the other's value, and no time is known for them. What loses is in the journal.
  @Test(arguments: 1...4)
  func aValueThatLosesAgainstAStoredOneIsInTheJournal(number: Int) throws {
    var devices = try scratch.devices(2, Self.schema)
    let migration = "ALTER TABLE t ADD COLUMN n TEXT DEFAULT 'none'"
    devices[1] = try devices[1].changed(isOpen: true) {
      try $0.run(migration)
      try $0.run("UPDATE t SET n = 'theirs' WHERE id = 1")
    }
    try exchange(devices)
    devices[0] = try devices[0].changed(isOpen: true) {
      try $0.run(migration)
      try $0.run("UPDATE t SET n = 'mine'")
    }
    try exchange(devices)
    let shown = try devices[0].rows("SELECT n FROM t WHERE id = 1")
    #expect(try devices[1].rows("SELECT n FROM t WHERE id = 1") == shown)
    #expect(try devices[0].rows("SELECT n FROM t WHERE id = 2") == ["mine"])
    let conflicts = try devices[0].store.conflicts()
    #expect(conflicts.count == 1)
    #expect(conflicts.first?.local.cells?.map(\.value) == [.text(Array("mine".utf8))])
    #expect(conflicts.first?.remote.cells?.map(\.value) == [.text(Array("theirs".utf8))])
    #expect(conflicts.first?.outcome == (shown == ["mine"] ? .local : .remote))
  }

  @Test(arguments: [true, false])
  func aNewColumnIsNoticed(isOpen: Bool) throws {
    var devices = try scratch.devices(2, Self.schema)
    try devices[0].run("UPDATE t SET a = 'before' WHERE id = 1")
    let migration = """
      ALTER TABLE t ADD COLUMN n INTEGER DEFAULT '5'; ALTER TABLE t ADD COLUMN s TEXT;
      """
    // Written before there are triggers that know the columns.
    let edits = [
      "UPDATE t SET n = 6 WHERE id = 1; INSERT INTO t (a, s) VALUES ('c', 'new')",
      "UPDATE t SET s = 'set' WHERE id = 2",
    ]
    devices = try zip(devices, edits).map { device, edit in
      try device.changed(isOpen: isOpen) { try $0.run(migration + edit) }
    }
    let changes = try devices[0].changes()
    #expect(changes.map(\.letters) == ["ui"], "rows with the default have nothing to say")
    let expected = ["before|6|NULL", "b|5|set", "c|5|new"]
    try converge(devices, "SELECT a, n, s FROM t ORDER BY id", expected)
    try devices[1].run("UPDATE t SET n = 7, s = 'later' WHERE id = 1")
    try converge(
      devices, "SELECT a, n, s FROM t ORDER BY id", ["before|7|later", "b|5|set", "c|5|new"])
  }

  @Test func whatAMigrationFillsInIsWorthLessThanAnEdit() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run("ALTER TABLE t ADD COLUMN n; UPDATE t SET n = 'filled'")
    _ = try devices[0].store.seal()
    try devices[0].run("UPDATE t SET n = 'edited' WHERE id = 1")
    _ = try devices[0].store.seal()
    // The other device migrates after the edit was made.
    try devices[1].run("ALTER TABLE t ADD COLUMN n; UPDATE t SET n = 'filled'")
    try converge(devices, "SELECT n FROM t ORDER BY id", ["edited", "filled"])
  }

  @Test(arguments: [true, false])
  func aNewTableIsNoticedWithTheRowsInIt(isOpen: Bool) throws {
    var devices = try scratch.devices(2, Self.schema)
    let migration = """
      CREATE TABLE kind (id INTEGER PRIMARY KEY, name TEXT UNIQUE, t INTEGER REFERENCES t);
      CREATE TABLE setting (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
      INSERT INTO kind VALUES (1, 'work', NULL), (2, 'home', 1);
      INSERT INTO setting VALUES ('colour', 'red');
      """
    let edits = [
      "INSERT INTO kind VALUES (3, 'left', 1); UPDATE setting SET v = 'blue'",
      "INSERT INTO kind VALUES (3, 'right', 2)",
    ]
    devices = try zip(devices, edits).map { device, edit in
      try device.changed(isOpen: isOpen) { try $0.run(migration + edit) }
    }
    try exchange(devices)
    // What both made alike is one row, and each one's own arrives.
    try converge(
      devices, "SELECT name FROM kind ORDER BY name", ["home", "left", "right", "work"])
    #expect(try devices.map { try $0.store.status().parked.count } == [0, 0])
    try devices[1].run("UPDATE kind SET name = 'office' WHERE name = 'work'")
    try devices[1].run("DELETE FROM kind WHERE name = 'left'; UPDATE setting SET v = 'green'")
    try converge(
      devices, "SELECT name FROM kind ORDER BY name", ["home", "office", "right"])
    #expect(try devices[0].rows("SELECT v FROM setting") == ["green"])
  }

  /// A device without the migration does not know to which table an identity
  /// belongs, and so not which number to show.
  @Test func numbersBecomeReferencesWhereTheMigrationHasCome() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE item (id INTEGER PRIMARY KEY, a INTEGER, next INTEGER);
      INSERT INTO item VALUES (1, 1, NULL), (2, 2, 1);
      """)
    let migration = """
      PRAGMA foreign_keys = OFF; BEGIN;
      CREATE TABLE new_item (id INTEGER PRIMARY KEY, a INTEGER, next INTEGER REFERENCES item);
      INSERT INTO new_item SELECT * FROM item; DROP TABLE item;
      ALTER TABLE new_item RENAME TO item; COMMIT;
      """
    try devices[0].run(migration)
    try devices[0].run(
      "UPDATE item SET next = 2 WHERE id = 1; INSERT INTO item VALUES (3, 3, 1)")
    try exchange(devices)
    let numbers = "SELECT id, a, next FROM item ORDER BY id"
    #expect(try devices[1].rows(numbers) == ["1|1|NULL", "2|2|1", "3|3|NULL"])
    try devices[1].run("UPDATE item SET a = 20 WHERE id = 2")
    // Another change of the schema does not tell what the numbers are.
    try devices[1].run("ALTER TABLE item ADD COLUMN note TEXT")
    try exchange(devices)
    #expect(try devices[1].rows(numbers) == ["1|1|NULL", "2|20|1", "3|3|NULL"])
    try devices[0].run("ALTER TABLE item ADD COLUMN note TEXT")
    try devices[1].run(
      migration.replacing("item);", with: "item, note TEXT);", maxReplacements: 1))
    try converge(devices, numbers, ["1|1|2", "2|20|1", "3|3|1"])
  }

  /// What was deleted before its table was referred to by a key that holds its rows is known to all
  /// as it was captured: without its cells.
  @Test(arguments: ["CASCADE", "RESTRICT", "SET NULL"])
  func aNewColumnRefersToATableOfWhichRowsWereDeleted(action: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE shelf (id INTEGER PRIMARY KEY, room TEXT);
      CREATE TABLE book (title TEXT PRIMARY KEY);
      INSERT INTO shelf VALUES (1, 'hall'), (2, 'attic'); INSERT INTO book VALUES ('one');
      """)
    let migration = "ALTER TABLE book ADD COLUMN shelf INTEGER REFERENCES shelf ON DELETE \(action)"
    try devices[0].run("DELETE FROM shelf WHERE id = 1; \(migration)")
    try exchange(devices)
    try devices[1].run(migration)
    try converge(devices, "SELECT room FROM shelf", ["attic"])
  }

  /// So it is where the log has recorded their cells once, since a policy asked for them, and does
  /// not any more.
  @Test func aNewColumnRefersToATableThatHadAPolicyOnce() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE shelf (id INTEGER PRIMARY KEY, room TEXT);
      CREATE TABLE book (title TEXT PRIMARY KEY);
      INSERT INTO shelf VALUES (1, 'hall'), (2, 'attic'); INSERT INTO book VALUES ('one');
      """)
    try devices[0].store.setPolicies { $0.document = .ask }
    try devices[0].store.setPolicies { $0.document = .latestWins }
    let migration = "ALTER TABLE book ADD COLUMN shelf INTEGER REFERENCES shelf ON DELETE CASCADE"
    try devices[0].run("DELETE FROM shelf WHERE id = 1; \(migration)")
    try exchange(devices)
    try devices[1].run(migration)
    // `converge` compares what each device knows of deleted rows, too.
    try converge(devices, "SELECT room FROM shelf", ["attic"])
  }

  /// Where a row lives on whose key was changed is known also where the column that refers to it
  /// comes later.
  @Test func aNewColumnRefersToARowWhoseKeyWasChanged() throws {
    let devices = try scratch.devices(
      3,
      """
      CREATE TABLE shelf (id INTEGER PRIMARY KEY, room TEXT);
      CREATE TABLE book (title TEXT PRIMARY KEY);
      INSERT INTO shelf VALUES (2, 'hall'); INSERT INTO book VALUES ('one');
      """)
    let migration =
      "ALTER TABLE book ADD COLUMN shelf INTEGER REFERENCES shelf ON DELETE SET NULL ON UPDATE CASCADE"
    for device in devices.dropFirst() {
      try device.run(migration)
      _ = try device.store.status()
    }
    try devices[2].run("UPDATE book SET shelf = 2")
    try devices[1].run("UPDATE shelf SET id = 3")
    try exchange(devices)
    try devices[0].run(migration)
    try converge(devices, "SELECT title, room FROM book JOIN shelf ON id = shelf", ["one|hall"])
  }

  @Test func whatIsUnknownIsKeptUntilTheAppHasMigrated() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run("ALTER TABLE t ADD COLUMN n; UPDATE t SET n = 1")
    let report = try devices[1].receive(from: devices[0])
    #expect(report.applied.count == 1 && report.waiting == [])
    #expect(report.unknownNames == ["t.n"])
    #expect(try devices[1].store.status().unknownNames == ["t.n"])
    try devices[1].run("ALTER TABLE t ADD COLUMN n; UPDATE t SET a = 'c' WHERE id = 2")
    try converge(devices, "SELECT * FROM t ORDER BY id", ["1|a|1", "2|c|1"])
  }

  @Test func aTableThatIsMadeAgainIsCapturedAgain() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run("UPDATE t SET a = 'x' WHERE id = 1")
    // The procedure of <https://www.sqlite.org/lang_altertable.html>.
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF; BEGIN;
      CREATE TABLE new_t (id INTEGER PRIMARY KEY, a NOT NULL DEFAULT 0);
      INSERT INTO new_t SELECT * FROM t; DROP TABLE t; ALTER TABLE new_t RENAME TO t; COMMIT;
      """)
    _ = try devices[0].store.seal()
    try devices[0].run("UPDATE t SET a = 'y' WHERE id = 2; INSERT INTO t VALUES (3, 'z')")
    try converge(devices, "SELECT * FROM t ORDER BY id", ["1|x", "2|y", "3|z"])
  }

  @Test func aNewUniqueIndexIsFollowed() throws {
    let devices = try scratch.devices(2, Self.schema)
    for device in devices { try device.run("CREATE UNIQUE INDEX i ON t (a)") }
    _ = try devices[0].store.seal()
    _ = try devices[0].store.status()
    try devices[0].run("REPLACE INTO t (a) VALUES ('b')")
    try converge(devices, "SELECT a FROM t ORDER BY a", ["a", "b"])
    try devices[1].run("DROP INDEX i; INSERT INTO t (a) VALUES ('q')")
    try devices[0].run("DROP INDEX i")
    try converge(devices, "SELECT a FROM t ORDER BY a", ["a", "b", "q"])
  }

  /// The cells of deleted rows are kept where others refer to them, and have the defaults of what
  /// is added: these are worked out while rows are read.
  @Test func columnsWithDefaultsAreAddedAfterADeletion() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (k TEXT, l INTEGER, a TEXT, p TEXT, q INTEGER, PRIMARY KEY (k, l),
        FOREIGN KEY (p, q) REFERENCES t ON DELETE RESTRICT)
      """)
    try devices[0].run("INSERT INTO t (k, l, a, q) VALUES ('k', 1, 'a', 6)")
    try converge(devices)
    try devices[0].run("DELETE FROM t")
    for device in devices {
      try device.run(
        "ALTER TABLE t ADD COLUMN x REAL DEFAULT 2.0; ALTER TABLE t ADD COLUMN y REAL DEFAULT 1.0")
    }
    try converge(devices, "SELECT count(*) FROM t", ["0"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  /// Who deletes a row of which all is its key keeps nothing of it, and others may have the default
  /// of a column that is new.
  @Test(arguments: ["new", "later"])
  func aColumnIsAddedToATableOfKeysAfterADeletion(_ added: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE tag (name TEXT PRIMARY KEY);
      CREATE TABLE note (id INTEGER PRIMARY KEY, tag TEXT REFERENCES tag);
      INSERT INTO tag VALUES ('red'), ('blue');
      """)
    try devices[0].run("DELETE FROM tag WHERE name = 'red'")
    try devices[1].run("ALTER TABLE tag ADD COLUMN tone TEXT NOT NULL DEFAULT 'new'")
    _ = try devices[1].receive(from: devices[0])
    try devices[0].run("ALTER TABLE tag ADD COLUMN tone TEXT NOT NULL DEFAULT 'new'")
    try converge(devices, "SELECT * FROM tag", ["blue|new"])
    // It lives again, with what is said of it.
    try devices[0].run("INSERT INTO tag VALUES ('red', '\(added)')")
    try converge(devices, "SELECT * FROM tag ORDER BY name", ["blue|new", "red|\(added)"])
  }

  @Test func aVacuumKeepsPendingEditsWithTheirRows() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE k (k TEXT PRIMARY KEY, v); CREATE TABLE c (a, b, v, PRIMARY KEY (a, b));
      INSERT INTO k VALUES ('a', 1), ('b', 2), ('c', 3), ('d', 4);
      INSERT INTO c VALUES (1, 1, 1), (2, 2, 2);
      """ + Self.schema)
    try devices[0].run("DELETE FROM k WHERE k IN ('a', 'c'); UPDATE k SET v = 'x' WHERE k = 'd'")
    try devices[0].run(
      "DELETE FROM c WHERE a = 1; UPDATE c SET b = 5; INSERT INTO t (a) VALUES ('c')")
    try devices[0].run("VACUUM; UPDATE t SET a = 'd' WHERE id = 2; VACUUM")
    try converge(devices, "SELECT * FROM k ORDER BY k", ["b|2", "d|x"])
    try converge(
      devices, "SELECT c.*, t.* FROM c, t ORDER BY id", ["2|5|2|1|a", "2|5|2|2|d", "2|5|2|3|c"])
  }

  /// SQLite stores the number.
  @Test func aNumberBetweenDoubleQuotesIsTheDefaultOfItsColumn() throws {
    let devices = try scratch.devices(
      2, "CREATE TABLE t (id TEXT PRIMARY KEY, a); INSERT INTO t VALUES ('x', 1), ('y', 2);")
    let migration = """
      ALTER TABLE t ADD COLUMN n INTEGER NOT NULL DEFAULT "0"; ALTER TABLE t ADD COLUMN r REAL DEFAULT "1"
      """
    try converge(devices)
    for device in devices {
      try device.run(migration)
      #expect(try device.outgoing().allSatisfy { $0.changeSet.tables.isEmpty })
    }
    try converge(devices, "SELECT n, r, typeof(n) FROM t", ["0|1.0|integer", "0|1.0|integer"])
  }
}
