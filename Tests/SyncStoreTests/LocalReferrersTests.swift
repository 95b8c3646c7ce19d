import SyncModel
import Testing

@testable import SyncStore

/// Excluded tables and columns that refer to synchronized rows follow these as they would if foreign
/// keys were on.
@Suite struct LocalReferrersTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Devices whose tables “mark” and “sub”, and columns “own”, stay on each of them.
  private func devices(_ schema: String, columns: [SQLName: Set<SQLName>] = [:]) throws -> [Device]
  {
    var configuration = StoreConfiguration()
    configuration.excludedTables = ["mark"]
    if schema.contains("TABLE sub") { configuration.excludedTables.insert("sub") }
    configuration.excludedColumns = columns
    return try scratch.devices(2, schema, configuration: configuration)
  }

  private func expectSound(_ device: Device) throws {
    #expect(try LocalStore.verify(at: device.path).report.findings == [])
    #expect(try device.rows("PRAGMA foreign_key_check") == [])
    #expect(try device.sealsNothing())
  }

  @Test(
    arguments: [
      ("ON DELETE CASCADE", ["1|1|a", "3||c"]),
      ("ON DELETE SET NULL", ["1|1|a", "2||b", "3||c"]),
      ("DEFAULT 1 REFERENCES note (id) ON DELETE SET DEFAULT", ["1|1|a", "2|1|b", "3||c"]),
    ], ["", " WITHOUT ROWID"])
  func aDeletionIsFollowed(action: (sql: String, rows: [String]), rowid: String) throws {
    let reference =
      action.sql.hasPrefix("ON") ? "REFERENCES note (id) \(action.sql)" : action.sql
    let devices = try devices(
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, t TEXT);
      CREATE TABLE mark (id INTEGER PRIMARY KEY, note INTEGER \(reference), t TEXT)\(rowid);
      INSERT INTO note VALUES (1, 'one'), (2, 'two');
      """)
    try devices[1].run("INSERT INTO mark VALUES (1, 1, 'a'), (2, 2, 'b'), (3, NULL, 'c')")
    try devices[0].run("DELETE FROM note WHERE id = 2")
    try exchange(devices)
    let rows = "SELECT id, coalesce(note, ''), t FROM mark ORDER BY id"
    #expect(try devices[1].rows(rows) == action.rows)
    try expectSound(devices[1])
  }

  /// The rows of a table that stays refer to one another, and a full-text index follows them.
  @Test func deletionsGoOnAmongTheRowsThatStay() throws {
    let devices = try devices(
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, t TEXT);
      CREATE TABLE mark (
        id INTEGER PRIMARY KEY, note INTEGER REFERENCES note (id) ON DELETE CASCADE, t TEXT,
        up INTEGER REFERENCES mark (id) ON DELETE CASCADE);
      CREATE TABLE sub (
        k TEXT PRIMARY KEY, mark INTEGER REFERENCES mark (id) ON DELETE SET NULL) WITHOUT ROWID;
      CREATE VIRTUAL TABLE words USING fts5 (t, content = 'mark', content_rowid = 'id');
      CREATE TRIGGER words_in AFTER INSERT ON mark BEGIN
        INSERT INTO words (rowid, t) VALUES (new.id, new.t);
      END;
      CREATE TRIGGER words_out AFTER DELETE ON mark BEGIN
        INSERT INTO words (words, rowid, t) VALUES ('delete', old.id, old.t);
      END;
      INSERT INTO note VALUES (1, 'one'), (2, 'two');
      """)
    try devices[1].run(
      """
      INSERT INTO mark VALUES (1, 1, 'a', NULL), (2, 2, 'b', NULL), (3, NULL, 'c', 2), (4, NULL, 'd', 3);
      UPDATE mark SET up = 4 WHERE id = 2;
      INSERT INTO sub VALUES ('x', 1), ('y', 3);
      """)
    try devices[0].run("DELETE FROM note WHERE id = 2")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT id FROM mark") == ["1"])
    #expect(try devices[1].rows("SELECT k, coalesce(mark, '') FROM sub") == ["x|1", "y|"])
    #expect(
      try devices[1].rows("SELECT rowid FROM words WHERE words MATCH 'a OR b OR c OR d'") == ["1"])
    try expectSound(devices[1])
  }

  /// Another row has taken the unique value, so that the row is hidden, and not deleted.
  @Test func aHiddenRowIsNotDeleted() throws {
    let devices = try devices(
      """
      CREATE TABLE note (k TEXT PRIMARY KEY, t TEXT UNIQUE);
      CREATE TABLE mark (
        id INTEGER PRIMARY KEY, note TEXT REFERENCES note (k) ON DELETE CASCADE ON UPDATE CASCADE);
      """)
    try devices[1].run("INSERT INTO note VALUES ('a', 'x'); INSERT INTO mark VALUES (1, 'a')")
    _ = try devices[1].store.seal()
    try devices[0].run("INSERT INTO note VALUES ('b', 'x')")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT k FROM note") == ["b"])
    #expect(try devices[1].rows("SELECT note FROM mark") == ["a"])
    try devices[0].run("DELETE FROM note")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT k FROM note") == ["a"])
    #expect(try devices[1].rows("SELECT note FROM mark") == ["a"])
    try expectSound(devices[1])
  }

  /// A key that changes is no deletion, and no other row needs to refer to the table.
  @Test(
    arguments: [
      ("ON DELETE CASCADE ON UPDATE CASCADE", "a2"),
      ("ON DELETE CASCADE ON UPDATE SET NULL", "NULL"), ("ON DELETE CASCADE", "a"),
    ])
  func aNewKeyIsFollowed(actions: String, shown: String) throws {
    let devices = try devices(
      """
      CREATE TABLE tag (name TEXT PRIMARY KEY COLLATE NOCASE, t TEXT);
      CREATE TABLE mark (id INTEGER PRIMARY KEY, tag TEXT REFERENCES tag (name) \(actions));
      INSERT INTO tag VALUES ('a', 'one'), ('b', 'two');
      """)
    try devices[1].run("INSERT INTO mark VALUES (1, 'A'), (2, 'b')")
    try devices[0].run("UPDATE tag SET name = 'a1' WHERE name = 'a'")
    try devices[0].run("UPDATE tag SET name = 'a2' WHERE name = 'a1'")
    try exchange(devices)
    let expected = shown == "a" ? "A" : shown
    #expect(try devices[1].rows("SELECT tag FROM mark ORDER BY id") == [expected, "b"])
  }

  /// The row gets another key first, with the action that foreign keys have without a word.
  @Test func aDeletionUnderANewKeyIsFollowed() throws {
    let devices = try devices(
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, t TEXT);
      CREATE TABLE mark (
        id INTEGER PRIMARY KEY, note INTEGER REFERENCES note (id) ON DELETE CASCADE);
      INSERT INTO note VALUES (1, 'one');
      """)
    try devices[1].run("INSERT INTO mark VALUES (1, 1)")
    try devices[0].run("UPDATE note SET id = 2")
    _ = try devices[0].store.seal()
    try devices[0].run("DELETE FROM note")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT id FROM note") == [])
    #expect(try devices[1].rows("SELECT id FROM mark") == [])
    try expectSound(devices[1])
  }

  /// A word alone is a text in a DEFAULT.
  @Test(arguments: [("none", "none"), ("'none'", "none"), ("(lower('NONE'))", "none")])
  func aDefaultIsGiven(sql: String, shown: String) throws {
    let devices = try devices(
      """
      CREATE TABLE tag (name TEXT PRIMARY KEY, t TEXT);
      CREATE TABLE mark (
        id INTEGER PRIMARY KEY,
        tag TEXT DEFAULT \(sql) REFERENCES tag (name) ON DELETE SET DEFAULT);
      INSERT INTO tag VALUES ('none', ''), ('a', 'one');
      """)
    try devices[1].run("INSERT INTO mark VALUES (1, 'a')")
    try devices[0].run("DELETE FROM tag WHERE name = 'a'")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT tag FROM mark") == [shown])
    try expectSound(devices[1])
  }

  /// An integer key that a program changes is another row's, as which the row lives on.
  @Test(arguments: [("CASCADE", "2"), ("SET NULL", "NULL"), ("NO ACTION", "1")])
  func aNewIntegerKeyIsFollowed(action: String, shown: String) throws {
    let devices = try devices(
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, t TEXT);
      CREATE TABLE mark (
        id INTEGER PRIMARY KEY,
        note INTEGER REFERENCES note (id) ON DELETE CASCADE ON UPDATE \(action));
      INSERT INTO note VALUES (1, 'one');
      """)
    try devices[1].run("INSERT INTO mark VALUES (1, 1)")
    try devices[0].run("UPDATE note SET id = 2")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT id, t FROM note") == ["2|one"])
    #expect(try devices[1].rows("SELECT note FROM mark") == [shown])
  }

  /// Two rows get other keys in one synchronization.
  @Test func severalNewKeysAreFollowed() throws {
    let devices = try devices(
      """
      CREATE TABLE tag (name TEXT PRIMARY KEY, t TEXT);
      CREATE TABLE mark (id INTEGER PRIMARY KEY, tag TEXT REFERENCES tag (name) ON UPDATE CASCADE);
      INSERT INTO tag VALUES ('a', 'one'), ('b', 'two');
      """)
    try devices[1].run("INSERT INTO mark VALUES (1, 'a'), (2, 'b')")
    try devices[0].run("UPDATE tag SET name = 'c' WHERE name = 'a'")
    try devices[0].run("UPDATE tag SET name = 'd' WHERE name = 'b'")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT tag FROM mark ORDER BY id") == ["c", "d"])
    try expectSound(devices[1])
  }

  /// A reference to a unique column, of several columns, or to a row whose number stays the same.
  @Test func otherValuesAreFollowed() throws {
    let devices = try devices(
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, a TEXT, b TEXT, UNIQUE (a, b));
      CREATE TABLE mark (
        id INTEGER PRIMARY KEY, a TEXT, b TEXT, person INTEGER REFERENCES person (id) ON DELETE CASCADE,
        FOREIGN KEY (a, b) REFERENCES person (a, b) ON UPDATE CASCADE ON DELETE SET NULL);
      INSERT INTO person VALUES (1, 'x', 'y'), (2, 'p', 'q');
      """)
    try devices[1].run("INSERT INTO mark VALUES (1, 'x', 'y', 1), (2, 'p', 'q', 1)")
    try devices[0].run("UPDATE person SET b = 'z' WHERE id = 1; DELETE FROM person WHERE id = 2")
    try exchange(devices)
    #expect(
      try devices[1].rows("SELECT id, coalesce(a, ''), coalesce(b, ''), person FROM mark")
        == ["1|x|z|1", "2|||1"])
    try expectSound(devices[1])
  }

  @Test func anExcludedColumnIsFollowed() throws {
    let devices = try devices(
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, t TEXT);
      CREATE TABLE task (
        id INTEGER PRIMARY KEY, t TEXT, own INTEGER REFERENCES note (id) ON DELETE SET NULL,
        own2 INTEGER REFERENCES note (id) ON DELETE CASCADE);
      CREATE TABLE mark (id INTEGER PRIMARY KEY);
      INSERT INTO note VALUES (1, 'one'), (2, 'two');
      INSERT INTO task (id, t) VALUES (1, 'a'), (2, 'b');
      """, columns: ["task": ["own", "own2"]])
    try devices[1].run("UPDATE task SET own = 3 - id; UPDATE task SET own2 = 2 WHERE id = 2")
    try devices[0].run("DELETE FROM note WHERE id = 2")
    try exchange(devices)
    // The row is on other devices as well, so it is not deleted for a value that is on this one.
    #expect(
      try devices[1].rows("SELECT id, coalesce(own, ''), coalesce(own2, '') FROM task")
        == ["1||", "2|1|2"])
    #expect(try devices[0].rows("SELECT id FROM task") == ["1", "2"])
  }

  /// One row refers to two deleted rows, by foreign keys with other actions.
  @Test(arguments: [("SET NULL", "CASCADE", []), ("SET NULL", "SET NULL", ["1||"])])
  func eachForeignKeyIsFollowed(first: String, second: String, rows: [String]) throws {
    let devices = try devices(
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, t TEXT);
      CREATE TABLE person (id INTEGER PRIMARY KEY, t TEXT);
      CREATE TABLE mark (
        id INTEGER PRIMARY KEY, note INTEGER REFERENCES note (id) ON DELETE \(first),
        person INTEGER REFERENCES person (id) ON DELETE \(second));
      INSERT INTO note VALUES (1, 'one'); INSERT INTO person VALUES (1, 'Ann');
      """)
    try devices[1].run("INSERT INTO mark VALUES (1, 1, 1)")
    try devices[0].run("DELETE FROM note; DELETE FROM person")
    try exchange(devices)
    #expect(
      try devices[1].rows("SELECT id, coalesce(note, ''), coalesce(person, '') FROM mark") == rows)
    try expectSound(devices[1])
  }

  /// The referring columns are a key, to which others refer in turn.
  @Test func newKeysGoOnAmongTheRowsThatStay() throws {
    let devices = try devices(
      """
      CREATE TABLE tag (name TEXT PRIMARY KEY, t TEXT);
      CREATE TABLE person (name TEXT PRIMARY KEY, t TEXT);
      CREATE TABLE mark (
        tag TEXT REFERENCES tag (name) ON UPDATE CASCADE ON DELETE CASCADE,
        person TEXT REFERENCES person (name) ON UPDATE CASCADE, PRIMARY KEY (tag, person)) WITHOUT ROWID;
      CREATE TABLE sub (
        id INTEGER PRIMARY KEY, tag TEXT, person TEXT,
        FOREIGN KEY (tag, person) REFERENCES mark (tag, person) ON UPDATE CASCADE ON DELETE CASCADE);
      INSERT INTO tag VALUES ('a', 'one'), ('b', 'two'); INSERT INTO person VALUES ('x', 'Ann');
      """)
    try devices[1].run(
      """
      INSERT INTO mark VALUES ('a', 'x'), ('b', 'x');
      INSERT INTO sub VALUES (1, 'a', 'x'), (2, 'b', 'x');
      """)
    try devices[0].run(
      """
      UPDATE tag SET name = 'c' WHERE name = 'b'; UPDATE tag SET name = 'd' WHERE name = 'a';
      UPDATE person SET name = 'y';
      """)
    try exchange(devices)
    #expect(try devices[1].rows("SELECT name, t FROM tag ORDER BY name") == ["c|two", "d|one"])
    #expect(try devices[1].rows("SELECT tag, person FROM mark ORDER BY tag") == ["c|y", "d|y"])
    #expect(
      try devices[1].rows("SELECT id, tag, person FROM sub ORDER BY id") == ["1|d|y", "2|c|y"])
    try expectSound(devices[1])
  }

  /// The value of a deleted row passes to a row that was hidden, so that nothing is left without it.
  @Test func aValueThatIsStillThereIsNotDeleted() throws {
    let devices = try devices(
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, t TEXT UNIQUE);
      CREATE TABLE mark (id INTEGER PRIMARY KEY, t TEXT REFERENCES note (t) ON DELETE CASCADE);
      """)
    try devices[1].run("INSERT INTO note VALUES (1, 'x')")
    _ = try devices[1].store.seal()
    try devices[0].run("INSERT INTO note VALUES (2, 'x')")
    try exchange(devices)
    try devices[1].run("INSERT INTO mark VALUES (1, 'x')")
    try devices[0].run("DELETE FROM note")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT t FROM note") == ["x"])
    #expect(try devices[1].rows("SELECT t FROM mark") == ["x"])
    try expectSound(devices[1])
  }

  /// A whole store that does not have a row yet says nothing of it.
  @Test func aRowThatAWholeStoreLacksIsNotDeleted() throws {
    let devices = try devices(
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, t TEXT);
      CREATE TABLE mark (id INTEGER PRIMARY KEY, note INTEGER REFERENCES note (id) ON DELETE CASCADE);
      INSERT INTO note VALUES (1, 'one');
      """)
    let path = scratch.path + "/whole.db"
    _ = try devices[0].store.snapshot(to: path)
    try devices[0].run("INSERT INTO note VALUES (2, 'two')")
    try exchange(devices)
    try devices[1].run("INSERT INTO mark SELECT id, id FROM note")
    _ = try devices[1].store.replaceContent(withSnapshotAt: path)
    #expect(try devices[1].rows("SELECT id FROM note") == ["1"])
    #expect(try devices[1].rows("SELECT id FROM mark") == ["1", "2"])
  }

  /// A constraint of the table refuses what the foreign key prescribes.
  @Test func whatIsRefusedStays() throws {
    let devices = try devices(
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, t TEXT);
      CREATE TABLE mark (
        id INTEGER PRIMARY KEY, note INTEGER NOT NULL REFERENCES note (id) ON DELETE SET NULL);
      CREATE TABLE sub (note INTEGER PRIMARY KEY REFERENCES note (id) ON DELETE SET NULL);
      INSERT INTO note VALUES (1, 'one'), (2, 'two');
      """)
    try devices[1].run("INSERT INTO mark VALUES (1, 1), (2, 2); INSERT INTO sub VALUES (1), (2)")
    try devices[0].run("DELETE FROM note WHERE id = 2")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT note FROM mark") == ["1", "2"])
    #expect(try devices[1].rows("SELECT note FROM sub") == ["1", "2"])
    let findings = try LocalStore.verify(at: devices[1].path).report.findings
    #expect(findings.map(\.kind) == [.foreignKeysBroken, .foreignKeysBroken])
  }

  /// A table that cannot be synchronized follows as an excluded one does.
  @Test func anUnsuitableTableFollows() throws {
    let devices = try devices(
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, t TEXT);
      CREATE TABLE mark (id INTEGER PRIMARY KEY);
      INSERT INTO note VALUES (1, 'one'), (2, 'two');
      """)
    try devices[1].run(
      """
      CREATE TABLE log (note INTEGER REFERENCES note (id) ON DELETE CASCADE, t);
      INSERT INTO log VALUES (1, 'a'), (2, 'b'), (2, 'c');
      """)
    try devices[0].run("DELETE FROM note WHERE id = 2")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT t FROM log") == ["a"])
  }

  /// The rows leave by a whole store, in which one of them has another key.
  @Test func aWholeStoreIsFollowed() throws {
    let devices = try devices(
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, t TEXT);
      CREATE TABLE tag (name TEXT PRIMARY KEY, t TEXT);
      CREATE TABLE task (
        id INTEGER PRIMARY KEY, t TEXT, own INTEGER REFERENCES note (id) ON DELETE SET NULL);
      CREATE TABLE mark (
        id INTEGER PRIMARY KEY, note INTEGER REFERENCES note (id) ON DELETE CASCADE,
        tag TEXT REFERENCES tag (name) ON DELETE CASCADE ON UPDATE CASCADE);
      INSERT INTO note VALUES (1, 'one'), (2, 'two'), (3, 'three');
      INSERT INTO tag VALUES ('a', 'one'), ('b', 'two');
      INSERT INTO task (id, t) VALUES (1, 'x'), (2, 'y');
      """, columns: ["task": ["own"]])
    try devices[1].run(
      """
      INSERT INTO mark VALUES (1, 1, 'a'), (2, 2, 'a'), (3, 3, 'b');
      UPDATE task SET own = id;
      """)
    try devices[0].run(
      """
      DELETE FROM note WHERE id = 2; UPDATE note SET t = 'drei' WHERE id = 3;
      UPDATE tag SET name = 'a2' WHERE name = 'a'; UPDATE task SET t = t || '!';
      """)
    _ = try devices[0].outgoing()
    let path = scratch.path + "/whole.db"
    _ = try devices[0].store.snapshot(to: path)
    _ = try devices[1].store.replaceContent(withSnapshotAt: path)
    #expect(
      try devices[1].rows("SELECT id, note, tag FROM mark") == ["1|1|a2", "3|3|b"])
    #expect(try devices[1].rows("SELECT t, coalesce(own, '') FROM task") == ["x!|1", "y!|"])
    try expectSound(devices[1])
  }
}
