import SyncModel
import Testing

@testable import SyncStore

/// Migrations that rename a table and make it again, without a synchronization between the two.
@Suite struct RenamedAndRemadeTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE book (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT, pages INTEGER);
    CREATE TABLE tag (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT);
    CREATE TABLE review (id INTEGER PRIMARY KEY, book_id INTEGER REFERENCES book, text TEXT);
    CREATE TABLE book_tag (
      id INTEGER PRIMARY KEY, book_id INTEGER NOT NULL REFERENCES book, tag_id INTEGER NOT NULL
      REFERENCES tag);
    """

  /// Two devices with other keys for the same rows, apart from those of before.
  private func devices() throws -> [Device] {
    let devices = try scratch.devices(
      2,
      Self.schema + """
        INSERT INTO book (title, pages) VALUES ('old', 0); INSERT INTO tag (name) VALUES ('o');
        INSERT INTO review (book_id, text) VALUES (1, 'of old');
        INSERT INTO book_tag (book_id, tag_id) VALUES (1, 1);
        """)
    for (device, name) in zip(devices, ["a", "b"]) {
      try device.run(
        """
        INSERT INTO book (title, pages) VALUES ('\(name)1', 1), ('\(name)2', 2);
        INSERT INTO tag (name) VALUES ('\(name)');
        INSERT INTO review (book_id, text)
          SELECT id, 'of ' || title FROM book WHERE title <> 'old';
        INSERT INTO book_tag (book_id, tag_id)
          SELECT book.id, tag.id FROM book, tag WHERE title <> 'old' AND name <> 'o';
        """)
    }
    try converge(devices, Self.rows("book", "book_id"), Self.before)
    return devices
  }

  private static func rows(_ table: String, _ column: String) -> String {
    """
    SELECT title || ' ' || text FROM \(table) AS b JOIN review ON book_id = b.id
    UNION ALL SELECT title || ' ' || name FROM \(table) AS b
      JOIN \(table)_tag AS l ON l.\(column) = b.id JOIN tag ON tag.id = tag_id
    UNION ALL SELECT title FROM \(table) ORDER BY 1
    """
  }

  private static let before = [
    "a1", "a1 a", "a1 of a1", "a2", "a2 a", "a2 of a2", "b1", "b1 b", "b1 of b1", "b2", "b2 b",
    "b2 of b2", "old", "old o", "old of old",
  ]

  /// What Django does if a model with a ManyToManyField is renamed, and gets a field.
  private static let migration = """
    PRAGMA foreign_keys = OFF;
    BEGIN;
    ALTER TABLE book RENAME TO work;
    CREATE TABLE new__review (id INTEGER PRIMARY KEY, book_id INTEGER REFERENCES work, text TEXT);
    INSERT INTO new__review SELECT id, book_id, text FROM review;
    DROP TABLE review;
    ALTER TABLE new__review RENAME TO review;
    ALTER TABLE book_tag RENAME TO work_tag;
    CREATE TABLE new__work_tag (
      id INTEGER PRIMARY KEY, work_id INTEGER NOT NULL REFERENCES work, tag_id INTEGER NOT NULL
      REFERENCES tag);
    INSERT INTO new__work_tag SELECT id, book_id, tag_id FROM work_tag;
    DROP TABLE work_tag;
    ALTER TABLE new__work_tag RENAME TO work_tag;
    CREATE TABLE new__work (
      id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT, pages INTEGER, year INTEGER DEFAULT 1900);
    INSERT INTO new__work (id, title, pages) SELECT id, title, pages FROM work;
    DROP TABLE work;
    ALTER TABLE new__work RENAME TO work;
    COMMIT;
    """

  /// - Parameter isKnown: Whether the first device has sent its migration before the second migrates.
  @Test(arguments: [true, false], [true, false])
  func aTableAndItsLinksAreThoseOfBefore(isKnown: Bool, isEdited: Bool) throws {
    let devices = try devices()
    if isEdited {
      // A deletion that the other device has not received.
      try devices[1].run(
        "DELETE FROM book_tag WHERE book_id = (SELECT id FROM book WHERE title = 'a2')")
      _ = try devices[1].outgoing()
    }
    try devices[0].run(Self.migration)
    if isKnown { try devices[1].receive(from: devices[0]) }
    try devices[1].run(Self.migration)
    if isEdited {
      try exchange(devices)
      try devices[0].run("UPDATE work SET title = 'b1!' WHERE title = 'b1'")
      try devices[1].run("UPDATE work SET year = 1950 WHERE title = 'a1'")
    }
    let wanted =
      !isEdited
      ? Self.before
      : Self.before.filter { $0 != "a2 a" }.map {
        $0.hasPrefix("b1") ? "b1!" + $0.dropFirst(2) : $0
      }
    try converge(devices, Self.rows("work", "work_id"), wanted)
    try converge(
      devices, "SELECT title, year FROM work WHERE title LIKE 'a%' ORDER BY 1",
      ["a1|\(isEdited ? 1950 : 1900)", "a2|1900"])
    try expectSound(devices)
  }

  /// Only one device migrates for a while.
  @Test func editsPassBetweenBothForms() throws {
    let devices = try devices()
    try devices[0].run(Self.migration)
    try exchange(devices)
    try devices[0].run(
      """
      UPDATE work SET pages = 7 WHERE title = 'b2';
      INSERT INTO work (title) VALUES ('new');
      INSERT INTO work_tag (work_id, tag_id) SELECT work.id, tag.id FROM work, tag
        WHERE title = 'new' AND name = 'b';
      """)
    try devices[1].run(
      "UPDATE book SET title = 'a2!' WHERE title = 'a2'; DELETE FROM book_tag WHERE tag_id = 1")
    try exchange(devices)
    let pages = ["a1|1", "a2!|2", "b1|1", "b2|7", "new|NULL", "old|0"]
    #expect(try devices[0].rows("SELECT title, pages FROM work ORDER BY 1") == pages)
    #expect(try devices[1].rows("SELECT title, pages FROM book ORDER BY 1") == pages)
    let links =
      "SELECT title, name FROM work JOIN work_tag ON work.id = work_id JOIN tag ON tag.id = tag_id ORDER BY 1"
    let tags = try devices[0].rows(links)
    #expect(tags.count == 5 && tags.last == "new|b")
    #expect(try devices[1].rows(links.replacing("work", with: "book")) == tags)
    try devices[1].run(Self.migration)
    try converge(devices, links, tags)
    try expectSound(devices)
  }

  /// One device synchronizes after each of the two.
  @Test func itIsTheSameWhetherADeviceSynchronizesInBetween() throws {
    let devices = try devices()
    let parts = Self.migration.split(separator: "CREATE TABLE new__work (", maxSplits: 1)
    try devices[0].run(parts[0] + "COMMIT")
    _ = try devices[0].outgoing()
    try devices[0].run("PRAGMA foreign_keys = OFF; BEGIN; CREATE TABLE new__work (" + parts[1])
    try devices[1].run(Self.migration)
    try converge(devices, Self.rows("work", "work_id"), Self.before)
    try devices[0].run("UPDATE work_tag SET work_id = (SELECT id FROM work WHERE title = 'b1')")
    let rows = try devices[0].rows(Self.rows("work", "work_id"))
    try converge(devices, Self.rows("work", "work_id"), rows)
    try expectSound(devices)
  }

  /// Another table takes the place of one.
  @Test(
    arguments: [
      // Nothing shows what became of it.
      """
      CREATE TABLE work AS SELECT * FROM book; DROP TABLE review; DROP TABLE book_tag;
      DROP TABLE book;
      """,
      // It lacks a column.
      """
      CREATE TABLE work (id INTEGER PRIMARY KEY, title TEXT); INSERT INTO work SELECT id, title FROM book;
      DROP TABLE review; DROP TABLE book_tag; DROP TABLE book;
      CREATE TABLE review (id INTEGER PRIMARY KEY, book_id INTEGER REFERENCES work, text TEXT);
      """,
      // Two tables take its place.
      """
      CREATE TABLE work (id INTEGER PRIMARY KEY, title TEXT, pages INTEGER);
      CREATE TABLE text (id INTEGER PRIMARY KEY, title TEXT, pages INTEGER);
      INSERT INTO work SELECT * FROM book; INSERT INTO text SELECT * FROM book;
      DROP TABLE review; DROP TABLE book_tag; DROP TABLE book;
      CREATE TABLE review (id INTEGER PRIMARY KEY, book_id INTEGER REFERENCES work, text TEXT);
      CREATE TABLE book_tag (
        id INTEGER PRIMARY KEY, book_id INTEGER REFERENCES text, tag_id INTEGER REFERENCES tag);
      """,
    ])
  func anotherTableIsAnotherOne(statements: String) throws {
    let devices = try devices()
    try devices[0].run("PRAGMA foreign_keys = OFF; \(statements)")
    try exchange(devices)
    #expect(try devices[0].rows("SELECT count(*) FROM docsync_table WHERE wire = 'book'") == ["0"])
    #expect(try devices[1].rows("SELECT count(*) FROM book") == ["5"])
  }

  /// A table was dropped, and a virtual table has its name whose module docsync does not have.
  @Test func aVirtualTableIsAnotherTable() throws {
    let devices = try devices()
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF; DROP TABLE book_tag; DROP TABLE tag;
      PRAGMA writable_schema = ON;
      INSERT INTO sqlite_schema VALUES ('table', 'tag', 'tag', 0,
        'CREATE VIRTUAL TABLE tag USING vec0(v float[2])');
      PRAGMA writable_schema = RESET;
      """)
    try exchange(devices)
    #expect(try devices[0].store.status().leftOut["tag"] == .virtualTable)
    #expect(try devices[1].rows("SELECT count(*) FROM tag") == ["3"])
  }

  /// Two new tables can be the table of links.
  @Test func linksThatMayBeEitherOfTwoTablesAreNew() throws {
    let devices = try devices()
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF;
      ALTER TABLE book RENAME TO work;
      CREATE TABLE work_tag (
        id INTEGER PRIMARY KEY, work_id INTEGER REFERENCES work, tag_id INTEGER REFERENCES tag);
      CREATE TABLE work_word (
        id INTEGER PRIMARY KEY, work_id INTEGER REFERENCES work, tag_id INTEGER REFERENCES tag);
      INSERT INTO work_tag SELECT * FROM book_tag; INSERT INTO work_word SELECT * FROM book_tag;
      DROP TABLE book_tag;
      """)
    try exchange(devices)
    #expect(
      try devices[0].rows("SELECT wire FROM docsync_table ORDER BY 1")
        == ["book", "review", "tag", "work_tag", "work_word"])
    #expect(try devices[1].rows("SELECT count(*) FROM book_tag") == ["5"])
  }

  /// Another table refers to the renamed one as well, and nothing else is alike.
  @Test func aColumnAloneShowsNoTable() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT);
      CREATE TABLE favourite (id INTEGER PRIMARY KEY, book_id INTEGER REFERENCES book);
      INSERT INTO book VALUES (1, 'a'); INSERT INTO favourite VALUES (1, 1);
      """)
    try converge(devices)
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF;
      DROP TABLE favourite;
      ALTER TABLE book RENAME TO work;
      CREATE TABLE review (id INTEGER PRIMARY KEY, work_id INTEGER REFERENCES work, text TEXT);
      """)
    try exchange(devices)
    #expect(
      try devices[0].rows("SELECT wire FROM docsync_table ORDER BY 1") == ["book", "review"])
    #expect(try devices[1].rows("SELECT count(*) FROM favourite") == ["1"])
  }

  /// Of two columns that refer to the renamed table, nothing tells which one a new column is.
  @Test func aColumnThatMayBeEitherOfTwoIsANewOne() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE person_pair (
        id INTEGER PRIMARY KEY, person_a INTEGER REFERENCES person, person_b INTEGER REFERENCES person);
      """)
    try devices[0].run(
      "INSERT INTO person VALUES (1, 'p'); INSERT INTO person_pair VALUES (1, 1, 1)")
    try exchange(devices)
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF;
      ALTER TABLE person RENAME TO user;
      CREATE TABLE user_pair (
        id INTEGER PRIMARY KEY, user_a INTEGER REFERENCES user, user_b INTEGER REFERENCES user);
      INSERT INTO user_pair SELECT * FROM person_pair;
      DROP TABLE person_pair;
      """)
    try exchange(devices)
    #expect(
      try devices[0].rows("SELECT name, wire FROM docsync_table ORDER BY 1")
        == ["user|person", "user_pair|user_pair"])
  }
}
