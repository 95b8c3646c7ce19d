import SyncModel
import Testing

@testable import SyncStore

/// Excluded tables and columns that refer to a row that another device deletes and the policy of
/// this device brings back, in the same transaction.
@Suite struct BroughtBackReferrersTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let actions = ["ON DELETE CASCADE", "ON DELETE SET NULL", ""]

  /// Two devices whose tables “mark” stay on each of them. The second one decides by `localWins`.
  private func devices(_ schema: String) throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.excludedTables = ["mark"]
    let devices = try scratch.devices(2, schema, configuration: configuration)
    try devices[1].setPolicy(.localWins)
    return devices
  }

  private func expectSound(_ devices: [Device]) throws {
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.rows("PRAGMA foreign_key_check") == [])
      #expect(try device.sealsNothing())
    }
  }

  /// The row comes back with the rows that went with it, under another number if a row of the other
  /// device has taken its own.
  @Test(arguments: actions, [false, true])
  func theyStay(action: String, isNumberTaken: Bool) throws {
    let devices = try devices(
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, t TEXT);
      CREATE TABLE task (id INTEGER PRIMARY KEY, note INTEGER REFERENCES note (id) ON DELETE CASCADE);
      CREATE TABLE mark (id INTEGER PRIMARY KEY, note INTEGER REFERENCES note (id) \(action),
        task INTEGER REFERENCES task (id) \(action));
      INSERT INTO note VALUES (1, 'one');
      """)
    try devices[1].run(
      "UPDATE note SET t = 'mine'; INSERT INTO task VALUES (1, 1); INSERT INTO mark VALUES (1, 1, 1)"
    )
    try devices[0].run("DELETE FROM note")
    if isNumberTaken {
      _ = try devices[0].store.seal()
      try devices[0].run("INSERT INTO note VALUES (1, 'other')")
    }
    // Policies decide about edits that are not published.
    try devices[1].receive(from: devices[0])
    try exchange(devices)
    #expect(
      try devices[1].rows(
        "SELECT t, mark.task FROM mark JOIN note ON note.id = mark.note "
          + "JOIN task ON task.id = mark.task AND task.note = note.id") == ["mine|1"])
    #expect(try devices[0].rows("SELECT t FROM note WHERE t = 'mine'") == ["mine"])
    try expectSound(devices)
  }

  /// The policy cannot bring the row back, since another row has its unique value.
  @Test(arguments: [("ON DELETE CASCADE", []), ("ON DELETE SET NULL", ["1|NULL"])])
  func theyFollowIfTheRowCannotComeBack(action: (sql: String, rows: [String])) throws {
    let devices = try devices(
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, t TEXT, u TEXT UNIQUE);
      CREATE TABLE mark (id INTEGER PRIMARY KEY, note INTEGER REFERENCES note (id) \(action.sql));
      INSERT INTO note VALUES (1, 'one', 'u');
      """)
    try devices[1].run("UPDATE note SET t = 'mine'; INSERT INTO mark VALUES (1, 1)")
    try devices[0].run("DELETE FROM note; INSERT INTO note VALUES (2, 'other', 'u')")
    // Policies decide about edits that are not published.
    try devices[1].receive(from: devices[0])
    try exchange(devices)
    #expect(try devices[1].rows("SELECT t FROM note") == ["other"])
    #expect(try devices[1].rows("SELECT id, note FROM mark") == action.rows)
    try expectSound(devices)
  }

  /// Other rows are deleted in the same transaction, or go with their parents, and no policy brings
  /// them back.
  @Test func theyFollowRowsThatStayDeleted() throws {
    let devices = try devices(
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, t TEXT);
      CREATE TABLE task (id INTEGER PRIMARY KEY, note INTEGER REFERENCES note (id) ON DELETE CASCADE);
      CREATE TABLE mark (
        id INTEGER PRIMARY KEY, note INTEGER REFERENCES note (id) ON DELETE CASCADE,
        task INTEGER REFERENCES task (id) ON DELETE SET NULL);
      INSERT INTO note VALUES (1, 'one'), (2, 'two');
      """)
    try devices[1].run(
      """
      UPDATE note SET t = 'mine' WHERE id = 1; INSERT INTO task VALUES (1, 1), (2, 2);
      INSERT INTO mark VALUES (1, 1, 1), (2, 2, NULL), (3, NULL, 2)
      """)
    try devices[0].run("DELETE FROM note")
    try devices[1].receive(from: devices[0])
    try exchange(devices)
    #expect(
      try devices[1].rows("SELECT id, note, task FROM mark ORDER BY id") == [
        "1|1|1", "3|NULL|NULL",
      ])
    try expectSound(devices)
  }
}
