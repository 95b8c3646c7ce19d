import SyncModel
import Testing

@testable import SyncStore

/// Rows that triggers saw inserted, and that lost their number unseen, since a program made their
/// table again, before anything was sealed: no device ever knew them by that number.
@Suite struct RemadeInsertionTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let madeAgain = """
    PRAGMA foreign_keys = OFF;
    CREATE TABLE new (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO new SELECT * FROM person;
    DROP TABLE person; ALTER TABLE new RENAME TO person;
    """

  /// What a program does with the row, and the persons that are left.
  struct Unseen: CustomTestStringConvertible {
    var sql: String
    var left: [String]
    var testDescription: String { sql }
  }

  private static let unseen = [
    Unseen(sql: "UPDATE person SET id = 7 WHERE id = 5", left: ["five", "one"]),
    Unseen(sql: "DELETE FROM person WHERE id = 5", left: ["one"]),
  ]

  private static let references = [
    "INTEGER REFERENCES person", "INTEGER REFERENCES person ON DELETE CASCADE",
    "INTEGER REFERENCES person ON DELETE SET NULL",
  ]

  private func devices(_ reference: String, in scratch: Scratch) throws -> [Device] {
    try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE note (k TEXT PRIMARY KEY, person \(reference));
      INSERT INTO person VALUES (1, 'one'); INSERT INTO note VALUES ('a', 1);
      """)
  }

  /// Triggers saw a row come and go, and not that another row got its number: that is a new row, on
  /// each device another one.
  @Test(
    arguments: [TableMergeType.latestWins, .wholeRow, .editWins, .keepBoth], [false, true])
  func theNumberOfARowThatCameAndWentIsThatOfANewOne(type: TableMergeType, isUsed: Bool) throws {
    var configuration = StoreConfiguration()
    configuration.tableMergeTypes = ["person": type]
    let devices = try scratch.devices(
      2,
      "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);"
        + "INSERT INTO person VALUES (1, 'old')", configuration: configuration)
    let number = isUsed ? 1 : 5
    if isUsed {
      try devices[0].run("DELETE FROM person")
      try exchange(devices)
    }
    for (index, device) in devices.enumerated() {
      try device.run(
        "INSERT INTO person VALUES (\(number), 'x'); DELETE FROM person WHERE id = \(number)")
      try device.run("\(Self.madeAgain) INSERT INTO person VALUES (\(number), 'new \(index)')")
    }
    try converge(
      devices, "SELECT name FROM person ORDER BY 1", ["new 0", "new 1"] + (isUsed ? [] : ["old"]))
    for device in devices {
      #expect(try device.store.status().parked.isEmpty)
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
  }

  /// The reference of the row that still has the number is broken in the database of its author. Other
  /// devices show what they show if there never was a row of that number.
  @Test(arguments: unseen, references)
  func aReferenceToTheFormerNumberIsAPlainValue(_ unseen: Unseen, reference: String) throws {
    let control = try Scratch()
    let others = try devices(reference, in: control)
    try others[0].run("PRAGMA foreign_keys = OFF; INSERT INTO note VALUES ('n', 5)")
    try converge(others)
    let query = "SELECT k, person FROM note ORDER BY 1"
    let expected = try others[1].rows(query)
    #expect(expected == (reference.hasSuffix("SET NULL") ? ["a|1", "n|NULL"] : ["a|1"]))

    let devices = try devices(reference, in: scratch)
    try devices[0].run("INSERT INTO person VALUES (5, 'five'); INSERT INTO note VALUES ('n', 5)")
    try devices[0].run("\(Self.madeAgain) \(unseen.sql)")
    #expect(try devices[0].rows("PRAGMA foreign_key_check") == ["note|2|person|0"])
    try converge(devices, "SELECT name FROM person ORDER BY 1", unseen.left)
    for device in devices {
      #expect(try device.rows(query) == expected)
      #expect(
        try device.store.status().parked.map(\.reason)
          == others[1].store.status().parked.map(\.reason))
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
    // A row of that number that another device makes is another one.
    try devices[1].run("INSERT INTO person VALUES (5, 'other')")
    try converge(devices, query, expected)
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  /// The row that refers to the former number is in the same table, and its edit was not seen either:
  /// it is sealed with its insertion, before the table is compared.
  @Test(arguments: ["", "ON UPDATE SET NULL", "ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED"])
  func aReferenceInTheSameTableIsAPlainValue(action: String) throws {
    let columns = "(id INTEGER PRIMARY KEY, name TEXT, up INTEGER REFERENCES person \(action))"
    let devices = try scratch.devices(2, "CREATE TABLE person \(columns)")
    try devices[0].run("INSERT INTO person VALUES (1, 'one', NULL), (2, 'two', NULL)")
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF;
      CREATE TABLE new \(columns); INSERT INTO new SELECT * FROM person;
      DROP TABLE person; ALTER TABLE new RENAME TO person;
      UPDATE person SET id = 3 WHERE id = 2; UPDATE person SET up = 2 WHERE id = 1;
      """)
    try converge(devices, "SELECT name FROM person", ["two"])
    for device in devices {
      #expect(try device.store.status().parked.map(\.reason) == [.parentMissing])
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
  }

  /// Without a foreign key the row is shown, with the number.
  @Test(arguments: unseen)
  func aDeclaredReferenceToTheFormerNumberIsAPlainValue(_ unseen: Unseen) throws {
    var configuration = StoreConfiguration()
    configuration.references = ["note": ["person": "person"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE note (k TEXT PRIMARY KEY, person INTEGER);
      INSERT INTO person VALUES (1, 'one'); INSERT INTO note VALUES ('a', 1);
      """, configuration: configuration)
    try devices[0].run("INSERT INTO person VALUES (5, 'five'); INSERT INTO note VALUES ('n', 5)")
    try devices[0].run("\(Self.madeAgain) \(unseen.sql)")
    try converge(devices, "SELECT * FROM note ORDER BY 1", ["a|1", "n|5"])
    #expect(try devices[1].rows("SELECT name FROM person ORDER BY 1") == unseen.left)
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
  }

  /// A row that stays under its number is the row that references lead to.
  @Test func aRowThatStaysKeepsItsReferences() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE note (k TEXT PRIMARY KEY, person INTEGER REFERENCES person);
      """)
    try devices[0].run("INSERT INTO person VALUES (5, 'five'); INSERT INTO note VALUES ('n', 5)")
    try devices[0].run("\(Self.madeAgain) UPDATE person SET name = 'unseen'")
    try converge(
      devices, "SELECT k, name FROM note JOIN person ON person.id = note.person", ["n|unseen"])
  }

  /// A row is inserted unseen, gets its identity when the remake is noticed, and goes unseen when the
  /// table is made once more: nothing of it stays.
  @Test func aRowThatCameAndWentUnseenLeavesNoIdentity() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE note (k TEXT PRIMARY KEY, person INTEGER REFERENCES person);
      """)
    try devices[0].run("\(Self.madeAgain) INSERT INTO person VALUES (5, 'five'), (6, 'six')")
    _ = try devices[0].store.status()
    try devices[0].run("\(Self.madeAgain) DELETE FROM person WHERE id = 6")
    try converge(devices, "SELECT name FROM person", ["five"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
    try devices[0].run("INSERT INTO person VALUES (6, 'other'); INSERT INTO note VALUES ('n', 6)")
    try converge(
      devices, "SELECT k, name FROM note JOIN person ON person.id = note.person", ["n|other"])
  }

  /// A number is held for a row that had it, got another and went, until the remade table is compared.
  @Test func verifyExpectsANumberThatIsHeld() throws {
    var configuration = StoreConfiguration()
    configuration.references = ["t": ["n": "t"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, a, n INTEGER);
      INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', NULL);
      """, configuration: configuration)
    try devices[1].run(
      """
      UPDATE t SET id = 5 WHERE id = 1; DELETE FROM t WHERE id = 5; UPDATE t SET n = 1 WHERE id = 2;
      CREATE TABLE new (id INTEGER PRIMARY KEY, a, n INTEGER); INSERT INTO new SELECT * FROM t;
      DROP TABLE t; ALTER TABLE new RENAME TO t;
      """)
    // The change of the schema is noticed, and the table is not compared yet.
    _ = try devices[1].store.status()
    #expect(try devices[1].store.remadeTables().map(\.name) == ["t"])
    #expect(try devices[1].rows("SELECT key FROM docsync_id_1") == ["1"])
    #expect(try LocalStore.verify(at: devices[1].path).report.findings == [])
    try converge(devices, "SELECT id, a, n FROM t", ["2|b|NULL"])
    #expect(try devices[1].rows("SELECT key FROM docsync_id_1") == [])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }
}
