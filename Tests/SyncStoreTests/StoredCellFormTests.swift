import SyncModel
import Testing

@testable import SyncStore

/// Cells that bookkeeping stores, of a column that gets another type.
@Suite struct StoredCellFormTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static func tables(_ type: String) -> String {
    "CREATE TABLE w (k TEXT PRIMARY KEY NOT NULL, x \(type), u INTEGER UNIQUE);"
      + "CREATE TABLE c (id INTEGER PRIMARY KEY, w TEXT REFERENCES w(k));"
  }

  private static func migration(to type: String) -> String {
    "PRAGMA foreign_keys = OFF; CREATE TABLE n (k TEXT PRIMARY KEY NOT NULL, x \(type), "
      + "u INTEGER UNIQUE); INSERT INTO n SELECT * FROM w; DROP TABLE w; ALTER TABLE n RENAME TO w;"
  }

  /// One device deletes a row before the migration, or hides one, and the other one learns of it
  /// afterwards: the logical digests are equal.
  @Test(arguments: [("INTEGER", "TEXT"), ("TEXT", "INTEGER"), ("INTEGER", "REAL")], [0, 1])
  func digestsAreEqual(types: (former: String, present: String), first: Int) throws {
    let devices = try scratch.devices(
      2, Self.tables(types.former) + "INSERT INTO w VALUES ('a', 7, 1), ('b', 8, 2)")
    // The unique value of another row hides one.
    try devices[0].run("INSERT INTO w VALUES ('c', 9, 3); DELETE FROM w WHERE k = 'a'")
    try devices[1].run("INSERT INTO w VALUES ('d', 10, 3)")
    try devices[first].run(Self.migration(to: types.present))
    try exchange(devices)
    try devices[1 - first].run(Self.migration(to: types.present))
    try devices[1].run("DELETE FROM w WHERE k = 'b'")
    try exchange(devices)
    #expect(try devices[0].store.status().parked.count == 1)
    let digests = try devices.map { try $0.store.digest() }
    #expect(digests[0] == digests[1])
  }

  /// The unique value of a hidden row is compared in its present form: the row is shown when the
  /// other one gives up the value.
  @Test(arguments: [("INTEGER", "TEXT"), ("TEXT", "INTEGER"), ("INTEGER", "REAL")], [0, 1])
  func aUniqueValueGetsAnotherForm(types: (former: String, present: String), first: Int) throws {
    func table(_ name: String, _ type: String) -> String {
      "CREATE TABLE \(name) (k TEXT PRIMARY KEY NOT NULL, u \(type) UNIQUE);"
    }
    let devices = try scratch.devices(2, table("t", types.former))
    try devices[0].run("INSERT INTO t VALUES ('a', 6)")
    try devices[1].run("INSERT INTO t VALUES ('b', 6)")
    try exchange(devices)
    let shown = try devices[0].rows("SELECT k FROM t")
    #expect(shown.count == 1)
    for device in [devices[first], devices[1 - first]] {
      try device.run(
        table("n", types.present)
          + "INSERT INTO n SELECT * FROM t; DROP TABLE t; ALTER TABLE n RENAME TO t;")
      try exchange(devices)
      for device in devices {
        #expect(try device.rows("SELECT k FROM t") == shown)
        #expect(try LocalStore.verify(at: device.path).report.findings == [])
      }
    }
    try devices[0].run("UPDATE t SET u = 7")
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT k FROM t ORDER BY k") == ["a", "b"])
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  /// A reference follows a row that has another key, and a column of texts refers to a number.
  @Test func aReferenceFollowsInTheFormOfItsColumn() throws {
    let devices = try scratch.devices(
      2,
      "CREATE TABLE w (k BIGINT PRIMARY KEY NOT NULL);"
        + "CREATE TABLE c (id INTEGER PRIMARY KEY, w TEXT REFERENCES w(k)); "
        + "INSERT INTO w VALUES (5)")
    try devices[0].run("UPDATE w SET k = 6")
    try devices[1].run("INSERT INTO c VALUES (1, '5')")
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT quote(w) FROM c") == ["'6'"])
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }
}
