import Foundation
import Testing

@testable import SyncStore

/// `docsync schema` prints what only other devices have, as SQL that can be executed.
@Suite struct SchemaCommandTests {
  let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    try scratch.makeTwoDevices()
  }

  @Test func theOutputCreatesWhatIsMissing() throws {
    try scratch.sql(
      "a.db",
      """
      ALTER TABLE notes ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE notes ADD COLUMN "the color" TEXT COLLATE NOCASE;
      CREATE TABLE [odd "tags"] (
        name TEXT PRIMARY KEY, -- unique; of course
        note INTEGER REFERENCES notes(id) ON DELETE CASCADE,
        size INTEGER GENERATED ALWAYS AS (length(name)) VIRTUAL,
        CHECK (name <> 'a;b')
      );
      CREATE INDEX by_note ON [odd "tags"] (note);
      CREATE INDEX by_pin ON notes (pinned);
      CREATE VIEW pins AS SELECT title FROM notes WHERE pinned;
      CREATE TRIGGER trim_color AFTER UPDATE OF "the color" ON notes WHEN new."the color" = ''
      BEGIN
        UPDATE notes SET "the color" = NULL WHERE id = new.id; SELECT CASE WHEN 1 THEN 2 END;
      END;
      CREATE VIRTUAL TABLE search USING fts5(title);
      UPDATE notes SET pinned = 1, "the color" = 'red' WHERE id = 1;
      INSERT INTO [odd "tags"] (name, note) VALUES ('x', 1);
      """)
    try scratch.succeed("sync", "a.db")
    try scratch.succeed("sync", "b.db")
    let status = try scratch.docsync("status", "b.db")
    #expect(status.output.contains("docsync schema b.db"))

    // No whole database has them yet.
    let unknown = try scratch.succeed("schema", "b.db")
    #expect(unknown.output.split(separator: "\n").allSatisfy { $0.hasPrefix("-- ") })
    for name in ["notes.pinned", "notes.the color", "odd \"tags\"", "docsync upload STORE"] {
      #expect(unknown.output.contains(name), "\(unknown.output)")
    }
    let before = try scratch.contents()
    let json = try scratch.succeed("schema", "b.db", "--json").json()
    #expect((json["undefinedNames"] as? [String])?.count == 3)
    #expect((json["definitions"] as? [Any])?.isEmpty == true)
    #expect(try scratch.contents() == before)

    try scratch.succeed("upload", "a.db")
    let known = try scratch.succeed("schema", "b.db")
    #expect(!known.output.contains("-- Not in"), "\(known.output)")
    try scratch.sql("b.db", known.output)
    try scratch.succeed("sync", "b.db")
    try scratch.succeed("sync", "a.db")
    #expect(
      try scratch.column("b.db", "SELECT title || pinned || \"the color\" FROM notes WHERE pinned")
        == scratch.column("a.db", "SELECT title || pinned || \"the color\" FROM notes WHERE pinned")
    )
    #expect(try scratch.column("b.db", "SELECT size FROM [odd \"tags\"]") == ["1"])
    let names = """
      SELECT name FROM sqlite_schema WHERE name NOT LIKE 'docsync%' AND name NOT LIKE 'sqlite%' \
      ORDER BY name
      """
    #expect(try scratch.column("b.db", names) == scratch.column("a.db", names))
    let digests = try ["a.db", "b.db"].map {
      try #require(scratch.succeed("digest", $0, "--json").json()["visible"] as? String)
    }
    #expect(digests[0] == digests[1])
    let nothing = try scratch.succeed("schema", "b.db")
    #expect(nothing.output == "-- Nothing is missing that other devices have uploaded.\n")
  }

  @Test func aColumnThatCannotBeAddedIsAComment() throws {
    try scratch.sql(
      "a.db",
      """
      CREATE TABLE codes (name TEXT PRIMARY KEY);
      """)
    try scratch.succeed("sync", "a.db")
    try scratch.sql("b.db", "CREATE TABLE codes (name TEXT PRIMARY KEY)")
    try scratch.succeed("sync", "b.db")
    try scratch.sql(
      "a.db",
      """
      DROP TABLE codes;
      CREATE TABLE codes (name TEXT PRIMARY KEY, unicode TEXT UNIQUE, needed TEXT NOT NULL,
        made TEXT DEFAULT CURRENT_TIMESTAMP, sum INTEGER AS (length(name) + 1) STORED,
        note INTEGER DEFAULT 1 REFERENCES notes(id), fine NUMERIC(10, 2) DEFAULT -1.5,
        checked TEXT CHECK (checked IN ('a', 'b')), bare);
      INSERT INTO codes (name, needed, note) VALUES ('x', 'y', NULL);
      """)
    try scratch.succeed("sync", "a.db")
    try scratch.succeed("upload", "a.db")
    try scratch.succeed("sync", "b.db")
    let json = try scratch.succeed("schema", "b.db", "--json").json()
    let definitions = try #require(json["definitions"] as? [[String: Any]])
    func names(areStatements: Bool) -> [String] {
      definitions.filter { $0["isStatement"] as? Bool == areStatements }
        .compactMap { $0["name"] as? String }
    }
    #expect(names(areStatements: true) == ["codes.fine", "codes.checked", "codes.bare"])
    #expect(
      names(areStatements: false)
        == ["codes.unicode", "codes.needed", "codes.made", "codes.sum", "codes.note"])
    let output = try scratch.succeed("schema", "b.db").output
    #expect(output.contains("--   needed TEXT NOT NULL"), "\(output)")
    try scratch.sql("b.db", output)
    #expect(try scratch.column("b.db", "SELECT count(fine) FROM codes") == ["1"])
  }

  @Test func tabsAndEndsOfLinesOfWindowsOutsideStringsDoNoHarm() throws {
    try scratch.sql(
      "a.db",
      "CREATE TABLE codes (\r\n\tname TEXT PRIMARY KEY,\r\n\tsize\tINTEGER DEFAULT 1\r\n);"
        + "CREATE TABLE odd (name TEXT PRIMARY KEY, size TEXT DEFAULT 'x\ty')")
    try scratch.succeed("upload", "a.db")
    let output = try scratch.succeed("schema", "b.db").output
    #expect(output.contains("CREATE TABLE codes (\n  name TEXT PRIMARY KEY,\n"), "\(output)")
    // A tab is not shown as it is, and another default must not take its place.
    #expect(output.contains("-- table odd: it cannot be printed as a statement:"), "\(output)")
    try scratch.sql("b.db", output)
    #expect(try scratch.column("b.db", "SELECT count(*) FROM codes") == ["0"])
  }

  /// sqlite3 takes a line “go” for the end of a statement, and the next one for a command of its own.
  @Test func aStatementThatSqlite3CouldTakeForACommandIsAComment() throws {
    try scratch.sql(
      "a.db",
      """
      CREATE TABLE go (name TEXT PRIMARY KEY, shell TEXT);
      CREATE VIEW trap AS SELECT
      go
      .shell "touch trapped" FROM go;
      CREATE VIEW harmless AS SELECT name FROM go;
      """)
    try scratch.succeed("upload", "a.db")
    let output = try scratch.succeed("schema", "b.db").output
    #expect(output.contains("-- view trap: it cannot be printed as a statement:"), "\(output)")
    #expect(output.contains("CREATE VIEW harmless AS SELECT name FROM go;"), "\(output)")
    for line in output.split(separator: "\n") {
      #expect(!line.hasPrefix(".") && line != "go", "\(output)")
    }
  }

  @Test(arguments: [
    ("CREATE TABLE t (a)", true), ("CREATE TABLE t (a DEFAULT ';', \"b;\" -- ;\n)", true),
    ("CREATE TRIGGER t AFTER INSERT ON x BEGIN SELECT 1; SELECT 2; END", true),
    ("CREATE TABLE t (a); DROP TABLE x", false), ("CREATE TABLE t (a);\n.shell ls", false),
    ("CREATE TRIGGER t AFTER INSERT ON x BEGIN SELECT 1; END;\n.shell ls", false),
  ])
  func aForgedSecondStatementIsFound(sql: String, isOne: Bool) {
    #expect(MissingDefinitions.isOneStatement(sql) == isOne)
  }
}
