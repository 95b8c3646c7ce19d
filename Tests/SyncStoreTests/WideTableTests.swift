import SyncModel
import Testing

@testable import SyncStore

/// Tables with almost as many columns as SQLite allows.
@Suite struct WideTableTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// The greatest number of columns, apart from an integer key.
  private static let greatest = 1_988

  private static func columns(_ count: Int) -> String {
    (0..<count).map { "c\($0)" }.joined(separator: ", ")
  }

  /// Other tables refer to the table, so that deletions record all its cells.
  @Test func rowsOfATableToWhichOthersRefer() throws {
    var configuration = StoreConfiguration()
    configuration.columnMergeTypes = ["wide": ["c7": .counter]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE wide (id INTEGER PRIMARY KEY, \(Self.columns(1_000)), UNIQUE (c1, c2));
      CREATE TABLE child (id TEXT PRIMARY KEY, wide INTEGER REFERENCES wide);
      INSERT INTO wide (id, c0, c7, c999) VALUES (1, 'first', 1, 'last'), (2, 'first', 10, 'second');
      """, configuration: configuration)
    try devices[0].run(
      "INSERT INTO wide (id, c0, c999) VALUES (3, 'new', 3); "
        + "UPDATE wide SET c5 = 5, c7 = c7 + 1 WHERE id = 2; DELETE FROM wide WHERE id = 1")
    try devices[1].run(
      "INSERT INTO child VALUES ('c', 1); UPDATE wide SET c7 = c7 + 2 WHERE id = 2")
    // The reference brings the row back, with the cells that the deletion recorded.
    try converge(
      devices,
      "SELECT w.id, c.id, c0, c5, c7, c999 FROM wide AS w LEFT JOIN child AS c ON w.id = c.wide",
      ["1|c|first|NULL|1|last", "2|NULL|first|5|13|second", "3|NULL|new|NULL|NULL|3"])
  }

  @Test func theGreatestNumberOfColumns() throws {
    let last = "c\(Self.greatest - 1)"
    let device = try scratch.devices(
      1,
      """
      CREATE TABLE wide (id INTEGER PRIMARY KEY, \(Self.columns(Self.greatest)));
      CREATE TABLE child (id TEXT PRIMARY KEY, wide INTEGER REFERENCES wide);
      INSERT INTO wide (id, c0, \(last)) VALUES (1, 'first', 'last'), (2, 'first', 'second');
      """)[0]
    try device.run(
      "INSERT INTO wide (id, \(last)) VALUES (3, 3); UPDATE wide SET \(last) = 5 WHERE id = 2; "
        + "DELETE FROM wide WHERE id = 1")
    #expect(try device.changes().map { Set($0.letters) } == [["i", "u", "d"]])
  }

  /// Expressions of so many terms are deeper than SQLite allows, unless they are balanced.
  @Test func manyConditions() throws {
    let columns = (0..<1_010).map { "c\($0) INTEGER CHECK (c\($0) < 10)" }
    let devices = try scratch.devices(
      2, "CREATE TABLE wide (id TEXT PRIMARY KEY, \(columns.joined(separator: ", ")), r UNIQUE)")
    // The conditions of a row that loses its unique value are evaluated.
    try devices[0].run("INSERT INTO wide (id, c600, r) VALUES ('a', 6, 1)")
    try devices[1].run("INSERT INTO wide (id, c600, r) VALUES ('b', 7, 1)")
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].rows("SELECT c600, c1009 FROM wide") == ["7|NULL"])
    #expect(try devices[1].store.status().parked.map(\.reason) == [.uniqueValueTaken])
    #expect(try LocalStore.verify(at: devices[1].path).report.findings == [])
  }

  /// A table that is wider is refused before anything is done; a new one stays on its device.
  @Test(arguments: [greatest + 1, 1_999])
  func aTableThatIsTooWide(count: Int) throws {
    let sql = "CREATE TABLE wide (id INTEGER PRIMARY KEY, \(Self.columns(count)))"
    let refusal = #expect(throws: StoreError.self) { try scratch.devices(1, sql) }
    #expect(refusal?.code == .unsupportedSchema)
    #expect(refusal?.message.contains("has too many columns") == true)
    let program = try Program(scratch.path + "/device1.db")
    #expect(try program.rows("SELECT name FROM sqlite_schema") == ["wide"])
    let others = try Scratch()
    let devices = try others.devices(2, "CREATE TABLE note (id TEXT PRIMARY KEY)")
    try devices[0].run("\(sql); INSERT INTO note VALUES ('a')")
    let status = try devices[0].store.status()
    #expect(status.leftOut["wide"] == .tooManyColumns)
    #expect(status.unsuitableTables.map(\.wasSynchronized) == [false])
    try converge(devices, "SELECT * FROM note", ["a"])
  }
}
