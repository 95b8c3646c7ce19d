import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// The app's own triggers while changes of others are applied.
@Suite struct AppTriggerTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  @Test(arguments: ["fts5", "fts4"])
  func aFullTextIndexFindsWhatCameFromOthers(module: String) throws {
    let isFTS5 = module == "fts5"
    let options = isFTS5 ? "content='notes', content_rowid='id'" : "content='notes'"
    let removal =
      isFTS5
      ? "INSERT INTO search (search, rowid, body) VALUES ('delete', OLD.id, OLD.body);"
      : "DELETE FROM search WHERE docid = OLD.id;"
    let rowid = isFTS5 ? "rowid" : "docid"
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT, folder INTEGER);
      CREATE VIRTUAL TABLE search USING \(module)(body, \(options));
      CREATE TRIGGER notes_ai AFTER INSERT ON notes BEGIN
        INSERT INTO search (\(rowid), body) VALUES (NEW.id, NEW.body); END;
      CREATE TRIGGER IF NOT EXISTS notes_bd BEFORE DELETE ON notes BEGIN \(removal) END;
      CREATE TRIGGER notes_bu BEFORE UPDATE ON notes BEGIN \(removal) END;
      CREATE TRIGGER notes_au AFTER UPDATE OF body ON "notes" FOR EACH ROW WHEN NEW.body IS NOT 'x'
        BEGIN INSERT INTO search (\(rowid), body) VALUES (NEW.id, NEW.body); END;
      INSERT INTO notes VALUES (1, 'apple pear', 1), (2, 'plum', 1);
      """)
    func find(_ word: String) throws -> [[String]] {
      try devices.map {
        try $0.rows(
          "SELECT body FROM notes WHERE id IN (SELECT rowid FROM search WHERE search MATCH '\(word)')"
        )
      }
    }
    try devices[0].run("INSERT INTO notes (body) VALUES ('cherry')")
    try devices[0].run(
      "UPDATE notes SET body = 'quince' WHERE id = 1; DELETE FROM notes WHERE id = 2")
    try converge(devices)
    #expect(try find("cherry") == [["cherry"], ["cherry"]])
    #expect(try find("quince") == [["quince"], ["quince"]])
    #expect(try find("pear") == [[], []])
    #expect(try find("plum") == [[], []])
    for device in devices {
      try device.run("INSERT INTO search (search) VALUES ('integrity-check')")
    }
    #expect(try devices[0].store.status().leftOut["search"] == .virtualTable)
  }

  /// SQLite lets the conflict clause of a statement override those in the triggers that it fires.
  @Test(arguments: ["notes", "main.notes", "\"main\" . \"notes\""])
  func aConflictClauseInATriggerTakesEffect(table: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE notes (id INTEGER PRIMARY KEY, tag TEXT);
      CREATE TABLE uses (tag TEXT PRIMARY KEY, n INTEGER NOT NULL DEFAULT 0);
      CREATE TRIGGER counted AFTER INSERT ON \(table) BEGIN
        INSERT OR IGNORE INTO uses (tag) VALUES (NEW.tag);
        UPDATE uses SET n = n + 1 WHERE tag = NEW.tag;
      END;
      CREATE TRIGGER recounted AFTER UPDATE ON \(table) BEGIN
        INSERT OR REPLACE INTO uses VALUES (NEW.tag, 100);
      END;
      """, configuration: Self.excluding("uses"))
    try devices[0].run("INSERT INTO notes (tag) VALUES ('a'), ('a'), ('b')")
    let report = try devices[1].receive(from: devices[0])
    #expect(report.warnings.isEmpty)
    #expect(try devices[1].rows("SELECT * FROM uses ORDER BY tag") == ["a|2", "b|1"])
    try devices[0].run("UPDATE notes SET tag = 'b' WHERE tag = 'a'")
    #expect(try devices[1].receive(from: devices[0]).warnings.isEmpty)
    #expect(try devices[1].rows("SELECT * FROM uses ORDER BY tag") == ["a|2", "b|100"])
    try converge(devices)
  }

  /// FAIL in a table that stays on the device leaves no half of a statement behind.
  @Test func aTriggerThatFailsIsSkippedForTheRow() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE notes (id INTEGER PRIMARY KEY, tag TEXT);
      CREATE TABLE uses (tag TEXT UNIQUE ON CONFLICT FAIL);
      CREATE TRIGGER used AFTER INSERT ON notes BEGIN INSERT INTO uses VALUES (NEW.tag); END;
      """, configuration: Self.excluding("uses"))
    try devices[0].run("INSERT INTO notes (tag) VALUES ('a'), ('b')")
    try devices[1].run("INSERT INTO uses VALUES ('a')")
    let report = try devices[1].receive(from: devices[0])
    #expect(report.warnings.map(\.code) == [.triggerFailed])
    #expect(try devices[1].rows("SELECT tag FROM notes ORDER BY tag") == ["a", "b"])
    try converge(devices)
    try expectSound(devices)
  }

  /// A conflict clause of the table does not take effect for what others have written.
  @Test func aConflictClauseOfTheTableReplacesNoRow() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE notes (id TEXT PRIMARY KEY, tag TEXT UNIQUE ON CONFLICT REPLACE, n TEXT);
      INSERT INTO notes VALUES ('x', 'x', 'x');
      """)
    try devices[0].run("INSERT INTO notes VALUES ('a', 'same', 'first')")
    usleep(2_000)
    try devices[1].run("INSERT INTO notes VALUES ('b', 'same', 'second')")
    try converge(devices, "SELECT count(*) FROM notes", ["2"])
    try expectSound(devices)
  }

  @Test func aTriggerThatWritesToSynchronizedTablesDoesNotRunTwice() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE folder (id INTEGER PRIMARY KEY, notes INTEGER NOT NULL DEFAULT 0);
      CREATE TABLE note (id INTEGER PRIMARY KEY, folder INTEGER REFERENCES folder, body);
      CREATE TABLE trail (k TEXT PRIMARY KEY);
      CREATE TABLE history (what);
      CREATE TRIGGER a AFTER INSERT ON note BEGIN
        UPDATE folder SET notes = notes + 1 WHERE id = NEW.folder;
        INSERT INTO history VALUES ('insert; ' || CASE WHEN NEW.id THEN 'id' END);
        SELECT RAISE(ABORT, 'never') WHERE 0;
      END;
      CREATE TRIGGER b AFTER DELETE ON note BEGIN
        UPDATE OR REPLACE folder SET notes = notes - 1 WHERE id = OLD.folder;
        DELETE FROM history; INSERT OR IGNORE INTO trail VALUES (OLD.body);
      END;
      CREATE TRIGGER c AFTER DELETE ON folder BEGIN DELETE FROM trail; END;
      INSERT INTO folder (id) VALUES (1), (2);
      INSERT INTO trail VALUES ('keep');
      """, configuration: Self.excluding("history"))
    try devices[0].run("INSERT INTO note (folder, body) VALUES (1, 'a'), (1, 'b'), (2, 'c')")
    try exchange(devices)
    try converge(devices, "SELECT notes FROM folder ORDER BY id", ["2", "1"])
    #expect(try devices[1].rows("SELECT count(*) FROM history") == ["3"])
    try devices[1].run("DELETE FROM note WHERE body = 'b'")
    try converge(devices, "SELECT notes FROM folder ORDER BY id", ["1", "1"])
    #expect(try devices[0].rows("SELECT count(*) FROM history") == ["0"])
    try converge(devices, "SELECT k FROM trail ORDER BY k", ["b", "keep"])
    // A deletion that a trigger would make is made by its author only.
    try devices[1].run("PRAGMA foreign_keys = OFF; DELETE FROM note WHERE folder = 2")
    try devices[1].run("DELETE FROM folder WHERE id = 2; INSERT INTO trail VALUES ('later')")
    try converge(devices, "SELECT k FROM trail", ["later"])
  }

  static func excluding(_ tables: SQLName...) -> StoreConfiguration {
    var configuration = StoreConfiguration()
    configuration.excludedTables = Set(tables)
    return configuration
  }

  @Test func aTriggerThatDeletesDoesNotDeleteWhatIsNewElsewhere() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE a (k TEXT PRIMARY KEY); CREATE TABLE b (k TEXT PRIMARY KEY);
      CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM b; END;
      INSERT INTO b VALUES ('old');
      """)
    try devices[0].run("INSERT INTO a VALUES ('x')")
    try devices[1].run("INSERT INTO b VALUES ('new')")
    try converge(devices, "SELECT * FROM b", ["new"])
  }

  @Test func aTriggerThatRefusesRowsDoesNotHoldUpApplying() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (k TEXT PRIMARY KEY, v INTEGER);
      CREATE TABLE gate (isOpen INTEGER);
      INSERT INTO gate VALUES (1);
      CREATE TRIGGER check_insert BEFORE INSERT ON t WHEN (SELECT isOpen FROM gate) = 0
        BEGIN SELECT RAISE(ABORT, 'closed'); END;
      CREATE TRIGGER check_update BEFORE UPDATE ON t BEGIN
        SELECT CASE WHEN (SELECT isOpen FROM gate) = 0 THEN RAISE(IGNORE) END; END;
      CREATE TABLE audit (n);
      CREATE TRIGGER check_audit AFTER INSERT ON t BEGIN
        INSERT INTO audit SELECT CASE (SELECT isOpen FROM gate) WHEN 0 THEN RAISE(ABORT, 'x') END;
      END;
      """, configuration: Self.excluding("gate", "audit"))
    try devices[1].run("DELETE FROM gate; INSERT INTO gate VALUES (0)")
    try devices[0].run("INSERT OR REPLACE INTO gate VALUES (1); INSERT INTO t VALUES ('a', 1)")
    try converge(devices, "SELECT * FROM t", ["a|1"])
    try devices[0].run("UPDATE t SET v = 2")
    try converge(devices, "SELECT * FROM t", ["a|2"])
  }

  @Test func triggersOnViewsAreNoConcern() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, v);
      CREATE VIEW upper_t AS SELECT id, upper(v) AS v FROM t;
      CREATE TRIGGER through INSTEAD OF INSERT ON upper_t BEGIN
        INSERT INTO t (v) VALUES (lower(NEW.v)); END;
      CREATE TABLE u (k TEXT PRIMARY KEY);
      CREATE TRIGGER copy AFTER INSERT ON u BEGIN INSERT INTO upper_t (v) VALUES (NEW.k); END;
      """)
    try devices[0].run("INSERT INTO upper_t (v) VALUES ('VIEW'); INSERT INTO u VALUES ('TABLE')")
    try converge(devices, "SELECT v FROM t ORDER BY v", ["table", "view"])
  }

  @Test func triggersThatAreMadeLaterAreNoticed() throws {
    let devices = try scratch.devices(
      2, "CREATE TABLE t (k TEXT PRIMARY KEY); CREATE TABLE seen (k)",
      configuration: Self.excluding("seen"))
    try exchange(devices)
    try devices[1].run(
      "CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO seen VALUES (NEW.k); END")
    try devices[0].run("INSERT INTO t VALUES ('a')")
    try exchange(devices)
    try devices[1].run("DROP TRIGGER x")
    try devices[0].run("INSERT INTO t VALUES ('b')")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT * FROM seen") == ["a"])
  }

  private static let audited = """
    CREATE TABLE t (k TEXT PRIMARY KEY, v INTEGER);
    CREATE TABLE trail (k);
    CREATE TABLE audit (k TEXT UNIQUE, CHECK (k <> 'bad'));
    CREATE TRIGGER before_t BEFORE INSERT ON t BEGIN INSERT INTO trail VALUES ('+' || NEW.k); END;
    CREATE TRIGGER audit_t AFTER INSERT ON t WHEN NEW.v IS NOT 0 BEGIN
      INSERT INTO audit VALUES (NEW.k); END;
    CREATE TRIGGER after_t AFTER INSERT ON t BEGIN INSERT INTO trail VALUES (NEW.k || '+'); END;
    CREATE TRIGGER audit_u AFTER UPDATE ON t BEGIN
      UPDATE OR FAIL audit SET k = 'bad' WHERE k = NEW.k; END;
    CREATE TRIGGER audit_d AFTER DELETE ON t BEGIN
      INSERT OR ROLLBACK INTO audit VALUES ('bad'); END;
    """

  /// With references, rows are merged in memory; without, as they are read.
  @Test(arguments: [false, true])
  func aTriggerThatFailsIsPassedOverAndNothingElse(isEntangled: Bool) throws {
    let devices = try scratch.devices(
      2,
      Self.audited
        + (isEntangled ? "CREATE TABLE u (k TEXT PRIMARY KEY, t TEXT REFERENCES t);" : ""),
      configuration: Self.excluding("trail", "audit"))
    try exchange(devices)
    try devices[0].run("DROP TRIGGER audit_u; DROP TRIGGER audit_d")
    // Here its values are there already.
    try devices[1].run("INSERT INTO audit VALUES ('a'), ('c'), ('e')")
    try devices[0].run("INSERT INTO t VALUES ('a', 1), ('b', 2), ('c', 0)")
    let inserted = try devices[1].receive(from: devices[0])
    #expect(inserted.insertedRows == 3)
    #expect(inserted.parkedRows == 0)
    let warning = try #require(inserted.warnings.first)
    #expect(inserted.warnings.count == 1)
    #expect(warning.code == .triggerFailed && warning.table == "t" && warning.count == 1)
    #expect(warning.names == ["audit_t"])
    #expect(warning.message.contains("UNIQUE constraint failed: audit.k"))
    #expect(try devices[1].rows("SELECT k FROM audit ORDER BY k") == ["a", "b", "c", "e"])
    #expect(
      try devices[1].rows("SELECT k FROM trail ORDER BY k") == [
        "+a", "+b", "+c", "a+", "b+", "c+",
      ])
    try devices[0].run("UPDATE t SET v = 7 WHERE k = 'a'")
    try devices[0].run("DELETE FROM t WHERE k = 'c'")
    let changed = try devices[1].receive(from: devices[0])
    #expect(changed.updatedRows == 1 && changed.deletedRows == 1)
    #expect(changed.warnings.map(\.names) == [["audit_d", "audit_u"]])
    try converge(devices, "SELECT * FROM t ORDER BY k", ["a|7", "b|2"])
  }

  @Test func aRowThatIsRefusedItselfIsParkedWhateverItsTriggersDo() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (k TEXT PRIMARY KEY, a INTEGER, b INTEGER, u INTEGER UNIQUE);
      CREATE TABLE trail (k);
      CREATE TRIGGER before_t BEFORE INSERT ON t BEGIN INSERT INTO trail VALUES (NEW.k); END;
      """, configuration: Self.excluding("trail"))
    try exchange(devices)
    try devices[0].run("INSERT INTO t VALUES ('a', 1, 1, 7)")
    try devices[1].run("INSERT INTO t VALUES ('b', 1, 1, 7)")
    let report = try devices[1].receive(from: devices[0])
    #expect(report.warnings.map(\.code) == [.parked])
    try converge(devices)
    #expect(try devices[1].rows("SELECT count(*) FROM t") == ["1"])
  }

  @Test func aTriggerThatDoesNotCompileHereIsPassedOver() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (k TEXT PRIMARY KEY, v INTEGER); CREATE TABLE trail (k);
      INSERT INTO t VALUES ('a', 1);
      """, configuration: Self.excluding("trail"))
    try exchange(devices)
    try devices[1].run(
      """
      CREATE TRIGGER known AFTER UPDATE OF v ON t BEGIN INSERT INTO trail VALUES (NEW.v); END;
      CREATE TRIGGER unknown AFTER UPDATE OF v ON t BEGIN
        INSERT INTO trail VALUES (only_the_app_has_this(NEW.v)); END
      """)
    try devices[0].run("UPDATE t SET v = 2")
    let report = try devices[1].receive(from: devices[0])
    #expect(report.warnings.map(\.names) == [["unknown"]])
    #expect(try devices[1].rows("SELECT * FROM t") == ["a|2"])
    #expect(try devices[1].rows("SELECT * FROM trail") == ["2"])
  }
}
