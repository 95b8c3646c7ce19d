import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Plain numbers in keys (``PlainKeyTests``), where a store takes over the content of a whole store
/// in which the rows have other numbers.
@Suite struct PlainKeyExchangeTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let named = " NOT NULL UNIQUE"
  private static let all = "SELECT * FROM meta ORDER BY person, name"

  private func devices(
    _ rows: String = "", count: Int = 2, name: String = "", person: String = "INTEGER",
    metaName: String = "TEXT"
  ) throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.references = ["meta": ["person": "person"]]
    if !name.isEmpty { configuration.identities = ["person": .columns(["name"])] }
    return try scratch.devices(
      count,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT\(name));
      CREATE TABLE meta (person \(person), name \(metaName), value TEXT, PRIMARY KEY (person, name));
      \(rows)
      """, configuration: configuration)
  }

  /// Replaces the content of a device by that of another one.
  @discardableResult
  private func replace(_ device: Device, by other: Device) throws -> ContentReplacement {
    let path = scratch.path + "/whole-\(UInt64.random(in: 0 ... .max)).db"
    _ = try other.outgoing()
    _ = try other.store.snapshot(to: path)
    let result = try device.store.replaceContent(withSnapshotAt: path)
    try verify(device)
    return result
  }

  private func verify(
    _ device: Device, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    try device.checkIntegrity()
    #expect(try device.sealsNothing(), sourceLocation: sourceLocation)
    let findings = try LocalStore.verify(at: device.path).report.findings
    #expect(findings == [], sourceLocation: sourceLocation)
  }

  private func settle(
    _ devices: [Device], _ query: String, _ rows: [String],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    try converge(devices, query, rows, sourceLocation: sourceLocation)
    for device in devices { try verify(device, sourceLocation: sourceLocation) }
  }

  /// Persons have each other's numbers there, or the number of the one is that of the other here.
  @Test(arguments: [[6, 5], [6, 9], [8, 5], [6, 8]])
  func rowsKeepTheirPlainNumbers(numbers: [Int]) throws {
    let devices = try devices(
      "INSERT INTO meta VALUES (5, 'x', 'five'), (6, 'x', 'six')", name: Self.named)
    try devices[0].run("INSERT INTO person VALUES (5, 'a'), (6, 'b')")
    try settle(devices, Self.all, ["5|x|five", "6|x|six"])
    for (name, number) in zip(["a", "b"], numbers) {
      try devices[1].run("UPDATE person SET id = \(number + 100) WHERE name = '\(name)'")
    }
    try devices[1].run("UPDATE person SET id = id - 100 WHERE id > 100")
    try settle(devices, Self.all, ["5|x|five", "6|x|six"])
    for _ in 0..<2 {
      try replace(devices[1], by: devices[0])
      #expect(
        try devices[1].rows("SELECT id FROM person ORDER BY name") == numbers.map { "\($0)" })
      try settle(devices, Self.all, ["5|x|five", "6|x|six"])
    }
    try devices[1].run("UPDATE meta SET value = value || '!'")
    try settle(devices, Self.all, ["5|x|five!", "6|x|six!"])
  }

  /// A row has the number of a person there, and another row has that person's number here.
  @Test(arguments: [true, false], ["BINARY", "NOCASE", "RTRIM"])
  func aNumberIsPlainBesideAnotherOne(isBefore: Bool, collation: String) throws {
    let text = collation == "NOCASE" ? "X" : "x"
    let rows = "INSERT INTO meta VALUES (5, '\(text)', 'five'), (6, '\(text)', 'six')"
    let devices = try devices(
      isBefore ? rows : "", name: Self.named, metaName: "TEXT COLLATE \(collation)")
    let five = "5|\(text)|five"
    let six = "6|\(text)|six"
    if !isBefore { try devices[0].run(rows) }
    try exchange(devices)
    try devices[0].run("INSERT INTO person VALUES (5, 'a')")
    try exchange(devices)
    try devices[1].run("UPDATE person SET id = 6")
    try settle(devices, Self.all, [five, six])
    try replace(devices[1], by: devices[0])
    #expect(try devices[1].rows("SELECT id FROM person") == ["6"])
    try settle(devices, Self.all, [five, six])
    try devices[1].run("UPDATE meta SET value = value || '!'")
    try settle(devices, Self.all, ["\(five)!", "\(six)!"])
    try replace(devices[0], by: devices[1])
    try settle(devices, Self.all, ["\(five)!", "\(six)!"])
    try devices[1].run("DELETE FROM meta WHERE person = 6")
    try settle(devices, Self.all, ["\(five)!"])
  }

  /// The column that contains numbers of persons is one of text.
  @Test(arguments: ["INTEGER", "TEXT", "VARCHAR(9)"])
  func theNumbersOfDeletedPersonsStayReserved(type: String) throws {
    let devices = try devices(person: type)
    try devices[0].run(
      """
      INSERT INTO person VALUES (5, 'a'), (6, 'b'), (7, 'c');
      INSERT INTO meta VALUES (5, 'x', 'five'), (6, 'x', 'six'), (7, 'x', 'seven')
      """)
    _ = try devices[0].store.seal()
    try devices[0].run("DELETE FROM person WHERE id IN (6, 7)")
    try devices[1].run("INSERT INTO person VALUES (6, 'd'), (7, 'e')")
    try converge(
      devices, "SELECT value, p.name FROM meta LEFT JOIN person AS p ON p.id = person ORDER BY 1",
      ["five|a", "seven|NULL", "six|NULL"])
  }

  /// The same, on a device that applies the deletion.
  @Test(arguments: ["INTEGER", "TEXT"])
  func theNumbersOfDeletedPersonsStayReservedElsewhere(type: String) throws {
    let devices = try devices(count: 3, person: type)
    try devices[0].run(
      """
      INSERT INTO person VALUES (5, 'a'), (6, 'b'), (7, 'c');
      INSERT INTO meta VALUES (5, 'x', 'five'), (6, 'x', 'six'), (7, 'x', 'seven')
      """)
    try devices[1].receive(from: devices[0])
    try devices[0].run("DELETE FROM person WHERE id IN (6, 7)")
    try devices[1].receive(from: devices[0])
    try devices[2].run("INSERT INTO person VALUES (6, 'd'), (7, 'e')")
    try devices[1].receive(from: devices[2])
    let query =
      "SELECT value, p.name FROM meta LEFT JOIN person AS p ON p.id = person ORDER BY 1"
    let rows = ["five|a", "seven|NULL", "six|NULL"]
    #expect(try devices[1].rows(query) == rows)
    try converge(devices, query, rows)
  }

  /// Such a row came and went within one sealing.
  @Test(arguments: ["INTEGER", "TEXT"])
  func theNumberOfAPersonWhoCameAndWentStaysReserved(type: String) throws {
    let devices = try devices(person: type)
    try devices[0].run(
      """
      INSERT INTO person VALUES (5, 'a'), (6, 'b');
      INSERT INTO meta VALUES (5, 'x', 'five'), (6, 'x', 'six'); DELETE FROM person
      """)
    try devices[1].run("INSERT INTO person VALUES (5, 'd'), (6, 'e')")
    try converge(
      devices, "SELECT value, p.name FROM meta LEFT JOIN person AS p ON p.id = person ORDER BY 1",
      ["five|NULL", "six|NULL"])
  }

  /// The row is older than syncing, and nothing has noted that its number is plain.
  @Test func aRowFromBeforeSyncingKeepsItsPlainNumber() throws {
    let devices = try devices("INSERT INTO meta VALUES (5, 'x', 'a')")
    try devices[1].run("INSERT INTO person VALUES (5, 'five')")
    try settle(devices, Self.all, ["5|x|a"])
    try replace(devices[1], by: devices[0])
    #expect(try devices[1].rows("SELECT id FROM person") == ["5"])
    try settle(devices, Self.all, ["5|x|a"])
    try devices[1].run("UPDATE meta SET value = 'b'; INSERT INTO meta VALUES (5, 'y', 'c')")
    try settle(devices, "SELECT name, value FROM meta ORDER BY name", ["x|b", "y|c"])
    #expect(try devices[0].rows("SELECT value FROM meta WHERE person = 5") == ["b"])
  }

  /// The whole store has both rows. On this device they have one key: it shows the row that refers to
  /// a person, and parks the other one, as it does when they arrive one by one.
  @Test(arguments: [true, false], ["", PlainKeyExchangeTests.named])
  func ofTwoRowsWithOneKeyTheOneWithThePlainNumberIsParked(
    isBefore: Bool, name: String
  ) throws {
    let rows = "INSERT INTO meta VALUES (5, 'x', 'plain')"
    let devices = try devices(isBefore ? rows : "", name: name)
    try devices[1].run("INSERT INTO person VALUES (5, 'five')")
    if !isBefore { try devices[0].run(rows) }
    try exchange(devices)
    let number = try devices[0].rows("SELECT id FROM person")[0]
    #expect(number != "5")
    try devices[0].run("INSERT INTO meta VALUES (\(number), 'x', 'refers')")
    for _ in 0..<2 {
      let result = try replace(devices[1], by: devices[0])
      #expect(result.warnings == [])
      #expect(try devices[1].rows(Self.all) == ["5|x|refers"])
      #expect(try devices[1].store.status().parked.map(\.reason) == [.uniqueValueTaken])
      try exchange(devices)
      #expect(Set(try devices.map { try $0.store.digest().logical }).count == 1)
    }
    #expect(try devices[0].rows("SELECT value FROM meta ORDER BY 1") == ["plain", "refers"])
    // Each of the two is edited and deleted by itself.
    try devices[1].run("UPDATE meta SET value = 'refers still'")
    try devices[0].run("UPDATE meta SET value = 'plain still' WHERE person = 5")
    try exchange(devices)
    #expect(try devices[1].rows(Self.all) == ["5|x|refers still"])
    #expect(
      try devices[0].rows("SELECT value FROM meta ORDER BY 1") == ["plain still", "refers still"])
    for device in devices { try verify(device) }
    try devices[1].run("DELETE FROM meta")
    try settle(devices, Self.all, ["5|x|plain still"])
  }

  /// What stays on the device belongs to one of two rows with one key.
  @Test func whatStaysOnTheDeviceGoesToNoOtherRow() throws {
    var configuration = StoreConfiguration()
    configuration.references = ["meta": ["person": "person"]]
    configuration.excludedColumns = ["meta": ["private"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE meta (person INTEGER, name TEXT, private TEXT, PRIMARY KEY (person, name));
      """, configuration: configuration)
    try devices[1].run("INSERT INTO person VALUES (5, 'five')")
    try devices[0].run("INSERT INTO meta VALUES (5, 'x', NULL), (6, 'x', NULL)")
    try exchange(devices)
    try devices[1].run("UPDATE meta SET private = 'of ' || person")
    let number = try devices[0].rows("SELECT id FROM person")[0]
    try devices[0].run("INSERT INTO meta (person, name) VALUES (\(number), 'x')")
    for _ in 0..<2 {
      try replace(devices[1], by: devices[0])
      #expect(try devices[1].rows("SELECT * FROM meta ORDER BY 1") == ["5|x|NULL", "6|x|of 6"])
    }
    // The value comes back with its row.
    try devices[0].run("DELETE FROM meta WHERE person = \(number)")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT * FROM meta ORDER BY 1") == ["5|x|of 5", "6|x|of 6"])
  }

  /// A row has a plain number in its key, and the same one beside it.
  @Test(arguments: [true, false]) func aPlainNumberBesideTheKeyStaysPlain(isBefore: Bool) throws {
    var configuration = StoreConfiguration()
    configuration.references = ["link": ["a": "person", "b": "person"]]
    let rows = "INSERT INTO link VALUES (5, 'x', 5)"
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE link (a INTEGER, name TEXT, b INTEGER, PRIMARY KEY (a, name));
      \(isBefore ? rows : "")
      """, configuration: configuration)
    try devices[1].run("INSERT INTO person VALUES (5, 'five')")
    if !isBefore { try devices[0].run(rows) }
    try settle(devices, "SELECT * FROM link", ["5|x|5"])
    try replace(devices[1], by: devices[0])
    try settle(devices, "SELECT * FROM link", ["5|x|5"])
    try devices[1].run("DELETE FROM person")
    try settle(devices, "SELECT * FROM link", ["5|x|5"])
  }

  /// Every combination of a plain number and a reference, in two columns.
  @Test func ofFourRowsWithOneKeyTheOneThatRefersIsShown() throws {
    var configuration = StoreConfiguration()
    configuration.references = ["link": ["a": "person", "b": "person"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE link (a INTEGER, b INTEGER, value TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;
      """, configuration: configuration)
    try devices[1].run("INSERT INTO person VALUES (5, 'five')")
    try devices[0].run("INSERT INTO link VALUES (5, 5, 'plain')")
    try exchange(devices)
    let n = try devices[0].rows("SELECT id FROM person")[0]
    try devices[0].run("INSERT INTO link VALUES (5, \(n), 'b'), (\(n), 5, 'a')")
    for shown in ["a", "refers"] {
      try replace(devices[1], by: devices[0])
      #expect(try devices[1].rows("SELECT * FROM link") == ["5|5|\(shown)"])
      try exchange(devices)
      #expect(Set(try devices.map { try $0.store.digest().logical }).count == 1)
      for device in devices { try verify(device) }
      if shown == "a" { try devices[0].run("INSERT INTO link VALUES (\(n), \(n), 'refers')") }
    }
    #expect(try devices[1].store.status().parked.count == 3)
    try devices[0].run("DELETE FROM link WHERE value <> 'b'")
    try settle(devices, "SELECT value FROM link", ["b"])
  }

  /// Rows refer to the two rows by their keys.
  @Test func rowsThatReferToTheTwoRowsStayWithThem() throws {
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
    try devices[0].run("INSERT INTO detail VALUES (5, 'plain'); INSERT INTO mark VALUES ('p', 5)")
    try exchange(devices)
    let number = try devices[0].rows("SELECT id FROM person")[0]
    try devices[0].run(
      "INSERT INTO detail VALUES (\(number), 'refers'); INSERT INTO mark VALUES ('r', \(number))")
    try replace(devices[1], by: devices[0])
    #expect(try devices[1].rows("SELECT * FROM detail") == ["5|refers"])
    #expect(try devices[1].rows("SELECT * FROM mark") == ["r|5"])
    try exchange(devices)
    #expect(
      try devices[0].rows("SELECT mark.id, text FROM mark JOIN detail ON detail.id = detail")
        == ["p|plain", "r|refers"])
    try devices[0].run("DELETE FROM mark WHERE id = 'r'; DELETE FROM detail WHERE text = 'refers'")
    try settle(devices, "SELECT * FROM mark", ["p|5"])
  }

  /// The two rows have integer keys beside their declared columns.
  @Test func declaredColumnsHaveOneValueOnThisDevice() throws {
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
      "INSERT INTO meta VALUES (10, 5, 'x', 'plain'); INSERT INTO mark VALUES ('p', 10)")
    try exchange(devices)
    let number = try devices[0].rows("SELECT id FROM person")[0]
    try devices[0].run(
      """
      INSERT INTO meta VALUES (11, \(number), 'x', 'refers');
      INSERT INTO mark VALUES ('r', 11);
      """)
    let marks = "SELECT mark.id, value FROM mark JOIN meta ON meta.id = meta ORDER BY 1"
    for _ in 0..<2 {
      try replace(devices[1], by: devices[0])
      #expect(try devices[1].rows("SELECT person, value FROM meta") == ["5|refers"])
      #expect(try devices[1].rows(marks) == ["r|refers"])
      try exchange(devices)
      #expect(try devices[0].rows(marks) == ["p|plain", "r|refers"])
      for device in devices { try verify(device) }
    }
    try devices[0].run("DELETE FROM mark WHERE id = 'r'; DELETE FROM meta WHERE value = 'refers'")
    try settle(devices, marks, ["p|plain"])
  }

  // MARK: - Numbers and unique values beside keys

  /// Persons of two devices have one number, and the next number is a plain value.
  @Test(arguments: ["", PlainKeyExchangeTests.named])
  func aPersonGetsNoNumberThatIsAPlainValue(name: String) throws {
    let devices = try devices("INSERT INTO meta VALUES (2, 'x', 'two')", name: name)
    try devices[0].run("INSERT INTO person VALUES (1, 'a')")
    try devices[1].run("INSERT INTO person VALUES (1, 'b')")
    try replace(devices[1], by: devices[0])
    #expect(try devices[1].rows("SELECT id, name FROM person WHERE name = 'a'") == ["3|a"])
    try settle(devices, Self.all, ["2|x|two"])
  }

  /// The number of a person there is a plain value here, in a change that the whole store lacks.
  @Test func aPersonDoesNotKeepANumberThatIsAPlainValueHere() throws {
    let devices = try devices()
    try devices[0].run("INSERT INTO person VALUES (5, 'a')")
    try devices[1].run("INSERT INTO meta VALUES (5, 'x', 'five')")
    try replace(devices[1], by: devices[0])
    #expect(try devices[1].rows("SELECT id <> 5 FROM person") == ["1"])
    try settle(devices, Self.all, ["5|x|five"])
  }

  /// A plain value and a reference are one number here, and two there, in a unique column. On the
  /// other device a person may have the plain number, too.
  @Test(arguments: [true, false], ["TEXT", "INTEGER"])
  func twoRowsHaveOneUniqueValueOnThisDevice(isTaken: Bool, key: String) throws {
    var configuration = StoreConfiguration()
    configuration.references = ["note": ["person": "person"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE note (id \(key) PRIMARY KEY, person INTEGER UNIQUE, text TEXT);
      """, configuration: configuration)
    try devices[1].run("INSERT INTO person VALUES (5, 'here')")
    try devices[0].run("INSERT INTO note VALUES (1, 5, 'plain')")
    try exchange(devices)
    if isTaken { try devices[0].run("INSERT INTO person VALUES (5, 'there')") }
    let number = try devices[0].rows("SELECT id FROM person WHERE name = 'here'")[0]
    #expect(number != "5")
    try devices[0].run("INSERT INTO note VALUES (2, \(number), 'refers')")
    let path = scratch.path + "/whole.db"
    _ = try devices[0].outgoing()
    _ = try devices[0].store.snapshot(to: path)
    for _ in 0..<2 {
      _ = try devices[1].store.replaceContent(withSnapshotAt: path)
      #expect(try devices[1].rows("SELECT person FROM note") == ["5"])
      #expect(try devices[1].store.status().parked.map(\.reason) == [.uniqueValueTaken])
      try exchange(devices)
      #expect(
        try devices[0].rows(
          "SELECT text, person.name FROM note LEFT JOIN person ON person.id = person "
            + "AND text = 'refers' ORDER BY 1") == ["plain|NULL", "refers|here"])
    }
    // The hidden row gives up the value.
    let shown = try devices[1].rows("SELECT text FROM note")[0]
    try devices[0].run("UPDATE note SET person = NULL WHERE text <> '\(shown)'")
    try settle(devices, "SELECT text FROM note ORDER BY 1", ["plain", "refers"])
  }
}
