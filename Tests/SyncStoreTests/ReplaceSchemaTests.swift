import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Exchanging a store's content where the schema is another, and what
/// follows it: full-text tables and the application's triggers.
@Suite struct ReplaceSchemaTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func snapshot(_ device: Device) throws -> String {
    let path = scratch.path + "/whole-\(UInt64.random(in: 0 ... .max)).db"
    _ = try device.outgoing()
    _ = try device.store.snapshot(to: path)
    return path
  }

  @discardableResult
  private func replace(_ device: Device, by other: Device) throws -> ContentReplacement {
    let result = try device.store.replaceContent(withSnapshotAt: snapshot(other))
    try device.checkIntegrity()
    return result
  }

  private static let notes = """
    PRAGMA user_version = 1;
    CREATE TABLE folder (id INTEGER PRIMARY KEY, name TEXT UNIQUE, private TEXT);
    CREATE TABLE note (id INTEGER PRIMARY KEY, folder INTEGER REFERENCES folder, body TEXT);
    CREATE TABLE draft (id INTEGER PRIMARY KEY, note INTEGER, body TEXT);
    CREATE VIEW titles AS SELECT substr(body, 1, 3) AS title FROM note;
    INSERT INTO folder VALUES (1, 'in', NULL); INSERT INTO note VALUES (1, 1, 'first note');
    """

  private var configuration: StoreConfiguration {
    var configuration = AppTriggerTests.excluding("draft")
    configuration.excludedColumns = ["folder": ["private"]]
    return configuration
  }

  private static let migration = """
    ALTER TABLE note ADD COLUMN stars INTEGER NOT NULL DEFAULT 0 CHECK (stars BETWEEN 0 AND 5);
    ALTER TABLE folder RENAME COLUMN name TO title;
    CREATE TABLE label (name TEXT PRIMARY KEY, note INTEGER REFERENCES note ON DELETE CASCADE);
    CREATE INDEX note_stars ON note (stars);
    DROP VIEW titles; CREATE VIEW titles AS SELECT body AS title, stars FROM note;
    ALTER TABLE draft ADD COLUMN at INTEGER;
    PRAGMA user_version = 2;
    """

  @Test(arguments: [false, true])
  func tablesTakeTheSchemaOfTheWholeStore(isForward: Bool) throws {
    var devices = try scratch.devices(3, Self.notes, configuration: configuration)
    let new = isForward ? 1 : 2
    try devices[2].run(
      """
      UPDATE folder SET private = 'mine'; INSERT INTO draft (note, body) VALUES (1, 'draft');
      INSERT INTO note (id, folder, body) VALUES (5, 1, 'own');
      """)
    devices[new] = try devices[new].changed(isOpen: false) { try $0.run(Self.migration) }
    try devices[1].run("INSERT INTO note (id, folder, body) VALUES (5, 1, 'other')")
    try devices[new].run(
      "UPDATE note SET stars = 3 WHERE id = 1; INSERT INTO label VALUES ('red', 1)")
    try devices[1].receive(from: devices[2])
    let result = try replace(devices[2], by: devices[1])
    #expect(result.changedSchema)
    #expect(
      try devices[2].rows("SELECT sql FROM sqlite_schema WHERE name = 'note'")
        == devices[1].rows("SELECT sql FROM sqlite_schema WHERE name = 'note'"))
    #expect(try devices[2].rows("PRAGMA user_version") == [isForward ? "2" : "1"])
    #expect(
      try devices[2].rows("SELECT private, note, body FROM folder, draft") == ["mine|1|draft"])
    #expect(
      try devices[2].rows("SELECT id, body FROM note ORDER BY id").prefix(2) == [
        "1|first note", "5|own",
      ])
    #expect(
      try devices[2].rows("SELECT count(*) FROM pragma_table_info('draft')") == [
        isForward ? "4" : "3"
      ])
    #expect(try devices[2].rows("SELECT title FROM titles ORDER BY 1").count == 3)
    #expect(try devices[2].store.digest() == devices[1].store.digest())
    // And on: the application migrates what is old.
    let behind = isForward ? [0] : [0, 1, 2]
    for index in behind {
      devices[index] = try devices[index].changed(isOpen: true) { try $0.run(Self.migration) }
      // Edits of new columns count once the store has seen these.
      _ = try devices[index].store.status()
    }
    try devices[2].run("UPDATE note SET stars = stars + 1; UPDATE folder SET title = 'out'")
    try converge(
      devices, "SELECT body, stars FROM note ORDER BY body", ["first note|4", "other|1", "own|1"])
    #expect(try devices[0].rows("SELECT name FROM label") == ["red"])
  }

  @Test func tablesThatAreGoneStayReadableInTheJournal() throws {
    var devices = try scratch.devices(
      2,
      "CREATE TABLE a (k TEXT PRIMARY KEY, v, w); CREATE TABLE b (k TEXT PRIMARY KEY, v); INSERT INTO a VALUES ('x', 1, 1)"
    )
    devices[1] = try devices[1].changed(isOpen: false) {
      try $0.run("CREATE TABLE a0 (k TEXT PRIMARY KEY, v, w)")
    }
    devices[0] = try devices[0].changed(isOpen: false) {
      try $0.run("CREATE TABLE a0 (k TEXT PRIMARY KEY, v, w)")
    }
    try devices[0].run("INSERT INTO a0 VALUES ('k', 1, 1); INSERT INTO b VALUES ('k', 1)")
    try converge(devices)
    try devices[0].run("UPDATE a0 SET w = 2; UPDATE b SET v = 2; UPDATE a SET w = 2")
    try devices[1].run("UPDATE a0 SET w = 3; UPDATE b SET v = 3; UPDATE a SET w = 3")
    try devices[1].receive(from: devices[0])
    /// The entries, apart from what is shown now.
    func entries() throws -> [Conflict] {
      try devices[1].store.conflicts().map { conflict in
        var conflict = conflict
        (conflict.now, conflict.status) = (nil, .settled)
        return conflict
      }
    }
    let before = try entries()
    #expect(before.count == 3)
    devices[0] = try devices[0].changed(isOpen: false) { device in
      for trigger in try device.rows(
        "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name IN ('a', 'a0')")
      {
        try device.run("DROP TRIGGER \(trigger)")
      }
      try device.run("DROP TABLE a0; ALTER TABLE a DROP COLUMN w")
    }
    try replace(devices[1], by: devices[0])
    #expect(try entries() == before)
    let gone = try #require(before.first { $0.table == "a0" })
    let column = try #require(before.first { $0.table == "a" })
    for number in [gone.number, column.number] {
      #expect { try devices[1].store.restoreConflict(number) } throws: {
        ($0 as? StoreError)?.code == .editRefused
      }
    }
    // Once more, and back again.
    try replace(devices[1], by: devices[0])
    #expect(try entries() == before)
    for index in 0...1 {
      devices[index] = try devices[index].changed(isOpen: false) {
        try $0.run("CREATE TABLE a0 (k TEXT PRIMARY KEY, v, w); ALTER TABLE a ADD COLUMN w")
      }
    }
    _ = try devices[0].outgoing()
    try replace(devices[1], by: devices[0])
    #expect(try entries() == before)
  }

  @Test(arguments: ["content='note', content_rowid='id'", "", "content=''"])
  func aFullTextIndexFollows(content: String) throws {
    let removal =
      content.isEmpty
      ? "DELETE FROM words WHERE rowid = OLD.id;"
      : "INSERT INTO words (words, rowid, body) VALUES ('delete', OLD.id, OLD.body);"
    let index = """
      CREATE VIRTUAL TABLE words USING fts5(body\(content.isEmpty ? "" : ", \(content)"));
      CREATE TRIGGER note_ai AFTER INSERT ON note BEGIN
        INSERT INTO words (rowid, body) VALUES (NEW.id, NEW.body); END;
      CREATE TRIGGER note_ad AFTER DELETE ON note BEGIN \(removal) END;
      CREATE TRIGGER note_au AFTER UPDATE ON note BEGIN \(removal)
        INSERT INTO words (rowid, body) VALUES (NEW.id, NEW.body); END;
      """
    var devices = try scratch.devices(
      3, "\(Self.notes); DELETE FROM note; \(index) INSERT INTO note VALUES (1, 1, 'first note')",
      configuration: configuration)
    func expectWords(_ device: Device) throws {
      if content != "content=''" {
        try device.run("INSERT INTO words (words) VALUES ('integrity-check')")
      }
      for word in ["first", "second", "third", "own", "note"] {
        #expect(
          try device.rows("SELECT rowid FROM words WHERE words MATCH '\(word)' ORDER BY 1")
            == device.rows("SELECT id FROM note WHERE body LIKE '%\(word)%' ORDER BY 1"), "\(word)")
      }
    }
    try devices[1].run("INSERT INTO note VALUES (2, 1, 'second note'), (3, 1, 'third note')")
    try devices[2].run("INSERT INTO note VALUES (2, 1, 'own note')")
    try replace(devices[2], by: devices[1])
    try expectWords(devices[2])
    try devices[1].run(
      "UPDATE note SET body = 'second' WHERE body LIKE 'first%'; DELETE FROM note WHERE id = 3")
    try replace(devices[2], by: devices[1])
    try expectWords(devices[2])
    // A device that does not have the index gets it.
    devices[0] = try devices[0].changed(isOpen: false) {
      try $0.run(
        "DROP TRIGGER note_ai; DROP TRIGGER note_ad; DROP TRIGGER note_au; DROP TABLE words")
    }
    try replace(devices[0], by: devices[2])
    try expectWords(devices[0])
    try devices[0].run("UPDATE note SET body = 'third'")
    try converge(devices, "SELECT DISTINCT body FROM note", ["third"])
    for device in devices { try expectWords(device) }
  }

  @Test func onlyRowsThatDifferFireTriggersAndAFailingOneIsPassedOver() throws {
    let devices = try scratch.devices(
      2,
      """
      \(Self.notes)
      CREATE TABLE audit (what TEXT CHECK (what NOT LIKE '%bad%'));
      CREATE TRIGGER note_ai AFTER INSERT ON note BEGIN INSERT INTO audit VALUES ('+' || NEW.body); END;
      CREATE TRIGGER note_ad AFTER DELETE ON note BEGIN INSERT INTO audit VALUES ('-' || OLD.body); END;
      """,
      configuration: {
        var configuration = configuration
        configuration.excludedTables.insert("audit")
        return configuration
      }())
    try devices[0].run(
      """
      PRAGMA recursive_triggers = ON; DROP TABLE audit; CREATE TABLE audit (what TEXT CHECK (what NOT LIKE '%bad%'));
      INSERT INTO note VALUES (2, 1, 'second'), (4, 1, 'fourth');
      """)
    try replace(devices[1], by: devices[0])
    #expect(try devices[1].rows("SELECT what FROM audit ORDER BY 1") == ["+fourth", "+second"])
    try devices[0].run("DROP TRIGGER note_ai; DROP TRIGGER note_ad")
    try devices[0].run(
      "INSERT INTO note VALUES (5, 1, 'bad'), (6, 1, 'good'); DELETE FROM note WHERE id = 2")
    try devices[0].run(
      """
      CREATE TRIGGER note_ai AFTER INSERT ON note BEGIN INSERT INTO audit VALUES ('+' || NEW.body); END;
      CREATE TRIGGER note_ad AFTER DELETE ON note BEGIN INSERT INTO audit VALUES ('-' || OLD.body); END;
      """)
    let result = try replace(devices[1], by: devices[0])
    #expect(result.warnings.map(\.code) == [.triggerFailed])
    #expect(
      try devices[1].rows("SELECT what FROM audit ORDER BY 1")
        == ["+fourth", "+good", "+second", "-second"])
    try converge(
      devices, "SELECT body FROM note ORDER BY id", ["first note", "fourth", "bad", "good"])
  }

  @Test func aDeclaredKeyKeepsItsRowidAndThoseWhoReferToIt() throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["city": .columns(["name"])]
    let devices = try scratch.devices(
      3,
      """
      CREATE TABLE city (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, size INTEGER);
      CREATE TABLE person (name TEXT PRIMARY KEY, city INTEGER REFERENCES city);
      """, configuration: configuration)
    try devices[1].run(
      "INSERT INTO city VALUES (1, 'Rome', 1), (2, 'Oslo', 2); INSERT INTO person VALUES ('a', 1)")
    try devices[2].run(
      "INSERT INTO city VALUES (1, 'Oslo', 2), (2, 'Bern', 3); INSERT INTO person VALUES ('b', 2)")
    try replace(devices[2], by: devices[1])
    #expect(
      try devices[2].rows("SELECT id, name FROM city ORDER BY id") == [
        "1|Oslo", "2|Bern", "3|Rome",
      ])
    #expect(
      try devices[2].rows(
        "SELECT p.name, c.name FROM person p JOIN city c ON c.id = city ORDER BY 1")
        == ["a|Rome", "b|Bern"])
    try converge(
      devices, "SELECT p.name, c.name FROM person p JOIN city c ON c.id = city ORDER BY 1",
      ["a|Rome", "b|Bern"])
  }

  @Test func keysSwapBetweenDevices() throws {
    let devices = try scratch.devices(
      3,
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, up INTEGER REFERENCES t, v UNIQUE);
      INSERT INTO t VALUES (1, NULL, 'a'), (2, 1, 'b'), (3, 2, 'c'), (9223372036854775807, 3, 'max');
      """)
    // Rows from before syncing change places on one device.
    try devices[1].run("INSERT INTO t VALUES (10, 3, 'x'), (11, 10, 'y')")
    try devices[2].run("INSERT INTO t VALUES (10, 2, 'p'), (11, 10, 'q'), (12, 11, 'r')")
    try devices[1].receive(from: devices[2])
    try devices[1].run(
      "DELETE FROM t WHERE v IN ('max', 'q') AND 0; UPDATE t SET v = v || '!' WHERE v IN ('a', 'p')"
    )
    try replace(devices[2], by: devices[1])
    #expect(
      try devices[2].rows("SELECT id, v FROM t WHERE id < 100 ORDER BY id").prefix(6)
        == ["1|a!", "2|b", "3|c", "10|p!", "11|q", "12|r"])
    #expect(
      try devices[2].rows("SELECT t.v, u.v FROM t JOIN t u ON u.id = t.up ORDER BY 1")
        == devices[1].rows("SELECT t.v, u.v FROM t JOIN t u ON u.id = t.up ORDER BY 1"))
    #expect(try devices[2].store.digest() == devices[1].store.digest())
    try devices[2].run("DELETE FROM t WHERE v = 'r'; UPDATE t SET up = NULL WHERE v = 'y'")
    try replace(devices[0], by: devices[1])
    try converge(devices)
    #expect(try devices[0].rows("SELECT v FROM t WHERE up IS NULL ORDER BY 1") == ["a!", "y"])
  }
}
