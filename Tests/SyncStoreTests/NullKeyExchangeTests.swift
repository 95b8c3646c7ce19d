import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Rows with NULL in their key, where a store takes over the content of a whole store: no other
/// device has them.
@Suite struct NullKeyExchangeTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE parent (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE t (k TEXT PRIMARY KEY, v, own TEXT DEFAULT 'none', parent INTEGER REFERENCES parent);
    CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT UNIQUE, v);
    INSERT INTO parent VALUES (1, 'one'), (2, 'two');
    INSERT INTO t (k, v) VALUES ('a', 1), ('b', 2);
    INSERT INTO tag VALUES (1, 'red', 1);
    """

  private func devices() throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.identities = ["tag": .columns(["name"])]
    configuration.excludedColumns = ["t": ["own"]]
    let devices = try scratch.devices(2, Self.schema, configuration: configuration)
    try devices[1].run(
      """
      INSERT INTO t VALUES (NULL, 'alone', 'mine', 1), (NULL, 'alone', 'mine', 1),
        (NULL, 3, NULL, 2);
      INSERT INTO tag VALUES (2, NULL, 'two'), (7, NULL, 'seven');
      """)
    _ = try devices[1].store.seal()
    return devices
  }

  private func replace(_ device: Device, by other: Device) throws -> ContentReplacement {
    let path = scratch.path + "/whole-\(UInt64.random(in: 0 ... .max)).db"
    _ = try other.outgoing()
    _ = try other.store.snapshot(to: path)
    return try device.store.replaceContent(withSnapshotAt: path)
  }

  private static let rows = "SELECT v, own, parent FROM t WHERE k IS NULL ORDER BY v, rowid"

  @Test func theyStayInTablesThatStay() throws {
    let devices = try devices()
    try devices[0].run(
      """
      UPDATE t SET v = 10 WHERE k = 'a'; DELETE FROM t WHERE k = 'b';
      INSERT INTO tag VALUES (2, 'blue', 2); INSERT INTO parent VALUES (3, 'three');
      """)
    let result = try replace(devices[1], by: devices[0])
    #expect(result.warnings == [])
    #expect(result.deletedRows == 2)
    #expect(try devices[1].rows(Self.rows) == ["3|NULL|2", "alone|mine|1", "alone|mine|1"])
    #expect(
      try devices[1].rows("SELECT id, name, v FROM tag ORDER BY id")
        == ["1|red|1", "2|NULL|two", "7|NULL|seven", "8|blue|2"])
    #expect(try devices[1].store.conflicts() == [])
    #expect(try LocalStore.verify(at: devices[1].path).report.findings.count == 2)
    try converge(devices, "SELECT k, v FROM t WHERE k NOT NULL", ["a|10"])
    // With a key they are rows like all others.
    try devices[1].run("UPDATE tag SET name = v WHERE name IS NULL")
    try converge(devices, "SELECT name FROM tag ORDER BY name", ["blue", "red", "seven", "two"])
  }

  @Test func theyAreCarriedOverToATableThatIsMadeAgain() throws {
    var devices = try devices()
    devices[0] = try devices[0].changed(isOpen: false) {
      try $0.run(
        """
        ALTER TABLE t ADD COLUMN added DEFAULT 5; ALTER TABLE t RENAME COLUMN v TO value;
        ALTER TABLE tag ADD COLUMN added DEFAULT 6;
        """)
    }
    try devices[0].run("UPDATE t SET value = 10 WHERE k = 'a'")
    let result = try replace(devices[1], by: devices[0])
    #expect(result.warnings == [])
    #expect(
      try devices[1].rows(
        "SELECT value, own, parent, added FROM t WHERE k IS NULL ORDER BY value, rowid")
        == ["3|NULL|2|5", "alone|mine|1|5", "alone|mine|1|5"])
    #expect(
      try devices[1].rows("SELECT id, name, v, added FROM tag ORDER BY id")
        == ["1|red|1|6", "2|NULL|two|6", "7|NULL|seven|6"])
    #expect(try devices[1].store.status().rowsWithoutKey == ["t": 3, "tag": 2])
    #expect(try devices[1].store.conflicts() == [])
    try devices[1].run("UPDATE t SET value = 11 WHERE k IS NULL OR k = 'a'")
    try converge(devices, "SELECT k, value FROM t WHERE k NOT NULL ORDER BY k", ["a|11", "b|2"])
  }

  /// The document gave up the table: the rows are in the journal, with their values.
  @Test func thoseOfATableThatIsGivenUpAreEntered() throws {
    var devices = try devices()
    devices[0] = try devices[0].changed(isOpen: false) { try $0.run("DROP TABLE t") }
    for count in [3, 0] {
      let result = try replace(devices[1], by: devices[0])
      #expect(result.warnings.map(\.code) == (count > 0 ? [.keyMissing] : []))
      #expect(result.warnings.map(\.count) == (count > 0 ? [count] : []))
      #expect(try devices[1].rows("SELECT name FROM sqlite_schema WHERE name = 't'") == [])
      let conflicts = try devices[1].store.conflicts()
      #expect(conflicts.map(\.table) == ["t", "t", "t"])
      #expect(
        conflicts.map { $0.local.cells?.first { $0.column == "v" }?.value }.reversed()
          == [.text(Array("alone".utf8)), .text(Array("alone".utf8)), .integer(3)])
      #expect(conflicts.allSatisfy { $0.key.map(\.value) == [.null] && $0.status == .settled })
    }
    #expect {
      try devices[1].store.restoreConflict(1)
    } throws: {
      ($0 as? StoreError)?.code == .editRefused
    }
    try converge(devices)
  }

  @Test func thoseThatTheirTableDoesNotTakeAnyMoreAreEntered() throws {
    var devices = try devices()
    devices[0] = try devices[0].changed(isOpen: false) {
      try $0.run(
        """
        PRAGMA foreign_keys = OFF;
        CREATE TABLE n (k TEXT NOT NULL PRIMARY KEY, v, own TEXT, parent INTEGER REFERENCES parent);
        INSERT INTO n SELECT * FROM t; DROP TABLE t; ALTER TABLE n RENAME TO t;
        CREATE TABLE m (id INTEGER PRIMARY KEY, name TEXT UNIQUE, v CHECK (v <> 'seven'));
        INSERT INTO m SELECT * FROM tag; DROP TABLE tag; ALTER TABLE m RENAME TO tag;
        """)
    }
    let result = try replace(devices[1], by: devices[0])
    #expect(result.warnings.map(\.table) == ["t", "tag"])
    #expect(result.warnings.map(\.count) == [3, 1])
    #expect(try devices[1].rows("SELECT k FROM t ORDER BY k") == ["a", "b"])
    #expect(try devices[1].rows("SELECT v FROM tag ORDER BY id") == ["1", "two"])
    let conflicts = try devices[1].store.conflicts()
    #expect(conflicts.map(\.kind) == [.condition, .condition, .condition, .condition])
    #expect(conflicts.map(\.table) == ["tag", "t", "t", "t"])
    #expect {
      try devices[1].store.restoreConflict(2)
    } throws: {
      ($0 as? StoreError)?.code == .editRefused
    }
    try converge(devices)
  }

  /// They refer to each other, and follow the one that gets another number.
  @Test func theyMayReferToEachOther() throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["node": .columns(["code"])]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE mark (k TEXT PRIMARY KEY, node INTEGER REFERENCES node);
      CREATE TABLE node (id INTEGER PRIMARY KEY, code TEXT UNIQUE, parent INTEGER REFERENCES node, v);
      INSERT INTO node VALUES (1, 'root', NULL, 'r'), (2, 'branch', 1, 'b');
      """, configuration: configuration)
    try devices[1].run(
      """
      INSERT INTO node VALUES (11, NULL, NULL, 'y'), (10, NULL, 11, 'x'), (12, NULL, 12, 'z'),
        (13, NULL, 2, 'w'), (14, NULL, 13, 'u');
      INSERT INTO mark VALUES (NULL, 10), (NULL, 14);
      """)
    _ = try devices[1].store.seal()
    try devices[0].run("INSERT INTO node VALUES (11, 'new', 1, 'n'); DELETE FROM node WHERE id = 2")
    let result = try replace(devices[1], by: devices[0])
    #expect(
      try devices[1].rows(
        "SELECT n.v, p.v FROM node AS n LEFT JOIN node AS p ON p.id = n.parent WHERE n.code IS NULL "
          + "ORDER BY 1") == ["x|y", "y|NULL", "z|z"])
    #expect(
      try devices[1].rows("SELECT v FROM mark JOIN node ON id = node WHERE k IS NULL") == ["x"])
    #expect(result.warnings.map(\.table) == ["mark", "node"])
    #expect(result.warnings.map(\.count) == [1, 2])
    #expect(try devices[1].rows("PRAGMA foreign_key_check") == [])
    try converge(devices)
  }

  @Test func thoseInTheWayOfTheDocumentAreEntered() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE parent (id INTEGER PRIMARY KEY);
      CREATE TABLE t (k TEXT PRIMARY KEY, code UNIQUE, parent REFERENCES parent ON DELETE CASCADE);
      INSERT INTO parent VALUES (1), (2);
      """)
    try devices[1].run("INSERT INTO t VALUES (NULL, 'x', NULL), (NULL, 'y', 1), (NULL, 'z', 2)")
    _ = try devices[1].store.seal()
    try devices[0].run("INSERT INTO t VALUES ('k', 'x', 2); DELETE FROM parent WHERE id = 1")
    let result = try replace(devices[1], by: devices[0])
    #expect(result.warnings.map(\.count) == [2])
    #expect(try devices[1].rows("SELECT * FROM t ORDER BY code") == ["k|x|2", "NULL|z|2"])
    #expect(
      try devices[1].store.conflicts().map(\.kind) == [.reference, .uniqueValue])
    try devices[1].checkIntegrity()
    try converge(devices, "SELECT code FROM t WHERE k NOT NULL", ["x"])
  }
}
