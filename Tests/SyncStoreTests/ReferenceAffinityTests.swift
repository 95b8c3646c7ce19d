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
    ("TEXT", "'3e0'"), ("", "'03'"), ("", "' 3'"), ("", "'3e0'"),
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

  /// One device refers to a row, and another one that does not know that deletes it.
  @Test(arguments: forms)
  func aReferenceIsFoundByADeletion(type: String, value: String) throws {
    let devices = try devices(type, "INSERT INTO p VALUES (3, 'x')")
    try devices[0].run("INSERT INTO c VALUES ('c', \(value))")
    try devices[1].run("DELETE FROM p")
    try converge(devices, "SELECT count(*) FROM c", ["0"])
    try expectSound(devices)
  }

  /// UUID, DATE and STRING are numeric affinities, with texts in the columns.
  @Test(arguments: ["CASCADE", "RESTRICT"])
  func aTextRefersToATextInANumericColumn(action: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE p (k UUID PRIMARY KEY);
      CREATE TABLE c (id TEXT PRIMARY KEY, p TEXT REFERENCES p (k) ON DELETE \(action));
      INSERT INTO p VALUES ('f-1'), ('2024-05-01');
      """)
    try devices[0].run("INSERT INTO c VALUES ('c', 'f-1'), ('d', '2024-05-01')")
    try devices[1].run("DELETE FROM p")
    try converge(devices, "SELECT count(*) FROM c", [action == "CASCADE" ? "0" : "2"])
    try expectSound(devices)
  }

  /// A number that refers to no row has several forms, and each is a value of its own.
  @Test(arguments: ["TEXT", ""])
  func formsOfAPlainNumberAreDifferentValues(type: String) throws {
    let devices = try plain(type, "INSERT INTO c VALUES ('c', '07')")
    try devices[1].run("UPDATE c SET p = '7'")
    try converge(devices, "SELECT typeof(p), p FROM c", ["text|7"])
    try expectSound(devices)
  }

  /// A number that referred to no row stays a plain value when a row gets it.
  @Test(arguments: [("TEXT", "'03'"), ("TEXT", "'3'"), ("", "'03'"), ("", "'3'"), ("", "3.0")])
  func aPlainNumberStaysPlain(type: String, value: String) throws {
    let devices = try plain(type)
    try devices[0].run("INSERT INTO c VALUES ('c', \(value))")
    try converge(devices)
    try devices[0].run("INSERT INTO p VALUES (3, 'x')")
    try converge(devices)
    try devices[1].run("DELETE FROM p")
    try converge(devices, "SELECT p IS \(value) FROM c", ["1"])
    try expectSound(devices)
  }

  private func plain(_ type: String, _ rows: String = "") throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.references = ["c": ["p": "p"]]
    return try scratch.devices(
      2,
      """
      CREATE TABLE p (id INTEGER PRIMARY KEY, n TEXT);
      CREATE TABLE c (id TEXT PRIMARY KEY, p \(type)); \(rows)
      """, configuration: configuration)
  }

  /// A row that is shown only since another refers to it, and gets a reference, lives again.
  @Test(arguments: forms)
  func aReferenceBringsARowBack(type: String, value: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE p (id INTEGER PRIMARY KEY, n TEXT);
      CREATE TABLE c (id TEXT PRIMARY KEY, p INTEGER REFERENCES p (id) ON DELETE RESTRICT);
      CREATE TABLE d (id TEXT PRIMARY KEY, p \(type) REFERENCES p (id) ON DELETE SET NULL);
      INSERT INTO p VALUES (3, 'x');
      """)
    try devices[0].run("INSERT INTO c VALUES ('c', 3)")
    try devices[1].run("DELETE FROM p")
    try converge(devices, "SELECT n FROM p", ["x"])
    try devices[1].run("INSERT INTO d VALUES ('d', \(value))")
    try converge(devices)
    try devices[0].run("DELETE FROM c")
    try converge(devices, "SELECT n FROM d JOIN p ON p.id = d.p + 0", ["x"])
    try expectSound(devices)
  }

  /// A new row has the number of a row as a text in its key, and that row gets another number.
  @Test func aTextInAKeyFollowsARowWithAnotherNumber() throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["tag": .columns(["name"])]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
      CREATE TABLE item (tag TEXT REFERENCES tag (id), no INTEGER, x TEXT, PRIMARY KEY (tag, no));
      INSERT INTO tag VALUES (2, 'a');
      """, configuration: configuration)
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF; INSERT INTO item VALUES ('2', 1, 'x');
      UPDATE tag SET id = 9 WHERE id = 2;
      """)
    let shown = "SELECT name, no, x FROM item JOIN tag ON tag.id = item.tag + 0"
    try converge(devices, shown, ["a|1|x"])
    try expectSound(devices)
  }

  /// A row without a key refers to a text by a number.
  @Test func aRowWithoutAKeyStays() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE r (id INTEGER PRIMARY KEY, code TEXT UNIQUE);
      CREATE TABLE s (a TEXT, b TEXT, c REFERENCES r (code), PRIMARY KEY (a, b));
      """)
    try devices[0].run("INSERT INTO r VALUES (1, '7'); INSERT INTO s VALUES (NULL, 'b', 7)")
    try converge(devices, "SELECT code FROM r", ["7"])
    #expect(try devices[0].rows("SELECT b, c FROM s") == ["b|7"])
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

  /// SQLite stores such words as text, also in columns of numbers and as defaults, and other devices
  /// must not take them for numbers.
  @Test func wordsAreNoNumbers() throws {
    let words = [
      "-Inf", "+Inf", "Inf", "-inf", "-Infinity", "+infinity", "-nan", "+", "-.", "-0x10", "- 1",
    ]
    let devices = try scratch.devices(
      2, "CREATE TABLE k (k NUMERIC PRIMARY KEY, i INTEGER, r REAL, v)")
    try devices[0].run(
      words.map { "INSERT INTO k VALUES ('\($0)', '\($0)', '\($0)', 0)" }.joined(separator: ";"))
    let rows = "SELECT k, i, r, typeof(k) || typeof(i) || typeof(r), v FROM k ORDER BY rowid"
    let expected = words.map { "\($0)|\($0)|\($0)|texttexttext|" }
    #expect(try devices[0].rows(rows) == expected.map { $0 + "0" })
    try exchange(devices)
    try devices[1].run("UPDATE k SET v = 1")
    let sorted = rows.replacing("rowid", with: "k")
    try converge(devices, sorted, words.sorted().map { "\($0)|\($0)|\($0)|texttexttext|1" })
    try devices[0].run("ALTER TABLE k ADD COLUMN n NUMERIC DEFAULT '-Inf'")
    try exchange(devices)
    try devices[1].run("ALTER TABLE k ADD COLUMN n NUMERIC DEFAULT '-Inf'")
    try devices[1].run("INSERT INTO k (k) VALUES ('x')")
    try converge(devices, "SELECT DISTINCT n, typeof(n) FROM k", ["-Inf|text"])
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
