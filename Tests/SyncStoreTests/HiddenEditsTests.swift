import SyncModel
import Testing

@testable import SyncStore

/// What edits do to rows that are not shown.
@Suite struct HiddenEditsTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A note has the key of its page, and at most one device's title is shown.
  private static let pages = """
    CREATE TABLE page (name TEXT PRIMARY KEY, text TEXT);
    CREATE TABLE note (page TEXT PRIMARY KEY REFERENCES page (name) ON UPDATE CASCADE,
      title TEXT UNIQUE, text TEXT);
    """

  private static let query =
    "SELECT name, note.title, note.text FROM page LEFT JOIN note ON page = name ORDER BY 1"

  /// Two pages, of which the note of the first is hidden by that of the second.
  private func devicesWithHiddenNote() throws -> [Device] {
    let devices = try scratch.devices(
      2, Self.pages + "INSERT INTO page VALUES ('a', 'A'), ('b', 'B')")
    try devices[0].run("INSERT INTO note VALUES ('a', 'same', 'of a')")
    try devices[1].setClock(offset: 3_600)
    try devices[1].run("INSERT INTO note VALUES ('b', 'same', 'of b')")
    try converge(devices, Self.query, ["a|NULL|NULL", "b|same|of b"])
    return devices
  }

  @Test func aHiddenRowFollowsTheRowInItsKeyWhereThatIsRenamed() throws {
    let devices = try devicesWithHiddenNote()
    try devices[0].run("UPDATE page SET name = 'c' WHERE name = 'a'")
    try converge(devices, Self.query, ["b|same|of b", "c|NULL|NULL"])
    // It is shown under its new key as soon as it can be.
    try devices[1].run("DELETE FROM note WHERE page = 'b'")
    try converge(devices, Self.query, ["b|NULL|NULL", "c|same|of a"])
  }

  @Test func aHiddenRowGoesWithTheRowInItsKeyWhereThatIsDeleted() throws {
    let devices = try devicesWithHiddenNote()
    try devices[0].run("DELETE FROM page WHERE name = 'a'")
    try converge(devices, Self.query, ["b|same|of b"])
    try devices[1].run("INSERT INTO page VALUES ('a', 'new'); DELETE FROM note WHERE page = 'b'")
    try converge(devices, Self.query, ["a|NULL|NULL", "b|NULL|NULL"])
  }

  /// The note of the page is deleted, and not shown, since another has its title; the mark, which has
  /// the note's key, holds both. If the mark stayed, it would bring the page back.
  @Test func aHiddenRowFollowsTheRowThatADeletedOneHasInItsKey() throws {
    var configuration = StoreConfiguration()
    configuration.tablesWithoutStandIns = ["note"]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE page (name TEXT PRIMARY KEY);
      CREATE TABLE note (page TEXT PRIMARY KEY REFERENCES page ON DELETE CASCADE ON UPDATE CASCADE,
        title TEXT UNIQUE);
      CREATE TABLE mark (note TEXT PRIMARY KEY REFERENCES note ON UPDATE CASCADE, text TEXT);
      INSERT INTO page VALUES ('a'), ('b'); INSERT INTO note VALUES ('a', 'same');
      INSERT INTO mark VALUES ('a', 'm');
      """, configuration: configuration)
    try devices[0].run(
      "PRAGMA foreign_keys = OFF; DELETE FROM note; INSERT INTO note VALUES ('b', 'same'); "
        + "PRAGMA foreign_keys = ON")
    try converge(devices, "SELECT * FROM note LEFT JOIN mark ON note = page", ["b|same|NULL|NULL"])
    try devices[0].run("UPDATE page SET name = 'c' WHERE name = 'a'")
    try converge(devices, "SELECT name FROM page ORDER BY 1", ["b", "c"])
    // The mark waits for a note of the page.
    try devices[1].run("INSERT INTO note VALUES ('c', 'other')")
    try converge(devices, "SELECT * FROM mark", ["c|m"])
  }
}
