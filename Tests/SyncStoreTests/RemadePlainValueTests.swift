import SyncModel
import Testing

@testable import SyncStore

/// Plain numbers, where a row that got the number is deleted while another table is made again.
@Suite struct RemadePlainValueTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A reference of which one column is NULL holds no row, and a declared one need not be an enforced
  /// one.
  private static let columns = [
    "place INTEGER, other INTEGER, FOREIGN KEY (place, other) REFERENCES road (first, last)",
    "place INTEGER, other INTEGER",
  ]

  private func devices(_ columns: String, _ configuration: StoreConfiguration) throws -> [Device] {
    try scratch.devices(
      2,
      """
      CREATE TABLE place (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE road (
        first INTEGER REFERENCES place, last INTEGER REFERENCES place, PRIMARY KEY (first, last));
      CREATE TABLE trip (name TEXT PRIMARY KEY, \(columns));
      CREATE TABLE visit (name TEXT PRIMARY KEY, place INTEGER REFERENCES place ON DELETE CASCADE);
      INSERT INTO trip VALUES ('t', 2, NULL);
      """, configuration: configuration)
  }

  @Test(arguments: columns, [false, true])
  func thePlainNumberStaysOne(columns: String, isNamed: Bool) throws {
    var configuration = StoreConfiguration()
    if isNamed { configuration.identities = ["place": .columns(["name"])] }
    if !columns.contains("FOREIGN") { configuration.references = ["trip": ["place": "place"]] }
    let devices = try devices(columns, configuration)
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
}
