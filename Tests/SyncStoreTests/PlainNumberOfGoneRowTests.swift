import SyncModel
import Testing

@testable import SyncStore

/// Plain numbers that a row got for a while, where rows that contain the number in their own keys stand
/// for that row still.
@Suite struct PlainNumberOfGoneRowTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// How the columns of trips and visits come to contain numbers of places.
  enum Columns: CaseIterable {
    case composite, declared, notNull
  }

  private func devices(_ columns: Columns) throws -> [Device] {
    var configuration = StoreConfiguration()
    if columns != .composite {
      configuration.references = ["trip": ["place": "place"], "visit": ["place": "place"]]
    }
    let keys =
      columns == .composite
      ? """
      , road INTEGER, day INTEGER, FOREIGN KEY (place, road) REFERENCES road (first, last),
      FOREIGN KEY (place, day) REFERENCES visit (place, day)
      """ : ""
    return try scratch.devices(
      2,
      """
      CREATE TABLE place (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE road (first INTEGER REFERENCES place, last INTEGER, PRIMARY KEY (first, last));
      CREATE TABLE visit (place INTEGER, day INTEGER, of INTEGER REFERENCES guest,
        PRIMARY KEY (place, day)) WITHOUT ROWID;
      CREATE TABLE guest (id INTEGER PRIMARY KEY);
      CREATE TABLE trip (name TEXT PRIMARY KEY, note TEXT,
        place INTEGER\(columns == .notNull ? " NOT NULL DEFAULT 0" : "")\(keys));
      INSERT INTO place VALUES (1, 'one');
      INSERT INTO trip (name, place) VALUES ('t', 2);
      """, configuration: configuration)
  }

  private func check(
    _ devices: [Device], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    try converge(devices, "SELECT place FROM trip", ["2"], sourceLocation: sourceLocation)
    for device in devices {
      #expect(
        try LocalStore.verify(at: device.path).report.findings == [],
        sourceLocation: sourceLocation)
      #expect(try device.sealsNothing(), sourceLocation: sourceLocation)
    }
  }

  /// A place comes and goes before one synchronization. If a known place goes, too, the rows that
  /// refer to places are looked at.
  @Test(arguments: Columns.allCases, ["", " WHERE id = 2"])
  func thePlainNumberStaysOne(columns: Columns, condition: String) throws {
    let devices = try devices(columns)
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF;
      INSERT INTO place VALUES (2, 'two');
      INSERT INTO visit (place, day) VALUES (2, 1), (2, 3);
      DELETE FROM place\(condition);
      """)
    try check(devices)
    #expect(try devices[0].rows("SELECT place, day FROM visit") == ["2|1", "2|3"])
    // Its row is looked at.
    try devices[0].run("UPDATE trip SET note = 'a'")
    try check(devices)
    try devices[1].run("UPDATE trip SET note = 'b'")
    try check(devices)
    // Another row gets the number, and goes later.
    try devices[0].run("INSERT INTO place VALUES (2, 'again')")
    try check(devices)
    try devices[0].run("PRAGMA foreign_keys = OFF; DELETE FROM place")
    try check(devices)
    // Nothing else contains the number any more.
    try devices[0].run("DELETE FROM visit")
    try check(devices)
    try devices[0].run("INSERT INTO place VALUES (2, 'new')")
    try check(devices)
  }

  @Test(arguments: Columns.allCases, ["", " WHERE id = 2"])
  func thePlainNumberStaysOneOfARowThatGoesLater(columns: Columns, condition: String) throws {
    let devices = try devices(columns)
    try devices[0].run(
      "INSERT INTO place VALUES (2, 'two'); INSERT INTO visit (place, day) VALUES (2, 1)")
    try check(devices)
    try devices[0].run("PRAGMA foreign_keys = OFF; DELETE FROM place\(condition)")
    try check(devices)
    try devices[0].run("UPDATE trip SET note = 'a'")
    try check(devices)
    try devices[0].run("DELETE FROM visit")
    try check(devices)
  }

  /// A program makes a table again before the next synchronization.
  @Test(arguments: Columns.allCases, ["guest", "visit", "trip"])
  func thePlainNumberStaysOneWhileATableIsMadeAgain(columns: Columns, table: String) throws {
    let devices = try devices(columns)
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF;
      INSERT INTO place VALUES (2, 'two');
      INSERT INTO visit (place, day) VALUES (2, 1);
      """)
    let definition = try #require(
      try devices[0].rows("SELECT sql FROM sqlite_master WHERE name = '\(table)'").first)
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON;
      ALTER TABLE \(table) RENAME TO former; \(definition);
      INSERT INTO \(table) SELECT * FROM former; DROP TABLE former;
      DELETE FROM place;
      """)
    try check(devices)
    try devices[0].run("UPDATE trip SET note = 'a'")
    try check(devices)
    try devices[0].run("DELETE FROM visit")
    try check(devices)
  }

  /// The row that contains the number in its key refers to nothing, so it is hidden at once.
  @Test(arguments: Columns.allCases, ["", " WHERE id = 2"])
  func thePlainNumberStaysOneBesideAHiddenRow(columns: Columns, condition: String) throws {
    let devices = try devices(columns)
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF;
      INSERT INTO place VALUES (2, 'two');
      INSERT INTO visit VALUES (2, 1, 9);
      DELETE FROM place\(condition);
      """)
    try check(devices)
    #expect(try devices[0].rows("SELECT place, day FROM visit") == [])
    // The row that it refers to comes.
    try devices[1].run("INSERT INTO guest VALUES (9)")
    try check(devices)
    try devices[0].run("UPDATE trip SET note = 'a'; INSERT INTO place VALUES (2, 'again')")
    try check(devices)
    try devices[0].run("DELETE FROM visit; DELETE FROM place WHERE id = 2")
    try check(devices)
  }

  /// A row had the plain number in its key already: it does not stand for the place.
  @Test(arguments: Columns.allCases, ["", " WHERE id = 2"])
  func thePlainNumberStaysOneBesideAPlainKey(columns: Columns, condition: String) throws {
    let devices = try devices(columns)
    try devices[1].run("INSERT INTO visit (place, day) VALUES (2, 7)")
    try check(devices)
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF;
      INSERT INTO place VALUES (2, 'two');
      DELETE FROM place\(condition);
      """)
    try check(devices)
    try devices[0].run("UPDATE trip SET note = 'a'")
    try check(devices)
    try converge(devices, "SELECT place, day FROM visit", ["2|7"])
    try devices[1].run("DELETE FROM visit")
    try check(devices)
  }
}
