import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Rows that REPLACE removes, which triggers before an edit find, in tables of unusual names and
/// shapes.
@Suite struct HintTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// In a trigger on a table named new, `rowid` is that of the trigger's row.
  @Test(arguments: ["new", "Old", "t"], ["", "WITHOUT ROWID"])
  func aRowOfSeveralKeyColumnsIsReplaced(name: String, form: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE \(name) (k1, k2, u, v, PRIMARY KEY (k1, k2)) \(form);
      CREATE UNIQUE INDEX byU ON \(name) (u);
      INSERT INTO \(name) VALUES (1, 2, 3, 4), (5, 6, 7, 8), (10, 11, 12, 13);
      """)
    try devices[0].run(
      """
      REPLACE INTO \(name) VALUES (9, 9, 3, 0); UPDATE \(name) SET u = 'free' WHERE k1 = 9;
      UPDATE OR REPLACE \(name) SET u = 12 WHERE k1 = 5; UPDATE \(name) SET u = 'x' WHERE k1 = 5;
      """)
    try converge(devices, "SELECT k1, u, v FROM \(name) ORDER BY k1", ["5|x|8", "9|free|0"])
    try devices[0].run(
      """
      DROP INDEX byU; ALTER TABLE \(name) DROP COLUMN u;
      REPLACE INTO \(name) VALUES (5, 6, 'later'); UPDATE \(name) SET v = 1 WHERE k1 = 9;
      """)
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT k1, v FROM \(name) ORDER BY k1") == ["5|later", "9|1"])
    }
  }

  @Test func aRowOfSeveralKeyColumnsIsReplacedBesideAColumnNamedRowid() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (k1, k2, u, v, PRIMARY KEY (k1, k2));
      CREATE UNIQUE INDEX byU ON t (u);
      INSERT INTO t VALUES (1, 2, 3, 4), (5, 6, 7, 8);
      """)
    try devices[0].run(
      """
      ALTER TABLE t ADD COLUMN rowid; REPLACE INTO t (k1, k2, u) VALUES (9, 9, 3);
      UPDATE t SET u = 'free' WHERE k1 = 9;
      """)
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT k1, u FROM t ORDER BY k1") == ["5|7", "9|free"])
    }
  }

  /// The query of a hint has a name of its own for the table.
  @Test func aTableNamedRowHasHintsOfTheRightRow() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE "row" (id INTEGER PRIMARY KEY, u, a);
      CREATE UNIQUE INDEX ru ON "row" (u);
      CREATE TABLE c (id TEXT PRIMARY KEY, r INTEGER REFERENCES "row");
      INSERT INTO "row" VALUES (1, 'u1', 'a1'), (2, 'u2', 'a2'), (3, 'u3', 'a3');
      """)
    try devices[0].run(
      "REPLACE INTO \"row\" VALUES (9, 'u3', 'a9'); DELETE FROM \"row\" WHERE id = 9")
    try devices[1].run("INSERT INTO c VALUES ('c', 3)")
    try exchange(devices)
    for device in devices {
      #expect(
        try device.rows("SELECT c.id, u, a FROM c LEFT JOIN \"row\" ON \"row\".id = r")
          == ["c|u3|a3"])
    }
  }

  /// The key of the row finds it, and a column can take the name of the rowid.
  @Test func aColumnNamedRowidChangesNoHint() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (id TEXT PRIMARY KEY, u, a);
      CREATE UNIQUE INDEX tu ON t (u);
      INSERT INTO t VALUES ('1', 'u1', 'a'), ('2', 'u2', 'a');
      """)
    try devices[0].run(
      """
      ALTER TABLE t ADD COLUMN rowid TEXT; REPLACE INTO t (id, u, a) VALUES ('9', 'u2', 'x');
      UPDATE t SET u = 'free' WHERE id = '9';
      """)
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT id, u FROM t ORDER BY id") == ["1|u1", "9|free"])
    }
  }

  /// The statement that logs several hints has columns of its own.
  @Test(arguments: ["docsync_kind", "Docsync_Key"], [true, false])
  func aColumnMayHaveANameThatHintsUse(column: String, isEarly: Bool) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE, c UNIQUE \(isEarly ? ", \(column)" : ""));
      CREATE TABLE child (id TEXT PRIMARY KEY, t INTEGER REFERENCES t);
      """)
    if !isEarly { try devices[0].run("ALTER TABLE t ADD COLUMN \(column)") }
    try devices[0].run("INSERT INTO t (id, a, c, \(column)) VALUES (1, 'a', 'c', 3)")
    try exchange(devices)
    try devices[0].run("REPLACE INTO t (id, a, c) VALUES (9, 'a', 'd'); DELETE FROM t")
    try devices[1].run("INSERT INTO child SELECT 'child', id FROM t")
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT a, c FROM child JOIN t ON t.id = child.t") == ["a|c"])
    }
    #expect(try devices[0].rows("SELECT \(column) FROM t") == ["3"])
  }

  /// SQLite limits the terms of a compound query, and programs can set a lower limit.
  @Test func aTableMayHaveManyUniqueColumns() throws {
    let columns = (0..<60).map { "c\($0) TEXT UNIQUE" }.joined(separator: ", ")
    let devices = try scratch.devices(
      1,
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, \(columns));
      CREATE TABLE child (id TEXT PRIMARY KEY, t INTEGER REFERENCES t);
      """)
    try devices[0].run(
      """
      INSERT INTO t (id, c0, c59) VALUES (1, 'x', 'y'); REPLACE INTO t (id, c59) VALUES (2, 'y');
      UPDATE OR REPLACE t SET c0 = 'z' WHERE id = 2;
      """)
    let id = try devices[0].rows("SELECT id FROM docsync_table WHERE name = 't'")[0]
    #expect(
      try devices[0].rows("SELECT op, k0, o0 FROM docsync_log_\(id) ORDER BY seq")
        == ["0|1|NULL", "3|1|x", "0|2|NULL", "1|2|NULL"])
    let trigger = try devices[0].rows(
      "SELECT sql FROM sqlite_schema WHERE name = 'docsync_\(id)_bi'")[0]
    let terms = trigger.components(separatedBy: ";").map {
      $0.components(separatedBy: " UNION ALL ").count
    }
    #expect(terms == [50, 10, 1])
  }

  /// A word in an index can be a function, a type or a collation, and there can be a column of that
  /// name.
  @Test func aColumnThatOnlySeemsToBeInAnIndexIsDropped() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (id TEXT PRIMARY KEY, name, lower, nocase, text, v);
      CREATE UNIQUE INDEX byName ON t (lower(name) COLLATE nocase);
      CREATE UNIQUE INDEX byText ON t (CAST(v AS text));
      INSERT INTO t (id, name, v) VALUES ('1', 'A', 1), ('2', 'B', 2), ('3', 'C', 3);
      """)
    try devices[0].run(
      """
      ALTER TABLE t DROP COLUMN lower; ALTER TABLE t DROP COLUMN nocase;
      ALTER TABLE t DROP COLUMN text; REPLACE INTO t VALUES ('4', 'a', '2');
      UPDATE t SET name = 'x', v = 'y' WHERE id = '4';
      """)
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT id, name, v FROM t ORDER BY id") == ["3|C|3", "4|x|y"])
    }
  }
}
