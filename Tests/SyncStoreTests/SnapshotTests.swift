import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Whole stores: what they contain, and that writers do not matter.
@Suite struct SnapshotTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  @Test(arguments: ["wal", "delete", "truncate", "persist"])
  func aSnapshotIsConsistentWhileAnotherProgramWrites(mode: String) throws {
    let devices = try scratch.devices(
      1,
      """
      PRAGMA journal_mode = \(mode);
      CREATE TABLE a (id INTEGER PRIMARY KEY, n INTEGER);
      CREATE TABLE b (id INTEGER PRIMARY KEY, a INTEGER REFERENCES a, n INTEGER);
      WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 3000)
      INSERT INTO a SELECT n, 0 FROM i;
      INSERT INTO b SELECT id, id, 0 FROM a;
      CREATE TABLE local (n INTEGER); INSERT INTO local VALUES (0);
      """, configuration: AppTriggerTests.excluding("local"), options: .patient)
    let path = devices[0].path
    let writer = Writer(path: path, statement: "UPDATE local SET n = n + 1")
    writer.start()
    for number in 1...5 {
      let copy = scratch.path + "/copy\(number).db"
      _ = try devices[0].store.snapshot(to: copy)
      let program = try Program(copy)
      #expect(try program.rows("PRAGMA integrity_check") == ["ok"])
      #expect(try program.rows("SELECT count(*) FROM b JOIN a ON a.id = b.a") == ["3000"])
    }
    try writer.stop()
    // With edits that come in between, it is refused, or whole.
    let editor = Writer(
      path: path,
      statement: "BEGIN IMMEDIATE; UPDATE a SET n = n + 1; UPDATE b SET n = n + 1; COMMIT")
    editor.start()
    var refused = 0
    for number in 6...12 {
      let copy = scratch.path + "/copy\(number).db"
      for sealed in try devices[0].outgoing() { _ = sealed }
      do {
        _ = try devices[0].store.snapshot(to: copy)
        let program = try Program(copy)
        #expect(
          try program.rows("SELECT count(*) FROM a JOIN b USING (id) WHERE a.n <> b.n") == ["0"])
      } catch let error as StoreError where error.code == .unpublishedEdits {
        refused += 1
        #expect(!FileManager.default.fileExists(atPath: copy))
      }
    }
    try editor.stop()
    #expect(try devices[0].rows("SELECT count(DISTINCT n) FROM a") == ["1"])
    try devices[0].checkIntegrity()
  }

  @Test(arguments: ["wal", "delete"])
  func aSealedSnapshotIsMadeWhileAnotherProgramMakesEdits(mode: String) throws {
    let devices = try scratch.devices(
      2,
      """
      PRAGMA journal_mode = \(mode);
      CREATE TABLE a (id TEXT PRIMARY KEY, n INTEGER);
      CREATE TABLE b (id TEXT PRIMARY KEY, n INTEGER);
      WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 3000)
      INSERT INTO a SELECT n, 0 FROM i;
      INSERT INTO b SELECT id, 0 FROM a;
      """, options: .patient)
    let client = devices[0].store.binding.client
    let editor = Writer(
      path: devices[0].path,
      statement: """
        BEGIN IMMEDIATE;
        UPDATE a SET n = n + 1 WHERE id LIKE '1_'; UPDATE b SET n = n + 1 WHERE id LIKE '1_';
        COMMIT
        """)
    editor.start()
    var copied: [(number: UInt64, n: String)] = []
    for number in 1...8 {
      let copy = scratch.path + "/copy\(number).db"
      let snapshot = try devices[0].store.sealedSnapshot(to: copy)
      let program = try Program(copy)
      #expect(try program.rows("PRAGMA integrity_check") == ["ok"])
      #expect(
        try program.rows("SELECT count(*) FROM a JOIN b USING (id) WHERE a.n <> b.n") == ["0"])
      let greatest = try program.rows("SELECT max(n) FROM a")
      copied.append((snapshot.vector.number(of: client), greatest[0]))
    }
    try editor.stop()
    #expect(Set(copied.map(\.n)).count > 1)
    // Each has what the change sets contain that it names, and no more.
    let sets = try devices[0].outgoing()
    var applied = 0
    for (number, n) in copied {
      _ = try devices[1].store.apply(Array(sets.prefix(Int(number)).dropFirst(applied)))
      applied = Int(number)
      #expect(try devices[1].rows("SELECT max(n) FROM a") == [n])
    }
    try devices[0].checkIntegrity()
  }

  /// The program makes its edits between the sealing and the copying.
  @Test(arguments: [1, 10, 1_000])
  func editsThatComeAtOnceAfterTheSealingAreSealedToo(count: Int) throws {
    let devices = try scratch.devices(1, "CREATE TABLE t (k INTEGER PRIMARY KEY)")
    let program = try Program(devices[0].path)
    try program.run("PRAGMA busy_timeout = 0")
    var made = 0
    func edit() throws {
      guard made < count else { return }
      do {
        try program.run("INSERT INTO t VALUES (NULL)")
        made += 1
      } catch {
        // The store is at work.
      }
    }
    let copy = scratch.path + "/copy.db"
    func snapshot() throws -> StoreSnapshot {
      try devices[0].store.sealedSnapshot(to: copy, checkCancellation: edit)
    }
    if count == 1_000 {
      #expect { try snapshot() } throws: { ($0 as? StoreError)?.code == .unpublishedEdits }
      #expect(!FileManager.default.fileExists(atPath: copy))
    } else {
      let snapshot = try snapshot()
      #expect(made == count)
      #expect(try Program(copy).rows("SELECT count(*) FROM t") == ["\(count)"])
      #expect(
        snapshot.vector.number(of: devices[0].store.binding.client)
          == UInt64(try devices[0].store.sealedChangeSets().count))
    }
    try devices[0].checkIntegrity()
  }

  /// Changes would be lost to devices that join from the copy.
  @Test func prepareIsCalledBeforeEditsAreSealed() throws {
    struct Stop: Error {}
    let devices = try scratch.devices(1, "CREATE TABLE t (k TEXT PRIMARY KEY)")
    try devices[0].run("INSERT INTO t VALUES ('x')")
    let copy = scratch.path + "/copy.db"
    #expect(throws: Stop.self) {
      try devices[0].store.sealedSnapshot(to: copy) { throw Stop() }
    }
    #expect(try devices[0].store.sealedChangeSets().isEmpty)
    #expect(!FileManager.default.fileExists(atPath: copy))
  }

  @Test func unpublishedEditsRefuseASnapshot() throws {
    let devices = try scratch.devices(1, "CREATE TABLE t (k TEXT PRIMARY KEY)")
    let copy = scratch.path + "/copy.db"
    func expectRefusal() throws {
      #expect { try devices[0].store.snapshot(to: copy) } throws: {
        ($0 as? StoreError)?.code == .unpublishedEdits
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path) == ["device1.db"])
    }
    try devices[0].run("INSERT INTO t VALUES ('x')")
    try expectRefusal()
    _ = try devices[0].store.seal()
    try expectRefusal()
    _ = try devices[0].outgoing()
    _ = try devices[0].store.snapshot(to: copy)
  }

  @Test func excludedDataAndBookkeepingAreNotInTheFile() throws {
    var configuration = AppTriggerTests.excluding("secrets")
    configuration.excludedColumns = ["t": ["password", "pin"]]
    let devices = try scratch.devices(
      1,
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, password TEXT DEFAULT 'none', pin INTEGER,
        changed INTEGER DEFAULT 0, shown AS (name || password));
      CREATE INDEX t_password ON t (password);
      CREATE TABLE secrets (id INTEGER PRIMARY KEY, body TEXT);
      CREATE VIRTUAL TABLE words USING fts5(body, content='secrets', content_rowid='id');
      CREATE VIRTUAL TABLE own USING fts5(password);
      CREATE VIRTUAL TABLE names USING fts5(name, content='t', content_rowid='id');
      CREATE TRIGGER s AFTER INSERT ON secrets BEGIN
        INSERT INTO words (rowid, body) VALUES (NEW.id, NEW.body); END;
      CREATE TRIGGER p AFTER INSERT ON t BEGIN
        INSERT INTO own (rowid, password) VALUES (NEW.id, NEW.password);
        INSERT INTO names (rowid, name) VALUES (NEW.id, NEW.name); END;
      CREATE TRIGGER u AFTER UPDATE ON t BEGIN
        UPDATE t SET changed = changed + 1 WHERE id = NEW.id; END;
      CREATE TRIGGER d BEFORE DELETE ON secrets BEGIN SELECT RAISE(ABORT, 'kept'); END;
      INSERT INTO t (name, password, pin) VALUES ('openname', 'hiddenpassword', 1),
        ('second', 'hiddenpassword', 2);
      INSERT INTO secrets VALUES (1, 'hiddenbody');
      ANALYZE;
      """, configuration: configuration)
    try devices[0].run("UPDATE t SET password = 'hiddenagain', name = 'changedname' WHERE id = 1")
    let sets = try devices[0].outgoing()
    #expect(sets.flatMap(\.changeSet.tables).map(\.columns) == [["name", "changed"]])
    let copy = scratch.path + "/copy.db"
    _ = try devices[0].store.snapshot(to: copy)
    let bytes = try Data(contentsOf: URL(fileURLWithPath: copy))
    for secret in ["hiddenpassword", "hiddenagain", "hiddenbody", "device 1", scratch.path] {
      #expect(bytes.range(of: Data(secret.utf8)) == nil, "\(secret)")
    }
    #expect(bytes.range(of: Data("changedname".utf8)) != nil)
    let program = try Program(copy)
    #expect(try program.rows("PRAGMA integrity_check") == ["ok"])
    #expect(
      try program.rows("SELECT name, password, pin, changed FROM t")
        == ["changedname|none|NULL|1", "second|none|NULL|0"])
    #expect(try program.rows("SELECT count(*) FROM secrets") == ["0"])
    #expect(try program.rows("SELECT rowid FROM names WHERE names MATCH 'second'") == ["2"])
    try program.run("INSERT INTO words (words) VALUES ('integrity-check')")
    for table in ["outbox", "inbox", "history", "record", "log_1"] {
      #expect(try program.rows("SELECT * FROM docsync_\(table)") == [], "\(table)")
    }
    #expect(try program.rows("SELECT key FROM docsync_meta WHERE key = 'binding'") == [])
    #expect(
      try program.rows("SELECT name FROM sqlite_schema WHERE type = 'trigger' ORDER BY name")
        == ["d", "p", "s", "u"])
  }

  @Test(arguments: ["wal", "delete"])
  func adoptingKeepsTheJournalMode(mode: String) throws {
    let devices = try scratch.devices(
      2, "PRAGMA journal_mode = \(mode); CREATE TABLE t (k TEXT PRIMARY KEY)")
    for device in devices { #expect(try device.rows("PRAGMA journal_mode") == [mode]) }
    try devices[1].run("INSERT INTO t VALUES ('x')")
    try converge(devices, "SELECT * FROM t", ["x"])
  }

  @Test func excludedColumnsTakeTheirDefaultsElsewhere() throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["t": ["local"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (k TEXT PRIMARY KEY, v, local TEXT NOT NULL DEFAULT 'mine');
      INSERT INTO t VALUES ('a', 1, 'one');
      """, configuration: configuration)
    try devices[0].run("UPDATE t SET local = 'two'")
    #expect(try devices[0].sealsNothing())
    try devices[0].run("INSERT INTO t VALUES ('b', 2, 'three'); UPDATE t SET v = 5 WHERE k = 'a'")
    try converge(devices, "SELECT k, v FROM t ORDER BY k", ["a|5", "b|2"])
    #expect(try devices[0].rows("SELECT local FROM t ORDER BY k") == ["two", "three"])
    #expect(try devices[1].rows("SELECT local FROM t ORDER BY k") == ["mine", "mine"])
  }
}

/// Another program that writes again and again, until it is stopped.
final class Writer: @unchecked Sendable {
  private let path: String
  private let statement: String
  private let lock = NSLock()
  private let started = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)
  private var isStopping = false
  private var failure: (any Error)?

  init(path: String, statement: String) {
    self.path = path
    self.statement = statement
  }

  /// Returns once it has written.
  func start() {
    let thread = Thread { [self] in
      do {
        let program = try Program(path)
        var count = 0
        while !lock.withLock({ isStopping }) {
          try program.run(statement)
          count += 1
          if count == 1 { started.signal() }
          // Its pace: it must leave others a chance to write as well.
          usleep(3_000)
        }
      } catch {
        lock.withLock { failure = error }
        started.signal()
      }
      ended.signal()
    }
    thread.start()
    started.wait()
  }

  func stop() throws {
    lock.withLock { isStopping = true }
    ended.wait()
    if let failure = lock.withLock({ failure }) { throw failure }
  }
}
