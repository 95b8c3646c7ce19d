import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// A row that refers to a hidden row is shown under the key of the stand-in, in the form that its own
/// column gives this key. If that form does not refer to the stand-in, as SQLite decides, the row is
/// hidden, too.
@Suite struct StandInKeyTests {
  private static let forms = ["", "TEXT", "INT", "REAL", "TEXT COLLATE NOCASE"]

  /// Tables whose column `k` refers to `parent`.
  private static func children(_ form: String) -> [String] {
    let column =
      "k \(form) REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED"
    return [
      "child (\(column), a TEXT, PRIMARY KEY (k))",
      "child (\(column), a TEXT, PRIMARY KEY (k, a)) WITHOUT ROWID",
      "child (\(column), a TEXT PRIMARY KEY)",
      "child (\(column), a TEXT PRIMARY KEY, UNIQUE (k))",
    ]
  }

  /// The key of a parent to which the number 4 refers in a column of the form `child`.
  private func key(_ parent: String, _ child: String) -> String {
    if parent.hasPrefix("TEXT") { return child == "REAL" ? "'4.0'" : "'4'" }
    return child.hasPrefix("TEXT") ? "'4'" : "4"
  }

  @Test(arguments: forms, forms)
  func aRowIsShownUnderTheKeyOfTheStandIn(_ parent: String, _ child: String) throws {
    for table in Self.children(child) {
      for other in ["1515", "'03'", "'3.0'", "'X '"] {
        try check(
          "CREATE TABLE parent (k \(parent) PRIMARY KEY, u TEXT UNIQUE); CREATE TABLE \(table)",
          key: key(parent, child), other: other)
      }
    }
  }

  private func check(_ schema: String, key: String, other: String) throws {
    let folder = try Scratch()
    let devices = try folder.devices(2, schema)
    try devices[0].run("INSERT INTO parent VALUES (\(key), 'b'), (\(other), 'a')")
    try devices[0].run("INSERT INTO child VALUES (4, 'c')")
    try converge(devices)
    let before = try devices[0].rows("SELECT k FROM child")
    let oracle = try Program(folder.path + "/oracle.db")
    try oracle.run("PRAGMA foreign_keys = ON; \(schema); INSERT INTO parent VALUES (\(other), 'a')")
    var expected: [String] = []
    do {
      try oracle.run("INSERT INTO child VALUES (\(other), 'c')")
      expected = try oracle.rows("SELECT k FROM parent")
    } catch let error as Program.Failure {
      guard error.description.contains("FOREIGN KEY") else { throw error }
    }
    try devices[1].run(
      "UPDATE parent SET u = NULL WHERE u = 'a'; UPDATE parent SET u = 'a' WHERE u = 'b'")
    usleep(2_000)
    try devices[0].run(
      "UPDATE parent SET u = NULL WHERE u = 'a'; UPDATE parent SET u = 'a' WHERE u IS NULL")
    try converge(devices)
    let what = "\(schema); \(other)"
    let shown = "SELECT parent.k FROM child LEFT JOIN parent ON parent.k = child.k"
    for device in devices {
      #expect(try device.rows("SELECT count(*) FROM parent") == ["1"], "\(what)")
      #expect(try device.rows(shown) == expected, "\(what)")
      #expect(try LocalStore.verify(at: device.path).report.findings == [], "\(what)")
    }
    // It is shown as itself again.
    try devices[1].run("UPDATE parent SET u = 'z'")
    try converge(devices)
    for device in devices {
      #expect(try device.rows("SELECT count(*) FROM parent") == ["2"], "\(what)")
      #expect(try device.rows("SELECT k FROM child") == before, "\(what)")
      #expect(try LocalStore.verify(at: device.path).report.findings == [], "\(what)")
    }
  }

  /// Gives two rows one unique value, each on its own device: the row of the later edit is shown.
  private func hide(_ earlier: String, behind later: String, _ devices: [Device]) throws {
    try devices[1].run(earlier)
    try devices[0].setClock(offset: 3_600)
    try devices[0].run(later)
  }

