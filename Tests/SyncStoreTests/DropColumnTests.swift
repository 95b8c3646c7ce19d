import SyncModel
import Testing

@testable import SyncStore

/// Columns that a program drops by ALTER while docsync does not run.
@Suite struct DropColumnTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE t (id INTEGER PRIMARY KEY, a, b DEFAULT 'd', c INTEGER DEFAULT 0);
    INSERT INTO t VALUES (1, 'a', 'x', 1), (2, 'b', 'y', 2);
    CREATE TABLE k (k TEXT PRIMARY KEY, t INTEGER REFERENCES t ON DELETE CASCADE, v, w);
    INSERT INTO k VALUES ('one', 1, 10, 'w');
    """

  @Test(arguments: ["wal", "delete"], [true, false])
  func editsAfterTheDropAreCaptured(mode: String, isOpen: Bool) throws {
    var devices = try scratch.devices(2, Self.schema)
    try devices[0].run("PRAGMA journal_mode = \(mode); UPDATE t SET a = 'p', b = 'q' WHERE id = 1")
    devices[0] = try devices[0].changed(isOpen: isOpen) {
      try $0.run(
        """
        ALTER TABLE t DROP COLUMN b; UPDATE t SET a = 'r', c = 7 WHERE id = 2;
        INSERT INTO t VALUES (3, 's', 3); INSERT INTO k VALUES ('two', 3, 1, 2);
        ALTER TABLE k DROP COLUMN v; UPDATE k SET w = 'x' WHERE k = 'one';
        """)
    }
    try devices[1].run("UPDATE t SET b = 'kept' WHERE id = 2")
    try exchange(devices)
    let rows = ["1|p|1", "2|r|7", "3|s|3"]
    for device in devices {
      #expect(try device.rows("SELECT id, a, c FROM t ORDER BY id") == rows)
      #expect(try device.rows("SELECT k, t, w FROM k ORDER BY k") == ["one|1|x", "two|3|2"])
    }
    #expect(try devices[1].rows("SELECT b FROM t ORDER BY id") == ["x", "kept", "d"])
    #expect(try devices[0].store.remadeTables().isEmpty)
  }

  @Test func aDeletionAfterTheDropIsCaptured() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run("ALTER TABLE t DROP COLUMN c; DELETE FROM t WHERE id = 1")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT id FROM t") == ["2"])
    #expect(try devices[1].rows("SELECT k FROM k") == [])
  }

  @Test func aCounterIsCapturedBesideADroppedColumn() throws {
    var configuration = StoreConfiguration()
    configuration.columnMergeTypes = ["t": ["c": .counter]]
    let devices = try scratch.devices(2, Self.schema, configuration: configuration)
    try devices[0].run("ALTER TABLE t DROP COLUMN b; UPDATE t SET c = c + 5 WHERE id = 1")
    try devices[1].run("UPDATE t SET c = c + 2 WHERE id = 1")
    try exchange(devices)
    for device in devices { #expect(try device.rows("SELECT c FROM t WHERE id = 1") == ["8"]) }
    try devices[0].run("ALTER TABLE t DROP COLUMN c; UPDATE t SET a = 'later' WHERE id = 1")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT a, c FROM t WHERE id = 1") == ["later|8"])
  }

  @Test func columnsOfAWideTableAreDropped() throws {
    let names = (0..<130).map { "c\($0)" }
    let schema =
      "CREATE TABLE wide (id TEXT PRIMARY KEY, \(names.joined(separator: ", "))); "
      + "INSERT INTO wide (id, c0) VALUES ('r', 1)"
    let devices = try scratch.devices(2, schema)
    try devices[0].run(
      "ALTER TABLE wide DROP COLUMN c3; ALTER TABLE wide DROP COLUMN c70; "
        + "UPDATE wide SET c2 = 2, c69 = 69, c129 = 129")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT c0, c2, c69, c129 FROM wide") == ["1|2|69|129"])
  }

  /// SQLite refuses to drop a column that an index names, so a migration drops the index first.
  @Test(arguments: ["", "WITHOUT ROWID"])
  func aColumnOfADroppedUniqueIndexIsDropped(form: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (id TEXT PRIMARY KEY, a, b COLLATE NOCASE, c UNIQUE) \(form);
      CREATE UNIQUE INDEX both ON t (a, b);
      INSERT INTO t VALUES ('r', 1, 'x', 1), ('s', 2, 'y', 2), ('u', 3, 'z', 3);
      """)
    try devices[0].run(
      "REPLACE INTO t VALUES ('v', 1, 'X', 4); UPDATE OR REPLACE t SET a = 3, b = 'z' WHERE id = 's'"
    )
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT id, a, b, c FROM t ORDER BY id") == ["s|3|z|2", "v|1|X|4"])
    }
    try devices[0].run(
      """
      DROP INDEX both; ALTER TABLE t DROP COLUMN b; REPLACE INTO t VALUES ('w', 1, 4);
      UPDATE t SET a = 5 WHERE id = 's'; ALTER TABLE t DROP COLUMN a; UPDATE t SET c = 7 WHERE id = 's';
      """)
    try exchange(devices)
    let rows = try devices[1].rows("SELECT id, a, b, c FROM t ORDER BY id")
    #expect(rows == ["s|3|z|7", "w|NULL|NULL|4"])
  }

  /// The log of such a table has the values before an update.
  @Test func bothVersionsOfARowAreKeptBesideADroppedColumn() throws {
    var configuration = StoreConfiguration()
    configuration.tableMergeTypes = ["t": .keepBoth]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, c);
      INSERT INTO t VALUES (1, 'a', 'b', 'c');
      """, configuration: configuration)
    try devices[0].run("ALTER TABLE t DROP COLUMN b; UPDATE t SET a = 'mine'")
    try devices[1].run("UPDATE t SET a = 'yours'")
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT a, c FROM t ORDER BY a") == ["mine|c", "yours|c"])
    }
  }

  /// Columns at the end that come back with another definition are other columns.
  @Test(arguments: [
    "ALTER TABLE k DROP COLUMN w; ALTER TABLE k ADD COLUMN w TEXT DEFAULT 'other'",
    "ALTER TABLE k DROP COLUMN w; ALTER TABLE k ADD COLUMN w DEFAULT 'other'",
  ])
  func aTableCountsAsMadeAgainIfAColumnComesBackInAnotherForm(migration: String) throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run(migration)
    #expect(try devices[0].store.remadeTables().map(\.name) == ["k"])
    try exchange(devices)
    for device in devices { #expect(try device.rows("SELECT w FROM k") == ["other"]) }
  }

  @Test func aTableCountsAsMadeAgainIfAColumnGetsTheNameOfADroppedExcludedOne() throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["k": ["w"]]
    let devices = try scratch.devices(1, Self.schema, configuration: configuration)
    try devices[0].run("ALTER TABLE k DROP COLUMN w; ALTER TABLE k RENAME COLUMN v TO w")
    #expect(try devices[0].store.remadeTables().map(\.name) == ["k"])
  }

  @Test func aTableCountsAsMadeAgainIfAColumnComesBackWithAnotherCollation() throws {
    let devices = try scratch.devices(1, Self.schema)
    try devices[0].run(
      "ALTER TABLE t DROP COLUMN c; ALTER TABLE t ADD COLUMN c INTEGER COLLATE NOCASE DEFAULT 0")
    #expect(try devices[0].store.remadeTables().map(\.name) == ["t"])
  }

  /// The triggers on the table show that it is not the excluded one under another name.
  @Test func aTableThatCountsAsMadeAgainIsNotTakenForAnExcludedOne() throws {
    var configuration = StoreConfiguration()
    configuration.excludedTables = ["cache"]
    let devices = try scratch.devices(
      2, Self.schema + "CREATE TABLE cache (id INTEGER PRIMARY KEY)", configuration: configuration)
    try devices[0].run(
      "DROP TABLE cache; ALTER TABLE k DROP COLUMN v; ALTER TABLE k ADD COLUMN v DEFAULT 7")
    try exchange(devices)
    for device in devices { #expect(try device.rows("SELECT v FROM k") == ["7"]) }
  }

  @Test func anUpdateThatChangesNothingIsNoEdit() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run("UPDATE t SET a = a, c = c; UPDATE k SET v = v")
    #expect(try devices[0].sealsNothing())
  }

  /// The column has the name of a dropped one, so that its triggers do not tell the two apart.
  @Test func aTableCountsAsMadeAgainIfAColumnGetsTheNameOfADroppedOne() throws {
    let devices = try scratch.devices(1, Self.schema)
    try devices[0].run("ALTER TABLE t DROP COLUMN a; ALTER TABLE t RENAME COLUMN b TO a")
    #expect(try devices[0].store.remadeTables().map(\.name) == ["t"])
    try devices[0].run("ALTER TABLE k DROP COLUMN v; ALTER TABLE k ADD COLUMN v")
    #expect(try devices[0].store.remadeTables().map(\.name).sorted() == ["k", "t"])
  }

  /// The triggers take one column for two, until docsync compares the table.
  @Test(arguments: ["RENAME COLUMN b TO a", "ADD COLUMN a"])
  func editsOfATableThatCountsAsMadeAgainAreSent(change: String) throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run(
      """
      ALTER TABLE t DROP COLUMN a; ALTER TABLE t \(change); UPDATE t SET a = 'new' WHERE id = 1;
      DELETE FROM t WHERE id = 2; INSERT INTO t (id, a, c) VALUES (3, 's', 3);
      """)
    try devices[1].run("UPDATE t SET c = 5 WHERE id = 1")
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT id, a, c FROM t ORDER BY id") == ["1|new|5", "3|s|3"])
    }
    #expect(try devices[1].rows("SELECT b FROM t ORDER BY id") == ["x", "d"])
    for device in devices { try device.checkIntegrity() }
  }

  /// A trigger of an earlier build names the columns in another form.
  @Test func namesOfAnEarlierBuildAreRead() throws {
    let devices = try scratch.devices(1, Self.schema)
    let id = try devices[0].rows("SELECT id FROM docsync_table WHERE name = 'k'")[0]
    try devices[0].run(
      """
      DROP TRIGGER docsync_\(id)_nm;
      CREATE TRIGGER docsync_\(id)_nm AFTER DELETE ON k WHEN 0
        BEGIN SELECT 'columns', OLD.k, OLD.t, OLD.v, OLD.w, 'excluded'; END;
      ALTER TABLE k RENAME COLUMN w TO of; UPDATE k SET of = 'y';
      """)
    let names = try devices[0].changes().flatMap(\.columns)
    #expect(names == ["t", "v", "w"])
  }

  /// An earlier build reads the names in the form of its own trigger.
  @Test func anEarlierBuildCanReadTheNames() throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["k": ["w"]]
    let devices = try scratch.devices(1, Self.schema, configuration: configuration)
    try devices[0].run(
      "ALTER TABLE k DROP COLUMN t; ALTER TABLE k RENAME COLUMN v TO x; "
        + "ALTER TABLE k RENAME COLUMN w TO y")
    let sql = try devices[0].rows(
      "SELECT substr(sql, instr(sql, char(39) || 'columns')) FROM sqlite_schema "
        + "WHERE name GLOB 'docsync_*_nm' AND tbl_name = 'k'")[0]
    let names = "'columns', OLD.\"k\", OLD.\"t\", OLD.\"x\", 'excluded', OLD.\"y\")"
    #expect(sql.hasPrefix(names), "\(sql)")
  }

  @Test func deletedRowsOfAWideReferredTableKeepTheirCells() throws {
    let names = (0..<95).map { "c\($0)" }
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE wide (id INTEGER PRIMARY KEY, code, \(names.joined(separator: ", ")));
      CREATE UNIQUE INDEX byCode ON wide (code);
      CREATE TABLE child (id TEXT PRIMARY KEY, wide INTEGER REFERENCES wide);
      INSERT INTO wide (id, code, c0, c94) VALUES (1, 'x', 'first', 'last');
      """)
    try devices[0].run(
      "ALTER TABLE wide DROP COLUMN c70; REPLACE INTO wide (id, code) VALUES (9, 'x'); "
        + "DELETE FROM wide WHERE id = 9")
    try devices[1].run("INSERT INTO child VALUES ('c', 1)")
    try exchange(devices)
    for device in devices {
      let rows = "SELECT child.id, code, c0, c94 FROM child JOIN wide ON wide.id = child.wide"
      #expect(try device.rows(rows) == ["c|x|first|last"])
    }
  }

  /// SQLite limits the conditions of a join, so hints of a table of many columns name these.
  @Test func hintsOfATableOfManyColumnsNameThem() throws {
    let names = (0..<1_100).map { "c\($0)" }
    let devices = try scratch.devices(
      1,
      """
      CREATE TABLE wide (id INTEGER PRIMARY KEY, code, \(names.joined(separator: ", ")));
      CREATE UNIQUE INDEX byCode ON wide (code);
      CREATE TABLE child (id TEXT PRIMARY KEY, wide INTEGER REFERENCES wide);
      INSERT INTO wide (id, code, c0, c1099) VALUES (1, 'x', 'first', 'last');
      """)
    try devices[0].run(
      "INSERT INTO wide (id, code) VALUES (8, 'y'); REPLACE INTO wide (id, code) VALUES (9, 'x')")
    let id = try devices[0].rows("SELECT id FROM docsync_table WHERE name = 'wide'")[0]
    #expect(
      try devices[0].rows("SELECT op, k0, o1, o1100 FROM docsync_log_\(id) ORDER BY seq")
        == ["0|8|NULL|NULL", "3|1|first|last", "0|9|NULL|NULL"])
  }

  @Test func aColumnOfATableOfManyColumnsIsNotDroppedIfHintsNameIt() throws {
    let names = (0..<110).map { "c\($0)" }.joined(separator: ", ")
    let devices = try scratch.devices(
      1,
      """
      CREATE TABLE wide (id INTEGER PRIMARY KEY, \(names)); CREATE UNIQUE INDEX i ON wide (c0);
      CREATE TABLE child (id TEXT PRIMARY KEY, wide INTEGER REFERENCES wide);
      """)
    let refusal = #expect(throws: (any Error).self) {
      try devices[0].run("ALTER TABLE wide DROP COLUMN c70")
    }
    #expect("\(refusal, default: "none")".contains("error in trigger docsync_"))
  }

  @Test func aColumnOfATableOfManyColumnsIsDroppedIfNoHintNamesIt() throws {
    let names = (0..<300).map { "c\($0)" }
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE wide (id INTEGER PRIMARY KEY, \(names.joined(separator: ", ")));
      CREATE TABLE child (id TEXT PRIMARY KEY, wide INTEGER REFERENCES wide);
      """)
    try devices[0].run("INSERT INTO wide (id, c0, c299) VALUES (1, 'first', 'last')")
    try exchange(devices)
    try devices[0].run("ALTER TABLE wide DROP COLUMN c70; DELETE FROM wide")
    try devices[1].run("INSERT INTO child SELECT 'c', id FROM wide")
    try exchange(devices)
    for device in devices {
      let rows = "SELECT child.id, c0, c299 FROM child JOIN wide ON wide.id = child.wide"
      #expect(try device.rows(rows) == ["c|first|last"])
    }
  }

  /// One statement logs all hints of an edit, and some of them lead to the same row.
  @Test(arguments: ["INTEGER", "TEXT"], ["", "WITHOUT ROWID"])
  func hintsOfSeveralIndexesKeepTheRows(type: String, form: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (id \(type) PRIMARY KEY, a, b UNIQUE, c COLLATE NOCASE, d) \(form);
      CREATE UNIQUE INDEX byA ON t (a);
      CREATE UNIQUE INDEX byC ON t (c) WHERE d > 0;
      CREATE UNIQUE INDEX byD ON t (abs(d));
      CREATE TABLE child (id TEXT PRIMARY KEY, t REFERENCES t);
      """)
    try devices[0].run(
      """
      INSERT INTO t VALUES
        (1, 'a1', 'b1', 'c1', 1), (2, 'a2', 'b2', 'c2', 2), (3, 'a3', 'b3', 'c3', 3),
        (4, 'a4', 'b4', 'c4', 4), (5, 'a5', 'b5', 'c5', 5)
      """)
    try exchange(devices)
    try devices[0].run(
      """
      REPLACE INTO t VALUES (9, 'a1', 'b2', 'C3', 4);
      UPDATE OR REPLACE t SET a = 'a5', b = 'b5' WHERE id = 9; DELETE FROM t;
      """)
    try devices[1].run("INSERT INTO child SELECT 'c' || a, id FROM t")
    try exchange(devices)
    for device in devices {
      #expect(
        try device.rows(
          "SELECT child.id, a, b, c, d FROM child JOIN t ON t.id = child.t ORDER BY 1")
          == (1...5).map { "ca\($0)|a\($0)|b\($0)|c\($0)|\($0)" })
    }
  }

  @Test func aTableGoesOnWithItsKeyAlone() throws {
    let devices = try scratch.devices(
      2, Self.schema + "CREATE TABLE only (id INTEGER PRIMARY KEY); INSERT INTO only VALUES (1)")
    try devices[0].run(
      """
      ALTER TABLE t DROP COLUMN a; ALTER TABLE t DROP COLUMN b; ALTER TABLE t DROP COLUMN c;
      INSERT INTO t VALUES (3); DELETE FROM t WHERE id = 2; INSERT INTO only VALUES (5);
      """)
    try exchange(devices)
    try devices[0].run("INSERT INTO t VALUES (4)")
    try devices[1].run("UPDATE t SET a = 'z' WHERE id = 3; DELETE FROM only WHERE id = 1")
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT id FROM t ORDER BY id") == ["1", "3", "4"])
      #expect(try device.rows("SELECT id FROM only") == ["5"])
    }
    #expect(try devices[1].rows("SELECT id, a FROM t ORDER BY id") == ["1|a", "3|z", "4|NULL"])
  }

  /// SQLite then drops the column without a look at the triggers.
  @Test func syncingMakesTriggersAgainThatNameADroppedColumn() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (id TEXT PRIMARY KEY, a, b);
      CREATE UNIQUE INDEX some ON t (a) WHERE b > 1;
      INSERT INTO t VALUES ('r', 1, 2);
      """)
    try devices[0].run(
      "PRAGMA legacy_alter_table = ON; DROP INDEX some; ALTER TABLE t DROP COLUMN b")
    let insertion = "INSERT INTO t (id, a) VALUES ('s', 3)"
    #expect(throws: (any Error).self) { try devices[0].run(insertion) }
    try exchange(devices)
    try Program(devices[0].path).run(insertion)
    try exchange(devices)
    #expect(try devices[1].rows("SELECT * FROM t ORDER BY id") == ["r|1|2", "s|3|NULL"])
  }
}
