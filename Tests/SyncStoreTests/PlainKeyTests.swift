import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Plain numbers in keys that refer by a declared reference alone. On some devices a row has such a
/// number for its key.
@Suite struct PlainKeyTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func devices(
    _ count: Int = 2, _ rows: String = "", name: String = ""
  ) throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.references = ["meta": ["person": "person"]]
    if !name.isEmpty { configuration.identities = ["person": .columns(["name"])] }
    return try scratch.devices(
      count,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT\(name));
      CREATE TABLE meta (person INTEGER, name TEXT, value TEXT, PRIMARY KEY (person, name));
      \(rows)
      """, configuration: configuration)
  }

  /// Two devices with a row that has the plain number 5 in its key; on the second one, a person has
  /// that number.
  private func devicesWithAPlainNumber() throws -> [Device] {
    let devices = try devices()
    try devices[1].run("INSERT INTO person VALUES (5, 'five')")
    try devices[0].run("INSERT INTO meta VALUES (5, 'x', 'a')")
    try settle(devices, Self.all, ["5|x|a"])
    return devices
  }

  private static let named = " NOT NULL UNIQUE"

  /// Exchanges everything, and checks that the stores are sound, too.
  private func settle(
    _ devices: [Device], _ query: String? = nil, _ rows: [String] = [],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    try converge(devices, query, rows, sourceLocation: sourceLocation)
    try verify(devices, sourceLocation: sourceLocation)
  }

  private func verify(
    _ devices: [Device], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    for device in devices {
      #expect(try device.sealsNothing(), sourceLocation: sourceLocation)
      let findings = try LocalStore.verify(at: device.path).report.findings
      #expect(findings == [], sourceLocation: sourceLocation)
    }
  }

  private static let all = "SELECT * FROM meta ORDER BY person, name"

  // MARK: - Arriving

  /// The person comes first, or the number.
  @Test(arguments: [true, false], ["", PlainKeyTests.named])
  func aPlainNumberInAKeyIsNotTheRowThatHasItElsewhere(isPersonFirst: Bool, name: String) throws {
    let devices = try devices(name: name)
    try devices[1].run("INSERT INTO person VALUES (5, 'five')")
    if isPersonFirst { _ = try devices[1].store.seal() }
    try devices[0].run("INSERT INTO meta VALUES (5, 'x', 'a')")
    try devices[1].receive(from: devices[0])
    try verify([devices[1]])
    try settle(devices, Self.all, ["5|x|a"])
    // Another number, where 5 is a plain value.
    #expect(try devices[0].rows("SELECT count(*) FROM person WHERE id = 5") == ["0"])
  }

  @Test(arguments: [
    ("UPDATE meta SET value = 'b'", ["5|x|b"]),
    ("DELETE FROM meta", []),
    ("REPLACE INTO meta VALUES (5, 'x', 'c')", ["5|x|c"]),
    ("DELETE FROM meta; INSERT INTO meta VALUES (5, 'x', 'd')", ["5|x|d"]),
    ("UPDATE meta SET person = 0", ["0|x|a"]),
    ("DELETE FROM person", ["5|x|a"]),
    ("DELETE FROM person; UPDATE meta SET value = 'b'", ["5|x|b"]),
    ("DELETE FROM person; DELETE FROM meta", []),
  ]) func anEditOfSuchARowReachesAllDevices(edit: String, rows: [String]) throws {
    let devices = try devicesWithAPlainNumber()
    try devices[1].run(edit)
    try settle(devices, Self.all, rows)
    try devices[0].run("INSERT INTO meta VALUES (7, 'y', 'z')")
    try settle(devices, Self.all, rows + ["7|y|z"])
  }

  /// A row that the application inserts there refers to the person.
  @Test func aRowBesideItRefersToTheRowWithTheNumber() throws {
    let devices = try devicesWithAPlainNumber()
    try devices[1].run("INSERT INTO meta VALUES (5, 'y', 'b')")
    try settle(devices)
    let found = "SELECT meta.name, person.name FROM meta JOIN person ON person.id = person "
    #expect(try devices[0].rows(found) == ["y|five"])
    try devices[1].run("UPDATE meta SET value = value || '!'")
    try settle(devices, "SELECT name, value FROM meta ORDER BY name", ["x|a!", "y|b!"])
    // The row stays, with the number of the person that is gone.
    try devices[1].run("DELETE FROM person")
    try settle(devices, "SELECT name, value FROM meta ORDER BY name", ["x|a!", "y|b!"])
    #expect(try devices[1].rows(Self.all) == ["5|x|a!", "5|y|b!"])
  }

  /// If the number in the key is written again after that, it is that of the person.
  @Test func aRowThatIsInsertedAfterItsDeletionRefersToTheRowWithTheNumber() throws {
    let devices = try devicesWithAPlainNumber()
    try devices[1].run("DELETE FROM meta")
    try settle(devices, Self.all, [])
    try devices[1].run("INSERT INTO meta VALUES (5, 'x', 'b')")
    try settle(
      devices, "SELECT person.name, value FROM meta JOIN person ON person.id = person", ["five|b"])
  }

  // MARK: - A row that gets the number later

  /// On the device that wrote the number, and before or after the others know the row.
  @Test(arguments: [true, false], ["", PlainKeyTests.named])
  func aPlainNumberInAKeyStaysOneWhereARowGetsIt(isBefore: Bool, name: String) throws {
    let rows = isBefore ? "INSERT INTO meta VALUES (5, 'x', 'a');" : ""
    let devices = try devices(2, rows, name: name)
    if !isBefore { try devices[0].run("INSERT INTO meta VALUES (5, 'x', 'a')") }
    try settle(devices)
    try devices[0].run("INSERT INTO person VALUES (5, 'five')")
    try settle(devices, Self.all, ["5|x|a"])
    try devices[0].run("UPDATE meta SET value = 'b'")
    try settle(devices, Self.all, ["5|x|b"])
    #expect(try devices[1].rows("SELECT count(*) FROM person WHERE id = 5") == ["0"])
    try devices[0].run("DELETE FROM person")
    try settle(devices, Self.all, ["5|x|b"])
    try devices[0].run("DELETE FROM meta")
    try settle(devices, Self.all, [])
  }

  /// By edits that are sealed together.
  @Test(
    arguments: [true, false],
    [
      ("UPDATE meta SET value = 'b'", ["5|x|b"]),
      ("REPLACE INTO meta VALUES (5, 'x', 'c')", ["5|x|c"]),
      ("DELETE FROM meta", []),
      ("DELETE FROM meta; INSERT INTO meta VALUES (5, 'x', 'd')", ["5|x|d"]),
      ("DELETE FROM person", ["5|x|a"]),
      ("UPDATE meta SET value = 'b'; DELETE FROM person", ["5|x|b"]),
    ])
  func aPlainNumberInAKeyStaysOneWithTheEditsThatMakeItAKey(
    isBefore: Bool, edit: (sql: String, rows: [String])
  ) throws {
    let devices = try devices(2, isBefore ? "INSERT INTO meta VALUES (5, 'x', 'a');" : "")
    if !isBefore { try devices[0].run("INSERT INTO meta VALUES (5, 'x', 'a')") }
    try settle(devices)
    try devices[0].run("INSERT INTO person VALUES (5, 'five'); \(edit.sql)")
    try settle(devices, Self.all, edit.rows)
  }

  /// The row that is inserted with them refers to the person.
  @Test func aRowThatIsInsertedWithTheRowOfItsNumberRefersToIt() throws {
    let devices = try devices()
    try devices[1].run("INSERT INTO person VALUES (5, 'other')")
    try devices[0].run("INSERT INTO meta VALUES (5, 'y', 'a')")
    try settle(devices)
    try devices[0].run(
      "INSERT INTO meta VALUES (5, 'x', 'b'); INSERT INTO person VALUES (5, 'five')")
    try settle(
      devices,
      "SELECT meta.name, person.name FROM meta LEFT JOIN person ON person.id = person "
        + "AND meta.name = 'x' ORDER BY 1", ["x|five", "y|NULL"])
  }

  /// A person that is known by a name gets the number of a plain value, and another one: the row of
  /// the person follows, and the row with the plain value stays.
  @Test func aPlainNumberInAKeyDoesNotFollowTheRowWithIt() throws {
    let devices = try devices(2, "INSERT INTO person VALUES (3, 'p');", name: Self.named)
    try devices[0].run("INSERT INTO meta VALUES (6, 'x', 'a'), (3, 'y', 'b')")
    try settle(devices)
    try devices[0].run("UPDATE person SET id = 6")
    try settle(devices, "SELECT name, value FROM meta ORDER BY name", ["x|a", "y|b"])
    #expect(try devices[0].rows(Self.all) == ["6|x|a", "6|y|b"])
    try devices[0].run("UPDATE person SET id = 9")
    try settle(devices)
    #expect(try devices[0].rows(Self.all) == ["6|x|a", "9|y|b"])
    #expect(try devices[1].rows(Self.all) == ["3|y|b", "6|x|a"])
    try devices[0].run("UPDATE person SET name = 'q'")
    try settle(devices)
    try devices[0].run("UPDATE person SET id = 6")
    try settle(devices, "SELECT name, value FROM meta ORDER BY name", ["x|a", "y|b"])
    #expect(try devices[1].rows("SELECT person.name FROM meta JOIN person ON id = person") == ["q"])
  }

  // MARK: - Two rows with one key on one device

  /// The devices have the same logical state; the one whose person has the number shows the row of
  /// the person, and parks the other.
  @Test(arguments: [true, false], ["", PlainKeyTests.named])
  func aRowWithAPlainNumberGivesWayToARowThatRefers(isPlainFirst: Bool, name: String) throws {
    let devices = try devices(3, name: name)
    try devices[1].run("INSERT INTO person VALUES (5, 'five')")
    try devices[2].receive(from: devices[1])
    // There it has another number.
    try devices[0].run("INSERT INTO meta VALUES (5, 'x', 'plain')")
    if isPlainFirst {
      try devices[1].receive(from: devices[0])
      #expect(try devices[1].rows(Self.all) == ["5|x|plain"])
      try devices[0].receive(from: devices[1])
      let number = try devices[0].rows("SELECT id FROM person")[0]
      #expect(number != "5")
      try devices[0].run("INSERT INTO meta VALUES (\(number), 'x', 'refers')")
    } else {
      try devices[1].run("INSERT INTO meta VALUES (5, 'x', 'refers')")
    }
    try exchange(devices)
    #expect(try devices[0].rows("SELECT value FROM meta ORDER BY 1") == ["plain", "refers"])
    #expect(try devices[1].rows(Self.all) == ["5|x|refers"])
    #expect(try devices[1].store.status().parked.map(\.reason) == [.uniqueValueTaken])
    #expect(Set(try devices.map { try $0.store.digest().logical }).count == 1)
    try verify(devices)
    // Each of the two is edited and deleted by itself.
    try devices[1].run("UPDATE meta SET value = 'refers still'")
    try exchange(devices)
    #expect(
      try devices[0].rows("SELECT value FROM meta ORDER BY 1") == ["plain", "refers still"])
    try devices[0].run("UPDATE meta SET value = 'plain still' WHERE person = 5")
    try exchange(devices)
    #expect(try devices[1].rows(Self.all) == ["5|x|refers still"])
    try verify(devices)
    try devices[1].run("DELETE FROM meta")
    try settle(devices, Self.all, ["5|x|plain still"])
  }

  /// A person came and went before anything was sealed. Its number in a cell is a plain value, which
  /// the store does not take for that person.
  @Test func theNumberOfARowThatCameAndWentIsPlain() throws {
    var configuration = StoreConfiguration()
    configuration.references = ["meta": ["person": "person"], "note": ["person": "person"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE meta (person INTEGER, name TEXT, PRIMARY KEY (person, name));
      CREATE TABLE note (id TEXT PRIMARY KEY, person INTEGER);
      """, configuration: configuration)
    try devices[0].run(
      "INSERT INTO person VALUES (5, 'five'); INSERT INTO note VALUES ('a', 5); DELETE FROM person")
    try settle(devices, "SELECT person FROM note", ["5"])
    let tables = try devices[0].rows(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'docsync_id_*'")
    #expect(tables.count == 1)
    for table in tables {
      #expect(try devices[0].rows("SELECT count(*) FROM \(table) WHERE key = 5") == ["0"])
    }
  }

  /// The row is shown when the other row is gone, wherever that was deleted; not when the person is.
  @Test(arguments: [0, 1]) func aRowThatGaveWayIsShownWhenTheOtherIsGone(index: Int) throws {
    let devices = try devices()
    try devices[1].run(
      "INSERT INTO person VALUES (5, 'five'); INSERT INTO meta VALUES (5, 'x', 'refers')")
    try devices[0].run("INSERT INTO meta VALUES (5, 'x', 'plain')")
    try exchange(devices)
    #expect(try devices[1].rows(Self.all) == ["5|x|refers"])
    try verify(devices)
    try devices[index].run("DELETE FROM person")
    try exchange(devices)
    #expect(try devices[1].rows(Self.all) == ["5|x|refers"])
    #expect(Set(try devices.map { try $0.store.digest().logical }).count == 1)
    try verify(devices)
    try devices[index].run("DELETE FROM meta WHERE value = 'refers'")
    try settle(devices, Self.all, ["5|x|plain"])
  }

  /// With a foreign key, a row with a plain number in its key is shown on no device. Two such rows
  /// claim one value, so that one is parked for that, where another row has its number or not.
  @Test func withAForeignKeyNoRowGivesWay() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE meta (person INTEGER PRIMARY KEY REFERENCES person, name TEXT UNIQUE)
        WITHOUT ROWID;
      """)
    try devices[0].run("PRAGMA foreign_keys = OFF; INSERT INTO meta VALUES (5, 'x')")
    try devices[1].run("PRAGMA foreign_keys = OFF; INSERT INTO meta VALUES (6, 'x')")
    _ = try devices[0].store.seal()
    try devices[0].run("INSERT INTO person VALUES (5, 'five'); INSERT INTO meta VALUES (5, 'y')")
    try settle(
      devices, "SELECT meta.name, person.name FROM meta JOIN person ON person.id = person",
      ["y|five"])
    #expect(try devices[0].rows("SELECT person FROM meta") == ["5"])
    #expect(try devices[1].rows("SELECT person FROM meta") != ["5"])
    for device in devices { #expect(try device.store.status().parked.count == 2) }
  }

  // MARK: - Other keys

  /// An integer key that is a reference itself.
  @Test func theIntegerKeyItselfIsAPlainNumber() throws {
    var configuration = StoreConfiguration()
    configuration.references = ["detail": ["id": "person"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE detail (id INTEGER PRIMARY KEY, text TEXT);
      CREATE TABLE mark (id TEXT PRIMARY KEY, detail INTEGER REFERENCES detail);
      """, configuration: configuration)
    try devices[1].run("INSERT INTO person VALUES (5, 'five')")
    try devices[0].run("INSERT INTO detail VALUES (5, 'a'); INSERT INTO mark VALUES ('m', 5)")
    try settle(devices, "SELECT * FROM detail", ["5|a"])
    #expect(try devices[1].rows("SELECT * FROM mark") == ["m|5"])
    try devices[1].run("UPDATE detail SET text = 'b'; UPDATE mark SET id = 'n'")
    try settle(devices, "SELECT * FROM detail", ["5|b"])
    try devices[1].run("INSERT INTO mark VALUES ('o', 5)")
    try settle(devices, "SELECT * FROM mark ORDER BY id", ["n|5", "o|5"])
    try devices[1].run("UPDATE mark SET detail = NULL WHERE id = 'o'")
    try settle(devices, "SELECT * FROM mark ORDER BY id", ["n|5", "o|NULL"])
    try devices[1].run("UPDATE mark SET detail = 5 WHERE id = 'o'")
    try settle(devices, "SELECT * FROM mark ORDER BY id", ["n|5", "o|5"])
    try devices[1].run("DELETE FROM mark; DELETE FROM detail")
    try settle(devices, "SELECT count(*) FROM detail", ["0"])
  }

  /// One of the two is a plain number, or both are.
  @Test func eachOfTwoReferencesInAKeyCanBeAPlainNumber() throws {
    var configuration = StoreConfiguration()
    configuration.references = ["link": ["a": "person", "b": "person"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE link (a INTEGER, b INTEGER, value TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;
      """, configuration: configuration)
    try devices[0].run("INSERT INTO person VALUES (1, 'one'); INSERT INTO link VALUES (1, 5, 'a')")
    try devices[1].run("INSERT INTO person VALUES (5, 'five')")
    try devices[0].run("INSERT INTO link VALUES (5, 5, 'b'), (5, 1, 'c')")
    try settle(
      devices,
      "SELECT value, p.name, q.name FROM link LEFT JOIN person AS p ON p.id = a "
        + "AND a <> 5 LEFT JOIN person AS q ON q.id = b AND b <> 5 ORDER BY 1",
      ["a|one|NULL", "b|NULL|NULL", "c|NULL|one"])
    try devices[1].run("UPDATE link SET value = value || '!'")
    try settle(devices, "SELECT value FROM link ORDER BY 1", ["a!", "b!", "c!"])
    try devices[1].run("INSERT INTO person VALUES (9, 'nine')")
    try devices[1].run("DELETE FROM link WHERE value = 'b!'; INSERT INTO link VALUES (5, 9, 'd')")
    try settle(devices, "SELECT value FROM link ORDER BY 1", ["a!", "c!", "d"])
    #expect(
      try devices[0].rows(
        "SELECT p.name, q.name FROM link JOIN person AS p ON p.id = a JOIN person AS q ON q.id = b")
        == ["five|nine"])
  }

  /// Rows are known by a declared reference and a name, beside an integer key.
  @Test func aDeclaredIdentityHasAPlainNumber() throws {
    var configuration = StoreConfiguration()
    configuration.references = ["meta": ["person": "person"]]
    configuration.identities = ["meta": .columns(["person", "name"])]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE meta (id INTEGER PRIMARY KEY, person INTEGER NOT NULL, name TEXT NOT NULL,
        value TEXT, UNIQUE (person, name));
      CREATE TABLE mark (id TEXT PRIMARY KEY, meta INTEGER REFERENCES meta);
      """, configuration: configuration)
    try devices[1].run("INSERT INTO person VALUES (5, 'five')")
    try devices[0].run(
      "INSERT INTO meta VALUES (1, 5, 'x', 'a'); INSERT INTO mark VALUES ('m', 1)")
    let marks = "SELECT mark.id, meta.name, value FROM mark JOIN meta ON meta.id = meta ORDER BY 1"
    try settle(devices, marks, ["m|x|a"])
    try devices[1].run("UPDATE meta SET value = 'b'; INSERT INTO mark SELECT 'n', id FROM meta")
    try settle(devices, marks, ["m|x|b", "n|x|b"])
    try devices[1].run("PRAGMA foreign_keys = OFF; UPDATE meta SET id = 77")
    try settle(devices, marks, ["m|x|b", "n|x|b"])
    try devices[0].run("DELETE FROM mark; DELETE FROM meta")
    try settle(devices, Self.all, [])
  }

  // MARK: - Stores that are copied and made again

  @Test func aWholeStoreOfADeviceWithTheNumberKeepsThePlainOne() throws {
    let devices = try devices(3)
    try devices[1].run("INSERT INTO person VALUES (5, 'five')")
    try devices[0].run("INSERT INTO meta VALUES (5, 'x', 'a')")
    try settle(Array(devices.prefix(2)))
    let path = scratch.path + "/whole.db"
    _ = try devices[1].store.snapshot(to: path)
    _ = try devices[2].store.replaceContent(withSnapshotAt: path)
    try devices[2].run("UPDATE meta SET value = 'b'")
    try settle(devices, Self.all, ["5|x|b"])
  }

  /// The person has another number there than in the whole store, which has the plain one too.
  @Test(arguments: [0, 1]) func aWholeStoreOfADeviceWithOtherNumbersKeepsThePlainOne(
    index: Int
  ) throws {
    let devices = try devicesWithAPlainNumber()
    try devices[1].run("INSERT INTO meta VALUES (5, 'y', 'b')")
    try settle(devices)
    let path = scratch.path + "/whole.db"
    _ = try devices[index].store.snapshot(to: path)
    _ = try devices[1 - index].store.replaceContent(withSnapshotAt: path)
    let rows =
      "SELECT meta.name, value, person.name FROM meta LEFT JOIN person "
      + "ON person.id = person AND meta.name = 'y' ORDER BY 1"
    try settle(devices, rows, ["x|a|NULL", "y|b|five"])
    #expect(try devices[1].rows("SELECT id FROM person") == ["5"])
    try devices[1 - index].run("UPDATE meta SET value = value || '!'")
    try settle(devices, rows, ["x|a!|NULL", "y|b!|five"])
    try devices[1].run("DELETE FROM meta WHERE name = 'x'")
    try settle(devices, rows, ["y|b!|five"])
  }

  /// The table of the row, or that of the person, is made again there.
  @Test(arguments: [
    "CREATE TABLE n (person INTEGER, name TEXT, value TEXT, PRIMARY KEY (person, name)); "
      + "INSERT INTO n SELECT person, name, 'b' FROM meta; "
      + "DROP TABLE meta; ALTER TABLE n RENAME TO meta",
    "CREATE TABLE n (id INTEGER PRIMARY KEY, name TEXT); "
      + "INSERT INTO n SELECT id, name FROM person; DROP TABLE person; "
      + "ALTER TABLE n RENAME TO person; UPDATE meta SET value = 'b'",
  ]) func aPlainNumberStaysOneWhereATableIsMadeAgain(sql: String) throws {
    var devices = try devicesWithAPlainNumber()
    devices[1] = try devices[1].changed(isOpen: false) { try $0.run(sql) }
    try settle(devices, "SELECT person, name, value FROM meta", ["5|x|b"])
  }

  // MARK: - Rows that are inserted where a row has the number

  /// Rows refer to the row with the plain number by foreign keys in their own keys, also through
  /// others.
  @Test func rowsReferToARowWithAPlainNumberByTheirKeys() throws {
    var configuration = StoreConfiguration()
    configuration.references = ["meta": ["person": "person"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE part (person INTEGER, name TEXT, no INTEGER, of INTEGER,
        PRIMARY KEY (person, name, no, of),
        FOREIGN KEY (person, name, no) REFERENCES entry ON DELETE CASCADE);
      CREATE TABLE entry (person INTEGER, name TEXT, no INTEGER, value TEXT,
        PRIMARY KEY (person, name, no),
        FOREIGN KEY (person, name) REFERENCES meta ON DELETE CASCADE);
      CREATE TABLE meta (person INTEGER, name TEXT, PRIMARY KEY (person, name));
      """, configuration: configuration)
    try devices[1].run("INSERT INTO person VALUES (5, 'five'); INSERT INTO meta VALUES (5, 'y')")
    try devices[0].run("INSERT INTO meta VALUES (5, 'x')")
    try settle(devices)
    try devices[1].run(
      """
      INSERT INTO entry VALUES (5, 'x', 1, 'a'), (5, 'y', 1, 'b');
      INSERT INTO part VALUES (5, 'x', 1, 2), (5, 'y', 1, 2);
      """)
    let entries =
      "SELECT entry.name, value, person.name FROM entry JOIN part USING (person, name, no) "
      + "LEFT JOIN person ON person.id = person AND entry.name = 'y' ORDER BY 1"
    try settle(devices, entries, ["x|a|NULL", "y|b|five"])
    #expect(try devices[0].rows("SELECT person FROM entry WHERE name = 'x'") == ["5"])
    try devices[1].run("UPDATE entry SET value = value || '!'")
    try settle(devices, entries, ["x|a!|NULL", "y|b!|five"])
    try devices[1].run("DELETE FROM person")
    try settle(devices, "SELECT name, value FROM entry ORDER BY 1", ["x|a!", "y|b!"])
    try devices[1].run("DELETE FROM meta WHERE name = 'x'")
    try settle(devices, "SELECT name FROM part", ["y"])
  }

  /// The row was deleted before its edit arrived.
  @Test func aRowWithAPlainNumberIsRestoredFromTheJournal() throws {
    let devices = try devicesWithAPlainNumber()
    try devices[0].run("UPDATE meta SET value = 'b'")
    try devices[1].run("DELETE FROM meta")
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].rows(Self.all) == [])
    try devices[1].store.restoreConflict(1)
    #expect(try devices[1].rows(Self.all) == ["5|x|b"])
    try settle(devices, Self.all, ["5|x|b"])
    #expect(try devices[0].rows("SELECT count(*) FROM person WHERE id = 5") == ["0"])
    try devices[1].run("UPDATE meta SET value = 'c'")
    try settle(devices, Self.all, ["5|x|c"])
  }

  /// A row that refers to the person has the key by then.
  @Test func aRowWithAPlainNumberIsNotRestoredBesideOneThatRefers() throws {
    let devices = try devicesWithAPlainNumber()
    try devices[0].run("UPDATE meta SET value = 'b'")
    try devices[1].run("DELETE FROM meta")
    _ = try devices[1].store.seal()
    try devices[1].run("INSERT INTO meta VALUES (5, 'x', 'refers')")
    try devices[1].receive(from: devices[0])
    #expect(throws: StoreError.self) { try devices[1].store.restoreConflict(1) }
    try settle(devices, "SELECT value FROM meta", ["refers"])
  }
}
