import SyncModel
import Testing

@testable import SyncStore

/// Plain numbers in tables that are made again.
@Suite struct RemadePlainValueTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A table with a row that is older than syncing is made again without the row, and another row gets
  /// the plain number in its key before that is noticed.
  @Test(arguments: ["", "INSERT INTO stop VALUES (3, 'l', 'two');"])
  func aRowWithAPlainNumberInItsKeyIsDeletedUnseen(further: String) throws {
    var configuration = StoreConfiguration()
    configuration.references = ["stop": ["place": "place"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE place (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE stop (place INTEGER NOT NULL, k TEXT NOT NULL, a TEXT, PRIMARY KEY (place, k));
      INSERT INTO stop VALUES (4, 'k', 'one');
      """, configuration: configuration)
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF;
      CREATE TABLE new (place INTEGER NOT NULL, k TEXT NOT NULL, a TEXT, PRIMARY KEY (place, k));
      DROP TABLE stop; ALTER TABLE new RENAME TO stop; \(further)
      INSERT INTO place VALUES (4, 'four');
      """)
    try converge(
      devices, "SELECT place, k FROM stop ORDER BY 1", further.isEmpty ? [] : ["3|l"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
    // The row with this key is another one.
    try devices[0].run("INSERT INTO stop VALUES (4, 'k', 'new')")
    try converge(
      devices, "SELECT name, a FROM stop JOIN place ON place.id = stop.place", ["four|new"])
  }

  /// A reference of which one column is NULL holds no row, and a declared one need not be an enforced
  /// one.
  private static let columns = [
    "place INTEGER, other INTEGER, FOREIGN KEY (place, other) REFERENCES road (first, last)",
    "place INTEGER, other INTEGER",
  ]

  /// A row that got the plain number is deleted while another table is made again.
  @Test(arguments: columns, [false, true])
  func thePlainNumberStaysOne(columns: String, isNamed: Bool) throws {
    var configuration = StoreConfiguration()
    if isNamed { configuration.identities = ["place": .columns(["name"])] }
    if !columns.contains("FOREIGN") { configuration.references = ["trip": ["place": "place"]] }
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE place (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE road (
        first INTEGER REFERENCES place, last INTEGER REFERENCES place, PRIMARY KEY (first, last));
      CREATE TABLE trip (name TEXT PRIMARY KEY, \(columns));
      CREATE TABLE visit (name TEXT PRIMARY KEY, place INTEGER REFERENCES place ON DELETE CASCADE);
      INSERT INTO trip VALUES ('t', 2, NULL);
      """, configuration: configuration)
    try devices[0].run("INSERT INTO place VALUES (1, 'one'), (2, 'two')")
    try converge(devices, "SELECT place FROM trip", ["2"])
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF;
      CREATE TABLE new (name TEXT PRIMARY KEY, place INTEGER REFERENCES place ON DELETE CASCADE);
      INSERT INTO new SELECT * FROM visit; DROP TABLE visit; ALTER TABLE new RENAME TO visit;
      DELETE FROM place WHERE id = 2;
      """)
    try converge(devices, "SELECT place FROM trip", ["2"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
    // Another row of that number is not meant, either.
    try devices[0].run("INSERT INTO place VALUES (2, 'again')")
    try converge(devices, "SELECT place FROM trip", ["2"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
    // It can be deleted as well, and the number is still shown.
    try devices[0].run("DELETE FROM place WHERE id = 2")
    try converge(devices, "SELECT place FROM trip", ["2"])
  }

  /// A table whose deleted rows may come back is made again without its rows, and other rows get the plain numbers
  /// in them before that is noticed.
  @Test(arguments: [false, true], [false, true])
  func aRowWithAPlainNumberIsDeletedUnseen(isNamed: Bool, comesBack: Bool) throws {
    var configuration = StoreConfiguration()
    configuration.references = ["trip": ["place": "place"]]
    if isNamed { configuration.identities = ["trip": .columns(["name"])] }
    let trip = "(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, place INTEGER)"
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE place (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE trip \(trip);
      CREATE TABLE photo (name TEXT PRIMARY KEY, trip INTEGER REFERENCES trip ON DELETE RESTRICT);
      INSERT INTO trip VALUES (1, 't', 4), (2, 'u', 3);
      """, configuration: configuration)
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF;
      CREATE TABLE new \(trip); DROP TABLE trip; ALTER TABLE new RENAME TO trip;
      INSERT INTO place VALUES (4, 'four');
      """)
    if comesBack { try devices[1].run("INSERT INTO photo VALUES ('p', 1)") }
    try converge(devices, "SELECT name, place FROM trip", comesBack ? ["t|4"] : [])
    // The number is not that of a gone row, either.
    try devices[0].run("DELETE FROM place")
    try converge(devices, "SELECT name, place FROM trip", comesBack ? ["t|4"] : [])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
  }
}
