import SyncModel
import Testing

@testable import SyncStore

/// What capture has to see of values, and what must arrive unchanged.
@Suite struct CaptureValueTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  @Test(arguments: [
    ("1", "1.0"), ("1.0", "1"), ("'1'", "1"), ("NULL", "0"), ("0", "NULL"), ("''", "NULL"),
    ("''", "x''"), ("x''", "NULL"), ("x'61'", "'a'"), ("NULL", "''"), ("2.5", "'2.5'"),
    ("9007199254740992", "9007199254740992.0"),
  ])
  func aChangeOfTypeIsSeen(values: (String, String)) throws {
    let devices = try scratch.devices(
      2, "CREATE TABLE t (k TEXT PRIMARY KEY, v); INSERT INTO t VALUES ('a', \(values.0))")
    try devices[0].run("UPDATE t SET v = \(values.1)")
    #expect(try devices[0].changes().map(\.letters) == ["u"])
    let expected = try devices[0].rows("SELECT typeof(v), v FROM t")
    try converge(devices, "SELECT typeof(v), v FROM t", expected)
  }

  @Test func aChangeOfTypeIsSeenInNumericColumns() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (k TEXT PRIMARY KEY, v NUMERIC, w ANY, i INTEGER, r REAL);
      INSERT INTO t VALUES ('a', 9223372036854775807, 1, 1, 1);
      """)
    try devices[0].run("UPDATE t SET v = '9223372036854775807.0', w = 'one', i = 'x', r = 'y'")
    #expect(try devices[0].changes()[0].columnNames(0) == ["v", "w", "i", "r"])
    try converge(
      devices, "SELECT typeof(v), w, i, r FROM t",
      try devices[0].rows("SELECT typeof(v), w, i, r FROM t"))
  }

  /// SQLite keeps the least integer and the real of the same value apart in every column that can
  /// hold both, and holds them equal.
  @Test(arguments: ["INTEGER", "BIGINT", "NUMERIC", "DECIMAL(20)", ""])
  func theLeastIntegerIsNoReal(type: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (k TEXT PRIMARY KEY, v \(type), w INTEGER);
      INSERT INTO t VALUES ('a', -9223372036854775808, NULL), ('b', -9223372036854775808.0, 1),
        ('c', NULL, -9223372036854775808);
      """)
    let query = "SELECT k, typeof(v), v, typeof(w), w FROM t ORDER BY k"
    try devices[0].run("UPDATE t SET v = CASE k WHEN 'a' THEN -9223372036854775808.0 ELSE v END")
    #expect(try devices[0].changes().map(\.letters) == ["u"])
    try converge(devices, query, try devices[0].rows(query))
    try devices[1].run(
      "UPDATE t SET v = -9223372036854775808 WHERE k = 'b'; "
        + "UPDATE t SET w = -9223372036854775808.0, v = 5 WHERE k = 'c'")
    #expect(try devices[1].changes().map(\.letters) == ["uu"])
    try converge(devices, query, try devices[1].rows(query))
    // NULL in such a column, before or after, is no change of type by itself.
    try devices[0].run("UPDATE t SET v = v, w = w")
    #expect(try devices[0].rows("SELECT * FROM docsync_log_1") == [])
  }

  @Test func theLeastIntegerAndItsRealAreOneKey() throws {
    let devices = try scratch.devices(2, "CREATE TABLE t (k INT PRIMARY KEY, v)")
    try devices[0].run("INSERT INTO t VALUES (-9223372036854775808.0, 'a')")
    try converge(devices, "SELECT v FROM t", ["a"])
    try devices[1].run("UPDATE t SET v = 'b', k = -9223372036854775808.0")
    try converge(devices, "SELECT v FROM t", ["b"])
    try devices[0].run("DELETE FROM t")
    try converge(devices, "SELECT v FROM t", [])
  }

  /// In a counter such an update adds 0.0, so that devices may show the real.
  @Test(arguments: ["INTEGER", "NUMERIC", ""], [true, false])
  func theLeastIntegerOfACounterIsTheSameEverywhere(type: String, toReal: Bool) throws {
    var configuration = StoreConfiguration()
    configuration.columnMergeTypes = ["t": ["v": .counter]]
    let numbers = ["-9223372036854775808", "-9223372036854775808.0"]
    let (before, after) = toReal ? (numbers[0], numbers[1]) : (numbers[1], numbers[0])
    let devices = try scratch.devices(
      2,
      "CREATE TABLE t (k TEXT PRIMARY KEY, v \(type)); INSERT INTO t VALUES ('a', \(before))",
      configuration: configuration)
    try devices[0].run("UPDATE t SET v = \(after)")
    try converge(devices, "SELECT typeof(v), v FROM t", ["real|-9.223372036854776e+18"])
    try devices[1].run("UPDATE t SET v = \(before)")
    try converge(devices, "SELECT typeof(v), v FROM t", ["real|-9.223372036854776e+18"])
  }

  @Test func aChangeOfCaseIsSeenUnderNocase() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (k TEXT PRIMARY KEY COLLATE NOCASE, v TEXT COLLATE NOCASE,
        w TEXT COLLATE RTRIM);
      INSERT INTO t VALUES ('a', 'b', 'c');
      """)
    try devices[0].run("UPDATE t SET v = 'B'")
    try devices[0].run("UPDATE t SET w = 'c  '")
    try converge(devices, "SELECT * FROM t", ["a|B|c  "])
    // The spelling of a key changes and the row stays the same one.
    try devices[1].run("UPDATE t SET k = 'A'")
    #expect(try devices[1].changes().map(\.letters) == ["u"])
    try converge(devices, "SELECT * FROM t", ["A|B|c  "])
  }

  @Test func anUpdateThatChangesNothingLogsNothing() throws {
    let devices = try scratch.devices(
      1,
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, a, b TEXT COLLATE NOCASE, c REAL, d BLOB);
      CREATE TABLE u (k TEXT PRIMARY KEY, v UNIQUE) WITHOUT ROWID;
      INSERT INTO t VALUES (1, NULL, 'x', 1.5, x'00'), (2, 1.0, '', 9e999, NULL);
      INSERT INTO u VALUES ('a', 1), ('b', 2.5);
      """)
    try devices[0].run("UPDATE t SET a = a, b = b, c = c, d = d, id = id")
    try devices[0].run("UPDATE t SET c = 1.5 WHERE id = 1")
    try devices[0].run("UPDATE u SET v = v, k = k")
    for table in 1...2 {
      #expect(try devices[0].rows("SELECT * FROM docsync_log_\(table)") == [])
    }
    let version = try devices[0].rows("PRAGMA data_version")
    #expect(try devices[0].store.seal().changeSets == [])
    #expect(try devices[0].rows("PRAGMA data_version") == version, "sealing nothing writes nothing")
  }

  @Test func extremesArriveUnchanged() throws {
    let devices = try scratch.devices(
      2, "CREATE TABLE t (id INTEGER PRIMARY KEY, v, i INTEGER, r REAL, x TEXT)")
    let values = [
      "9223372036854775807", "-9223372036854775808", "9e999", "-9e999", "4.9e-324",
      "1.7976931348623157e308", "-1", "0", "NULL", "''", "x''", "CAST(x'61006200' AS TEXT)",
      "CAST(x'00' AS TEXT)", "CAST(x'fffe61c328' AS TEXT)", "CAST(x'eda080' AS TEXT)", "x'00ff00'",
      "'тест 🎄'", "9007199254740993",
    ]
    for value in values {
      try devices[0].run(
        "INSERT INTO t (v, i, r, x) VALUES (\(value), \(value), \(value), \(value))")
    }
    let query = """
      SELECT typeof(v), v, hex(v), length(CAST(v AS BLOB)), typeof(i), i, hex(i), typeof(r), r,
        typeof(x), hex(x) FROM t ORDER BY id
      """
    try converge(devices, query, try devices[0].rows(query))
    // And the same as updates, back and forth.
    try devices[1].run(
      "UPDATE t SET v = (SELECT v FROM t AS o WHERE o.id = \(values.count + 1) - t.id)")
    try converge(devices, query, try devices[1].rows(query))
  }

  @Test func extremesArriveAsKeys() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (k PRIMARY KEY, v);
      CREATE TABLE b (k BLOB, r REAL, PRIMARY KEY (k, r)) WITHOUT ROWID;
      CREATE TABLE i (k INT PRIMARY KEY, v);
      """)
    for value in [
      "9223372036854775807", "-9223372036854775808", "9e999", "-9e999", "''", "x''", "1", "'1'",
      "x'31'", "2.5", "'2.5'", "CAST(x'6100' AS TEXT)", "'a'", "CAST(x'ff' AS TEXT)", "x'ff'",
    ] {
      try devices[0].run("INSERT INTO t VALUES (\(value), 'v')")
      try devices[0].run("INSERT INTO b VALUES (\(value), 0.5), (\(value), 9e999)")
    }
    for key in ["9223372036854775807", "-9223372036854775808", "0"] {
      try devices[0].run("INSERT INTO i VALUES (\(key), 'v')")
    }
    let query = "SELECT typeof(k), hex(k), v FROM t ORDER BY 1, 2"
    try converge(devices, query, try devices[0].rows(query))
    try devices[1].run("UPDATE t SET v = 'w'; UPDATE i SET v = 'w'; DELETE FROM b WHERE r > 1")
    try converge(devices, query, try devices[1].rows(query))
    #expect(try devices[0].rows("SELECT count(*) FROM t WHERE v = 'w'") == ["15"])
    try devices[0].run("DELETE FROM t; DELETE FROM i; DELETE FROM b")
    try converge(devices, "SELECT count(*) FROM t", ["0"])
  }

  @Test func oneAndOnePointZeroAreOneKeyAndTheTextIsAnother() throws {
    let devices = try scratch.devices(2, "CREATE TABLE t (k PRIMARY KEY, v)")
    try devices[0].run("INSERT INTO t VALUES (1, 'int'), ('1', 'text'), (x'31', 'blob')")
    try exchange(devices)
    try devices[1].run("UPDATE t SET k = 1.0 WHERE typeof(k) = 'integer'")
    try converge(
      devices, "SELECT typeof(k), v FROM t ORDER BY 1", ["blob|blob", "real|int", "text|text"])
    try devices[0].run("UPDATE t SET v = 'INT' WHERE k = 1")
    try devices[1].run("DELETE FROM t WHERE k = '1'")
    try converge(devices, "SELECT typeof(k), v FROM t ORDER BY 1", ["blob|blob", "real|INT"])
  }

  @Test func blobsOfTenMegabytesArriveAndAreCutIntoSeveralChangeSets() throws {
    let devices = try scratch.devices(2, "CREATE TABLE t (k TEXT PRIMARY KEY, v BLOB)")
    try devices[0].run(
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4)
      INSERT INTO t SELECT 'k' || i, randomblob(10000000) FROM n;
      """)
    let sets = try devices[0].outgoing()
    #expect(sets.count >= 3, "the cap on bytes counts within a batch of rows")
    try converge(
      devices, "SELECT count(*), sum(length(v)) FROM t", ["4|40000000"])
  }

  @Test func documentsInUTF16Travel() throws {
    let devices = try scratch.devices(
      2,
      """
      PRAGMA encoding = 'UTF-16le';
      CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT UNIQUE COLLATE NOCASE);
      CREATE TABLE "ключ" ("имя" TEXT PRIMARY KEY, v);
      INSERT INTO t VALUES (1, 'Ünïcode'); INSERT INTO "ключ" VALUES ('ж', 1);
      """)
    #expect(try devices[1].rows("PRAGMA encoding") == ["UTF-16le"])
    try devices[0].run("INSERT INTO t (s) VALUES ('日本'), ('a' || char(0) || 'b')")
    try devices[0].run("UPDATE \"ключ\" SET v = '🎄'; INSERT INTO \"ключ\" VALUES ('Ж', 'x')")
    try devices[1].run(
      "UPDATE t SET s = 'ÜNÏCODE' WHERE id = 1; INSERT OR REPLACE INTO t (s) VALUES ('x')")
    try converge(devices, "SELECT * FROM \"ключ\" ORDER BY 1", ["Ж|x", "ж|🎄"])
  }

  @Test func bothZerosAreOneValue() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (k PRIMARY KEY, v, r REAL, n NUMERIC, g TEXT AS (v || r));
      CREATE UNIQUE INDEX u ON t (v, k);
      INSERT INTO t VALUES ('minus', -0.0, -0.0, -0.0), ('plus', 0.0, 0.0, 0.0);
      """)
    try devices[0].run("INSERT INTO t VALUES ('new', -0.0, -0.0, -0.0), (-0.0, 1, 1, 1)")
    try converge(devices)
    // SQL sees no change in these, so that no other device receives them.
    try devices[0].run("UPDATE t SET v = 0.0 WHERE k IN ('minus', 'new')")
    try devices[1].run("UPDATE t SET v = -0.0 WHERE k = 'plus'; UPDATE t SET k = 0.0 WHERE k = 0")
    try converge(
      devices, "SELECT k = 0, v = 0, g FROM t ORDER BY k",
      try devices[0].rows("SELECT k = 0, v = 0, g FROM t ORDER BY k"))
    #expect(try devices.flatMap { try $0.outgoing() }.count == 1)
    try devices[0].run("UPDATE t SET v = 2.5")
    try devices[1].run("UPDATE t SET v = -0.0")
    try converge(devices)
  }

  @Test(arguments: ["UTF-16le", "UTF-16be"])
  func halvesOfSurrogatePairsArriveUnchanged(encoding: String) throws {
    let devices = try scratch.devices(
      2,
      """
      PRAGMA encoding = '\(encoding)';
      CREATE TABLE t (k TEXT PRIMARY KEY, v, u TEXT UNIQUE, c TEXT CHECK (length(c) < 9));
      CREATE TABLE child (id INTEGER PRIMARY KEY, t TEXT REFERENCES t ON DELETE RESTRICT);
      INSERT INTO t VALUES (CAST(x'00d87a00' AS TEXT), CAST(x'00dc' AS TEXT), NULL, NULL);
      """)
    // Each half alone, before and after others, both in the wrong order, pairs,
    // and after what could be a mark of the byte order.
    for (number, units) in [
      "00d8", "00dc", "610000d86200", "00dc00d8", "3dd884df00d8", "fffe00d8", "feff00dc", "",
      "ff00", "00d800d800dc", "e93000d8",
    ].enumerated() {
      let text = "CAST(x'\(units)' AS TEXT)"
      try devices[number % 2].run(
        "INSERT INTO t VALUES (\(text) || '\(number)', \(text), \(text) || '\(number)', \(text))")
    }
    let query = """
      SELECT hex(CAST(k AS BLOB)), hex(CAST(v AS BLOB)), hex(CAST(u AS BLOB)), hex(CAST(c AS BLOB))
      FROM t ORDER BY 1
      """
    try exchange(devices)
    try converge(devices, query, try devices[0].rows(query))
    #expect(
      try devices[0].rows(query).contains {
        $0.hasPrefix("00D87A00|00DC") == (encoding == "UTF-16le")
      })
    // Parked and shown again, deleted and rescued: by way of what is kept.
    try devices[0].run("UPDATE t SET v = CAST(x'00dc00dc' AS TEXT); DELETE FROM t")
    try devices[1].run("INSERT INTO child SELECT NULL, k FROM t")
    try exchange(devices)
    #expect(try devices[0].rows("SELECT count(*) FROM t") == ["12"])
    try converge(devices, query, try devices[1].rows(query))
    try devices[1].run("UPDATE t SET v = u WHERE u IS NOT NULL")
    try converge(devices, query, try devices[1].rows(query))
  }
}
