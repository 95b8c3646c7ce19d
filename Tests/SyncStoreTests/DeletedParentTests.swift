import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// What becomes of a child whose parent is deleted concurrently, for every
/// action, kind of key and shape of table.
@Suite struct DeletedParentTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let actions = ["CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT", "NO ACTION"]

  /// A table of parents with the keys 1 (the default one), 2 (which is kept)
  /// and 3 (which is deleted).
  struct Parent: Sendable, CustomTestStringConvertible {
    var key: String
    var hasName = true
    var options = ""
    var isSurrogate = false

    /// The type of a column that refers to it.
    var type: String { key.hasPrefix("TEXT") ? "TEXT" : "INTEGER" }

    var testDescription: String { "\(key)\(hasName ? ", name" : "")\(options)" }

    var sql: String {
      """
      CREATE TABLE p (id \(key)\(hasName ? ", name TEXT" : ""))\(options);
      INSERT INTO p (id) VALUES (1), (2), (3);
      """
    }
  }

  private static let parents = [
    Parent(key: "INTEGER PRIMARY KEY", isSurrogate: true),
    Parent(key: "INTEGER PRIMARY KEY", hasName: false, isSurrogate: true),
    Parent(key: "TEXT PRIMARY KEY"),
    Parent(key: "TEXT PRIMARY KEY", hasName: false),
    Parent(key: "INT PRIMARY KEY", options: " WITHOUT ROWID"),
    Parent(key: "TEXT COLLATE NOCASE PRIMARY KEY", options: " STRICT"),
  ]

  private func schema(_ parent: Parent, _ action: String, isDeferred: Bool, child: String)
    -> String
  {
    """
    \(parent.sql)
    CREATE TABLE c (id \(child), p \(parent.type) DEFAULT 1 REFERENCES p ON DELETE \(action)
      \(isDeferred ? "DEFERRABLE INITIALLY DEFERRED" : ""), title TEXT);
    INSERT INTO c VALUES (1, 2, 'moved');
    """
  }

  @Test(arguments: actions, parents)
  func theOutcomeIsThatOfTheAction(_ action: String, _ parent: Parent) throws {
    for (child, isDeferred) in [("INTEGER PRIMARY KEY", false), ("TEXT PRIMARY KEY", true)] {
      for isLaterDeletion in [false, true] {
        let folder = try Scratch()
        let devices = try folder.devices(
          2, schema(parent, action, isDeferred: isDeferred, child: child))
        try devices[0].setClock(offset: isLaterDeletion ? -300 : -500)
        try devices[1].setClock(offset: -400)
        try devices[0].run("DELETE FROM p WHERE id = 3")
        try devices[1].run(
          "UPDATE c SET p = 3 WHERE id = 1; INSERT INTO c VALUES (2, 3, 'inserted')")
        let shown: [String] =
          switch action {
          case "CASCADE": []
          case "SET NULL": ["inserted|NULL", "moved|NULL"]
          case "SET DEFAULT": ["inserted|1", "moved|1"]
          default: ["inserted|3", "moved|3"]
          }
        try converge(devices, "SELECT title, CAST(p AS INTEGER) FROM c ORDER BY title", shown)
        let isBack = ["RESTRICT", "NO ACTION"].contains(action)
        #expect(try devices[1].rows("SELECT count(*) FROM p") == [isBack ? "3" : "2"])

        // Without children a parent that came back goes again.
        try devices[1].run("DELETE FROM c")
        try converge(devices, "SELECT count(*) FROM c", ["0"])
        #expect(try devices[0].rows("SELECT count(*) FROM p") == ["2"])
      }
    }
  }

  @Test(arguments: ["SET NULL", "SET DEFAULT"], parents)
  func anOverlayIsNotWhatTheRowSays(_ action: String, _ parent: Parent) throws {
    let devices = try scratch.devices(
      2, schema(parent, action, isDeferred: false, child: "TEXT PRIMARY KEY"))
    try devices[0].run("DELETE FROM p WHERE id = 3")
    try devices[1].run("UPDATE c SET p = 3")
    try converge(devices)
    let overlay = action == "SET NULL" ? "NULL" : "1"
    // Neither looking at it, nor editing something else, nor sealing changes
    // what the cell says.
    for (number, device) in devices.enumerated() {
      try device.run("UPDATE c SET title = 'edit \(number)'")
      #expect(try device.changes(after: try device.store.head()?.number ?? 0).count == 1)
      try converge(devices, "SELECT CAST(p AS INTEGER) FROM c", [overlay])
    }
    try devices[0].run("INSERT INTO p (id) VALUES (3)")
    // With a key that differs from device to device it is another parent.
    try converge(
      devices, "SELECT CAST(p AS INTEGER), title FROM c",
      [parent.isSurrogate ? "\(overlay)|edit 1" : "3|edit 1"])
  }

  @Test func anEditOfAnOverlaidColumnToTheSameValueIsAnEdit() throws {
    let devices = try scratch.devices(
      2,
      schema(
        Parent(key: "TEXT PRIMARY KEY"), "SET DEFAULT", isDeferred: false, child: "TEXT PRIMARY KEY"
      ))
    try devices[0].run("DELETE FROM p WHERE id = 3")
    try devices[1].run("UPDATE c SET p = 3")
    try converge(devices, "SELECT p FROM c", ["1"])
    // Away from the overlay and back to the value that it shows.
    try devices[0].run("UPDATE c SET p = 2; UPDATE c SET p = 1")
    try converge(devices, "SELECT p FROM c", ["1"])
    try devices[0].run("INSERT INTO p (id) VALUES (3)")
    try converge(devices, "SELECT p FROM c", ["1"])
  }

  /// What was looked for with one batch of rows has to be looked for again
  /// with the next.
  @Test func theVerifierSeesWhoHoldsAValueInEachBatch() throws {
    let scratch = try Scratch()
    let devices = try scratch.devices(
      3,
      """
      CREATE TABLE p (k TEXT PRIMARY KEY, a); INSERT INTO p VALUES ('p', 1);
      CREATE TABLE c (k TEXT PRIMARY KEY, a UNIQUE, p REFERENCES p);
      INSERT INTO c VALUES ('old', 1, NULL)
      """)
    try devices[0].run("INSERT INTO c VALUES ('loses', 0, 'p')")
    try devices[1].setClock(offset: 3_600)
    try devices[1].run("UPDATE c SET a = 0 WHERE k = 'old'")
    try devices[2].run("DELETE FROM p")
    try converge(devices, "SELECT k FROM c", ["old"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  /// A row that waits goes with what it holds by way of a deleted row that is not shown, also where the
  /// schema changes before the deletion is sealed.
  @Test(arguments: [false, true], [false, true])
  func aRowThatWaitsGoesWithWhatItHolds(isAltered: Bool, isOpen: Bool) throws {
    var devices = try scratch.devices(
      2,
      """
      CREATE TABLE p (k TEXT PRIMARY KEY NOT NULL, a INTEGER, holds TEXT REFERENCES p ON DELETE RESTRICT,
        next TEXT REFERENCES p, UNIQUE (a, next));
      INSERT INTO p VALUES ('first', 1, NULL, 'first'), ('held', 2, NULL, 'held');
      UPDATE p SET holds = 'held' WHERE k = 'first';
      """)
    // It takes the value of the row that it refers to, which is gone and comes back for it: so that
    // one is not shown, but holds another.
    try devices[0].run(
      """
      DELETE FROM p WHERE k = 'first'; DELETE FROM p; PRAGMA foreign_keys = OFF;
      INSERT INTO p VALUES ('later', 1, NULL, 'first'); PRAGMA foreign_keys = ON;
      """)
    try converge(devices, "SELECT k FROM p", ["held"])
    devices[0] = try devices[0].changed(isOpen: isOpen) { device in
      try device.run("DELETE FROM p")
      if isAltered { try device.run("ALTER TABLE p ADD COLUMN more") }
    }
    if isAltered { try devices[1].run("ALTER TABLE p ADD COLUMN more") }
    try converge(devices, "SELECT k FROM p", [])
    for device in devices { #expect(try device.store.status().parked == []) }
  }
}
