import SyncModel
import Testing

@testable import SyncStore

/// Values of excluded columns, of rows that leave their tables and come back.
@Suite struct LocalValuesOfHiddenRowsTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Devices on each of which the column “draft” of the notes stays.
  private func devices(_ count: Int = 2, key: String) throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["note": ["draft"]]
    if key == Self.declared { configuration.identities = ["note": .columns(["t"])] }
    return try scratch.devices(
      count,
      "CREATE TABLE note (\(key), t TEXT NOT NULL, u TEXT UNIQUE, draft TEXT DEFAULT 'none');"
        + (key == Self.declared ? "CREATE UNIQUE INDEX note_t ON note (t);" : "")
        + "INSERT INTO note (t, u) VALUES ('one', 'v')", configuration: configuration)
  }

  private static let keys = ["id INTEGER PRIMARY KEY", "id TEXT PRIMARY KEY NOT NULL DEFAULT 'k'"]
  /// A key beside which the column “t” identifies the rows.
  private static let declared = "id INTEGER PRIMARY KEY NOT NULL"

  private func expectSound(_ devices: [Device]) throws {
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
    #expect(try devices[0].store.digest() == devices[1].store.digest())
  }

  /// Another row takes a unique value, and gives it up.
  @Test(arguments: keys + [declared])
  func aHiddenRowKeepsThem(key: String) throws {
    let devices = try devices(key: key)
    try devices[1].run("UPDATE note SET u = 'w', draft = 'mine'")
    _ = try devices[1].store.seal()
    // A later edit takes precedence.
    try devices[0].run("INSERT INTO note (id, t, u) VALUES (77, 'other', 'w')")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT t FROM note") == ["other"])
    try devices[0].run("UPDATE note SET u = 'x' WHERE t = 'other'")
    try exchange(devices)
    #expect(
      try devices[1].rows("SELECT t, draft FROM note ORDER BY t") == ["one|mine", "other|none"])
    #expect(try devices[0].rows("SELECT draft FROM note") == ["none", "none"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try expectSound(devices)
  }

  /// A policy brings the row back at once, or the user later, from the journal.
  @Test(arguments: keys, [true, false])
  func aRowThatComesBackKeepsThem(key: String, isDecided: Bool) throws {
    let devices = try devices(key: key)
    if isDecided { try devices[1].setPolicy(.localWins) }
    try devices[1].run("UPDATE note SET t = 'mine', draft = 'mine'")
    try devices[0].run("DELETE FROM note")
    try devices[1].receive(from: devices[0])
    if !isDecided {
      #expect(try devices[1].rows("SELECT t FROM note") == [])
      let number = try #require(try devices[1].store.conflicts().last?.number)
      try devices[1].store.restoreConflict(number)
    }
    #expect(try devices[1].rows("SELECT t, draft FROM note") == ["mine|mine"])
    try exchange(devices)
    #expect(try devices[0].rows("SELECT t, draft FROM note") == ["mine|none"])
    try expectSound(devices)
  }

  /// A row that is deleted while it is hidden takes them along.
  @Test(arguments: keys)
  func aDeletedRowDoesNotKeepThem(key: String) throws {
    let devices = try devices(3, key: key)
    try devices[1].run("UPDATE note SET u = 'w', draft = 'mine'")
    try exchange([devices[0], devices[1]])
    try devices[2].run("INSERT INTO note (id, t, u) VALUES (77, 'other', 'w')")
    try devices[1].receive(from: devices[2])
    #expect(try devices[1].rows("SELECT t, draft FROM note") == ["other|none"])
    #expect(try devices[1].rows("SELECT value FROM docsync_aside") == ["mine"])
    try devices[0].run("DELETE FROM note")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    #expect(try devices[1].rows("SELECT t, draft FROM note") == ["other|none"])
    try expectSound(devices)
  }

  /// A row is hidden with its parent, which the user brings back.
  @Test func aRowThatWentWithItsParentKeepsThem() throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["note": ["draft"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE folder (id TEXT PRIMARY KEY NOT NULL, t TEXT);
      CREATE TABLE note (id INTEGER PRIMARY KEY, folder TEXT REFERENCES folder ON DELETE CASCADE,
        draft TEXT);
      INSERT INTO folder VALUES ('f', 'one');
      """, configuration: configuration)
    try devices[1].run("INSERT INTO note VALUES (1, 'f', 'mine')")
    try devices[0].run("DELETE FROM folder")
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].rows("SELECT id FROM note") == [])
    try exchange(devices)
    try devices[0].run("INSERT INTO folder VALUES ('f', 'again')")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT folder, draft FROM note") == ["f|mine"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try expectSound(devices)
  }

  /// The user restores the row after another device has inserted one that refers to it.
  @Test func theyOutliveTheArrivalOfAReferringRow() throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["folder": ["draft"]]
    let devices = try scratch.devices(
      3,
      """
      CREATE TABLE folder (id TEXT PRIMARY KEY NOT NULL, t TEXT, draft TEXT);
      CREATE TABLE note (id INTEGER PRIMARY KEY, folder TEXT REFERENCES folder ON DELETE CASCADE);
      INSERT INTO folder VALUES ('f', 'one', NULL);
      """, configuration: configuration)
    try devices[1].run("UPDATE folder SET t = 'mine', draft = 'mine'")
    try devices[0].run("DELETE FROM folder")
    try devices[2].run("INSERT INTO note VALUES (1, 'f')")
    try devices[1].receive(from: devices[0])
    try devices[1].receive(from: devices[2])
    #expect(try devices[1].rows("SELECT count(*) FROM folder") == ["0"])
    let conflict = try devices[1].store.conflicts().first { $0.kind == .existence }
    try devices[1].store.restoreConflict(try #require(conflict).number)
    #expect(try devices[1].rows("SELECT t, draft FROM folder") == ["mine|mine"])
  }

  /// A policy brings one row back. Another one is deleted without a conflict, and a new row gets its
  /// key; a program inserts a third one again.
  @Test func aNewRowWithTheKeyDoesNotGetThem() throws {
    let devices = try devices(key: Self.keys[1])
    try devices[1].setPolicy(.localWins)
    try devices[0].run("INSERT INTO note (id, t) VALUES ('a', 'a'), ('b', 'b')")
    try exchange(devices)
    try devices[1].run("UPDATE note SET draft = 'mine'; UPDATE note SET t = 'A' WHERE id = 'a'")
    try devices[0].run("DELETE FROM note")
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].rows("SELECT id, draft FROM note") == ["a|mine"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try exchange(devices)
    try devices[0].run("INSERT INTO note (id, t) VALUES ('b', 'new')")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT id, draft FROM note ORDER BY id") == ["a|mine", "b|none"])
    // A deletion is in conflict, and the program inserts the row itself.
    try devices[1].setPolicy(.remoteWins)
    try devices[1].run("UPDATE note SET draft = 'old', t = 'B' WHERE id = 'b'")
    try devices[0].run("DELETE FROM note WHERE id = 'b'")
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].rows("SELECT value FROM docsync_aside") == ["old"])
    try devices[1].run("INSERT INTO note (id, t, draft) VALUES ('b', 'typed', 'typed')")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT draft FROM note WHERE id = 'b'") == ["typed"])
    #expect(try devices[1].rows("SELECT count(*) FROM docsync_aside") == ["0"])
    try expectSound(devices)
  }

  /// The row to which one leads is deleted meanwhile, and another one has its number.
  @Test func referencesByNumbersDoNotComeBack() throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["note": ["person", "draft"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE note (id INTEGER PRIMARY KEY, u TEXT UNIQUE, draft TEXT,
        person INTEGER REFERENCES person ON DELETE SET NULL);
      INSERT INTO person VALUES (3, 'Ann'); INSERT INTO note (u) VALUES ('v');
      """, configuration: configuration)
    try devices[1].run("UPDATE note SET u = 'w', draft = 'mine', person = 3")
    _ = try devices[1].store.seal()
    try devices[0].run("INSERT INTO note (id, u) VALUES (77, 'w')")
    try exchange(devices)
    try devices[0].run("DELETE FROM person")
    try exchange(devices)
    try devices[1].run("INSERT INTO person VALUES (3, 'Bob')")
    try devices[0].run("UPDATE note SET u = 'x'")
    try exchange(devices)
    #expect(
      try devices[1].rows("SELECT u, draft, person FROM note ORDER BY u")
        == ["w|mine|NULL", "x|NULL|NULL"])
    try expectSound(devices)
  }
}
