import SyncModel
import Testing

@testable import SyncStore

/// References to columns that are unique and no key, and are references themselves: what they show
/// changes without an edit of their row.
@Suite struct ReferredColumnTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func domains(_ actions: String) throws -> [Device] {
    try scratch.devices(
      2,
      """
      CREATE TABLE dom (d TEXT PRIMARY KEY NOT NULL);
      CREATE TABLE usr (id INTEGER PRIMARY KEY, d TEXT UNIQUE DEFAULT 'y' REFERENCES dom (d) \(actions));
      CREATE TABLE post (id INTEGER PRIMARY KEY, d TEXT REFERENCES usr (d), t TEXT);
      CREATE TABLE reply (id INTEGER PRIMARY KEY, post INTEGER REFERENCES post (id));
      INSERT INTO dom VALUES ('x'), ('y');
      """)
  }

  private func expectSound(_ devices: [Device]) throws {
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.rows("PRAGMA foreign_key_check") == [])
      #expect(try device.sealsNothing())
    }
  }

  /// The row is hidden with those that refer to it, on its author's device as well, and comes back.
  @Test(
    arguments: [
      ("ON DELETE SET NULL", "DELETE FROM dom WHERE d = 'x'"),
      ("ON DELETE SET DEFAULT", "DELETE FROM dom WHERE d = 'x'"),
      ("ON UPDATE CASCADE", "UPDATE dom SET d = 'x2' WHERE d = 'x'"),
    ], [false, true])
  func aRowThatRefersToAFormerValueIsHidden(
    cause: (actions: String, statement: String), isKnown: Bool
  ) throws {
    let devices = try domains(cause.actions)
    try devices[1].run(
      """
      INSERT INTO usr VALUES (1, 'x'); INSERT INTO post VALUES (1, 'x', 'p');
      INSERT INTO reply VALUES (1, 1);
      """)
    if isKnown { _ = try devices[1].store.seal() }
    try devices[0].run(cause.statement)
    let count =
      "SELECT (SELECT count(*) FROM usr), (SELECT count(*) FROM post), count(*) FROM reply"
    try converge(devices, count, ["1|0|0"])
    try expectSound(devices)
    guard cause.statement.hasPrefix("DELETE") else { return }
    try devices[0].run("INSERT INTO dom VALUES ('x')")
    try converge(devices, count, ["1|1|1"])
    try expectSound(devices)
  }

  /// Two devices create one calendar, with an event each. The events of one show another calendar.
  @Test func aRowThatRefersToARowWithAStandInIsHidden() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE cal (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE ev (
        id INTEGER PRIMARY KEY, cal_id INTEGER NOT NULL REFERENCES cal (id) ON DELETE CASCADE,
        uid TEXT NOT NULL, UNIQUE (cal_id, uid));
      CREATE TABLE alarm (
        id INTEGER PRIMARY KEY, cal INTEGER NOT NULL, uid TEXT NOT NULL,
        FOREIGN KEY (cal, uid) REFERENCES ev (cal_id, uid) ON DELETE CASCADE ON UPDATE CASCADE);
      """)
    for (index, device) in devices.enumerated() {
      try device.run(
        """
        INSERT INTO cal VALUES (2, 'Work'); INSERT INTO ev (cal_id, uid) VALUES (2, 'U\(index)');
        INSERT INTO alarm (cal, uid) VALUES (2, 'U\(index)');
        """)
    }
    try converge(devices)
    #expect(try devices[0].rows("SELECT count(*) FROM ev") == ["2"])
    try expectSound(devices)
  }

  /// A number that referred to no row is another value than a reference to the row that got it.
  @Test func aPlainNumberLeadsToNoReference() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY);
      CREATE TABLE u (id INTEGER PRIMARY KEY, t INTEGER UNIQUE REFERENCES t (id));
      CREATE TABLE v (id INTEGER PRIMARY KEY, t INTEGER REFERENCES u (t));
      """)
    try devices[0].run("PRAGMA foreign_keys = OFF; INSERT INTO v VALUES (1, 2)")
    try converge(devices, "SELECT count(*) FROM v", ["0"])
    try devices[0].run("INSERT INTO t VALUES (2); INSERT INTO u VALUES (6, 2)")
    try converge(devices, "SELECT (SELECT count(*) FROM u), count(*) FROM v", ["1|0"])
    try expectSound(devices)
  }

  /// The same with the reference in the row's own key.
  @Test(arguments: ["SET NULL", "SET DEFAULT"])
  func aRowWithSuchAReferenceInItsKeyIsHidden(action: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE cal (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE ev (
        id INTEGER PRIMARY KEY, cal_id INTEGER REFERENCES cal (id) ON DELETE \(action),
        uid TEXT NOT NULL, UNIQUE (cal_id, uid));
      CREATE TABLE alarm (
        cal INTEGER NOT NULL, uid TEXT NOT NULL, x, PRIMARY KEY (cal, uid),
        FOREIGN KEY (cal, uid) REFERENCES ev (cal_id, uid) ON DELETE CASCADE ON UPDATE CASCADE);
      INSERT INTO cal VALUES (2, 'Work');
      """)
    try devices[1].run(
      "INSERT INTO ev VALUES (1, 2, 'U'); INSERT INTO alarm VALUES (2, 'U', 'a')")
    try devices[0].run("DELETE FROM cal")
    try converge(devices, "SELECT (SELECT count(*) FROM ev), count(*) FROM alarm", ["1|0"])
    try expectSound(devices)
  }
}
