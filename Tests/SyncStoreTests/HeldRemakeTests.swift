import SyncModel
import Testing

@testable import SyncStore

/// Tables that a program makes again and leaves rows out, among them rows that are too large to be
/// sent. The caps are small here: 32 KiB.
@Suite struct HeldRemakeTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func devices(
    _ schema: String, _ configuration: StoreConfiguration = StoreConfiguration()
  ) throws -> [Device] {
    var options = StoreOptions.patient
    options.limits.memoryBytes = 64 << 10
    return try scratch.devices(3, schema, configuration: configuration, options: options)
  }

  private static let large = "randomblob(40000)"

  /// Rows go unseen, and then the numbers in their keys are those of other rows, or of none.
  @Test(
    arguments: [
      "UPDATE OR REPLACE tag SET name = 'red' WHERE name = 'blue'",
      "UPDATE tag SET name = 'green' WHERE name = 'blue'",
      "UPDATE tag SET id = 9 WHERE name = 'blue'", "DELETE FROM tag WHERE name = 'blue'",
      "DELETE FROM tag; INSERT INTO tag VALUES (2, 'red')", "",
    ],
    [["(2, \(large))"], ["(1, \(large))", "(2, \(large))"], ["(1, x'01')", "(2, x'02')"]])
  func rowsThatWentUnseenAreGone(edit: String, rows: [String]) throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["tag": .columns(["name"])]
    let columns =
      "(tag INTEGER PRIMARY KEY REFERENCES tag ON DELETE CASCADE ON UPDATE CASCADE, data BLOB)"
    for isNoticed in [true, false] {
      let scratch = try Self()
      let devices = try scratch.devices(
        """
        CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
        CREATE TABLE icon \(columns); INSERT INTO tag VALUES (1, 'red');
        """, configuration)
      try devices[0].run(
        "INSERT INTO tag VALUES (2, 'blue'); INSERT INTO icon VALUES "
          + rows.joined(separator: ", "))
      try exchange(devices)
      try devices[0].run(
        "PRAGMA foreign_keys = OFF; DROP TABLE icon; CREATE TABLE icon \(columns); "
          + "PRAGMA foreign_keys = ON")
      if isNoticed { _ = try devices[0].store.status() }
      try devices[0].run(edit)
      try converge(devices, "SELECT count(*) FROM icon", ["0"])
      #expect(try devices[0].store.status().heldEdits == [])
      try devices[1].run("INSERT OR IGNORE INTO tag (name) VALUES ('blue')")
      try converge(devices, "SELECT count(*) FROM icon", ["0"])
      for device in devices {
        #expect(try LocalStore.verify(at: device.path).report.findings == [])
        #expect(try device.sealsNothing())
      }
    }
  }

  /// A row that gives way to another one was not in the table before, either.
  @Test(arguments: ["TEXT", "INTEGER"]) func aHiddenRowIsKept(type: String) throws {
    let columns = "(k \(type) PRIMARY KEY, name TEXT UNIQUE, data BLOB)"
    let devices = try devices("CREATE TABLE photo \(columns)")
    try devices[0].setClock(offset: 0)
    try devices[0].run("INSERT INTO photo VALUES (1, 'Ann', zeroblob(40000))")
    _ = try devices[0].store.seal()
    try devices[1].setClock(offset: 10)
    try devices[1].run("INSERT INTO photo VALUES (2, 'Ann', x'02')")
    try exchange(devices)
    #expect(try devices[0].rows("SELECT length(data) FROM photo") == ["1"])
    try devices[0].run(
      """
      CREATE TABLE new \(columns); INSERT INTO new SELECT * FROM photo; DROP TABLE photo;
      ALTER TABLE new RENAME TO photo
      """)
    try exchange(devices)
    #expect(try devices[0].store.status().heldEdits.count == 1)
    try devices[1].run("UPDATE photo SET name = 'Bob'")
    try exchange(devices)
    let query = "SELECT name, length(data) FROM photo ORDER BY 1"
    #expect(try devices[0].rows(query) == ["Ann|40000", "Bob|1"])
    try devices[0].run("UPDATE photo SET data = x'01' WHERE name = 'Ann'")
    try converge(devices, query, ["Ann|1", "Bob|1"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }
}
