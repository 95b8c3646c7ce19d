import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Edits that no change set can carry, where cells do not stand by themselves: rows that are one
/// register, keys, and rows that are not shown. The caps are small here: 32 KiB.
@Suite struct HeldRegisterTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func devices(
    _ schema: String, _ configuration: StoreConfiguration = StoreConfiguration(), count: Int = 3
  ) throws -> [Device] {
    var options = StoreOptions.patient
    options.limits.memoryBytes = 64 << 10
    return try scratch.devices(count, schema, configuration: configuration, options: options)
  }

  private func held(_ device: Device) throws -> [String] {
    try device.store.status().heldEdits.map { "\($0.kind) \($0.table) \($0.row.prefix(5))" }
  }

  // MARK: - keepBoth

  private func devicesKeepingBoth() throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.tableMergeTypes = ["note": .keepBoth]
    return try devices(
      """
      CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, body BLOB);
      CREATE TABLE other (id TEXT PRIMARY KEY, v);
      INSERT INTO note VALUES ('n', 'title', x'01')
      """, configuration)
  }

  private let query = "SELECT title, hex(body) FROM note ORDER BY 1"

  /// The update that is sent at last replaces the version that the other devices have, and makes no
  /// copy of it.
  @Test func aVersionThatIsTooLargeStays() throws {
    let devices = try devicesKeepingBoth()
    try devices[0].run(
      "UPDATE note SET body = randomblob(40000); INSERT INTO other VALUES ('o', 1)")
    try devices[1].run("INSERT INTO other VALUES ('p', 2)")
    try exchange(devices)
    #expect(try devices[0].rows("SELECT count(*) FROM other") == ["2"])
    #expect(try devices[2].rows("SELECT count(*) FROM other") == ["2"])
    #expect(try devices[1].rows(query) == ["title|01"])
    #expect(try held(devices[0]) == ["update note “n”"])
    try devices[0].run("UPDATE note SET title = 'still large'")
    try exchange(devices)
    #expect(try held(devices[0]) == ["update note “n”"])
    try devices[0].run("UPDATE note SET body = x'02'")
    try converge(devices, query, ["still large|02"])
    #expect(try held(devices[0]) == [])
  }

  /// A version of another device that the large one has not seen lives on in a row of its own.
  @Test(arguments: [5.0, 20.0]) func aVersionElsewhereLivesOn(offset: Double) throws {
    let devices = try devicesKeepingBoth()
    let base = Date()
    try devices[0].setClock(offset: 10, from: base)
    try devices[0].run("UPDATE note SET body = randomblob(40000), title = 'large'")
    try exchange(devices)
    try devices[1].setClock(offset: offset, from: base)
    try devices[1].run("UPDATE note SET title = 'elsewhere'")
    try exchange(devices)
    #expect(try devices[0].rows("SELECT title FROM note ORDER BY 1") == ["elsewhere", "large"])
    #expect(try held(devices[0]).count == 1)
    try devices[0].setClock(offset: 30, from: base)
    try devices[0].run("UPDATE note SET body = x'03' WHERE title = 'large'")
    try converge(devices, query, ["elsewhere|01", "large|03"])
    #expect(try held(devices[0]) == [])
  }

  @Test func aLargeVersionOutlivesTheExchangeOfTheContent() throws {
    let devices = try devicesKeepingBoth()
    try devices[0].run("UPDATE note SET body = randomblob(40000)")
    try exchange(devices)
    _ = try devices[1].outgoing()
    let path = scratch.path + "/whole.db"
    _ = try devices[1].store.snapshot(to: path)
    _ = try devices[0].store.replaceContent(withSnapshotAt: path)
    #expect(try devices[0].rows("SELECT length(body) FROM note") == ["40000"])
    try devices[0].run("UPDATE note SET body = x'04'")
    try converge(devices, query, ["title|04"])
  }

  // MARK: - Keys

  private static let keyed = """
    CREATE TABLE page (k TEXT PRIMARY KEY, v);
    CREATE TABLE note (k TEXT PRIMARY KEY, page TEXT REFERENCES page, v);
    INSERT INTO page VALUES ('a', 1), (printf('%.*c', 40001, 'z'), 2)
    """

  /// A row with a key that is too large is unknown elsewhere, with all that refers to it. Of a row
  /// that was there before syncing began, edits and the deletion stay.
  @Test func aKeyThatIsTooLargeStopsNothing() throws {
    let devices = try devices(Self.keyed)
    try devices[0].run(
      """
      INSERT INTO page VALUES (printf('%.*c', 40000, 'y'), 3), ('b', 4);
      INSERT INTO note VALUES ('n', printf('%.*c', 40000, 'y'), 1), ('m', 'b', 2);
      UPDATE page SET v = 5 WHERE k LIKE 'zz%'
      """)
    try devices[1].run("INSERT INTO page VALUES ('c', 6)")
    try exchange(devices)
    let pages = "SELECT substr(k, 1, 1), v FROM page ORDER BY 1"
    #expect(try devices[0].rows(pages) == ["a|1", "b|4", "c|6", "y|3", "z|5"])
    #expect(try devices[1].rows(pages) == ["a|1", "b|4", "c|6", "z|2"])
    #expect(try devices[1].rows("SELECT k FROM note") == ["m"])
    #expect(
      try held(devices[0]) == [
        "insertion note “n”", "insertion page “yyyy", "update page “zzzz",
      ])
    let report = try LocalStore.verify(at: devices[0].path).report
    #expect(Set(report.findings.map(\.kind)) == [.editTooLarge])
    // The key becomes shorter, and what refers to it with it.
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF; UPDATE page SET k = 'y' WHERE k LIKE 'yy%';
      UPDATE note SET page = 'y' WHERE k = 'n'; PRAGMA foreign_keys = ON
      """)
    try exchange(devices)
    #expect(try devices[1].rows(pages) == ["a|1", "b|4", "c|6", "y|3", "z|2"])
    #expect(try devices[1].rows("SELECT k FROM note ORDER BY 1") == ["m", "n"])
    try devices[0].run("DELETE FROM page WHERE k LIKE 'zz%'")
    try exchange(devices)
    #expect(try held(devices[0]) == ["deletion page “zzzz"])
    #expect(try devices[1].rows(pages) == ["a|1", "b|4", "c|6", "y|3", "z|2"])
    try devices[0].run("INSERT INTO page VALUES ('d', 7)")
    try exchange(devices)
    #expect(try devices[2].rows("SELECT count(*) FROM page WHERE k = 'd'") == ["1"])
  }

  // MARK: - Rows that are not shown

  /// The note of page a is not shown, since that of page b has its title, and is too large to move
  /// with its page. It stays under its key, on all devices.
  @Test func aHiddenRowThatIsTooLargeDoesNotMove() throws {
    let devices = try devices(
      """
      CREATE TABLE page (name TEXT PRIMARY KEY, text TEXT);
      CREATE TABLE note (page TEXT PRIMARY KEY REFERENCES page ON UPDATE CASCADE,
        title TEXT, text TEXT, UNIQUE (title));
      INSERT INTO page VALUES ('a', 'A'), ('b', 'B');
      INSERT INTO note VALUES ('a', 'one', printf('%.*c', 40000, 'x'))
      """)
    try devices[0].setClock(offset: 0)
    try devices[0].run("UPDATE note SET title = 'same'")
    try devices[1].setClock(offset: 3_600)
    try devices[1].run("INSERT INTO note VALUES ('b', 'same', 'of b')")
    try converge(devices, "SELECT page FROM note", ["b"])
    try devices[0].run("UPDATE page SET name = 'c' WHERE name = 'a'")
    try converge(devices, "SELECT page FROM note", ["b"])
    try devices[0].run("DELETE FROM note WHERE page = 'b'")
    try converge(devices)
    #expect(try devices[0].store.status().heldEdits == [])
  }
}
