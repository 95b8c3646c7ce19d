import SyncModel
import Testing

@testable import SyncStore

/// Tables of every shape that SQLite knows.
@Suite struct TableShapeTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  @Test(arguments: [70, 200, 1_900])
  func everyColumnOfAWideTableIsCaptured(count: Int) throws {
    let columns = (0..<count).map { "c\($0)" }
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE wide (id INTEGER PRIMARY KEY, \(columns.joined(separator: ", ")));
      INSERT INTO wide (id) VALUES (1), (2);
      """)
    let edited = [0, 1, 30, 61, 62, 63, 64, 65, 69] + (count > 70 ? [123, 124, 125, 199] : [])
    for column in edited {
      try devices[0].run("UPDATE wide SET c\(column) = \(column) WHERE id = 1")
    }
    #expect(try devices[0].changes()[0].columnNames(0) == edited.map { "c\($0)" })
    try devices[1].run("UPDATE wide SET c2 = 'other', c68 = 'too' WHERE id = 1")
    try devices[1].run("INSERT INTO wide (c\(count - 1)) VALUES ('last')")
    let names = (edited + [2, 68, count - 1]).map { "c\($0)" }.joined(separator: ", ")
    let values = (edited.map(String.init) + ["other", "too"]).joined(separator: "|")
    try converge(
      devices, "SELECT \(names) FROM wide WHERE id = 1",
      [values + (edited.last == count - 1 ? "|\(count - 1)" : "|NULL")])
    try converge(devices, "SELECT c\(count - 1) FROM wide WHERE id = 3", ["last"])
  }

  @Test func strictTablesTravel() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE s (k TEXT PRIMARY KEY, i INT, r REAL, t TEXT, b BLOB, a ANY) STRICT;
      CREATE TABLE w (a ANY, b INTEGER, v ANY, PRIMARY KEY (a, b)) STRICT, WITHOUT ROWID;
      INSERT INTO s VALUES ('x', 1, 1.5, 't', x'00', '1');
      INSERT INTO w VALUES ('1', 1, 'text'), (1, 1, 'int');
      """)
    try devices[0].run("UPDATE s SET a = 1; UPDATE w SET v = 1.0 WHERE typeof(a) = 'text'")
    try devices[1].run("INSERT INTO s VALUES ('y', 2, 2, '', x'', x'')")
    try devices[1].run("UPDATE w SET a = 2.5 WHERE typeof(a) = 'integer'")
    try converge(
      devices, "SELECT typeof(a), a, typeof(v), v FROM w ORDER BY 1",
      ["real|2.5|text|int", "text|1|real|1.0"])
    try devices[0].run("UPDATE s SET a = 1.0 WHERE k = 'x'")
    try converge(devices, "SELECT k, typeof(a) FROM s ORDER BY k", ["x|real", "y|blob"])
  }

  @Test func generatedColumnsAreComputedEverywhere() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE g (a INTEGER, twice AS (a * 2), id INTEGER PRIMARY KEY,
        sum INTEGER GENERATED ALWAYS AS (a + b) STORED, b INTEGER DEFAULT 5);
      INSERT INTO g (id, a) VALUES (1, 1);
      """)
    try devices[0].run("INSERT INTO g (a, b) VALUES (10, 1); UPDATE g SET b = 7 WHERE id = 1")
    #expect(try devices[0].changes()[0].columns == ["a", "b"])
    try converge(devices, "SELECT a, b, twice, sum FROM g ORDER BY a", ["1|7|2|8", "10|1|20|11"])
  }

  @Test func namesOfEveryKindTravel() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE "select" ("from" TEXT PRIMARY KEY, "order" TEXT UNIQUE, "group" INTEGER);
      CREATE TABLE "a""b" ([x y] INTEGER PRIMARY KEY, `q'q` TEXT, "1st" TEXT, "in]side" TEXT);
      CREATE TABLE "тест" ("ключ" TEXT, "Größe" INTEGER, "rowid" TEXT,
        PRIMARY KEY ("ключ", "Größe")) WITHOUT ROWID;
      CREATE TABLE "2 words" ("seq" INTEGER PRIMARY KEY, "op", "at", "mask", "k0",
        ref INTEGER REFERENCES "a""b", "NEW" TEXT, "OLD" TEXT, "docsync_x");
      CREATE UNIQUE INDEX "in'dex" ON "2 words" (lower("NEW"), "OLD" COLLATE NOCASE)
        WHERE "at" IS NOT NULL;
      CREATE UNIQUE INDEX "in""dex" ON "a""b" ("1st" || [q'q]);
      INSERT INTO "select" VALUES ('a', 'b', 1);
      INSERT INTO "a""b" VALUES (1, 'q', '1', 'i');
      INSERT INTO "тест" VALUES ('ж', 1, 'r');
      INSERT INTO "2 words" VALUES (1, 1, 1, 1, 1, 1, 'N', 'O', 1);
      """)
    try devices[0].run(
      """
      REPLACE INTO "select" VALUES ('c', 'b', 2); UPDATE "a""b" SET "1st" = '2', `in]side` = 'j';
      UPDATE "тест" SET "rowid" = 's', "Größe" = 2;
      REPLACE INTO "2 words" ("at", ref, "NEW", "OLD", op) VALUES (5, 1, 'n', 'o', 7);
      INSERT INTO "a""b" ("1st", [q'q]) VALUES ('3', '3');
      """)
    try devices[1].run("UPDATE \"2 words\" SET \"NEW\" = 'x', mask = 2.0, k0 = x''")
    try converge(devices, "SELECT * FROM \"select\"", ["c|b|2"])
    try converge(
      devices,
      "SELECT \"1st\", [in]side] FROM \"a\"\"b\" ORDER BY 1".replacing(
        "[in]side]", with: "\"in]side\""), ["2|j", "3|NULL"])
    try converge(devices, "SELECT * FROM \"тест\"", ["ж|2|s"])
    try converge(devices, "SELECT op, \"at\", ref, \"NEW\" FROM \"2 words\"", ["7|5|1|n"])
  }

  @Test func tablesWithNothingButTheirKeysTravel() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE a (id INTEGER PRIMARY KEY);
      CREATE TABLE t (k TEXT PRIMARY KEY);
      CREATE TABLE j (a INTEGER REFERENCES a ON DELETE CASCADE, t TEXT REFERENCES t,
        PRIMARY KEY (a, t)) WITHOUT ROWID;
      INSERT INTO a VALUES (1); INSERT INTO t VALUES ('x'), ('y'); INSERT INTO j VALUES (1, 'x');
      """)
    try devices[0].run("INSERT INTO a VALUES (2); INSERT INTO j VALUES (2, 'x')")
    try devices[1].run("INSERT INTO a VALUES (2); INSERT INTO j VALUES (2, 'y')")
    try converge(
      devices, "SELECT t, count(*) FROM j GROUP BY t", ["x|2", "y|1"])
    try devices[1].run("UPDATE j SET t = 'y' WHERE t = 'x' AND a = 1; DELETE FROM a WHERE id = 2")
    try converge(devices, "SELECT t, count(*) FROM j GROUP BY t", ["x|1", "y|1"])
    try devices[0].run("DELETE FROM a; DELETE FROM t WHERE k = 'x'")
    try converge(devices, "SELECT count(*) FROM j", ["0"])
  }

  @Test func descendingAndAutoincrementKeysTravel() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE d (id INTEGER PRIMARY KEY DESC, v);
      CREATE TABLE i (id INT PRIMARY KEY, v);
      CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT, v);
      """)
    try devices[0].run(
      "INSERT INTO d VALUES (1, 'l'); INSERT INTO i VALUES (1, 'l'); INSERT INTO a VALUES (1, 'l')")
    try devices[1].run(
      "INSERT INTO d VALUES (2, 'r'); INSERT INTO i VALUES (2, 'r'); INSERT INTO a VALUES (1, 'r')")
    try converge(devices, "SELECT v FROM a ORDER BY v", ["l", "r"])
    try converge(devices, "SELECT * FROM d ORDER BY id", ["1|l", "2|r"])
    // A key that AUTOINCREMENT gave away is not given again.
    try devices[0].run("DELETE FROM a WHERE v = 'r'; INSERT INTO a (v) VALUES ('new')")
    #expect(try devices[0].rows("SELECT id FROM a WHERE v = 'new'") == ["3"])
    try converge(devices, "SELECT v FROM a ORDER BY v", ["l", "new"])
  }
}
