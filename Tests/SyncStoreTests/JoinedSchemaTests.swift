import SyncModel
import Testing

@testable import SyncStore

/// The schema and its version, after a database with rows has become a store of a document: a
/// database that joins, or the store of another document.
@Suite struct JoinedSchemaTests {
  let databases: BroughtDatabases

  init() throws { databases = BroughtDatabases(scratch: try Scratch()) }

  private static let person = "CREATE TABLE person (id INTEGER PRIMARY KEY, email TEXT, name TEXT);"

  // MARK: - The database has the newer version

  private static let newer = """
    CREATE UNIQUE INDEX person_email ON person (email); CREATE INDEX person_name ON person (name);
    CREATE TRIGGER person_ai AFTER INSERT ON person BEGIN
      UPDATE person SET name = trim(name) WHERE id = NEW.id; END;
    CREATE TABLE tag (name TEXT PRIMARY KEY); CREATE INDEX tag_name ON tag (length(name));
    CREATE VIEW named AS SELECT name FROM person; PRAGMA user_version = 3;
    """

  @Test(arguments: BroughtDatabases.Way.allCases) func aNewerVersionComesWithAllThatItHasMade(
    way: BroughtDatabases.Way
  ) throws {
    let devices = try databases.bring(
      Self.person + Self.newer + """
        INSERT INTO person VALUES (5, 'a@x', 'Anna'), (6, 'b@x', 'Bob'); INSERT INTO tag VALUES ('t');
        """,
      to: Self.person + "INSERT INTO person VALUES (1, 'a@x', 'Ann'); PRAGMA user_version = 2;", way
    )
    #expect(try databases.version(devices[1]) == 3)
    #expect(
      try databases.names(devices[1], "index") == ["person_email", "person_name", "tag_name"])
    #expect(try databases.names(devices[1], "trigger") == ["person_ai"])
    #expect(try databases.names(devices[1], "view") == ["named"])
    // The unique index tells which row is the same.
    try exchange(devices)
    for device in devices {
      #expect(
        try device.rows("SELECT email, name FROM person ORDER BY 1") == ["a@x|Ann", "b@x|Bob"])
    }
    try devices[1].run("INSERT INTO person VALUES (9, 'c@x', ' Cid ')")
    let first = try devices[0].changed(isOpen: false) {
      try $0.run(Self.newer)
    }
    try converge(
      [first, devices[1]], "SELECT email, person.name FROM person, tag ORDER BY 1",
      ["a@x|Ann", "b@x|Bob", "c@x|Cid"])
    try databases.expectSound([first, devices[1]])
  }

  /// The database could not have its version without them.
  @Test(arguments: BroughtDatabases.Way.allCases) func whatTheNewerVersionHasChangedIsRefused(
    way: BroughtDatabases.Way
  ) throws {
    let old = Self.person + "PRAGMA user_version = 2;"
    let new = "PRAGMA user_version = 3;"
    let index = "CREATE INDEX person_index ON person"
    let trigger = "CREATE TRIGGER person_ai AFTER INSERT ON person BEGIN SELECT"
    for (here, there, word) in [
      ("\(index) (email);", "\(index) (name);", "index person_index of person"),
      ("\(index) (email);", "CREATE UNIQUE INDEX person_index ON person (email);", "person_index"),
      ("\(index) (email);", "", "index person_index of person exists only in the document"),
      ("\(trigger) 1; END;", "\(trigger) 2; END;", "trigger person_ai of person"),
      ("\(trigger) 1; END;", "", "trigger person_ai of person exists only in the document"),
      ("CREATE VIEW v AS SELECT 1;", "CREATE VIEW v AS SELECT 2;", "view v"),
    ] {
      try databases.expectRefusal(Self.person + there + new, to: old + here, way, naming: word)
    }
    for definition in [
      "CREATE TABLE person (id INTEGER PRIMARY KEY, email TEXT CHECK (email > ''), name TEXT);",
      "CREATE TABLE person (id INTEGER PRIMARY KEY, email TEXT DEFAULT 'x', name TEXT);",
      "CREATE TABLE person (id INTEGER PRIMARY KEY, email TEXT, name TEXT) STRICT;",
    ] {
      try databases.expectRefusal(definition + new, to: old, way, naming: "table person")
    }
    try databases.expectRefusal(
      Self.person + "CREATE UNIQUE INDEX person_name ON person (name);" + new,
      to: old + "INSERT INTO person VALUES (1, 'a', 'Ann'), (2, 'b', 'Ann');", way,
      naming: "index person_name of person", "UNIQUE")
    guard way == .joins else { return }
    // The table could not be synchronized.
    try databases.expectRefusal(
      Self.person + "CREATE INDEX person_even ON person (id % 2);" + new, to: old, way,
      naming: "person")
  }

  /// ALTER TABLE adds a column after all others, and RENAME adds quotation marks.
  @Test(arguments: BroughtDatabases.Way.allCases) func theWayInWhichATableIsWrittenDoesNotMatter(
    way: BroughtDatabases.Way
  ) throws {
    let devices = try databases.bring(
      """
      create table "Person" (id integer primary key, -- new
        name TEXT, [email] TEXT); CREATE INDEX person_email ON person(email); PRAGMA user_version = 3
      """,
      to: """
        CREATE TABLE persons (id INTEGER PRIMARY KEY, email TEXT);
        ALTER TABLE persons ADD COLUMN name TEXT; ALTER TABLE persons RENAME TO person;
        CREATE INDEX person_email ON "person" (email); PRAGMA user_version = 2
        """, way)
    #expect(try databases.version(devices[1]) == 3)
    try converge(devices)
    try databases.expectSound(devices)
  }

  /// The document decides, unless versions differ.
  @Test(arguments: BroughtDatabases.Way.allCases) func indexesOfTheSameVersionAreThoseOfTheDocument(
    way: BroughtDatabases.Way
  ) throws {
    let devices = try databases.bring(
      Self.person + "CREATE UNIQUE INDEX person_name ON person (name); PRAGMA user_version = 2;",
      to: Self.person + "CREATE INDEX person_email ON person (email); PRAGMA user_version = 2;", way
    )
    #expect(try databases.names(devices[1], "index") == ["person_email"])
    try converge(devices)
    try databases.expectSound(devices)
  }

  @Test(arguments: BroughtDatabases.Way.allCases) func aGeneratedColumnOfTheDatabaseIsRefused(
    way: BroughtDatabases.Way
  ) throws {
    for kind in ["VIRTUAL", "STORED"] {
      try databases.expectRefusal(
        "CREATE TABLE person (id INTEGER PRIMARY KEY, email TEXT, name TEXT, "
          + "folded TEXT AS (lower(name)) \(kind));", to: Self.person, way,
        naming: "person.folded exists only in the database")
    }
    let document = """
      CREATE TABLE person (id INTEGER PRIMARY KEY, email TEXT, name TEXT,
        folded TEXT AS (lower(name)) STORED); PRAGMA user_version = 3;
      """
    let devices = try databases.bring(
      Self.person + "INSERT INTO person VALUES (1, 'a', 'Ann');", to: document, way)
    try converge(devices, "SELECT folded FROM person", ["ann"])
    try databases.expectSound(devices)
  }

  @Test(arguments: BroughtDatabases.Way.allCases) func recordsOfMigrationsStandForTheirChanges(
    way: BroughtDatabases.Way
  ) throws {
    let migrations = "CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);"
    let document =
      Self.person + migrations + """
        CREATE TABLE room_master_table (id INTEGER PRIMARY KEY, identity_hash TEXT);
        INSERT INTO grdb_migrations VALUES ('v1'); INSERT INTO room_master_table VALUES (42, 'one');
        """
    let index = "CREATE INDEX person_name ON person (name);"
    let newer = "INSERT INTO grdb_migrations VALUES ('v2');"
    try databases.expectRefusal(
      document + index + newer, to: document + "CREATE INDEX person_name ON person (email);", way,
      naming: "person_name")
    let devices = try databases.bring(
      document + index + newer
        + "UPDATE room_master_table SET identity_hash = 'two'; PRAGMA user_version = 2;",
      to: document, way)
    #expect(try devices[1].rows("SELECT * FROM grdb_migrations ORDER BY 1") == ["v1", "v2"])
    #expect(try devices[1].rows("SELECT * FROM room_master_table") == ["42|two"])
    #expect(try databases.names(devices[1], "index") == ["person_name"])
    try converge(devices)
    try databases.expectSound(devices)
  }

  /// Whole stores do not have its rows, so nothing tells which side is newer.
  @Test(arguments: BroughtDatabases.Way.allCases)
  func recordsInAnExcludedTableStandForAnything(way: BroughtDatabases.Way) throws {
    let configuration = AppTriggerTests.excluding("grdb_migrations")
    let document =
      Self.person + """
        CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
        INSERT INTO grdb_migrations VALUES ('v1');
        """
    let database = document + "CREATE INDEX person_name ON person (name);"
    try databases.expectRefusal(
      database, to: document + "CREATE INDEX person_email ON person (email);", way,
      naming: "person_email", configuration: configuration)
    let devices = try databases.bring(database, to: document, way, configuration)
    #expect(try databases.names(devices[1], "index") == ["person_name"])
    #expect(try devices[1].rows("SELECT * FROM grdb_migrations") == ["v1"])
    try converge(devices)
    try databases.expectSound(devices)
  }
}
