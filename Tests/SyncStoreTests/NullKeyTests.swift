import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Rows with NULL in their key, which SQLite allows in most tables.
@Suite struct NullKeyTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE t (k TEXT PRIMARY KEY, v, w);
    CREATE TABLE pair (a TEXT, b INTEGER, v, PRIMARY KEY (a, b));
    INSERT INTO t VALUES ('a', 1, 1), ('b', 2, 2); INSERT INTO pair VALUES ('x', 1, 1), ('x', 2, 2);
    """

  private func seal(_ device: Device) throws -> [SyncWarning] {
    try device.store.seal().warnings
  }

  @Test func rowsWithoutAKeyStayWhereTheyWereWritten() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run(
      """
      INSERT INTO t VALUES (NULL, 3, 3), (NULL, 3, 3), ('c', 3, 3);
      INSERT INTO pair VALUES ('y', NULL, 1), (NULL, 1, 1), (NULL, NULL, 1), ('y', NULL, 1);
      UPDATE t SET v = 4 WHERE k IS NULL; DELETE FROM pair WHERE a IS NULL AND b IS NULL;
      """)
    let warnings = try seal(devices[0])
    #expect(warnings.map(\.code) == [.keyMissing, .keyMissing])
    #expect(warnings.map(\.table) == ["pair", "t"])
    #expect(warnings.map(\.count) == [3, 2])
    #expect(try devices[0].changes().map(\.letters) == ["i"])
    try converge(devices)
    #expect(try devices[1].rows("SELECT k FROM t ORDER BY k") == ["a", "b", "c"])
    #expect(try devices[1].rows("SELECT count(*) FROM pair") == ["2"])
    #expect(try devices[0].store.status().rowsWithoutKey == ["pair": 3, "t": 2])
    #expect(try devices[1].store.status().rowsWithoutKey == [:])
    let findings = try LocalStore.verify(at: devices[0].path).report.findings
    #expect(findings.map(\.kind) == [.rowWithoutKey, .rowWithoutKey])
    #expect(findings.map(\.severity) == [.note, .note])
    // With a key they are rows like all others.
    try devices[0].run(
      "UPDATE t SET k = 'n' || rowid WHERE k IS NULL; UPDATE pair SET b = rowid WHERE b IS NULL")
    try converge(
      devices, "SELECT count(*), sum(v) FROM t",
      try devices[0].rows("SELECT count(*), sum(v) FROM t"))
    #expect(try devices[1].rows("SELECT count(*) FROM t") == ["5"])
    #expect(try devices[0].store.status().rowsWithoutKey == ["pair": 1])
  }

  /// ANALYZE keeps samples of values, in `sqlite_stat4` if SQLite was built for that.
  @Test func aWholeStoreHasNoSamplesOfRowsWithoutAKey() throws {
    let devices = try scratch.devices(
      1,
      "CREATE TABLE t (k TEXT PRIMARY KEY, v); CREATE INDEX i ON t (v);"
        + "CREATE TABLE u (k TEXT PRIMARY KEY, v); INSERT INTO u VALUES ('u', 1)")
    try devices[0].run(
      """
      INSERT INTO t VALUES ('a', 'shown'), (NULL, 'hiddenvalue'); ANALYZE;
      PRAGMA writable_schema = ON;
      CREATE TABLE IF NOT EXISTS sqlite_stat4 (tbl, idx, neq, nlt, ndlt, sample);
      PRAGMA writable_schema = OFF;
      INSERT INTO sqlite_stat4 VALUES ('t', 'i', '1 1', '0 0', '0 0', X'03231768696464656E76616C756502');
      """)
    _ = try devices[0].outgoing()
    let copy = scratch.path + "/copy.db"
    _ = try devices[0].store.snapshot(to: copy)
    let bytes = try Data(contentsOf: URL(fileURLWithPath: copy))
    #expect(bytes.range(of: Data("shown".utf8)) != nil)
    #expect(bytes.range(of: Data("hiddenvalue".utf8)) == nil)
    let program = try Program(copy)
    #expect(try program.rows("SELECT count(*) FROM sqlite_stat4 WHERE tbl = 't'") == ["0"])
    #expect(
      try program.rows("SELECT DISTINCT tbl FROM sqlite_stat1 WHERE tbl IN ('t', 'u')") == ["u"])
  }

  @Test func aKeyThatIsSetToNullComesBack() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run(
      """
      UPDATE t SET k = NULL, v = 10 WHERE k = 'a'; UPDATE t SET w = 11 WHERE k IS NULL;
      UPDATE pair SET b = NULL WHERE b = 2;
      """)
    try devices[1].run("UPDATE t SET v = 20 WHERE k = 'b'; UPDATE pair SET v = 20 WHERE b = 2")
    #expect(try seal(devices[0]).map(\.code) == [.keyRestored, .keyRestored])
    try converge(devices, "SELECT * FROM t ORDER BY k", ["a|10|11", "b|20|2"])
    try converge(devices, "SELECT * FROM pair ORDER BY b", ["x|1|1", "x|2|20"])
    #expect(try devices[0].store.status().rowsWithoutKey == [:])
  }

  @Test func aKeyThatAnotherRowHasByNowDoesNotComeBack() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run(
      "UPDATE t SET k = NULL, v = 10 WHERE k = 'a'; INSERT INTO t VALUES ('a', 12, 12)")
    #expect(try seal(devices[0]).map(\.code) == [.keyMissing])
    try converge(devices, "SELECT * FROM t WHERE k IS NOT NULL ORDER BY k", ["a|12|12", "b|2|2"])
    #expect(try devices[0].rows("SELECT v FROM t WHERE k IS NULL") == ["10"])
  }

  @Test func aRowThatIsDeletedWithoutItsKeyIsDeletedEverywhere() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run("UPDATE t SET k = NULL WHERE k = 'a'; DELETE FROM t WHERE k IS NULL")
    try devices[0].run("UPDATE t SET k = NULL WHERE k = 'b'; UPDATE t SET k = 'c' WHERE k IS NULL")
    try converge(devices, "SELECT * FROM t", ["c|2|2"])
  }

  @Test func aDeclaredKeyThatIsSetToNullComesBack() throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["tag": .columns(["name"])]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT UNIQUE, v);
      CREATE TABLE note (id TEXT PRIMARY KEY NOT NULL, tag INTEGER REFERENCES tag);
      INSERT INTO tag VALUES (1, 'a', 1); INSERT INTO note VALUES ('n', 1);
      """, configuration: configuration)
    try devices[0].run("UPDATE tag SET name = NULL, v = 2; INSERT INTO tag VALUES (7, NULL, 7)")
    #expect(try seal(devices[0]).map(\.code) == [.keyRestored, .keyMissing])
    try converge(
      devices, "SELECT note.id, name, v FROM note JOIN tag ON tag.id = tag", ["n|a|2"])
    #expect(try devices[1].rows("SELECT count(*) FROM tag") == ["1"])
  }

  @Test func whatRefersToARowWithoutAKeyIsParked() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (k TEXT PRIMARY KEY, code TEXT UNIQUE);
      CREATE TABLE child (id INTEGER PRIMARY KEY, code TEXT REFERENCES t (code));
      """)
    try devices[0].run("INSERT INTO t VALUES (NULL, 'x'); INSERT INTO child VALUES (1, 'x')")
    try converge(devices, "SELECT count(*) FROM child", ["0"])
    try devices[0].run("UPDATE t SET k = 'k'")
    try converge(devices, "SELECT code FROM child", ["x"])
  }

  @Test func rowsThatWereThereBeforeStayOnTheirDevice() throws {
    let devices = try scratch.devices(
      2,
      Self.schema + """
        INSERT INTO t VALUES (NULL, 'alone', 3), (NULL, 'alone', 3);
        INSERT INTO pair VALUES ('y', NULL, 1), (NULL, NULL, 1);
        CREATE VIRTUAL TABLE words USING fts5 (v, content = 't');
        INSERT INTO words (words) VALUES ('rebuild');
        """)
    let search = "SELECT count(*) FROM words WHERE words MATCH 'alone'"
    #expect(try devices.map { try $0.rows(search) } == [["2"], ["0"]])
    #expect(try devices[0].store.status().rowsWithoutKey == ["pair": 2, "t": 2])
    #expect(try devices[1].store.status().rowsWithoutKey == [:])
    #expect(try devices[1].rows("SELECT k FROM t ORDER BY k") == ["a", "b"])
    // Though nothing was edited.
    #expect(try seal(devices[0]) == [])
    for device in devices { try device.store.noteRowsWithoutKey() }
    let first = try seal(devices[0])
    #expect(first.map(\.code) == [.keyMissing, .keyMissing])
    #expect(first.map(\.table) == ["pair", "t"])
    #expect(first.map(\.count) == [2, 2])
    for device in devices { #expect(try seal(device) == []) }
    try converge(devices)
    try devices[0].run(
      """
      UPDATE t SET v = 'edited' WHERE k IS NULL; UPDATE t SET w = 10 WHERE k = 'a';
      DELETE FROM pair WHERE a IS NULL;
      """)
    let warnings = try seal(devices[0])
    #expect(warnings.map(\.code) == [.keyMissing, .keyMissing])
    #expect(warnings.map(\.count) == [1, 2])
    try devices[1].run("DELETE FROM t WHERE k = 'b'")
    try converge(devices, "SELECT * FROM t WHERE k IS NOT NULL", ["a|1|10"])
    #expect(try devices[0].rows("SELECT v FROM t WHERE k IS NULL") == ["edited", "edited"])
    let findings = try LocalStore.verify(at: devices[0].path).report.findings
    #expect(findings.map(\.kind) == [.rowWithoutKey, .rowWithoutKey])
    // With a key they are rows like all others.
    try devices[0].run("UPDATE t SET k = 'n' || rowid WHERE k IS NULL")
    try converge(devices, "SELECT v FROM t ORDER BY k", ["1", "edited", "edited"])
  }

  /// Edits are sealed together with the first warning, which counts each row once.
  @Test func theFirstWarningCountsEditedRowsOnce() throws {
    let devices = try scratch.devices(
      1, Self.schema + "INSERT INTO t VALUES (NULL, 1, 1); INSERT INTO pair VALUES (NULL, 1, 1);")
    try devices[0].store.noteRowsWithoutKey()
    try devices[0].run("INSERT INTO t VALUES (NULL, 2, 2), ('c', 3, 3)")
    let warnings = try seal(devices[0])
    #expect(warnings.map(\.table) == ["pair", "t"])
    #expect(warnings.map(\.count) == [1, 2])
    #expect(try devices[0].changes().map(\.letters) == ["i"])
  }

  /// Full-text tables that triggers fill; the second text removes a row.
  enum Index: String, CaseIterable {
    case own, contentless, external, oldOwn, unlinked, failing, elsewhere, oldContentless, byKey
    case history

    var isKept: Bool {
      switch self {
      case .own, .contentless, .external, .oldOwn: true
      case .unlinked, .failing, .elsewhere, .oldContentless, .byKey, .history: false
      }
    }

    var sql: String {
      let table: String
      var insertion = "INSERT INTO words (rowid, v) VALUES (NEW.rowid, NEW.v);"
      var removal = "DELETE FROM words WHERE rowid = OLD.rowid;"
      switch self {
      case .own, .unlinked, .elsewhere: table = "fts5(v)"
      case .contentless, .external:
        table = "fts5(v, \(self == .external ? "content='t'" : "content=''"))"
        removal = "INSERT INTO words (words, rowid, v) VALUES ('delete', OLD.rowid, OLD.v);"
      case .failing:
        table = "fts5(v)"
        removal = "DELETE FROM words WHERE rowid = of_the_application(OLD.rowid);"
      case .byKey:
        table = "fts5(k UNINDEXED, v)"
        insertion = "INSERT INTO words (k, v) VALUES (NEW.k, NEW.v);"
        removal = "DELETE FROM words WHERE k = OLD.k;"
      case .history:
        table = "fts5(v)"
        removal = "INSERT INTO words (v) VALUES (OLD.v);"
      case .oldOwn: table = "fts4(v)"
      case .oldContentless: table = "fts4(v, content='')"
      }
      let other = """
        CREATE TRIGGER p AFTER UPDATE ON pair BEGIN
          UPDATE words SET v = (SELECT group_concat(v) FROM t) WHERE rowid = OLD.b; END;
        """
      let isLinked = self != .unlinked && self != .oldContentless
      return """
        CREATE VIRTUAL TABLE words USING \(table);
        CREATE TRIGGER i AFTER INSERT ON t BEGIN \(insertion) END;
        \(isLinked ? "CREATE TRIGGER d AFTER DELETE ON t BEGIN \(removal) END;" : "")
        \(self == .elsewhere ? other : "")
        """
    }
  }

  /// Nothing of a row that stays on its device is in a whole store, whatever indexes it.
  @Test(arguments: Index.allCases)
  func noWordOfARowWithoutAKeyIsInAWholeStore(index: Index) throws {
    let path = scratch.path + "/whole.db"
    let devices = try scratch.devices(
      1,
      """
      CREATE TABLE t (k TEXT PRIMARY KEY, v, w);
      CREATE TABLE pair (a TEXT, b INTEGER, v, PRIMARY KEY (a, b));
      CREATE INDEX t_v ON t (v); \(index.sql)
      INSERT INTO t VALUES ('a', 'openword first', 1), (NULL, 'zqxhidden qzxsecret', 2),
        ('b', 'openword second', 3), (NULL, 'zqxhidden vqxagain', 4);
      INSERT INTO pair VALUES ('x', 1, 1); ANALYZE;
      """)
    _ = try devices[0].store.snapshot(to: path)
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    for word in ["zqxhidden", "qzxsecret", "vqxagain"] {
      #expect(bytes.range(of: Data(word.utf8)) == nil, "\(word)")
    }
    #expect(bytes.range(of: Data("openword".utf8)) != nil)
    let program = try Program(path)
    #expect(try program.rows("PRAGMA integrity_check") == ["ok"])
    func count(_ word: String) throws -> [String] {
      try program.rows("SELECT count(*) FROM words WHERE words MATCH '\(word)'")
    }
    #expect(try count("openword") == [index.isKept ? "2" : "0"])
    #expect(try count("second") == [index.isKept ? "1" : "0"])
    #expect(try count("zqxhidden") == ["0"])
    #expect(
      try program.rows("SELECT name FROM temp.sqlite_schema UNION ALL SELECT k FROM t ORDER BY 1")
        == ["a", "b"])
    // The device itself finds its rows.
    if index != .external {
      #expect(
        try devices[0].rows("SELECT count(*) FROM words WHERE words MATCH 'zqxhidden'") == ["2"])
    }
  }

  @Test func aRowWithADeclaredKeyThatIsNullStaysOnItsDevice() throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["tag": .columns(["name"])]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT UNIQUE, v);
      INSERT INTO tag VALUES (1, 'a', 1), (2, NULL, 2), (3, NULL, 3);
      """, configuration: configuration)
    #expect(try devices[1].rows("SELECT v FROM tag") == ["1"])
    try devices[0].run("UPDATE tag SET v = 30 WHERE id = 3; UPDATE tag SET name = 'b' WHERE id = 2")
    #expect(try seal(devices[0]).map(\.code) == [.keyMissing])
    try converge(devices, "SELECT name, v FROM tag WHERE name NOT NULL ORDER BY 1", ["a|1", "b|2"])
    #expect(try devices[0].rows("SELECT v FROM tag WHERE name IS NULL") == ["30"])
  }

  @Test func aTableThatAMigrationAddsMayHaveRowsWithoutAKey() throws {
    let devices = try scratch.devices(2, Self.schema)
    for device in devices {
      try device.run(
        """
        CREATE TABLE added (k TEXT PRIMARY KEY, v);
        CREATE TABLE addedPair (a, b, v, PRIMARY KEY (a, b));
        """)
    }
    try devices[0].run(
      """
      INSERT INTO added VALUES (NULL, 1), ('x', 2);
      INSERT INTO addedPair VALUES ('y', NULL, 1), ('y', 1, 2);
      """)
    let warnings = try seal(devices[0])
    #expect(warnings.map(\.code) == [.keyMissing, .keyMissing])
    #expect(warnings.map(\.table) == ["added", "addedPair"])
    try converge(devices, "SELECT * FROM added WHERE k NOT NULL", ["x|2"])
    try converge(devices, "SELECT * FROM addedPair WHERE b NOT NULL", ["y|1|2"])
    #expect(try devices[0].store.status().rowsWithoutKey == ["added": 1, "addedPair": 1])
    #expect(try devices[1].store.status().rowsWithoutKey == [:])
    #expect(try devices[0].rows("SELECT v FROM added ORDER BY v") == ["1", "2"])
  }
}
