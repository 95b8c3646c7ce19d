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
}
