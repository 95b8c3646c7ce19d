import SyncModel
import Testing

@testable import SyncStore

/// Rows that a migration makes in a new table, so that no trigger sees them: which of them are one row on
/// all devices.
@Suite struct NewTableIdentityTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Two devices on which the users A2 and B2 have each other's number.
  private func devices(_ further: String = "") throws -> [Device] {
    let devices = try scratch.devices(
      2,
      "CREATE TABLE u (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO u VALUES (1, 'O'); \(further)"
    )
    try devices[0].run("INSERT INTO u VALUES (2, 'A2')")
    try devices[1].run("INSERT INTO u VALUES (2, 'B2')")
    try exchange(devices)
    let names = try devices.map { try $0.rows("SELECT name FROM u WHERE id > 1 ORDER BY id") }
    #expect(names == [["A2", "B2"], ["B2", "A2"]])
    return devices
  }

  private func expectSound(_ devices: [Device]) throws {
    for device in devices {
      #expect(try device.store.status().parked.isEmpty)
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
  }

  private static let profiles = """
    CREATE TABLE prof (id INTEGER PRIMARY KEY, u INTEGER NOT NULL UNIQUE REFERENCES u (id), bio TEXT);
    INSERT INTO prof (u) SELECT id FROM u;
    """

  /// The second device migrates when the first one has edited the rows already.
  @Test(arguments: [0, 1])
  func theRowsOfAUserAreOneWhateverItsNumber(first: Int) throws {
    let devices = try devices()
    try devices[first].run(Self.profiles)
    try exchange(devices)
    try devices[first].run(
      "UPDATE prof SET bio = 'bio of ' || (SELECT name FROM u WHERE u.id = prof.u)")
    try exchange(devices)
    try devices[1 - first].run(Self.profiles)
    try converge(
      devices, "SELECT name, bio FROM u JOIN prof ON prof.u = u.id ORDER BY name",
      ["A2|bio of A2", "B2|bio of B2", "O|bio of O"])
    try expectSound(devices)
  }

  /// Each device has a user that the other one does not know yet, with one number.
  @Test(arguments: [false, true])
  func theRowsOfUsersThatAreNotSentStayApart(isSealed: Bool) throws {
    let devices = try devices()
    for (index, device) in devices.enumerated() {
      try device.run("INSERT INTO u VALUES (9, 'new \(index)')")
      if isSealed { _ = try device.store.seal() }
      try device.run(Self.profiles)
    }
    try converge(
      devices, "SELECT name FROM u JOIN prof ON prof.u = u.id ORDER BY name",
      ["A2", "B2", "O", "new 0", "new 1"])
    try expectSound(devices)
  }

  /// Rows of which reference and values are equal are as many as each device has.
  @Test func equalRowsAreAsMany() throws {
    let devices = try devices()
    for device in devices {
      try device.run(
        """
        CREATE TABLE mark (id INTEGER PRIMARY KEY, u INTEGER REFERENCES u, t TEXT);
        INSERT INTO mark (u, t) SELECT id, 'x' FROM u;
        INSERT INTO mark (u, t) SELECT id, 'x' FROM u;
        """)
    }
    try converge(
      devices, "SELECT name, count(*) FROM u JOIN mark ON mark.u = u.id GROUP BY name ORDER BY 1",
      ["A2|2", "B2|2", "O|2"])
    try expectSound(devices)
  }

  /// A new table refers to another one that is made after it.
  @Test func rowsThatReferToNewRowsAreOne() throws {
    let devices = try devices()
    for device in devices {
      try device.run(
        """
        CREATE TABLE photo (id INTEGER PRIMARY KEY, album INTEGER REFERENCES album, t TEXT);
        CREATE TABLE album (id INTEGER PRIMARY KEY, u INTEGER REFERENCES u);
        INSERT INTO album (u) SELECT id FROM u; INSERT INTO photo (album, t) SELECT id, 'p' FROM album;
        """)
    }
    try converge(
      devices,
      "SELECT name, t FROM photo JOIN album ON album = album.id JOIN u ON u = u.id ORDER BY name",
      ["A2|p", "B2|p", "O|p"])
    #expect(try devices[0].rows("SELECT count(*) FROM album") == ["3"])
    try expectSound(devices)
  }

  private static let tree = """
    CREATE TABLE node (id INTEGER PRIMARY KEY, up INTEGER REFERENCES node, u INTEGER REFERENCES u, t TEXT);
    INSERT INTO node SELECT id + 100, NULL, id, NULL FROM u;
    INSERT INTO node SELECT id + 50, id + 100, NULL, NULL FROM u;
    INSERT INTO node SELECT id, id + 50, NULL, NULL FROM u;
    """

  private static let branches =
    "node AS a JOIN node AS b ON b.id = a.up JOIN node AS c ON c.id = b.up JOIN u ON u.id = c.u"

  /// In a table that refers to itself, a row is named after the row to which it refers, though that has
  /// a greater number.
  @Test(arguments: [0, 1])
  func rowsOfATreeAreNamedFromItsRoot(first: Int) throws {
    let devices = try devices()
    try devices[first].run(Self.tree)
    try exchange(devices)
    try devices[first].run(
      """
      CREATE TEMP TABLE leaf AS SELECT a.id, name FROM \(Self.branches);
      UPDATE node SET t = 'of ' || (SELECT name FROM leaf WHERE leaf.id = node.id)
      WHERE id IN (SELECT id FROM leaf);
      """)
    try exchange(devices)
    try devices[1 - first].run(Self.tree)
    try converge(
      devices, "SELECT name, a.t FROM \(Self.branches) ORDER BY name",
      ["A2|of A2", "B2|of B2", "O|of O"])
    #expect(try devices[0].rows("SELECT count(*) FROM node") == ["9"])
    try expectSound(devices)
  }

  /// Rows that refer to one another in a circle are named as well, by the number of one of them.
  @Test func rowsOfACircleAreNamed() throws {
    let devices = try devices()
    for device in devices {
      try device.run(
        """
        PRAGMA foreign_keys = OFF;
        CREATE TABLE one (id INTEGER PRIMARY KEY, other INTEGER REFERENCES other, t TEXT);
        CREATE TABLE other (id INTEGER PRIMARY KEY, one INTEGER REFERENCES one, own INTEGER REFERENCES other);
        INSERT INTO one VALUES (1, 2, 'x'); INSERT INTO other VALUES (2, 1, 2);
        """)
    }
    try converge(
      devices, "SELECT one.id, other, t, one, own FROM one JOIN other ON other = other.id",
      ["1|2|x|1|2"])
    try expectSound(devices)
  }

  /// The identities of rows that refer to no row are those that other builds gave them.
  @Test func aRowWithoutReferencesHasTheIdentityThatItAlwaysHad() throws {
    let device = try scratch.devices(
      1, "CREATE TABLE u (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO u VALUES (1, 'O')")[0]
    try device.run(
      """
      CREATE TABLE kind (id INTEGER PRIMARY KEY, name TEXT, u INTEGER REFERENCES u);
      INSERT INTO kind VALUES (1, 'x', NULL), (7, 'y', NULL);
      """)
    _ = try device.store.seal()
    let number = try device.rows("SELECT id FROM docsync_table WHERE name = 'kind'")[0]
    #expect(
      try device.rows("SELECT key, lower(hex(identity)) FROM docsync_id_\(number) ORDER BY 1")
        == ["1|0c60353735520579f4de6359923af2f4", "7|cd018abd03087b213ca56bf2d4f488d1"])
  }

  /// A row that a migration inserts into a table that it makes again is one on all devices if number and
  /// values are equal: references count by the rows to which they lead.
  @Test func rowsInATableThatIsMadeAgainAreOneIfTheirReferencesAre() throws {
    let devices = try devices("CREATE TABLE mark (id INTEGER PRIMARY KEY, u INTEGER REFERENCES u)")
    for device in devices {
      try device.run(
        """
        PRAGMA foreign_keys = OFF;
        CREATE TABLE new (id INTEGER PRIMARY KEY, u INTEGER REFERENCES u, t TEXT);
        INSERT INTO new SELECT *, NULL FROM mark; DROP TABLE mark; ALTER TABLE new RENAME TO mark;
        INSERT INTO mark SELECT id, id, 't' FROM u WHERE id < 3;
        """)
    }
    try converge(
      devices, "SELECT name, t FROM mark JOIN u ON u.id = mark.u ORDER BY name",
      ["A2|t", "B2|t", "O|t"])
    try expectSound(devices)
  }
}
