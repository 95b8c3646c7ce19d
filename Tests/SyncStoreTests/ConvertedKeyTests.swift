import SyncModel
import Testing

@testable import SyncStore

/// Tables with texts as keys, to which columns of numbers refer. SQLite converts the key where it
/// lies when it looks for these rows by an index, so triggers after the edit read a number.
@Suite struct ConvertedKeyTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// The tables, and an edit.
  struct Case: CustomTestStringConvertible {
    var key: String
    var suffix: String
    var index: String
    var isExcluded: Bool
    var edit: String

    var testDescription: String {
      "\(key)\(suffix), \(index)\(isExcluded ? ", excluded" : ""): \(edit)"
    }

    var sql: String {
      "CREATE TABLE w (k \(key) PRIMARY KEY NOT NULL, x TEXT)\(suffix);"
        + "CREATE TABLE c (id INTEGER PRIMARY KEY, a TEXT, w BIGINT REFERENCES w(k) "
        + "ON DELETE CASCADE ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED);"
        + "CREATE INDEX i ON c (\(index));"
        + Case.keys.map { "INSERT INTO w VALUES ('\($0)', 'x');" }.joined()
        // Without a type, the text does not match the number.
        + (key.isEmpty ? "" : "INSERT INTO c VALUES (1, 'a', '5'), (2, 'a', '7');")
    }

    static let keys = ["5", "7", "9", "03", "2.0", "12345678901234567890", "a"]

    private static let edits =
      keys.map { "DELETE FROM w WHERE k = '\($0)'" }
      + keys.map { "UPDATE w SET k = '8' WHERE k = '\($0)'" }
      + keys.map { "UPDATE w SET k = k || '0', x = 'y' WHERE k = '\($0)'" }
      + [
        "DELETE FROM w WHERE k = '5'; INSERT INTO w VALUES ('5', 'new')", "DELETE FROM w",
        "UPDATE w SET k = k, x = 'y'",
        // SQLite skips the first statement.
        "UPDATE OR IGNORE w SET k = '9' WHERE k = '5'; DELETE FROM w WHERE k = '5'",
        "UPDATE OR IGNORE w SET k = '9' WHERE k = '5'; UPDATE w SET k = k, x = 'y' WHERE k = '7'",
        "UPDATE OR IGNORE w SET k = '9' WHERE k = '5'; UPDATE w SET k = k, x = 'y' WHERE k = '5'",
      ]

    /// The edits that need a reference to a text.
    private static let editsOfTexts = [
      "INSERT INTO c VALUES (3, 'b', 3); INSERT INTO w VALUES ('3', 'z')",
      "INSERT INTO c VALUES (3, 'b', 3); REPLACE INTO w VALUES ('3', 'z'), ('9', 'z')",
      "UPDATE c SET w = 3; UPDATE OR IGNORE w SET k = '3' WHERE k IN ('5', '7', '9')",
    ]

    static let all = ["VARCHAR(20)", ""].flatMap { key in
      ["", " WITHOUT ROWID"].flatMap { suffix in
        ["w", "w, a"].flatMap { index in
          [false, true].flatMap { isExcluded in
            (key.isEmpty ? edits : edits + editsOfTexts).map {
              Case(key: key, suffix: suffix, index: index, isExcluded: isExcluded, edit: $0)
            }
          }
        }
      }
    }
  }

  @Test(arguments: Case.all)
  func theOtherDeviceShowsTheEdit(of tables: Case) throws {
    var configuration = StoreConfiguration()
    if tables.isExcluded { configuration.excludedTables = ["c"] }
    let devices = try scratch.devices(2, tables.sql, configuration: configuration)
    try devices[0].run("PRAGMA foreign_keys = ON; BEGIN; \(tables.edit); COMMIT;")
    let query = "SELECT quote(k), x FROM w ORDER BY typeof(k), k"
    let edited = try devices[0].rows(query)
    try exchange(devices)
    for device in devices {
      #expect(try device.rows(query) == edited)
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
    #expect(try devices[0].store.digest() == devices[1].store.digest())
  }

  /// SQLite converts both the former and the new key to 5.
  @Test(arguments: ["", " WITHOUT ROWID"])
  func aKeyThatKeepsItsNumberIsAnotherRow(suffix: String) throws {
    var configuration = StoreConfiguration()
    configuration.excludedTables = ["c"]
    let devices = try scratch.devices(
      2,
      "CREATE TABLE w (k TEXT PRIMARY KEY NOT NULL, x TEXT)\(suffix);"
        + "CREATE TABLE c (id INTEGER PRIMARY KEY, w BIGINT REFERENCES w(k));"
        + "CREATE INDEX i ON c (w); INSERT INTO w VALUES ('5', 'x'); INSERT INTO c VALUES (1, 5);",
      configuration: configuration)
    try devices[0].run("PRAGMA foreign_keys = ON; UPDATE w SET k = '05', x = 'y'")
    try exchange(devices)
    for device in devices { #expect(try device.rows("SELECT k, x FROM w") == ["05|y"]) }
  }

  /// A migration makes a column of numbers that refers to texts, and edits follow before the store is
  /// opened again.
  @Test(
    arguments: [
      "DELETE FROM w WHERE k = '5'", "UPDATE w SET k = '8', x = 'y' WHERE k = '5'",
      "BEGIN; INSERT INTO c VALUES (1, 3); INSERT INTO w VALUES ('3', 'z'); COMMIT",
    ])
  func editsThatFollowAMigrationAreSent(edit: String) throws {
    func child(_ type: String) -> String {
      "CREATE TABLE c (id INTEGER PRIMARY KEY, w \(type) REFERENCES w(k) "
        + "DEFERRABLE INITIALLY DEFERRED); CREATE INDEX i ON c (w);"
    }
    let devices = try scratch.devices(
      2,
      "CREATE TABLE w (k TEXT PRIMARY KEY NOT NULL, x TEXT);"
        + "\(child("TEXT")) INSERT INTO w VALUES ('5', 'x'), ('6', 'x');")
    for device in devices { try device.run("DROP TABLE c; \(child("BIGINT"))") }
    try devices[0].run("PRAGMA foreign_keys = ON; \(edit)")
    let edited = try devices[0].rows("SELECT * FROM w ORDER BY k")
    try exchange(devices)
    for device in devices { #expect(try device.rows("SELECT * FROM w ORDER BY k") == edited) }
  }

  /// A trigger of the application tries to change another key, which SQLite skips.
  @Test(
    arguments: ["UPDATE w SET k = '8' WHERE k = '5'", "DELETE FROM w WHERE k = '5'"],
    ["AFTER UPDATE OF k ON w WHEN NEW.k = '8'", "AFTER DELETE ON w"])
  func aSkippedEditOfATriggerIsNone(edit: String, event: String) throws {
    let devices = try scratch.devices(
      2,
      "CREATE TABLE w (k TEXT PRIMARY KEY NOT NULL, x TEXT);"
        + "CREATE TABLE c (id INTEGER PRIMARY KEY, w INTEGER REFERENCES w(k));"
        + "CREATE INDEX i ON c (w); INSERT INTO w VALUES ('5', 'x'), ('6', 'x'), ('7', 'x');")
    for device in devices {
      try device.run(
        "CREATE TRIGGER app \(event) BEGIN UPDATE OR IGNORE w SET k = '6' WHERE k = '7'; END")
    }
    try devices[0].run("PRAGMA foreign_keys = ON; \(edit)")
    let edited = try devices[0].rows("SELECT k FROM w ORDER BY k")
    try exchange(devices)
    for device in devices { #expect(try device.rows("SELECT k FROM w ORDER BY k") == edited) }
    #expect(Set(try devices.map { try $0.store.digest() }).count == 1)
  }

  /// An update that names a column and leaves its value is no edit of it.
  @Test func aColumnThatStaysIsNotEdited() throws {
    let devices = try scratch.devices(
      2,
      "CREATE TABLE w (id INTEGER PRIMARY KEY, u TEXT UNIQUE, x TEXT);"
        + "CREATE TABLE c (id INTEGER PRIMARY KEY, u INTEGER REFERENCES w(u));"
        + "CREATE INDEX i ON c (u); INSERT INTO w VALUES (1, '5', 'x');")
    try devices[1].run("UPDATE w SET u = '6'")
    try devices[0].run("PRAGMA foreign_keys = ON; UPDATE w SET u = '5', x = 'y'")
    try exchange(devices)
    for device in devices { #expect(try device.rows("SELECT u, x FROM w") == ["6|y"]) }
  }

  /// An update that names the key and leaves it is no insertion.
  @Test func aKeyThatStaysIsNoInsertion() throws {
    let devices = try scratch.devices(
      2,
      "CREATE TABLE w (k TEXT PRIMARY KEY NOT NULL, x TEXT, y TEXT);"
        + "CREATE TABLE c (id INTEGER PRIMARY KEY, w INTEGER REFERENCES w(k));"
        + "CREATE INDEX i ON c (w); INSERT INTO w VALUES ('5', 'x', 'y');")
    try devices[1].run("UPDATE w SET x = 'x2'")
    try devices[0].run("PRAGMA foreign_keys = ON; UPDATE w SET k = k, y = 'y2'")
    try exchange(devices)
    for device in devices { #expect(try device.rows("SELECT x, y FROM w") == ["x2|y2"]) }
  }

  /// A row that another device refers to does not live on under a key that it never got.
  @Test func aSkippedChangeOfAKeyIsNoMove() throws {
    let devices = try scratch.devices(
      2,
      "CREATE TABLE w (k TEXT PRIMARY KEY NOT NULL);"
        + "CREATE TABLE c (id INTEGER PRIMARY KEY, w INTEGER REFERENCES w(k) ON DELETE SET NULL);"
        + "CREATE INDEX i ON c (w); INSERT INTO w VALUES ('5'), ('9');")
    try devices[1].run("INSERT INTO c VALUES (1, 5)")
    try devices[0].run(
      "PRAGMA foreign_keys = ON; UPDATE OR IGNORE w SET k = '9' WHERE k = '5'; "
        + "DELETE FROM w WHERE k = '5'")
    try exchange(devices)
    for device in devices { #expect(try device.rows("SELECT quote(w) FROM c") == ["NULL"]) }
  }

  /// A column of texts, which is no key, is converted in the same way.
  @Test func aDeletedRowKeepsItsText() throws {
    let devices = try scratch.devices(
      3,
      "CREATE TABLE w (id INTEGER PRIMARY KEY, u TEXT UNIQUE);"
        + "CREATE TABLE c (id INTEGER PRIMARY KEY, w INTEGER REFERENCES w(id), "
        + "u INTEGER REFERENCES w(u));"
        + "CREATE INDEX i ON c (u); INSERT INTO w VALUES (1, '05');")
    try devices[0].run("PRAGMA foreign_keys = ON; DELETE FROM w")
    // The other device refers to the row, so it comes back.
    try devices[1].run("INSERT INTO c (id, w) VALUES (7, 1)")
    try exchange(devices)
    for device in devices { #expect(try device.rows("SELECT u FROM w") == ["05"]) }
    #expect(Set(try devices.map { try $0.store.digest() }).count == 1)
  }
}