  /// The key of the stand-in has no form in the child's column, and what the column would make of it is
  /// the key of a third row.
  @Test(arguments: [("INT", "07", "7"), ("INT", "7.0", "7"), ("REAL", "7", "7.0")])
  func aRowIsNotShownUnderAThirdRow(_ child: String, _ standIn: String, _ third: String) throws {
    for table in Self.children(child) {
      let folder = try Scratch()
      let devices = try folder.devices(
        2, "CREATE TABLE parent (k TEXT PRIMARY KEY, u TEXT UNIQUE); CREATE TABLE \(table)")
      let key = key("TEXT", child)
      try devices[0].run(
        "INSERT INTO parent VALUES (\(key), 'b'), ('\(standIn)', 'a'), ('\(third)', 'c'); "
          + "INSERT INTO child VALUES (4, 'c')")
      try converge(devices)
      try hide(
        "UPDATE parent SET u = 'a2' WHERE u = 'b'",
        behind: "UPDATE parent SET u = 'a2' WHERE u = 'a'", devices)
      try converge(devices, "SELECT a FROM child", [])
      // Its parent is another one.
      try devices[0].run("DELETE FROM parent WHERE k = '\(third)'")
      try converge(devices, "SELECT a FROM child", [])
      try devices[0].run("UPDATE parent SET u = 'z' WHERE k = '\(standIn)'")
      try converge(
        devices, "SELECT parent.k FROM child JOIN parent ON child.k = parent.k",
        [key.filter { $0 != "'" }])
      for device in devices {
        #expect(try LocalStore.verify(at: device.path).report.findings == [])
      }
    }
  }

  /// A row with NULL in its key is on one device alone. What it refers to is hidden there, and the key
  /// of the stand-in has no form in its column.
  @Test(arguments: ["", ", ('7', 'c')"])
  func aRowWithoutAKeyDoesNotReferToAThirdRow(_ third: String) throws {
    let folder = try Scratch()
    let devices = try folder.devices(
      2,
      """
      CREATE TABLE parent (k TEXT PRIMARY KEY, u TEXT UNIQUE);
      CREATE TABLE child (k INT REFERENCES parent ON DELETE SET NULL, a TEXT PRIMARY KEY);
      """)
    try devices[0].run("INSERT INTO parent VALUES ('4', 'b'), ('07', 'a')\(third)")
    try devices[0].run("INSERT INTO child VALUES (4, NULL)")
    try converge(devices)
    try hide(
      "UPDATE parent SET u = 'a2' WHERE u = 'b'",
      behind: "UPDATE parent SET u = 'a2' WHERE u = 'a'", devices)
    try converge(devices)
    #expect(try devices[0].rows("SELECT quote(k), quote(a) FROM child") == ["NULL|NULL"])
  }

  /// The key of the hidden row has a plain number, and a text refers to it.
  @Test func aPlainNumberInAKeyHasTheFormOfTheColumnToo() throws {
    var configuration = StoreConfiguration()
    configuration.references["meta"] = ["person": "person"]
    let folder = try Scratch()
    let devices = try folder.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY);
      CREATE TABLE meta (person INTEGER, name TEXT, u TEXT UNIQUE, PRIMARY KEY (person, name));
      CREATE TABLE note (person TEXT, name TEXT, PRIMARY KEY (person, name),
        FOREIGN KEY (person, name) REFERENCES meta);
      """, configuration: configuration)
    try devices[0].run("INSERT INTO meta VALUES (7, 'x', 'a'), (9, 'y', 'b')")
    try devices[0].run("INSERT INTO note VALUES ('7', 'x')")
    try converge(devices)
    try hide(
      "UPDATE meta SET u = 'c' WHERE person = 7",
      behind: "UPDATE meta SET u = 'c' WHERE person = 9", devices)
    try converge(devices, "SELECT * FROM note", ["9|y"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
    try devices[1].run("UPDATE meta SET u = 'd' WHERE person = 9")
    try converge(devices, "SELECT * FROM note", ["7|x"])
  }
}
