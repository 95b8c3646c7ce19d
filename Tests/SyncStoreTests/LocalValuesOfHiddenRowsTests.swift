import SyncModel
import Synchronization
import Testing

@testable import SyncStore

/// Values of excluded columns, of rows that leave their tables and come back.
@Suite struct LocalValuesOfHiddenRowsTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Devices on each of which the column “draft” of the notes stays.
  private func devices(_ count: Int = 2, key: String) throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["note": ["draft"]]
    if key == Self.declared { configuration.identities = ["note": .columns(["t"])] }
    return try scratch.devices(
      count,
      "CREATE TABLE note (\(key), t TEXT NOT NULL, u TEXT UNIQUE, draft TEXT DEFAULT 'none');"
        + (key == Self.declared ? "CREATE UNIQUE INDEX note_t ON note (t);" : "")
        + "INSERT INTO note (t, u) VALUES ('one', 'v')", configuration: configuration)
  }

  /// Another device gives the row another key.
  @Test(
    arguments: [
      (
        "id TEXT PRIMARY KEY NOT NULL, t TEXT", "note TEXT REFERENCES note ON UPDATE CASCADE",
        "UPDATE note SET id = '7'"
      ),
      (
        "id TEXT NOT NULL, n INTEGER NOT NULL DEFAULT 1, t TEXT, PRIMARY KEY (id, n)",
        "note TEXT, n INTEGER, FOREIGN KEY (note, n) REFERENCES note ON UPDATE CASCADE",
        "UPDATE note SET n = 7"
      ),
      (
        "id TEXT NOT NULL UNIQUE, k INTEGER PRIMARY KEY, t TEXT",
        "note INTEGER REFERENCES note", "UPDATE note SET id = '7'"
      ),
    ])
  func aRowWithAnotherKeyKeepsThem(columns: String, reference: String, edit: String) throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["note": ["draft"]]
    if columns.contains("UNIQUE") { configuration.identities = ["note": .columns(["id"])] }
    let devices = try scratch.devices(
      2,
      "CREATE TABLE note (draft TEXT, \(columns)); INSERT INTO note (id, t) VALUES ('1', 'one');"
        + "CREATE TABLE task (k TEXT PRIMARY KEY, \(reference));",
      configuration: configuration)
    try devices[1].run("UPDATE note SET draft = 'mine'")
    try devices[0].run(edit)
    try devices[0].run("UPDATE note SET t = 'new'")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT t, draft FROM note") == ["new|mine"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try expectSound(devices)
  }

  private static let keys = ["id INTEGER PRIMARY KEY", "id TEXT PRIMARY KEY NOT NULL DEFAULT 'k'"]
  /// A key beside which the column “t” identifies the rows.
  private static let declared = "id INTEGER PRIMARY KEY NOT NULL"

  private func expectSound(_ devices: [Device]) throws {
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
    #expect(try devices[0].store.digest() == devices[1].store.digest())
  }

  /// Another row takes a unique value, and gives it up.
  @Test(arguments: keys + [declared])
  func aHiddenRowKeepsThem(key: String) throws {
    let devices = try devices(key: key)
    try devices[1].run("UPDATE note SET u = 'w', draft = 'mine'")
    _ = try devices[1].store.seal()
    // A later edit takes precedence.
    try devices[0].run("INSERT INTO note (id, t, u) VALUES (77, 'other', 'w')")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT t FROM note") == ["other"])
    try devices[0].run("UPDATE note SET u = 'x' WHERE t = 'other'")
    try exchange(devices)
    #expect(
      try devices[1].rows("SELECT t, draft FROM note ORDER BY t") == ["one|mine", "other|none"])
    #expect(try devices[0].rows("SELECT draft FROM note") == ["none", "none"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try expectSound(devices)
  }

  /// A policy brings the row back at once, or the user later, from the journal.
  @Test(arguments: keys, [true, false])
  func aRowThatComesBackKeepsThem(key: String, isDecided: Bool) throws {
    let devices = try devices(key: key)
    if isDecided { try devices[1].setPolicy(.localWins) }
    try devices[1].run("UPDATE note SET t = 'mine', draft = 'mine'")
    try devices[0].run("DELETE FROM note")
    try devices[1].receive(from: devices[0])
    if !isDecided {
      #expect(try devices[1].rows("SELECT t FROM note") == [])
      let number = try #require(try devices[1].store.conflicts().last?.number)
      try devices[1].store.restoreConflict(number)
    }
    #expect(try devices[1].rows("SELECT t, draft FROM note") == ["mine|mine"])
    try exchange(devices)
    #expect(try devices[0].rows("SELECT t, draft FROM note") == ["mine|none"])
    try expectSound(devices)
  }

  /// A row that is deleted while it is hidden takes them along.
  @Test(arguments: keys)
  func aDeletedRowDoesNotKeepThem(key: String) throws {
    let devices = try devices(3, key: key)
    try devices[1].run("UPDATE note SET u = 'w', draft = 'mine'")
    try exchange([devices[0], devices[1]])
    try devices[2].run("INSERT INTO note (id, t, u) VALUES (77, 'other', 'w')")
    try devices[1].receive(from: devices[2])
    #expect(try devices[1].rows("SELECT t, draft FROM note") == ["other|none"])
    #expect(try devices[1].rows("SELECT value FROM docsync_aside") == ["mine"])
    try devices[0].run("DELETE FROM note")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    #expect(try devices[1].rows("SELECT t, draft FROM note") == ["other|none"])
    try expectSound(devices)
  }

  /// A row is hidden with its parent, which the user brings back.
  @Test func aRowThatWentWithItsParentKeepsThem() throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["note": ["draft"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE folder (id TEXT PRIMARY KEY NOT NULL, t TEXT);
      CREATE TABLE note (id INTEGER PRIMARY KEY, folder TEXT REFERENCES folder ON DELETE CASCADE,
        draft TEXT);
      INSERT INTO folder VALUES ('f', 'one');
      """, configuration: configuration)
    try devices[1].run("INSERT INTO note VALUES (1, 'f', 'mine')")
    try devices[0].run("DELETE FROM folder")
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].rows("SELECT id FROM note") == [])
    try exchange(devices)
    try devices[0].run("INSERT INTO folder VALUES ('f', 'again')")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT folder, draft FROM note") == ["f|mine"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try expectSound(devices)
  }

  /// The user restores the row after another device has inserted one that refers to it.
  @Test func theyOutliveTheArrivalOfAReferringRow() throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["folder": ["draft"]]
    let devices = try scratch.devices(
      3,
      """
      CREATE TABLE folder (id TEXT PRIMARY KEY NOT NULL, t TEXT, draft TEXT);
      CREATE TABLE note (id INTEGER PRIMARY KEY, folder TEXT REFERENCES folder ON DELETE CASCADE);
      INSERT INTO folder VALUES ('f', 'one', NULL);
      """, configuration: configuration)
    try devices[1].run("UPDATE folder SET t = 'mine', draft = 'mine'")
    try devices[0].run("DELETE FROM folder")
    try devices[2].run("INSERT INTO note VALUES (1, 'f')")
    try devices[1].receive(from: devices[0])
    try devices[1].receive(from: devices[2])
    #expect(try devices[1].rows("SELECT count(*) FROM folder") == ["0"])
    let conflict = try devices[1].store.conflicts().first { $0.kind == .existence }
    try devices[1].store.restoreConflict(try #require(conflict).number)
    #expect(try devices[1].rows("SELECT t, draft FROM folder") == ["mine|mine"])
  }

  /// A policy brings one row back. Another one is deleted without a conflict, and a new row gets its
  /// key; a program inserts a third one again.
  @Test func aNewRowWithTheKeyDoesNotGetThem() throws {
    let devices = try devices(key: Self.keys[1])
    try devices[1].setPolicy(.localWins)
    try devices[0].run("INSERT INTO note (id, t) VALUES ('a', 'a'), ('b', 'b')")
    try exchange(devices)
    try devices[1].run("UPDATE note SET draft = 'mine'; UPDATE note SET t = 'A' WHERE id = 'a'")
    try devices[0].run("DELETE FROM note")
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].rows("SELECT id, draft FROM note") == ["a|mine"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try exchange(devices)
    try devices[0].run("INSERT INTO note (id, t) VALUES ('b', 'new')")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT id, draft FROM note ORDER BY id") == ["a|mine", "b|none"])
    // A deletion is in conflict, and the program inserts the row itself.
    try devices[1].setPolicy(.remoteWins)
    try devices[1].run("UPDATE note SET draft = 'old', t = 'B' WHERE id = 'b'")
    try devices[0].run("DELETE FROM note WHERE id = 'b'")
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].rows("SELECT value FROM docsync_aside") == ["old"])
    try devices[1].run("INSERT INTO note (id, t, draft) VALUES ('b', 'typed', 'typed')")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT draft FROM note WHERE id = 'b'") == ["typed"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try expectSound(devices)
  }

  /// The row to which one leads has another number by now, or is deleted, and another one has its
  /// number.
  @Test(arguments: [true, false])
  func referencesLeadToTheSameRows(isDeleted: Bool) throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["note": ["person", "draft"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE note (id INTEGER PRIMARY KEY, u TEXT UNIQUE, draft TEXT,
        person INTEGER REFERENCES person ON DELETE SET NULL);
      INSERT INTO person VALUES (3, 'Ann'); INSERT INTO note (u) VALUES ('v');
      """, configuration: configuration)
    try devices[1].run("INSERT INTO person VALUES (4, 'Eve')")
    try devices[1].run("UPDATE note SET u = 'w', draft = 'mine', person = 4")
    try exchange(devices)
    try devices[1].run("UPDATE note SET u = 'y'")
    _ = try devices[1].store.seal()
    try devices[0].run("INSERT INTO note (id, u) VALUES (77, 'y')")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT u, draft FROM note") == ["y|NULL"])
    if isDeleted {
      try devices[0].run("DELETE FROM person WHERE name = 'Eve'")
      try exchange(devices)
      try devices[1].run("INSERT INTO person VALUES (4, 'Bob')")
    }
    try devices[0].run("UPDATE note SET u = 'x'")
    try exchange(devices)
    let notes = "SELECT u, draft, name FROM note LEFT JOIN person ON person.id = person ORDER BY u"
    #expect(
      try devices[1].rows(notes) == ["x|NULL|NULL", isDeleted ? "y|mine|NULL" : "y|mine|Eve"])
    try expectSound(devices)
  }

  private func devicesWithPeople(
    isParentFirst: Bool = true, column: String = "INTEGER", isDeclared: Bool = false
  ) throws -> [Device] {
    let tables = [
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT,
        folder TEXT REFERENCES folder ON DELETE CASCADE);
      CREATE UNIQUE INDEX person_name ON person (name);
      """,
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, t TEXT,
        folder TEXT REFERENCES folder ON DELETE CASCADE, person \(column) REFERENCES person (ID));
      """,
    ]
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["note": ["person"]]
    if isDeclared { configuration.identities = ["person": .columns(["name"])] }
    return try scratch.devices(
      2,
      """
      CREATE TABLE folder (id TEXT PRIMARY KEY NOT NULL, t TEXT);
      \((isParentFirst ? tables : tables.reversed()).joined())
      INSERT INTO folder VALUES ('f', 'one'), ('g', 'one'), ('h', 'one');
      """, configuration: configuration)
  }

  private static let people =
    "SELECT t, name FROM note LEFT JOIN person ON person.id = person ORDER BY t"

  /// The row and the one to which its value leads are hidden, and come back together or one after
  /// the other. Another one has the number by then.
  @Test(arguments: [["f", "f"], ["f", "g"]], [true, false])
  func rowsThatAreHiddenTogetherReferToEachOtherAgain(folders: [String], isRemade: Bool) throws {
    let devices = try devicesWithPeople(isParentFirst: !isRemade)
    try devices[1].run(
      """
      INSERT INTO person VALUES (4, 'Eve', '\(folders[0])');
      INSERT INTO note VALUES (1, 'mine', '\(folders[1])', 4);
      """)
    try devices[0].run("DELETE FROM folder WHERE id <> 'h'")
    try devices[1].receive(from: devices[0])
    #expect(
      try devices[1].rows("SELECT (SELECT count(*) FROM person), count(*) FROM note") == ["0|0"])
    try devices[1].run("INSERT INTO person VALUES (4, 'Bob', 'h')")
    if isRemade {
      try devices[1].run(
        """
        CREATE TABLE other (id INTEGER PRIMARY KEY, t TEXT,
          folder TEXT REFERENCES folder ON DELETE CASCADE, person INTEGER);
        INSERT INTO other SELECT * FROM note; DROP TABLE note; ALTER TABLE other RENAME TO note;
        """)
    }
    try exchange(devices)
    // The row comes back first.
    for folder in Set(folders).sorted().reversed() {
      try devices[0].run("INSERT INTO folder VALUES ('\(folder)', 'again')")
      try exchange(devices)
    }
    #expect(try devices[1].rows(Self.people) == ["mine|Eve"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    if !isRemade { try expectSound(devices) }
  }

  @Test func rowsOfOneTableThatAreHiddenTogetherReferToEachOtherAgain() throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["note": ["above"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE folder (id TEXT PRIMARY KEY NOT NULL, t TEXT);
      CREATE TABLE note (id INTEGER PRIMARY KEY, t TEXT,
        folder TEXT REFERENCES folder ON DELETE CASCADE, above INTEGER REFERENCES note);
      INSERT INTO folder VALUES ('f', 'one'), ('h', 'one');
      """, configuration: configuration)
    try devices[1].run(
      """
      INSERT INTO note VALUES (4, 'a', 'f', NULL), (5, 'b', 'f', 4), (6, 'c', 'f', 5);
      UPDATE note SET above = 6 WHERE id = 4;
      """)
    try devices[0].run("DELETE FROM folder WHERE id = 'f'")
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].rows("SELECT count(*) FROM note") == ["0"])
    try devices[1].run("INSERT INTO note VALUES (4, 'other', 'h', NULL)")
    try exchange(devices)
    try devices[0].run("INSERT INTO folder VALUES ('f', 'again')")
    try exchange(devices)
    #expect(
      try devices[1].rows(
        "SELECT n.t, o.t FROM note AS n JOIN note AS o ON o.id = n.above ORDER BY 1")
        == ["a|c", "b|a", "c|b"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try expectSound(devices)
  }

  /// A program has set another value before the row came back to which the former one leads.
  @Test func aValueThatWasSetMeanwhileStays() throws {
    let devices = try devicesWithPeople()
    try devices[1].run(
      """
      INSERT INTO person VALUES (4, 'Eve', 'f'), (5, 'Ann', 'h');
      INSERT INTO note VALUES (1, 'mine', 'g', 4);
      """)
    try devices[0].run("DELETE FROM folder WHERE id <> 'h'")
    try exchange(devices)
    try devices[0].run("INSERT INTO folder VALUES ('g', 'again')")
    try exchange(devices)
    #expect(try devices[1].rows(Self.people) == ["mine|NULL"])
    try devices[1].run("UPDATE note SET person = 5")
    try devices[0].run("INSERT INTO folder VALUES ('f', 'again')")
    try exchange(devices)
    #expect(try devices[1].rows(Self.people) == ["mine|Ann"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try expectSound(devices)
  }

  /// The row comes back before the one to which its value leads.
  @Test(arguments: ["INTEGER", "INTEGER NOT NULL DEFAULT 1"])
  func aReferenceWaitsForItsRow(column: String) throws {
    let devices = try devicesWithPeople(column: column)
    try devices[1].run(
      """
      INSERT INTO person VALUES (1, 'None', 'h'), (4, 'Eve', 'f');
      INSERT INTO note VALUES (1, 'mine', 'g', 4);
      """)
    try devices[0].run("DELETE FROM folder WHERE id <> 'h'")
    try exchange(devices)
    try devices[0].run("INSERT INTO folder VALUES ('g', 'again')")
    try exchange(devices)
    #expect(
      try devices[1].rows(Self.people) == ["mine|\(column == "INTEGER" ? "NULL" : "None")"])
    try devices[0].run("INSERT INTO folder VALUES ('f', 'again')")
    try exchange(devices)
    #expect(try devices[1].rows(Self.people) == ["mine|Eve"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try expectSound(devices)
  }

  /// The row to which the value leads has another name by then.
  @Test(arguments: [0, 1])
  func aReferenceFollowsItsRow(author: Int) throws {
    let devices = try devicesWithPeople(isDeclared: true)
    try devices[1].run("INSERT INTO person VALUES (4, 'Eve', 'h')")
    try exchange(devices)
    try devices[1].run("INSERT INTO note VALUES (1, 'mine', 'g', 4)")
    try devices[0].run("DELETE FROM folder WHERE id = 'g'")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT count(*) FROM note") == ["0"])
    try devices[author].run("UPDATE person SET name = 'Ada' WHERE name = 'Eve'")
    try exchange(devices)
    try devices[0].run("INSERT INTO folder VALUES ('g', 'again')")
    try exchange(devices)
    #expect(try devices[1].rows(Self.people) == ["mine|Ada"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try expectSound(devices)
  }

  private func devicesWithNamedNotes() throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["note": ["größe"]]
    return try scratch.devices(
      2,
      """
      PRAGMA encoding = 'UTF-16';
      CREATE TABLE folder (id TEXT PRIMARY KEY NOT NULL, t TEXT);
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT,
        folder TEXT REFERENCES folder ON DELETE CASCADE);
      CREATE TABLE note (id TEXT PRIMARY KEY NOT NULL, t TEXT,
        folder TEXT REFERENCES folder ON DELETE CASCADE, größe INTEGER REFERENCES person);
      CREATE TABLE task (k TEXT PRIMARY KEY, note TEXT REFERENCES note ON UPDATE CASCADE);
      INSERT INTO folder VALUES ('f', 'one'), ('g', 'one'), ('h', 'one');
      """, configuration: configuration)
  }

  /// A program inserts a row with the key of the hidden one.
  @Test func aNewRowDoesNotGetTheReferenceOfTheHiddenOne() throws {
    let devices = try devicesWithNamedNotes()
    try devices[1].run(
      "INSERT INTO person VALUES (4, 'Eve', 'h'); INSERT INTO note VALUES ('n', 'old', 'f', 4)")
    try devices[0].run("DELETE FROM folder WHERE id = 'f'")
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["1"])
    try devices[1].run("INSERT INTO note VALUES ('n', 'new', 'h', NULL)")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT t, größe FROM note") == ["new|NULL"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try expectSound(devices)
  }

  /// A program deletes the row while its reference waits, and inserts another one with its key.
  @Test func aRowThatIsInsertedAgainDoesNotGetTheWaitingReference() throws {
    let devices = try devicesWithNamedNotes()
    try devices[1].run(
      "INSERT INTO person VALUES (4, 'Eve', 'f'); INSERT INTO note VALUES ('n', 'old', 'g', 4)")
    try devices[0].run("DELETE FROM folder WHERE id <> 'h'")
    try exchange(devices)
    try devices[0].run("INSERT INTO folder VALUES ('g', 'again')")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["1"])
    try devices[1].run("DELETE FROM note; INSERT INTO note VALUES ('n', 'new', 'h', NULL)")
    try exchange(devices)
    try devices[0].run("INSERT INTO folder VALUES ('f', 'again')")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT t, größe FROM note") == ["new|NULL"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try expectSound(devices)
  }

  /// Another device deletes a row that was restored while its reference waits.
  @Test func aDeletedRowTakesTheWaitingReferenceAlong() throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["note": ["person"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE folder (id TEXT PRIMARY KEY NOT NULL);
      CREATE TABLE person (id INTEGER PRIMARY KEY,
        folder TEXT REFERENCES folder ON DELETE CASCADE);
      CREATE TABLE note (id TEXT PRIMARY KEY NOT NULL, t TEXT, person INTEGER REFERENCES person);
      INSERT INTO folder VALUES ('f'); INSERT INTO note VALUES ('n', 'one', NULL);
      """, configuration: configuration)
    try devices[1].run("INSERT INTO person VALUES (4, 'f'); UPDATE note SET t = 'mine', person = 4")
    try devices[0].run("DELETE FROM note; DELETE FROM folder")
    try devices[1].receive(from: devices[0])
    let conflict = try devices[1].store.conflicts().first { $0.kind == .existence }
    try devices[1].store.restoreConflict(try #require(conflict).number)
    try exchange(devices)
    #expect(try devices[1].rows("SELECT t, person FROM note") == ["mine|NULL"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["1"])
    try devices[0].run("DELETE FROM note")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try expectSound(devices)
  }

  /// The program gives the row another key while its reference waits, or remakes the table to which
  /// it leads.
  @Test func aWaitingReferenceFollowsItsOwnRow() throws {
    let devices = try devicesWithNamedNotes()
    try devices[1].run(
      "INSERT INTO person VALUES (4, 'Eve', 'f'); INSERT INTO note VALUES ('n', 'mine', 'g', 4)")
    try devices[0].run("DELETE FROM folder WHERE id <> 'h'")
    try exchange(devices)
    try devices[0].run("INSERT INTO folder VALUES ('g', 'again')")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT t, größe FROM note") == ["mine|NULL"])
    try devices[1].run("UPDATE note SET id = 'm'")
    try exchange(devices)
    let updated = Mutex<[[Value]]>([])
    devices[1].store.setChangeObserver(
      RowChangeObserver(
        willCommit: { changes in
          for table in changes.tables where table.name == "note" {
            updated.withLock { $0 += table.updated }
          }
        }, didCommit: { _ in }))
    try devices[0].run("INSERT INTO folder VALUES ('f', 'again')")
    try exchange(devices)
    #expect(
      try devices[1].rows("SELECT note.id, name FROM note JOIN person ON person.id = größe")
        == ["m|Eve"])
    #expect(updated.withLock { $0 } == [[.text(Array("m".utf8))]])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try expectSound(devices)
  }

  /// The user restores the row from the journal while the one to which its value leads is hidden.
  @Test func aRestoredRowWaitsForTheRowToWhichItRefers() throws {
    let devices = try devicesWithPeople()
    try devices[1].run("INSERT INTO note VALUES (1, 'one', NULL, NULL)")
    try exchange(devices)
    try devices[1].run(
      """
      INSERT INTO person VALUES (4, 'Eve', 'f'); UPDATE note SET t = 'mine', person = 4;
      """)
    try devices[0].run("DELETE FROM note; DELETE FROM folder WHERE id = 'f'")
    try devices[1].receive(from: devices[0])
    #expect(
      try devices[1].rows("SELECT (SELECT count(*) FROM note), count(*) FROM person") == ["0|0"])
    let conflict = try devices[1].store.conflicts().first { $0.kind == .existence }
    try devices[1].store.restoreConflict(try #require(conflict).number)
    #expect(try devices[1].rows(Self.people) == ["mine|NULL"])
    try exchange(devices)
    try devices[0].run("INSERT INTO folder VALUES ('f', 'again')")
    try exchange(devices)
    #expect(try devices[1].rows(Self.people) == ["mine|Eve"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try expectSound(devices)
  }

  /// No other device changes the numbers of a table that stays on this one.
  @Test func aNumberOfAnExcludedTableStays() throws {
    var configuration = AppTriggerTests.excluding("place")
    configuration.excludedColumns = ["note": ["place"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE place (id INTEGER PRIMARY KEY);
      CREATE TABLE note (id INTEGER PRIMARY KEY, u TEXT UNIQUE, place INTEGER REFERENCES place);
      INSERT INTO note (u) VALUES ('v');
      """, configuration: configuration)
    try devices[1].run("INSERT INTO place VALUES (7); UPDATE note SET u = 'w', place = 7")
    _ = try devices[1].store.seal()
    try devices[0].run("INSERT INTO note (id, u) VALUES (77, 'w')")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT u, place FROM note") == ["w|NULL"])
    try devices[0].run("UPDATE note SET u = 'x' WHERE id = 77")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT u, place FROM note ORDER BY u") == ["w|7", "x|NULL"])
    try expectSound(devices)
  }

  private func devicesWithTasks(_ rows: Int, default: String = "NULL") throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["note": ["draft"]]
    return try scratch.devices(
      2,
      """
      CREATE TABLE note (id TEXT PRIMARY KEY NOT NULL, t TEXT, draft TEXT DEFAULT \(`default`));
      CREATE TABLE task (k TEXT PRIMARY KEY, note TEXT REFERENCES note ON UPDATE CASCADE);
      WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < \(rows))
      INSERT INTO note SELECT printf('k%05d', n), n, NULL FROM i;
      """, configuration: configuration)
  }

  /// More rows get other keys than are merged at once. The new keys come before the former ones, or
  /// after them.
  @Test(arguments: ["a", "z"])
  func manyRowsWithOtherKeysKeepThem(prefix: String) throws {
    // A word alone is a text.
    let devices = try devicesWithTasks(11_000, default: prefix == "a" ? "none" : "\"none\"")
    #expect(ChangeApply.workingRows < 22_000)
    try devices[1].run("UPDATE note SET draft = 'draft ' || t")
    try devices[0].run("UPDATE note SET id = '\(prefix)' || id")
    try exchange(devices)
    #expect(
      try devices[1].rows(
        "SELECT count(*) FROM note WHERE id LIKE '\(prefix)%' AND draft = 'draft ' || t")
        == ["11000"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
  }

  /// A row gets another key and is deleted, and later a new row has that key.
  @Test(arguments: [("k00001", "a"), ("k00001", "z")])
  func aRowThatIsDeletedUnderAnotherKeyTakesThemAlong(former: String, other: String) throws {
    let devices = try devicesWithTasks(1)
    try devices[1].run("UPDATE note SET draft = 'mine'")
    try devices[0].run("UPDATE note SET id = '\(other)'")
    _ = try devices[0].store.seal()
    try devices[0].run("DELETE FROM note")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT count(*) FROM note") == ["0"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try devices[0].run(
      "INSERT INTO note VALUES ('\(other)', 'new', NULL), ('\(former)', 'new', NULL)")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT draft FROM note") == ["NULL", "NULL"])
    try expectSound(devices)
  }
}
