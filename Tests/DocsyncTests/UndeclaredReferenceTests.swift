import Foundation
import Testing

/// `docsync init` on a database with columns that look like references.
@Suite struct UndeclaredReferenceTests {
  let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    try scratch.sql(
      "books.db",
      """
      CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT);
      CREATE TABLE comments (id INTEGER PRIMARY KEY, book INTEGER, text TEXT);
      INSERT INTO books VALUES (1, 'one'), (2, 'two');
      INSERT INTO comments VALUES (1, 2, 'good');
      """)
  }

  private let arguments = ["init", "books.db", "--directory", "shared"]

  @Test func withoutATerminalNothingIsDoneUntilEachIsDecided() throws {
    try scratch.expectFailure(
      arguments, status: 5, code: "referencesUndeclared", path: "books.db")
    let said = try Executable.run(arguments, in: scratch.path).errors
    #expect(said.contains("comments.book: 1 of 1 value are keys of books"))
    #expect(said.contains("--reference comments.book=books"))
  }

  @Test(arguments: ["comments", "comments.book", "COMMENTS.Book"])
  func aColumnThatHoldsPlainNumbersIsNamed(name: String) throws {
    try scratch.succeed("init", "books.db", "--directory", "shared", "--no-reference", name)
  }

  @Test func aDeclaredReferenceFollowsItsRowToAnotherKey() throws {
    try scratch.succeed(
      "init", "books.db", "--directory", "shared", "--reference", "comments.book=books")
    try scratch.succeed("join", "b.db", "--directory", "shared")
    for (store, title) in [("books.db", "a"), ("b.db", "b")] {
      try scratch.sql(
        store,
        """
        INSERT INTO books VALUES (3, '\(title)');
        INSERT INTO comments (book, text) VALUES (3, 'of \(title)');
        """)
    }
    for store in ["books.db", "b.db", "books.db"] { try scratch.succeed("sync", store) }
    for store in ["books.db", "b.db"] {
      #expect(
        try scratch.column(
          store,
          "SELECT text || ' ' || title FROM comments JOIN books ON book = books.id ORDER BY 1"
        ) == ["\"good two\"", "\"of a a\"", "\"of b b\""])
    }
  }

  @Test(arguments: [("yes", 1), ("no", 0)])
  func onATerminalEachIsAsked(answer: String, count: Int) throws {
    let result = try Terminal.run(arguments, answer: answer + "\n", in: scratch.path)
    #expect(result.status == 0)
    #expect(result.errors.contains("Does it refer to books?"))
    let references = try scratch.column(
      "books.db", "SELECT count(*) FROM docsync_column WHERE refers IS NOT NULL")
    #expect(references == ["\(count)"])
  }

  /// Those of `init` are decided, also on other devices.
  @Test func verifyingNamesThoseOfNewerTables() throws {
    try scratch.succeed("init", "books.db", "--directory", "shared", "--no-reference", "comments")
    try scratch.succeed("join", "b.db", "--directory", "shared")
    for store in ["books.db", "b.db"] {
      #expect(try scratch.succeed("verify", store).output.contains("nothing is wrong"))
      try scratch.sql(
        store, "CREATE TABLE marks (id INTEGER PRIMARY KEY, book_id INTEGER, page INTEGER)")
    }
    try scratch.sql("b.db", "INSERT INTO marks VALUES (1, 2, 2)")
    for store in ["b.db", "books.db"] {
      try scratch.succeed("sync", store)
      let said = try scratch.succeed("verify", store).output
      #expect(
        said.contains(
          "note: The column “book_id” looks like a reference to “books”, and is not declared as one."
        ), "\(said)")
      #expect(said.contains("table: marks") && said.contains("1 of 1 values are keys of it"))
      #expect(!said.contains("comments") && !said.contains("“page”"))
    }
    // As a foreign key, it is declared.
    for store in ["books.db", "b.db"] {
      try scratch.sql(
        store,
        """
        ALTER TABLE marks RENAME TO old;
        CREATE TABLE marks (
          id INTEGER PRIMARY KEY, book_id INTEGER REFERENCES books (id), page INTEGER);
        INSERT INTO marks SELECT * FROM old;
        DROP TABLE old;
        """)
      try scratch.succeed("sync", store)
      #expect(try scratch.succeed("verify", store).output.contains("nothing is wrong"))
    }
  }

  @Test func aPlanListsThemAndChangesNothing() throws {
    let before = try scratch.contents()
    let plan = try scratch.succeed(
      "init", "books.db", "--directory", "shared", "--dry-run")
    #expect(plan.output.contains("comments.book → books"))
    #expect(try scratch.contents() == before)
  }
}
