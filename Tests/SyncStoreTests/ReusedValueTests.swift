import SyncModel
import Testing

@testable import SyncStore

/// Numbers of rows with declared columns that came and went before one synchronization, where another
/// row got values that the row had for a time.
@Suite struct ReusedValueTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// How a child has the number of the row, and whether it is shown where the row is gone.
  struct Child: CustomTestStringConvertible {
    var columns: String
    var isDeclared = false
    var shown: [String]
    var testDescription: String { columns }
  }

  private static let children = [
    Child(columns: "no INTEGER, tag INTEGER REFERENCES tag, PRIMARY KEY (tag, no)", shown: []),
    Child(columns: "no INTEGER PRIMARY KEY, tag INTEGER REFERENCES tag", shown: []),
    Child(
      columns: "no INTEGER PRIMARY KEY, tag INTEGER REFERENCES tag ON DELETE SET NULL",
      shown: ["1|NULL"]),
    Child(columns: "no INTEGER PRIMARY KEY, tag INTEGER", isDeclared: true, shown: ["1|2"]),
  ]

  private func devices(_ child: Child, in scratch: Scratch) throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.identities = ["tag": .columns(["name"])]
    if child.isDeclared { configuration.references = ["item": ["tag": "tag"]] }
    return try scratch.devices(
      2,
      """
      CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE COLLATE NOCASE);
      CREATE TABLE item (\(child.columns));
      """, configuration: configuration)
  }

  private static let off = "PRAGMA foreign_keys = OFF;"

  /// The child does not refer to the row that has got the first values of its parent.
  @Test(
    arguments: children,
    [
      "INSERT INTO tag VALUES (2, 'work'); UPDATE tag SET name = 'job' WHERE id = 2;",
      "INSERT INTO tag VALUES (1, 'work'); UPDATE tag SET id = 2; UPDATE tag SET name = 'job';",
    ])
  func theRowIsNotTakenForAnother(child: Child, parent: String) throws {
    let devices = try devices(child, in: scratch)
    try devices[0].run(
      """
      \(Self.off) INSERT INTO item (no, tag) VALUES (1, 2); \(parent)
      DELETE FROM tag WHERE id = 2; INSERT INTO tag VALUES (3, 'WORK');
      """)
    try converge(devices, "SELECT name FROM tag", ["WORK"])
    for device in devices {
      #expect(try device.rows("SELECT no, tag FROM item") == child.shown)
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
  }

  /// It refers to the row under the values that this has in the end.
  @Test(arguments: children)
  func theRowIsFoundUnderItsLastValues(child: Child) throws {
    let devices = try devices(child, in: scratch)
    try devices[0].run(
      """
      \(Self.off) INSERT INTO item (no, tag) VALUES (1, 2); INSERT INTO tag VALUES (2, 'work');
      UPDATE tag SET name = 'job'; UPDATE tag SET id = 5; INSERT INTO tag VALUES (6, 'work');
      """)
    try converge(
      devices, "SELECT no, name FROM item JOIN tag ON tag.id = item.tag", ["1|job"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
  }

  /// A row that other devices know is followed to the row that has got its first or its last values.
  @Test(arguments: ["", "UPDATE tag SET id = 2;"], ["a", "b"])
  func aRowThatWasKnownBeforeIsFollowed(moved: String, name: String) throws {
    let child = Child(
      columns: "no INTEGER PRIMARY KEY, tag INTEGER REFERENCES tag ON UPDATE CASCADE", shown: [])
    let devices = try devices(child, in: scratch)
    try devices[0].run("INSERT INTO tag VALUES (1, 'a'); INSERT INTO item VALUES (1, 1)")
    try converge(devices, "SELECT no, name FROM item JOIN tag ON tag.id = item.tag", ["1|a"])
    try devices[0].run(
      """
      \(moved) UPDATE tag SET name = 'b'; \(Self.off)
      DELETE FROM tag; INSERT INTO tag VALUES (7, '\(name)');
      """)
    try converge(devices, "SELECT no, name FROM item JOIN tag ON tag.id = item.tag", ["1|\(name)"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  /// The row that had a number and its values for a time is followed, and not the one that has got
  /// such values.
  @Test func theWayOfTheRowIsFollowedFromItsLastValues() throws {
    let devices = try devices(
      Child(columns: "no INTEGER PRIMARY KEY, tag INTEGER REFERENCES tag", shown: []), in: scratch)
    try devices[0].run(
      """
      \(Self.off) INSERT INTO item VALUES (1, 2); INSERT INTO tag VALUES (2, 'b');
      UPDATE tag SET name = 'x' WHERE id = 2; INSERT INTO tag VALUES (9, 'c');
      UPDATE tag SET name = 'e' WHERE id = 9; UPDATE tag SET name = 'c' WHERE id = 2;
      UPDATE tag SET id = 5 WHERE id = 2; UPDATE tag SET name = 'd' WHERE id = 5;
      """)
    try converge(devices, "SELECT no, name FROM item JOIN tag ON tag.id = item.tag", ["1|d"])
  }

  /// A change of case alone is no other value: the row came in these edits.
  @Test func aRowWhoseCaseChangedCameAsWell() throws {
    let child = Child(
      columns: "no INTEGER PRIMARY KEY, tag INTEGER", isDeclared: true, shown: ["1|2"])
    let devices = try devices(child, in: scratch)
    try devices[0].run("INSERT INTO item VALUES (1, 2)")
    try converge(devices)
    try devices[0].run(
      """
      INSERT INTO tag VALUES (2, 'work'); UPDATE tag SET name = 'WORK';
      DELETE FROM tag; INSERT INTO tag VALUES (3, 'work');
      """)
    try converge(devices, "SELECT no, tag FROM item", child.shown)
  }
}
