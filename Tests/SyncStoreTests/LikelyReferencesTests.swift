import SyncModel
import Testing

@testable import SyncStore

/// Columns that seem to refer to rows without a foreign key that says so.
@Suite struct LikelyReferencesTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func plan(_ sql: String) throws -> StorePlan {
    let path = scratch.path + "/plan\(UInt32.random(in: 0 ... .max)).db"
    try Program(path).run(sql)
    return try LocalStore.plan(at: path, configuration: StoreConfiguration())
  }

  private func expect(
    _ expected: [String], in sql: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    #expect(
      try plan(sql).likelyReferences.map { "\($0.table).\($0.column) \($0.parent)" } == expected,
      sourceLocation: sourceLocation)
  }

  /// Rows 1 to `count` of a table with the columns `id` and `x`.
  private func rows(_ table: String, _ count: Int, value: String = "NULL") -> String {
    """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
    INSERT INTO \(table) SELECT i, \(value) FROM n;
    """
  }

  @Test(arguments: [
    ("comments", "book", "book"), ("comments", "book", "books"), ("lines", "note_id", "notes"),
    ("l", "Box_ID", "box"), ("messages", "chat_row_id", "chats"), ("track", "AlbumId", "albums"),
    ("entry", "fk_category", "categories"), ("item", "bookid", "book"),
    ("message", "last_author_id", "authors"), ("ZNOTE", "ZFOLDER", "ZFOLDER"),
  ])
  func aColumnIsNamedForATable(table: String, column: String, parent: String) throws {
    try expect(
      ["\(table).\(column) \(parent)"],
      in: """
        CREATE TABLE \(parent) (id INTEGER PRIMARY KEY, x);
        CREATE TABLE other (id INTEGER PRIMARY KEY, x);
        CREATE TABLE "\(table)" (id TEXT PRIMARY KEY, "\(column)" INTEGER, remark TEXT);
        """)
  }

  @Test func aPrefixThatTablesShareIsNoPartOfTheName() throws {
    try expect(
      ["wp_postmeta.post_id wp_posts", "wp_posts.post_parent wp_posts"],
      in: """
        CREATE TABLE wp_posts (ID INTEGER PRIMARY KEY, post_parent INTEGER NOT NULL DEFAULT 0, post_title TEXT);
        CREATE TABLE wp_postmeta (meta_id INTEGER PRIMARY KEY, post_id INTEGER NOT NULL DEFAULT 0, meta_key TEXT);
        INSERT INTO wp_posts VALUES (1, 0, 'a'), (2, 1, 'b'), (3, 0, 'c');
        INSERT INTO wp_postmeta VALUES (1, 3, 'k'), (2, 0, 'k');
        """)
  }

  @Test func aTableOfNumbersIsNamedForThem() throws {
    try expect(
      ["books.rating ratings"],
      in: """
        CREATE TABLE ratings (id INTEGER PRIMARY KEY, rating INTEGER UNIQUE);
        CREATE TABLE books (id TEXT PRIMARY KEY, rating INTEGER);
        INSERT INTO ratings VALUES (1, 2), (2, 3), (3, 1);
        INSERT INTO books VALUES ('a', 3), ('b', 1);
        """)
  }

  @Test func aColumnHasTheNameOfAKey() throws {
    try expect(
      ["visit.place_id place"],
      in: """
        CREATE TABLE place (place_id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE visit (id INTEGER PRIMARY KEY, place_id INT);
        """)
  }

  @Test func aColumnIsNamedForAKeyAndHoldsOnlyKeysOfOneTable() throws {
    let schema = """
      CREATE TABLE places (id INTEGER PRIMARY KEY, x); CREATE TABLE few (id INTEGER PRIMARY KEY, x);
      CREATE TABLE bookmarks (id INTEGER PRIMARY KEY, fk INTEGER);
      """ + rows("places", 60) + rows("few", 9)
    try expect(["bookmarks.fk places"], in: schema + rows("bookmarks", 20, value: "3 * i"))
    try expect([], in: schema + rows("bookmarks", 20, value: "4 * i"))
    try expect([], in: schema)
  }

  @Test func keysThatLieFarApartAreHardlyEqualByChance() throws {
    try expect(
      ["cards.about notes"],
      in: """
        CREATE TABLE notes (id INTEGER PRIMARY KEY, x);
        CREATE TABLE cards (id INTEGER PRIMARY KEY, about INTEGER);
        INSERT INTO notes VALUES (1502298033753, 'a'), (1502298034117, 'b'), (1502298044640, 'c');
        INSERT INTO cards VALUES (1, 1502298033753), (2, 1502298034117), (3, 1502298044640);
        """)
  }

  @Test func anIndexedColumnHoldsOnlyKeys() throws {
    let schema = """
      CREATE TABLE object (Z_PK INTEGER PRIMARY KEY, x);
      CREATE TABLE note (id INTEGER PRIMARY KEY, inside INTEGER, rating INTEGER, colour INTEGER);
      CREATE INDEX by_inside ON note (inside); CREATE INDEX by_rating ON note (rating);
      """ + rows("object", 50)
    try expect(
      ["note.inside object"],
      in: schema
        + "INSERT INTO note VALUES (1, 5, 5, 5), (2, 7, 3, 7), (3, 9, 4, 9), (4, 5, 1, 8)")
  }

  @Test func numbersAreNoReferences() throws {
    try expect(
      [],
      in: """
        CREATE TABLE note (id INTEGER PRIMARY KEY, x);
        CREATE TABLE task (
          id INTEGER PRIMARY KEY, is_valid INTEGER, paid INTEGER, year INTEGER, weight REAL,
          note TEXT, done INTEGER, other_id INTEGER, word_id INTEGER);
        CREATE TABLE word (k TEXT PRIMARY KEY);
        CREATE INDEX by_year ON task (year); CREATE INDEX by_done ON task (done);
        INSERT INTO task VALUES (1, 1, 1, 3, 2.0, '1', 1, NULL, NULL),
          (2, 0, 0, 5, 1.0, '2', 0, NULL, NULL), (3, 1, 1, 7, 1.5, '3', 0, NULL, NULL);
        """ + rows("note", 20))
  }

  /// A key with a general name is its own table's, whatever the type of the column.
  @Test func aKeyNamedLikeAllKeysIsNoReference() throws {
    try expect(
      ["place.note_no note"],
      in: """
        CREATE TABLE note (id INTEGER PRIMARY KEY, x);
        CREATE TABLE invoice (id BIGINT PRIMARY KEY NOT NULL, t);
        CREATE TABLE place (note_no BIGINT PRIMARY KEY NOT NULL, t);
        INSERT INTO invoice VALUES (1, 'a'), (2, 'b'), (3, 'c');
        INSERT INTO place VALUES (1, 'a'), (2, 'b'), (3, 'c');
        """ + rows("note", 20))
  }

  @Test func declaredReferencesAreNotAskedAgain() throws {
    let schema = """
      CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT);
      CREATE TABLE lines (id INTEGER PRIMARY KEY, notes_id INTEGER);
      CREATE TABLE pages (id INTEGER PRIMARY KEY, notes_id INTEGER REFERENCES notes);
      """
    try expect(["lines.notes_id notes"], in: schema)
    let path = scratch.path + "/declared.db"
    try Program(path).run(schema)
    var configuration = StoreConfiguration()
    configuration.references = ["lines": ["notes_id": "notes"]]
    #expect(try LocalStore.plan(at: path, configuration: configuration).likelyReferences.isEmpty)
  }

  @Test func aReferenceToRowsThatArePartlyGoneIsFound() throws {
    let schema = """
      CREATE TABLE notes (id INTEGER PRIMARY KEY, x); CREATE TABLE log (id INTEGER PRIMARY KEY, note INTEGER);
      """ + rows("notes", 10)
    try expect(["log.note notes"], in: schema + "INSERT INTO log VALUES (1, 1), (2, 99)")
    try expect([], in: schema + "INSERT INTO log VALUES (1, 1), (2, 99), (3, 100)")
  }

  @Test func rowsWithNullInTheirKeyAreNamedByTable() throws {
    let hints = try plan(
      """
      CREATE TABLE full (k TEXT PRIMARY KEY); INSERT INTO full VALUES ('a');
      CREATE TABLE pair (a TEXT, b TEXT, PRIMARY KEY (a, b));
      INSERT INTO pair VALUES ('x', NULL), ('y', NULL), ('z', 'z');
      CREATE TABLE t (k TEXT PRIMARY KEY); INSERT INTO t VALUES (NULL), (NULL), (NULL), ('a');
      """
    ).hints
    #expect(
      hints == [
        StorePlan.Hint(kind: .keyMissing, table: "pair", column: "b", rowCount: 2),
        StorePlan.Hint(kind: .keyMissing, table: "t", column: "k", rowCount: 3),
      ])
  }

  @Test func keysThatAreDrawnByTheApplicationAndCountersAreNamed() throws {
    let hints = try plan(
      """
      CREATE TABLE invoice (number BIGINT PRIMARY KEY, total REAL);
      CREATE TABLE page (n INTEGER PRIMARY KEY, x) WITHOUT ROWID;
      CREATE TABLE word (k TEXT PRIMARY KEY); CREATE TABLE note (id INTEGER PRIMARY KEY, x);
      CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME TEXT, Z_MAX INTEGER);
      INSERT INTO Z_PRIMARYKEY VALUES (1, 'Note', 20);
      """ + rows("note", 20)
    ).hints
    #expect(
      hints == [
        StorePlan.Hint(kind: .keyCounter, table: "Z_PRIMARYKEY", column: "Z_MAX", counted: "note"),
        StorePlan.Hint(kind: .integerIdentity, table: "invoice", column: "number"),
        StorePlan.Hint(kind: .integerIdentity, table: "page", column: "n"),
      ])
  }
}
