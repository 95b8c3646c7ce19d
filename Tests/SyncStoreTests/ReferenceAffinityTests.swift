import SyncModel
import Testing

@testable import SyncStore

/// References from columns with another affinity than the column that they refer to.
@Suite struct ReferenceAffinityTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let joined = "SELECT c.id, n FROM c JOIN p ON p.id = c.p + 0 ORDER BY 1"

  /// Columns that may contain the number of a row in another form.
  private static let forms = [
    ("TEXT", "3"), ("TEXT", "'3'"), ("VARCHAR(9)", "3"), ("", "'3'"), ("", "3.0"), ("BLOB", "3"),
    ("NUMERIC", "'3.0'"), ("TEXT", "'3.0'"), ("TEXT", "' 3'"), ("TEXT", "'03'"),
    ("TEXT", "'3e0'"),
  ]

  private func devices(_ type: String, _ rows: String = "") throws -> [Device] {
    try scratch.devices(
      2,
      """
      CREATE TABLE p (id INTEGER PRIMARY KEY, n TEXT);
      CREATE TABLE c (id TEXT PRIMARY KEY, p \(type) REFERENCES p (id) ON DELETE CASCADE); \(rows)
      """)
  }

  private func expectSound(_ devices: [Device]) throws {
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
  }

  @Test(arguments: forms)
  func aNumberOfARowThatWasThereBeforeIsAReference(type: String, value: String) throws {
    let devices = try devices(
      type, "INSERT INTO p VALUES (3, 'x'); INSERT INTO c VALUES ('c', \(value));")
    try converge(devices, Self.joined, ["c|x"])
    try expectSound(devices)
    try devices[1].run("DELETE FROM p")
    try converge(devices, "SELECT count(*) FROM c", ["0"])
    try expectSound(devices)
  }

  /// Both devices give a row the same number.
  @Test(arguments: forms)
  func aReferenceFollowsItsRow(type: String, value: String) throws {
    let devices = try devices(type)
    try devices[0].run("INSERT INTO p VALUES (3, 'a'); INSERT INTO c VALUES ('a', \(value))")
    try devices[1].run("INSERT INTO p VALUES (3, 'b'); INSERT INTO c VALUES ('b', \(value))")
    try converge(devices, Self.joined, ["a|a", "b|b"])
    try expectSound(devices)
    try devices[0].run("DELETE FROM p WHERE n = 'b'")
    try converge(devices, Self.joined, ["a|a"])
    try expectSound(devices)
  }

  /// A column without affinity contains an integer that refers to a text.
  @Test(arguments: ["ON UPDATE CASCADE", "ON UPDATE CASCADE ON DELETE CASCADE"])
  func aTextIsReferredToByANumber(actions: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE p (k TEXT PRIMARY KEY);
      CREATE TABLE c (id TEXT PRIMARY KEY, p REFERENCES p (k) \(actions)); INSERT INTO p VALUES ('7');
      """)
    try devices[1].run("INSERT INTO c VALUES ('c', 7)")
    try devices[0].run("UPDATE p SET k = '77'")
    try converge(devices, "SELECT id, p FROM c", ["c|77"])
    try expectSound(devices)
    try devices[1].run("UPDATE c SET p = 77")
    try converge(devices)
    try devices[0].run("UPDATE p SET k = '8'")
    try converge(devices, "SELECT id, p FROM c", ["c|8"])
    try expectSound(devices)
    guard actions.contains("DELETE") else { return }
    try devices[1].run("UPDATE c SET p = 8")
    try converge(devices)
    try devices[0].run("DELETE FROM p")
    try converge(devices, "SELECT count(*) FROM c", ["0"])
    try expectSound(devices)
  }

  /// A foreign key to a table that does not exist is a value like others, and `verify` says so.
  @Test func aForeignKeyToNoTableIsANote() throws {
    let devices = try scratch.devices(
      2, "CREATE TABLE a (id INTEGER PRIMARY KEY, g INTEGER REFERENCES ghost (id))")
    try devices[0].run("PRAGMA foreign_keys = OFF; INSERT INTO a VALUES (1, 1), (2, NULL)")
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT * FROM a ORDER BY id") == ["1|1", "2|NULL"])
      let findings = try LocalStore.verify(at: device.path).report.findings
      #expect(findings.map(\.kind) == [.foreignKeysBroken])
      #expect(findings.map(\.severity) == [.note])
    }
  }

  /// An excluded table refers to a row that another device has deleted.
  @Test func aReferenceOfAnExcludedTableIsANote() throws {
    var configuration = StoreConfiguration()
    configuration.excludedTables = ["draft"]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE p (id INTEGER PRIMARY KEY, n TEXT);
      CREATE TABLE draft (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p (id));
      INSERT INTO p VALUES (1, 'one'), (2, 'two');
      """, configuration: configuration)
    try devices[0].run("INSERT INTO draft VALUES (1, 2)")
    try devices[1].run("DELETE FROM p WHERE id = 2")
    try exchange(devices)
    let findings = try LocalStore.verify(at: devices[0].path).report.findings
    #expect(findings.map(\.kind) == [.foreignKeysBroken])
    #expect(findings.map(\.severity) == [.note])
    #expect(try LocalStore.verify(at: devices[1].path).report.findings == [])
  }
}
