import SyncModel
import Testing

@testable import SyncStore

/// Rows with NULL in their key that refer to rows that go.
@Suite struct NullKeyReferenceTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE folder (id INTEGER PRIMARY KEY, name);
    CREATE TABLE gone (k TEXT PRIMARY KEY, folder REFERENCES folder ON DELETE CASCADE, v);
    CREATE TABLE held (k TEXT PRIMARY KEY, folder INTEGER REFERENCES folder, v);
    CREATE TABLE freed (k TEXT PRIMARY KEY, folder INTEGER REFERENCES folder ON DELETE SET NULL, v);
    CREATE TABLE needed (k TEXT PRIMARY KEY,
      folder INTEGER NOT NULL REFERENCES folder ON DELETE SET NULL, v);
    CREATE TABLE moved (k TEXT PRIMARY KEY,
      folder INTEGER DEFAULT 2 REFERENCES folder ON DELETE SET DEFAULT, v);
    INSERT INTO folder VALUES (1, 'a'), (2, 'b');
    """
  private static let tables = ["gone", "held", "freed", "needed", "moved"]

  private func insertRows(_ device: Device) throws {
    for table in Self.tables {
      try device.run("INSERT INTO \(table) VALUES (NULL, 1, '\(table)'), (NULL, 2, 'stays')")
    }
  }

  /// Checks the rows after the folder 1 has gone.
  private func checkRows(_ device: Device) throws {
    for table in ["gone", "held", "needed"] {
      #expect(try device.rows("SELECT folder, v FROM \(table)") == ["2|stays"], "\(table)")
    }
    #expect(try device.rows("SELECT folder, v FROM freed ORDER BY v") == ["NULL|freed", "2|stays"])
    #expect(try device.rows("SELECT folder, v FROM moved ORDER BY v") == ["2|moved", "2|stays"])
    let conflicts = try device.store.conflicts()
    #expect(conflicts.map(\.table).sorted() == ["gone", "held", "needed"])
    for conflict in conflicts {
      #expect(conflict.kind == .reference && conflict.status == .settled)
      let value = conflict.local.cells?.first { $0.column == "v" }?.value
      #expect(value == .text(Array("\(conflict.table)".utf8)))
    }
  }

  @Test func aRowThatAnotherDeviceDeletes() throws {
    let devices = try scratch.devices(2, Self.schema)
    try insertRows(devices[0])
    try devices[1].run("DELETE FROM folder WHERE id = 1")
    _ = try devices[0].store.seal()
    let report = try devices[0].receive(from: devices[1])
    #expect(report.warnings.map(\.code) == [.keyMissing, .keyMissing, .keyMissing])
    try converge(devices, "SELECT name FROM folder", ["b"])
    try checkRows(devices[0])
    #expect(try devices[0].sealsNothing())
    #expect(try devices[1].store.conflicts() == [])
  }

  @Test func aRowThatAProgramDeletesWithoutForeignKeys() throws {
    let devices = try scratch.devices(2, Self.schema)
    try insertRows(devices[0])
    _ = try devices[0].store.seal()
    try devices[0].run(
      "PRAGMA foreign_keys = OFF; DELETE FROM folder WHERE id = 1; PRAGMA foreign_keys = ON")
    try converge(devices, "SELECT name FROM folder", ["b"])
    try checkRows(devices[0])
  }

  @Test func aReferenceThatAProgramWritesWithoutForeignKeys() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF;
      INSERT INTO held VALUES (NULL, 9, 'x'), (NULL, 2, 'stays'); INSERT INTO freed VALUES (NULL, 9, 'x');
      PRAGMA foreign_keys = ON;
      """)
    try converge(devices, "SELECT name FROM folder ORDER BY name", ["a", "b"])
    #expect(try devices[0].rows("SELECT folder, v FROM held") == ["2|stays"])
    #expect(try devices[0].rows("SELECT folder, v FROM freed") == ["NULL|x"])
    #expect(try devices[0].store.conflicts().map(\.table) == ["held"])
  }

  @Test func rowsWithoutAKeyThatReferToOneAnother() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE folder (id INTEGER PRIMARY KEY, name);
      CREATE TABLE page (k TEXT PRIMARY KEY, code UNIQUE, folder INTEGER REFERENCES folder);
      CREATE TABLE line (k TEXT PRIMARY KEY, page REFERENCES page (code));
      INSERT INTO folder VALUES (1, 'a'), (2, 'b');
      """)
    try devices[0].run(
      "INSERT INTO page VALUES (NULL, 5, 1), (NULL, 6, 2); INSERT INTO line VALUES (NULL, 5), (NULL, 6)"
    )
    try devices[1].run("DELETE FROM folder WHERE id = 1")
    try converge(devices, "SELECT name FROM folder", ["b"])
    #expect(try devices[0].rows("SELECT code FROM page") == ["6"])
    #expect(try devices[0].rows("SELECT page FROM line") == ["6"])
    #expect(try devices[0].store.conflicts().map(\.table).sorted() == ["line", "page"])
  }

  /// A row without a key does not come to refer to the row that gets the number.
  @Test func anotherRowWithTheNumberOfADeletedOne() throws {
    let devices = try scratch.devices(2, Self.schema)
    try insertRows(devices[0])
    try devices[1].run("DELETE FROM folder WHERE id = 1")
    _ = try devices[1].store.seal()
    try devices[1].run("INSERT INTO folder VALUES (1, 'c')")
    try converge(devices, "SELECT name FROM folder ORDER BY name", ["b", "c"])
    try checkRows(devices[0])
  }

  @Test func aRowThatAnotherDeviceGivesAnotherKey() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE tag (name TEXT PRIMARY KEY NOT NULL);
      CREATE TABLE mark (k TEXT PRIMARY KEY, tag TEXT REFERENCES tag ON DELETE CASCADE);
      INSERT INTO tag VALUES ('red'), ('blue');
      """)
    try devices[0].run("INSERT INTO mark VALUES (NULL, 'red'), (NULL, 'blue')")
    try devices[1].run("UPDATE tag SET name = 'rouge' WHERE name = 'red'")
    _ = try devices[1].store.seal()
    try devices[1].run("UPDATE tag SET name = 'rot' WHERE name = 'rouge'")
    try converge(devices, "SELECT name FROM tag ORDER BY name", ["blue", "rot"])
    #expect(try devices[0].rows("SELECT tag FROM mark ORDER BY tag") == ["blue", "rot"])
    #expect(try devices[0].store.conflicts() == [])
  }

  @Test func aRowForWhichAnotherStandsIn() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE folder (id INTEGER PRIMARY KEY, name UNIQUE, v);
      CREATE TABLE note (k TEXT PRIMARY KEY, folder INTEGER REFERENCES folder ON DELETE CASCADE);
      """)
    try devices[0].setClock(milliseconds: 1_700_000_000_000)
    try devices[0].run(
      "INSERT INTO folder VALUES (1, 'work', 'first'); INSERT INTO note VALUES (NULL, 1)")
    try devices[1].setClock(milliseconds: 1_700_000_001_000)
    try devices[1].run("INSERT INTO folder VALUES (7, 'work', 'second')")
    try converge(devices, "SELECT v FROM folder", ["second"])
    #expect(
      try devices[0].rows("SELECT v FROM note JOIN folder ON folder = folder.id") == ["second"])
  }
}
