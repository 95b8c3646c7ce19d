import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Migrations that make a table again with a further column that is NOT NULL and has no default, as
/// Django and peewee do, while rows of the table are hidden.
@Suite struct RequiredCellsTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE item (id INTEGER PRIMARY KEY, tag INTEGER NOT NULL REFERENCES tag ON DELETE CASCADE,
      t TEXT);
    """

  /// - Parameter value: What the migration fills in.
  private static func migration(_ value: String, _ column: String = "stock NOT NULL") -> String {
    remake(
      "tag", "id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, \(column)", "id, name, \(value)")
  }

  /// Makes a table again, with the values of its rows that an expression gives.
  private static func remake(_ table: String, _ definition: String, _ values: String) -> String {
    """
    PRAGMA foreign_keys = OFF; BEGIN;
    CREATE TABLE new__\(table) (\(definition));
    INSERT INTO new__\(table) SELECT \(values) FROM \(table);
    DROP TABLE \(table); ALTER TABLE new__\(table) RENAME TO \(table);
    COMMIT; PRAGMA foreign_keys = ON;
    """
  }

  private static let items = "SELECT t FROM item JOIN tag ON tag.id = tag ORDER BY t"
  private static let stocks = "SELECT name, stock FROM tag ORDER BY name"

  /// Two devices that have each made the same tag, and an item with it.
  private func devices(_ schema: String = schema) throws -> [Device] {
    let devices = try scratch.devices(2, schema)
    for (device, name) in zip(devices, ["a", "b"]) {
      try device.run(
        "INSERT INTO tag (id, name) VALUES (1, 'red'); INSERT INTO item VALUES (1, 1, '\(name)')")
    }
    try converge(devices, Self.items, ["a", "b"])
    return devices
  }

  /// Renames the tag that is shown, so that the hidden one is shown as well.
  private func renameShown(_ devices: [Device]) throws {
    try devices[0].run("UPDATE tag SET name = 'green' WHERE name = 'red'")
    try converge(devices, Self.items, ["a", "b"])
  }

  @Test(arguments: [true, false], ["0", "length(name)"])
  func aHiddenRowGetsTheValueOfItsStandIn(isOpen: Bool, value: String) throws {
    var devices = try devices()
    try devices[0].run("INSERT INTO tag VALUES (5, 'azure')")
    try converge(devices)
    for index in devices.indices {
      devices[index] = try devices[index].changed(isOpen: isOpen) {
        try $0.run(Self.migration(value))
      }
    }
    try converge(devices, Self.items, ["a", "b"])
    try renameShown(devices)
    let expected =
      value == "0" ? ["azure|0", "green|0", "red|0"] : ["azure|5", "green|3", "red|3"]
    try converge(devices, Self.stocks, expected)
    try expectSound(devices)
  }

  /// The rows that refer to the hidden row are not hidden until it has its value.
  @Test func nothingIsHiddenMeanwhile() throws {
    var configuration = StoreConfiguration()
    configuration.excludedTables = ["gone"]
    let devices = try scratch.devices(
      2,
      Self.schema
        + """
        CREATE TABLE gone (t TEXT);
        CREATE TRIGGER note_gone AFTER DELETE ON item BEGIN INSERT INTO gone VALUES (old.t); END;
        """, configuration: configuration)
    for (device, name) in zip(devices, ["a", "b"]) {
      try device.run("INSERT INTO tag VALUES (1, 'red'); INSERT INTO item VALUES (1, 1, '\(name)')")
    }
    try converge(devices, Self.items, ["a", "b"])
    for device in devices { try device.run("DELETE FROM gone; \(Self.migration("length(name)"))") }
    try converge(devices, Self.items, ["a", "b"])
    for device in devices { #expect(try device.rows("SELECT t FROM gone") == []) }
    try devices[0].run("DELETE FROM item WHERE t = 'a'")
    try converge(devices)
    for device in devices { #expect(try device.rows("SELECT t FROM gone") == ["a"]) }
  }

  @Test func onlyOneDeviceMigrates() throws {
    let devices = try devices()
    try devices[1].run(Self.migration("length(name)"))
    try exchange(devices)
    for device in devices { #expect(try device.rows(Self.items) == ["a", "b"]) }
    try devices[0].run("UPDATE tag SET name = 'green' WHERE name = 'red'")
    try exchange(devices)
    #expect(try devices[1].rows(Self.stocks) == ["green|3", "red|3"])
    try devices[0].run(Self.migration("100"))
    try converge(devices, Self.items, ["a", "b"])
    // Both migrations have filled in a value, and either may stay. But each row has one.
    #expect(
      try devices[0].rows("SELECT name FROM tag WHERE stock NOT NULL ORDER BY name") == [
        "green", "red",
      ])
    try expectSound(devices)
  }

  /// A later edit takes the place of what the migration has filled in.
  @Test func anEditStays() throws {
    let devices = try scratch.devices(3, Self.schema)
    for (device, name) in zip(devices, ["a", "b"]) {
      try device.run("INSERT INTO tag VALUES (1, 'red'); INSERT INTO item VALUES (1, 1, '\(name)')")
    }
    // The third device has only one of the two tags, migrates, and edits it.
    try devices[2].receive(from: devices[0])
    try devices[2].run(Self.migration("1"))
    _ = try devices[2].outgoing()
    try devices[2].run("UPDATE tag SET stock = 9")
    try converge(Array(devices[0...1]))
    try devices[0].run(Self.migration("1"))
    try devices[1].run(Self.migration("1"))
    try converge(devices, Self.items, ["a", "b"])
    try renameShown(devices)
    try converge(devices, "SELECT stock FROM tag ORDER BY stock", ["1", "9"])
    try expectSound(devices)
  }

  /// A row that no other one stands for gets the value that all rows have.
  @Test(arguments: [true, false])
  func aRowWithoutStandInGetsTheCommonValue(isCommon: Bool) throws {
    var configuration = StoreConfiguration()
    configuration.tablesWithoutStandIns = ["box"]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE box (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
      CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, box INTEGER REFERENCES box);
      INSERT INTO tag VALUES (8, 'one', NULL), (9, 'three', NULL);
      """, configuration: configuration)
    for (device, name) in zip(devices, ["a", "b"]) {
      try device.run("INSERT INTO box VALUES (1, 'big'); INSERT INTO tag VALUES (1, '\(name)', 1)")
    }
    try converge(devices, "SELECT count(*) FROM tag", ["3"])
    for device in devices {
      try device.run(
        Self.remake(
          "tag",
          """
          id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, box INTEGER REFERENCES box,
          stock TEXT NOT NULL
          """,
          "id, name, box, \(isCommon ? "'x'" : "name")"))
    }
    try converge(devices)
    try devices[0].run("UPDATE box SET name = 'small'")
    try converge(devices, "SELECT count(*) FROM tag", [isCommon ? "4" : "3"])
    if isCommon { try converge(devices, "SELECT DISTINCT stock FROM tag", ["x"]) }
    try expectSound(devices)
  }

  /// With the same value in a unique column each of the two rows could hide the other one.
  @Test(
    arguments: [0, 1], ["slug TEXT NOT NULL UNIQUE", "slug TEXT NOT NULL, UNIQUE (name, slug)"])
  func whatMustBeUniqueIsNotFilled(renaming: Int, column: String) throws {
    let devices = try scratch.devices(2, Self.schema)
    for (device, name) in zip(devices, ["a", "b"]) {
      try device.run(
        "INSERT INTO tag VALUES (1, '\(name)'); INSERT INTO item VALUES (1, 1, '\(name)')")
      usleep(2_000)
    }
    // One has the newer name, the other one the newer insertion, or both are those of one row.
    for device in [devices[1 - renaming], devices[renaming]] {
      try device.run("UPDATE tag SET name = 'red'")
      usleep(2_000)
    }
    try converge(devices, Self.items, ["a", "b"])
    for device in devices { try device.run(Self.migration("name", column)) }
    try converge(devices, "SELECT name, slug FROM tag", ["red|red"])
    #expect(try devices[0].rows(Self.items) == [renaming == 0 ? "a" : "b"])
    try expectSound(devices)
  }

  /// Another device's value waits for the column.
  @Test func aValueThatWaitsForTheColumnStays() throws {
    let schema = Self.schema.replacing(
      "UNIQUE);", with: "UNIQUE, low INTEGER);", maxReplacements: 1)
    let migration = Self.remake(
      "tag",
      """
      id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, low INTEGER, stock INTEGER NOT NULL,
      CHECK (low <= stock)
      """,
      "id, name, low, 1")
    let devices = try scratch.devices(3, schema)
    for (device, name) in zip(devices, ["a", "b"]) {
      try device.run(
        "INSERT INTO tag VALUES (1, 'red', 0); INSERT INTO item VALUES (1, 1, '\(name)')")
    }
    try devices[2].receive(from: devices[0])
    try devices[2].run(migration)
    _ = try devices[2].outgoing()
    try devices[2].run("UPDATE tag SET stock = 9, low = 5")
    try exchange(devices)
    for device in devices[0...1] { try device.run(migration) }
    try converge(devices, Self.items, ["a", "b"])
    try renameShown(devices)
    try converge(devices, "SELECT low, stock FROM tag ORDER BY stock", ["0|1", "5|9"])
    try expectSound(devices)
  }

  /// A column that was there becomes NOT NULL, and the migration fills what was NULL.
  @Test(arguments: [true, false])
  func aNullInAHiddenRowIsFilled(isInCheck: Bool) throws {
    let further = isInCheck ? ", low INTEGER, CHECK (low <= stock)" : ""
    let schema = Self.schema.replacing(
      "UNIQUE);", with: "UNIQUE, stock INTEGER\(further));", maxReplacements: 1)
    let devices = try devices(schema)
    for device in devices {
      try device.run(
        Self.remake(
          "tag",
          "id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, stock INTEGER NOT NULL \(further)",
          "id, name, ifnull(stock, 4)\(isInCheck ? ", low" : "")"))
    }
    try converge(devices, Self.items, ["a", "b"])
    try renameShown(devices)
    try converge(devices, Self.stocks, ["green|4", "red|4"])
    try expectSound(devices)
  }

  /// A row that was deleted, with all its values, and inserted again.
  @Test func aRowThatWasInsertedAgainIsFilled() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE tag (k TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE);
      CREATE TABLE item (t TEXT PRIMARY KEY, tag TEXT REFERENCES tag ON DELETE SET NULL);
      INSERT INTO tag VALUES ('x', 'red');
      """)
    try devices[0].run("DELETE FROM tag")
    try converge(devices)
    try devices[0].run("INSERT INTO tag VALUES ('x', 'red'); INSERT INTO item VALUES ('a', 'x')")
    usleep(2_000)
    try devices[1].run("INSERT INTO tag VALUES ('y', 'red'); INSERT INTO item VALUES ('b', 'y')")
    try converge(devices, "SELECT t, tag FROM item ORDER BY t", ["a|y", "b|y"])
    for device in devices {
      try device.run(
        Self.remake(
          "tag", "k TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, stock NOT NULL", "k, name, 3"))
    }
    try converge(devices, "SELECT t, tag FROM item ORDER BY t", ["a|y", "b|y"])
    try devices[1].run("UPDATE tag SET name = 'green'")
    try converge(devices, "SELECT t, tag FROM item ORDER BY t", ["a|x", "b|y"])
    try converge(devices, Self.stocks, ["green|3", "red|3"])
    try expectSound(devices)
  }

  /// The row of a table of links is shown under another identity, since the row that its key
  /// contains has a stand-in.
  @Test func linksToAHiddenRowAreThereWhenItIsShownAgain() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
      CREATE TABLE note (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE note_tag (note INTEGER REFERENCES note ON DELETE CASCADE,
        tag INTEGER REFERENCES tag ON DELETE CASCADE, PRIMARY KEY (note, tag));
      """)
    for (device, name) in zip(devices, ["a", "bb"]) {
      try device.run(
        """
        INSERT INTO tag VALUES (1, 'red'); INSERT INTO note VALUES (1, '\(name)');
        INSERT INTO note_tag VALUES (1, 1)
        """)
    }
    let links = """
      SELECT note.name, tag.name FROM note_tag JOIN note ON note.id = note JOIN tag ON tag.id = tag
      ORDER BY note.name
      """
    try converge(devices, links, ["a|red", "bb|red"])
    for device in devices {
      try device.run(
        Self.remake(
          "note_tag",
          """
          note INTEGER REFERENCES note ON DELETE CASCADE, tag INTEGER REFERENCES tag ON DELETE CASCADE,
          weight REAL NOT NULL, PRIMARY KEY (note, tag)
          """, "note, tag, (SELECT length(name) FROM note WHERE id = note)"))
    }
    try converge(devices, links, ["a|red", "bb|red"])
    try devices[0].run("UPDATE tag SET name = 'green' WHERE name = 'red'")
    try converge(devices)
    let weights = """
      SELECT DISTINCT note.name, weight FROM note_tag JOIN note ON note.id = note ORDER BY note.name
      """
    try converge(devices, weights, ["a|1.0", "bb|2.0"])
    try expectSound(devices)
  }
}
