import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Rows that REPLACE removes without a trigger.
@Suite struct ReplacedRowTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A unique index has a generated column, and the update sets none of the columns from which it is
  /// computed.
  @Test(arguments: ["", " STORED"], ["(lower(email))", "(coalesce(f, ''))"])
  func anIndexHasAGeneratedColumn(storage: String, expression: String) throws {
    let devices = try scratch.devices(
      2,
      "CREATE TABLE contact (id INTEGER PRIMARY KEY, book TEXT, email TEXT, "
        + "f AS (lower(email))\(storage), e AS \(expression)\(storage));"
        + "CREATE UNIQUE INDEX u ON contact (book, e);"
        + "INSERT INTO contact VALUES (1, 'work', 'Ann@x'), (2, 'home', 'ann@x');")
    try devices[0].run("UPDATE OR REPLACE contact SET book = 'work' WHERE id = 2")
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT id, book FROM contact") == ["2|work"])
      // The other row is deleted, and not hidden.
      #expect(try device.store.status().parked == [])
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  private static let keys = [
    "(k TEXT NOT NULL, v TEXT, PRIMARY KEY (k COLLATE NOCASE))",
    "(k TEXT NOT NULL, v TEXT, PRIMARY KEY (k COLLATE NOCASE)) WITHOUT ROWID",
    "(n INTEGER NOT NULL DEFAULT 1, k TEXT NOT NULL, v TEXT, PRIMARY KEY (n, k COLLATE NOCASE))",
  ]

  /// The primary key ignores the case, and its column does not.
  @Test(
    arguments: keys,
    ["REPLACE INTO p (k, v) VALUES ('A', 'y')", "UPDATE OR REPLACE p SET k = 'A' WHERE k = 'b'"])
  func aKeyIgnoresTheCase(key: String, edit: String) throws {
    let devices = try scratch.devices(
      2, "CREATE TABLE p \(key); INSERT INTO p (k, v) VALUES ('a', 'x'), ('b', 'x')")
    try devices[0].run(edit)
    let edited = try devices[0].rows("SELECT k, v FROM p ORDER BY k")
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT k, v FROM p ORDER BY k") == edited)
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  /// Two devices insert a row each, and the keys are equal for SQLite.
  @Test(arguments: keys)
  func oneOfTwoEqualKeysIsShown(key: String) throws {
    let devices = try scratch.devices(2, "CREATE TABLE p \(key)")
    try devices[0].run("INSERT INTO p (k, v) VALUES ('a', 'x')")
    // In another millisecond: otherwise the client decides.
    usleep(2_000)
    try devices[1].run("INSERT INTO p (k, v) VALUES ('A', 'y')")
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT k, v FROM p") == ["A|y"])
      #expect(try device.store.status().parked.count == 1)
    }
    try devices[1].run("DELETE FROM p")
    try exchange(devices)
    for device in devices { #expect(try device.rows("SELECT k, v FROM p") == ["a|x"]) }
    #expect(Set(try devices.map { try $0.store.digest() }).count == 1)
  }
}
