import SyncModel
import Testing

@testable import SyncStore

/// `REPLACE` removes rows without firing delete triggers; the removals are
/// captured all the same.
@Suite struct ReplaceTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let textKeys = """
    CREATE TABLE t (k TEXT PRIMARY KEY, a UNIQUE, b TEXT, c TEXT, d, UNIQUE (b, c));
    """
  private static let integerKeys = """
    CREATE TABLE t (k INTEGER PRIMARY KEY, a UNIQUE, b TEXT, c TEXT, d, UNIQUE (b, c));
    """

  /// Whether rows were there before syncing, are one's own, or came from
  /// another device, and whether delete triggers fire for them.
  enum Origin: CaseIterable { case older, own, sealed, other, otherWithTriggers }

  private func devices(_ schema: String, _ rows: String, _ origin: Origin) throws -> [Device] {
    let devices = try scratch.devices(2, schema + (origin == .older ? rows : ""))
    switch origin {
    case .older: break
    case .own: try devices[0].run(rows)
    case .sealed:
      try devices[0].run(rows)
      try exchange(devices)
    case .other, .otherWithTriggers:
      try devices[1].run(rows)
      try exchange(devices)
    }
    try devices[0].run("PRAGMA recursive_triggers = \(origin == .otherWithTriggers ? "ON" : "OFF")")
    return devices
  }

  @Test(arguments: Origin.allCases, [true, false])
  func insertOrReplaceRemovesRowsThroughSeveralKeys(origin: Origin, hasTextKeys: Bool) throws {
    let devices = try devices(
      hasTextKeys ? Self.textKeys : Self.integerKeys,
      """
      INSERT INTO t VALUES ('1', 'a1', 'b1', 'c1', 1), ('2', 'a2', 'b2', 'c2', 2),
        ('3', 'a3', 'b3', 'c3', 3), ('4', 'a4', 'b4', 'c4', 4);
      """, origin)
    // By the key, by one unique column, by two of them together.
    try devices[0].run("INSERT OR REPLACE INTO t VALUES ('1', 'a2', 'b3', 'c3', 9)")
    try converge(devices, "SELECT k, a, b, d FROM t ORDER BY k", ["1|a2|b3|9", "4|a4|b4|4"])
    try devices[0].run("REPLACE INTO t VALUES ('5', 'a4', 'b3', 'c3', 8)")
    try converge(devices, "SELECT k, a, b, d FROM t", ["5|a4|b3|8"])
  }

  @Test(arguments: Origin.allCases, [true, false])
  func updateOrReplaceRemovesRowsThroughUniqueValues(origin: Origin, hasTextKeys: Bool) throws {
    let devices = try devices(
      hasTextKeys ? Self.textKeys : Self.integerKeys,
      """
      INSERT INTO t VALUES ('1', 'a1', 'b1', 'c1', 1), ('2', 'a2', 'b2', 'c2', 2),
        ('3', 'a3', 'b3', 'c3', 3), ('4', 'a4', 'b4', 'c4', 4);
      """, origin)
    try devices[0].run("UPDATE OR REPLACE t SET a = 'a2', b = 'b3', c = 'c3' WHERE k = '1'")
    try converge(devices, "SELECT k, a, b FROM t ORDER BY k", ["1|a2|b3", "4|a4|b4"])
  }

  @Test(arguments: Origin.allCases, [true, false])
  func updateOrReplaceOfAKeyRemovesTheRowThatHadIt(origin: Origin, hasTextKeys: Bool) throws {
    let devices = try devices(
      hasTextKeys ? Self.textKeys : Self.integerKeys,
      "INSERT INTO t (k, d) VALUES ('1', 1), ('2', 2), ('3', 3);", origin)
    try devices[0].run("UPDATE OR REPLACE t SET k = '2' WHERE k = '1'")
    try converge(devices, "SELECT k, d FROM t ORDER BY k", ["2|1", "3|3"])
    // And gone again in the same breath.
    try devices[0].run("UPDATE OR REPLACE t SET k = '3' WHERE k = '2'; DELETE FROM t WHERE k = '3'")
    try converge(devices, "SELECT count(*) FROM t", ["0"])
  }

  @Test(arguments: Origin.allCases, ["", " WITHOUT ROWID"])
  func rowsThatAreReplacedThroughTheKeyAloneAreCaptured(origin: Origin, suffix: String) throws {
    let devices = try devices(
      "CREATE TABLE t (a, b INTEGER, c, PRIMARY KEY (a, b))\(suffix);",
      "INSERT INTO t VALUES ('x', 1, 'old'), ('y', 1, 'old');", origin)
    try devices[0].run("REPLACE INTO t VALUES ('x', 1, 'new')")
    try converge(devices, "SELECT * FROM t ORDER BY a", ["x|1|new", "y|1|old"])
    try devices[0].run("REPLACE INTO t VALUES ('x', 1, 'gone'); DELETE FROM t WHERE a = 'x'")
    try converge(devices, "SELECT * FROM t ORDER BY a", ["y|1|old"])
  }

  @Test(arguments: Origin.allCases)
  func partialExpressionAndCollatedIndexesAreFollowed(origin: Origin) throws {
    let devices = try devices(
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, mail TEXT COLLATE NOCASE UNIQUE,
        isMain INTEGER, g TEXT AS (trim(name)) STORED, v TEXT AS (mail || '!') VIRTUAL);
      CREATE UNIQUE INDEX t_name ON t (lower(name)) WHERE name IS NOT NULL;
      CREATE UNIQUE INDEX t_main ON t (isMain) WHERE isMain = 1;
      CREATE UNIQUE INDEX t_cased ON t (name COLLATE NOCASE, "isMain" DESC);
      """,
      """
      INSERT INTO t VALUES (1, 'One', 'ONE@x', 1), (2, 'Two', 'two@x', 0), (3, 'Three', NULL, 0),
        (4, NULL, 'four@x', 0), (-1, 'minus', 'minus@x', 0), (5, 'five', 'five@x', 0);
      """, origin)
    let query = "SELECT name, mail, isMain FROM t ORDER BY name, mail"
    try devices[0].run("INSERT OR REPLACE INTO t (name, mail, isMain) VALUES ('two', 'one@X', 0)")
    try converge(
      devices, query,
      ["NULL|four@x|0", "Three|NULL|0", "five|five@x|0", "minus|minus@x|0", "two|one@X|0"])
    try devices[0].run("UPDATE t SET isMain = 1 WHERE name = 'Three'")
    try devices[0].run("UPDATE OR REPLACE t SET isMain = 1 WHERE name = 'two'")
    try converge(
      devices, query, ["NULL|four@x|0", "five|five@x|0", "minus|minus@x|0", "two|one@X|1"])
    // A row with the key -1 is not taken for the one that has no key yet.
    try devices[0].run("REPLACE INTO t (name, mail, isMain) VALUES ('x', 'MINUS@x', 0)")
    try devices[0].run("REPLACE INTO t (name, mail, isMain) VALUES ('FIVE', NULL, 0)")
    try converge(
      devices, query, ["NULL|four@x|0", "FIVE|NULL|0", "two|one@X|1", "x|MINUS@x|0"])
  }

  @Test(arguments: Origin.allCases)
  func uniqueGeneratedColumnsAreFollowed(origin: Origin) throws {
    let devices = try devices(
      """
      CREATE TABLE t (k TEXT PRIMARY KEY, name TEXT,
        stored TEXT GENERATED ALWAYS AS (lower(name)) STORED UNIQUE,
        "virtual, one" TEXT COLLATE NOCASE AS (substr(k, 1, 1) || name));
      CREATE UNIQUE INDEX t_virtual ON t ("virtual, one") WHERE stored <> 'free';
      """,
      "INSERT INTO t (k, name) VALUES ('a', 'One'), ('b', 'Two'), ('c', 'Three');", origin)
    try devices[0].run("REPLACE INTO t (k, name) VALUES ('d', 'ONE')")
    try converge(devices, "SELECT k, name FROM t ORDER BY k", ["b|Two", "c|Three", "d|ONE"])
    try devices[0].run("UPDATE OR REPLACE t SET name = 'THREE' WHERE k = 'b'")
    try converge(devices, "SELECT k, name FROM t ORDER BY k", ["b|THREE", "d|ONE"])
    try devices[0].setClock(offset: -3_600)
    try devices[0].run("INSERT INTO t (k, name) VALUES ('e', 'left')")
    try devices[1].run("INSERT INTO t (k, name) VALUES ('f', 'LEFT')")
    try converge(
      devices, "SELECT k, name FROM t ORDER BY k", ["b|THREE", "d|ONE", "f|LEFT"])
  }

  @Test(arguments: Origin.allCases)
  func conflictClausesInTheSchemaAreFollowed(origin: Origin) throws {
    let devices = try devices(
      """
      CREATE TABLE t (k TEXT PRIMARY KEY ON CONFLICT REPLACE, v UNIQUE ON CONFLICT REPLACE,
        w TEXT NOT NULL ON CONFLICT REPLACE DEFAULT 'w');
      CREATE TABLE i (id INTEGER PRIMARY KEY ON CONFLICT REPLACE, v UNIQUE ON CONFLICT IGNORE);
      """,
      """
      INSERT INTO t VALUES ('a', 1, 'x'), ('b', 2, 'x'), ('c', 3, 'x');
      INSERT INTO i VALUES (1, 1), (2, 2);
      """, origin)
    try devices[0].run("INSERT INTO t VALUES ('a', 2, NULL); UPDATE t SET v = 2 WHERE k = 'c'")
    try devices[0].run("INSERT INTO i VALUES (1, 5), (3, 2)")
    try converge(
      devices, "SELECT * FROM t UNION ALL SELECT * , 0 FROM i", ["c|2|x", "1|5|0", "2|2|0"])
  }

  @Test(arguments: Origin.allCases)
  func aUniqueIndexOverTheKeyWithAnotherCollationIsFollowed(origin: Origin) throws {
    let devices = try devices(
      """
      CREATE TABLE t (k TEXT PRIMARY KEY, v);
      CREATE UNIQUE INDEX t_k ON t (k COLLATE NOCASE);
      """, "INSERT INTO t VALUES ('a', 1), ('b', 2);", origin)
    try devices[0].run("REPLACE INTO t VALUES ('A', 3)")
    try converge(devices, "SELECT * FROM t ORDER BY v", ["b|2", "A|3"])
  }

  @Test(arguments: Origin.allCases)
  func aReplacedIntegerKeyKeepsItsIdentityAndItsChildren(origin: Origin) throws {
    let devices = try devices(
      """
      CREATE TABLE p (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE c (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p, v);
      """, "INSERT INTO p VALUES (1, 'one'), (2, 'two'); INSERT INTO c VALUES (1, 1, 'x');", origin)
    try devices[0].run("PRAGMA foreign_keys = OFF; REPLACE INTO p VALUES (1, 'new')")
    if origin == .own { try exchange([devices[0], devices[1]]) }
    // Meanwhile another device refers to the row.
    try devices[1].run("INSERT INTO c SELECT 2, id, 'y' FROM p WHERE name IN ('one', 'new')")
    try converge(
      devices, "SELECT v, name FROM c JOIN p ON p.id = c.p ORDER BY v", ["x|new", "y|new"])
  }

  /// The log says of it only that it was inserted, and then deleted.
  @Test(arguments: Origin.allCases)
  func aReplacedRowThatIsDeletedIsWhatItsChildrenReferredTo(origin: Origin) throws {
    let devices = try devices(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, v, t INTEGER REFERENCES t);",
      "INSERT INTO t VALUES (1, 'one', NULL), (2, 'two', NULL), (3, 'child', 2)", origin)
    if origin == .own { try exchange([devices[0], devices[1]]) }
    try devices[0].run("REPLACE INTO t VALUES (2, 'new', 1); DELETE FROM t")
    // The child is rescued, and with it the row that it refers to.
    try devices[1].run("INSERT INTO t SELECT 4, 'grandchild', id FROM t WHERE v = 'child'")
    try converge(
      devices,
      "SELECT c.v, p.v FROM t AS c LEFT JOIN t AS p ON p.id = c.t ORDER BY 1",
      ["child|new", "grandchild|child", "new|one", "one|NULL"])
  }

  @Test func insertOrIgnoreAndUpsertLogWhatTheyDo() throws {
    let devices = try scratch.devices(
      2,
      "CREATE TABLE t (k TEXT PRIMARY KEY, v UNIQUE, n INTEGER); INSERT INTO t VALUES ('a', 1, 0)")
    try devices[0].run("INSERT OR IGNORE INTO t VALUES ('a', 5, 5), ('b', 1, 5)")
    #expect(try devices[0].sealsNothing())
    try devices[0].run(
      """
      INSERT INTO t VALUES ('a', 9, 9) ON CONFLICT (k) DO UPDATE SET n = n + 1;
      INSERT INTO t VALUES ('c', 1, 9) ON CONFLICT DO NOTHING;
      INSERT INTO t VALUES ('d', 4, 9) ON CONFLICT (k) DO UPDATE SET n = n + 1;
      INSERT INTO t VALUES ('e', 1, 9) ON CONFLICT (v) DO UPDATE SET k = excluded.k;
      """)
    try converge(devices, "SELECT * FROM t ORDER BY k", ["d|4|9", "e|1|1"])
  }

  /// A hint reads the table, whose name is that of a row in a trigger.
  @Test(arguments: ["old", "Old", "new"])
  func rowsOfATableThatIsNamedLikeARowOfATriggerAreReplaced(name: String) throws {
    let devices = try scratch.devices(
      2, "CREATE TABLE \(name) (id TEXT PRIMARY KEY, u UNIQUE, n UNIQUE NOT NULL DEFAULT 9, a)")
    try devices[0].run(
      "INSERT INTO \(name) VALUES ('1', 1, 1, 'a'), ('2', 2, 2, 'b'), ('3', 3, 3, 'c')")
    try converge(devices)
    func expect(_ rows: [String]) throws {
      try converge(devices, "SELECT id, u, n, a FROM \(name) ORDER BY 1", rows)
      for device in devices {
        #expect(try device.store.parkedRows() == [])
        #expect(try LocalStore.verify(at: device.path).report.findings == [])
      }
    }
    try devices[0].run("UPDATE OR REPLACE \(name) SET u = 2 WHERE id = '1'")
    try expect(["1|2|1|a", "3|3|3|c"])
    try devices[1].run("REPLACE INTO \(name) VALUES ('4', 3, 4, 'd')")
    try expect(["1|2|1|a", "4|3|4|d"])
    try devices[0].run("UPDATE OR REPLACE \(name) SET id = '4' WHERE id = '1'")
    try expect(["4|2|1|a"])
    try devices[0].run("REPLACE INTO \(name) (id, u, n) VALUES ('5', 5, 1)")
    try expect(["5|5|1|NULL"])
  }

  /// A table gets such a name, and docsync has not opened the store since.
  @Test(arguments: ["old", "NEW"])
  func rowsOfATableThatIsRenamedLikeARowOfATriggerAreReplaced(name: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (id TEXT PRIMARY KEY, u UNIQUE, v COLLATE NOCASE, a);
      CREATE UNIQUE INDEX byV ON t (v);
      INSERT INTO t VALUES ('1', 1, 'x', 'a'), ('2', 2, 'y', 'b'), ('3', 3, 'z', 'c'), ('4', 4, 'w', 'd');
      """)
    for device in devices { try device.run("ALTER TABLE t RENAME TO \(name)") }
    try devices[0].run(
      """
      UPDATE OR REPLACE \(name) SET u = 2, v = 'Z' WHERE id = '1';
      REPLACE INTO \(name) VALUES ('5', 4, 'v', 'e');
      """)
    try converge(devices, "SELECT * FROM \(name) ORDER BY id", ["1|2|Z|a", "5|4|v|e"])
    for device in devices { #expect(try device.store.parkedRows() == []) }
  }
}
