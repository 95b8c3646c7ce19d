import SyncModel
import Testing

@testable import SyncStore

/// What stays on the device, and names that stand for something else, when a database with rows
/// becomes a store of a document.
@Suite struct JoinedObjectsTests {
  let databases: BroughtDatabases

  init() throws { databases = BroughtDatabases(scratch: try Scratch()) }

  private static let person = "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);"
  private static let rows = "INSERT INTO person VALUES (1, 'Bob'), (2, 'Cid');"

  private static func trigger(_ name: String, _ body: String) -> String {
    "CREATE TRIGGER \(name) AFTER INSERT ON person BEGIN \(body); END;"
  }

  // MARK: - Names

  /// Its rows would be left out otherwise.
  @Test(arguments: BroughtDatabases.Way.allCases)
  func aTableIsRefusedWhereTheDocumentHasSomethingElse(way: BroughtDatabases.Way) throws {
    let contact =
      "CREATE TABLE contact (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO contact VALUES (1, 'Bob');"
    for (object, kind) in [
      ("CREATE VIEW contact AS SELECT id, name FROM person;", "a view"),
      ("CREATE VIRTUAL TABLE contact USING fts5(name);", "a virtual table"),
      ("CREATE INDEX contact ON person (name);", "an index"),
    ] {
      try databases.expectRefusal(
        Self.person + contact, to: Self.person + object, way,
        naming: "contact is \(kind) in the document and a table in the database")
      try databases.expectRefusal(
        Self.person + object, to: Self.person + contact, way,
        naming: "contact is a table in the document and \(kind) in the database")
    }
    try databases.expectRefusal(
      Self.person + "CREATE VIEW x AS SELECT 1;",
      to: Self.person + "CREATE INDEX x ON person (name);",
      way, naming: "x is an index")
    try databases.expectRefusal(
      Self.person + contact + "CREATE INDEX by_name ON contact (name);",
      to: Self.person + "CREATE INDEX by_name ON person (name);", way,
      naming: "by_name belongs to person in the document and to contact in the database")
    // A trigger may have the name of a table.
    let devices = try databases.bring(
      Self.person + contact, to: Self.person + Self.trigger("contact", "SELECT 1"), way)
    #expect(try devices[1].rows("SELECT name FROM contact") == ["Bob"])
    try converge([devices[0].changed(isOpen: true) { try $0.run(contact) }, devices[1]])
  }

  // MARK: - Triggers that feed what stays on the device

  @Test(arguments: BroughtDatabases.Way.allCases)
  func triggersThatFeedATableWithoutAKeyStay(way: BroughtDatabases.Way) throws {
    let devices = try databases.bring(
      Self.person + Self.rows, to: Self.person, way,
      later: """
        CREATE TABLE trail (name TEXT); CREATE VIEW last AS SELECT max(rowid) AS n FROM trail;
        INSERT INTO trail VALUES ('before');
        \(Self.trigger("feeding", "INSERT INTO trail VALUES (NEW.name)"))
        \(Self.trigger("reading", "UPDATE person SET name = name || (SELECT n FROM last) "
          + "WHERE id = NEW.id AND name = 'Eve'"))
        \(Self.trigger("other", "UPDATE person SET name = trim(name) WHERE id = NEW.id"))
        """)
    // The document decides about those that have nothing to do with the table.
    #expect(try databases.names(devices[1], "trigger") == ["feeding", "reading"])
    let before = try devices[1].rows("SELECT name FROM trail")
    // In place, the rows of the database are inserted again.
    #expect(before == ["before"] + (way == .joins ? [] : ["Bob", "Cid"]))
    try devices[1].run("INSERT INTO person VALUES (7, 'Dan')")
    #expect(try devices[1].rows("SELECT name FROM trail") == before + ["Dan"])
    // It runs for the rows of other devices, too.
    try devices[0].run("INSERT INTO person VALUES (8, 'Ann')")
    try converge(devices, "SELECT name FROM person ORDER BY 1", ["Ann", "Bob", "Cid", "Dan"])
    #expect(try devices[1].rows("SELECT name FROM trail") == before + ["Dan", "Ann"])
  }

  /// In place, all rows are inserted again. What a joining database has seen is in its table.
  @Test(arguments: BroughtDatabases.Way.allCases)
  func theyRunForTheRowsOfAStoreThatTakesThemAlong(way: BroughtDatabases.Way) throws {
    let devices = try databases.bring(
      Self.person + Self.rows, to: Self.person + "INSERT INTO person VALUES (5, 'Ann');", way,
      later: "CREATE TABLE trail (name TEXT);"
        + Self.trigger("feeding", "INSERT INTO trail VALUES (NEW.name)"))
    #expect(
      try devices[1].rows("SELECT name FROM trail ORDER BY 1")
        == (way == .joins ? [] : ["Ann", "Bob", "Cid"]))
    try converge(devices, "SELECT name FROM person ORDER BY 1", ["Ann", "Bob", "Cid"])
  }

  @Test(arguments: BroughtDatabases.Way.allCases)
  func triggersThatFeedAnExcludedTableStayUnlessTheDocumentIsNewer(
    way: BroughtDatabases.Way
  ) throws {
    let configuration = AppTriggerTests.excluding("trail")
    let schema = Self.person + "CREATE TABLE trail (id INTEGER PRIMARY KEY, name TEXT);"
    let database =
      schema + Self.rows + Self.trigger("feeding", "INSERT INTO trail (name) VALUES (NEW.name)")
    for version in [0, 1] {
      let devices = try databases.bring(
        database, to: schema + "PRAGMA user_version = \(version);", way, configuration,
        at: databases.scratch.path + "/\(version).db")
      #expect(
        try databases.names(devices[1], "trigger") == (version == 0 ? ["feeding"] : []))
      #expect(try devices[1].rows("SELECT name FROM trail") == [])
      try devices[1].run("INSERT INTO person VALUES (7, 'Dan')")
      #expect(try devices[1].rows("SELECT name FROM trail") == (version == 0 ? ["Dan"] : []))
      try converge(devices, "SELECT name FROM person ORDER BY 1", ["Bob", "Cid", "Dan"])
      try databases.expectSound(devices)
    }
  }

  @Test(arguments: BroughtDatabases.Way.allCases)
  func aTriggerOfTheSameNameThatFeedsATableWithoutAKeyIsRefused(way: BroughtDatabases.Way) throws {
    try databases.expectRefusal(
      Self.person, to: Self.person + Self.trigger("feeding", "SELECT 1"), way,
      naming: "trigger feeding of person",
      later: "CREATE TABLE trail (name TEXT);"
        + Self.trigger("feeding", "INSERT INTO trail VALUES (NEW.name)"))
  }

  // MARK: - Full-text tables

  @Test(arguments: BroughtDatabases.Way.allCases)
  func aFullTextTableComesWithItsTriggers(way: BroughtDatabases.Way) throws {
    let devices = try databases.bring(
      Self.person + Self.rows + """
        CREATE VIRTUAL TABLE words USING fts5(name, content='person', content_rowid='id');
        INSERT INTO words (words) VALUES ('rebuild');
        \(Self.trigger("words_ai", "INSERT INTO words (rowid, name) VALUES (NEW.id, NEW.name)"))
        CREATE TRIGGER words_ad AFTER DELETE ON person BEGIN
          INSERT INTO words (words, rowid, name) VALUES ('delete', OLD.id, OLD.name); END;
        """, to: Self.person + "INSERT INTO person VALUES (1, 'Ann');", way)
    #expect(try databases.names(devices[1], "trigger") == ["words_ad", "words_ai"])
    try devices[1].run(
      "INSERT INTO person VALUES (7, 'Dan'); DELETE FROM person WHERE name = 'Cid'")
    try devices[0].run("INSERT INTO person VALUES (8, 'Eve')")
    try converge(devices, "SELECT name FROM person ORDER BY 1", ["Ann", "Bob", "Dan", "Eve"])
    for name in ["Ann", "Bob", "Dan", "Eve"] {
      #expect(
        try devices[1].rows(
          "SELECT p.name FROM words JOIN person p ON p.id = words.rowid WHERE words MATCH '\(name)'"
        )
          == [name])
    }
    #expect(try devices[1].rows("SELECT * FROM words WHERE words MATCH 'Cid'") == [])
    try devices[1].run("INSERT INTO words (words) VALUES ('integrity-check')")
    try databases.expectSound(devices)
  }

  /// Nothing could fill it with the rows of the document.
  @Test(arguments: BroughtDatabases.Way.allCases)
  func aFullTextTableThatOnlyTriggersFillIsRefused(way: BroughtDatabases.Way) throws {
    for content in ["", ", content=''"] {
      try databases.expectRefusal(
        Self.person + "CREATE VIRTUAL TABLE words USING fts5(name\(content));"
          + Self.trigger("words_ai", "INSERT INTO words (rowid, name) VALUES (NEW.id, NEW.name)"),
        to: Self.person, way, naming: "trigger words_ai of person, which fills words")
    }
    // All rows of a table that only the database has are its own.
    let devices = try databases.bring(
      Self.person + Self.rows + """
        CREATE VIRTUAL TABLE words USING fts5(name); INSERT INTO words (rowid, name) SELECT * FROM person;
        \(Self.trigger("words_ai", "INSERT INTO words (rowid, name) VALUES (NEW.id, NEW.name)"))
        """, to: "CREATE TABLE t (k TEXT PRIMARY KEY);", .joins)
    #expect(try devices[1].rows("SELECT name FROM words ORDER BY 1") == ["Bob", "Cid"])
  }

  // MARK: - Excluded tables

  private static let excluded = "CREATE TABLE own (id INTEGER PRIMARY KEY, name TEXT);"

  /// The version of the document stands for the form that it has there.
  @Test func anExcludedTableMustHaveTheFormOfANewerDocument() throws {
    let configuration = AppTriggerTests.excluding("own")
    let newer = """
      CREATE TABLE own (id INTEGER PRIMARY KEY, name TEXT, rank INTEGER);
      CREATE INDEX own_name ON own (name); PRAGMA user_version = 2;
      """
    let database = Self.person + Self.excluded + "INSERT INTO own VALUES (1, 'mine');"
    try databases.expectRefusal(
      database, to: Self.person + newer, .joins, naming: "table own", configuration: configuration)
    let devices = try databases.bring(
      database,
      to: Self.person + Self.excluded + "CREATE INDEX own_name ON own (name); "
        + "PRAGMA user_version = 2;", .joins, configuration)
    #expect(try databases.names(devices[1], "index") == ["own_name"])
    #expect(try devices[1].rows("SELECT name FROM own") == ["mine"])
    try converge(devices)
    try databases.expectSound(devices)
  }

  @Test func anExcludedTableHasTheFormOfANewerDatabase() throws {
    let configuration = AppTriggerTests.excluding("own")
    let database =
      Self.person + """
        CREATE TABLE own (id INTEGER PRIMARY KEY, name TEXT, rank INTEGER);
        CREATE INDEX own_name ON own (name); INSERT INTO own VALUES (1, 'mine', 2);
        PRAGMA user_version = 2;
        """
    let document = Self.person + Self.excluded
    let devices = try databases.bring(database, to: document, .joins, configuration)
    #expect(try databases.names(devices[1], "index") == ["own_name"])
    #expect(try devices[1].rows("SELECT name, rank FROM own") == ["mine|2"])
    #expect(try databases.version(devices[1]) == 2)
    try converge(devices)
    try databases.expectSound(devices)
    // In place it would get the form that the document has.
    try databases.expectRefusal(
      database, to: document, .goesOver, naming: "table own", configuration: configuration)
  }

  // MARK: - AUTOINCREMENT

  private static let counted = ["kept", "emptied", "fresh", "own"].map {
    "CREATE TABLE \($0) (id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT);"
  }.joined()

  /// Fills the tables with rows up to a key, and leaves the first one in a table.
  private static func filled(_ tables: [String], through key: Int) -> String {
    tables.map { name in
      "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(key)) "
        + "INSERT INTO \(name) (v) SELECT i FROM n; DELETE FROM \(name) "
        + (["emptied", "fresh"].contains(name) ? ";" : "WHERE id > 1;")
    }.joined()
  }

  @Test(arguments: BroughtDatabases.Way.allCases, [3, 9])
  func keysAreNotGivenOutTwice(way: BroughtDatabases.Way, key: Int) throws {
    let tables = ["kept", "emptied", "fresh", "own"]
    let new = "CREATE TABLE new (id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT);"
    let devices = try databases.bring(
      Self.counted + new + Self.filled(tables + ["new"], through: key),
      to: Self.counted + Self.filled(["kept", "emptied"], through: 6), way,
      AppTriggerTests.excluding("own"))
    for (table, next) in [
      ("kept", max(key, 6)), ("emptied", max(key, 6)), ("fresh", key), ("own", key), ("new", key),
    ] {
      try devices[1].run("INSERT INTO \(table) (v) VALUES ('next')")
      #expect(try devices[1].rows("SELECT max(id) FROM \(table)") == ["\(next + 1)"], "\(table)")
    }
    let first = try devices[0].changed(isOpen: true) { try $0.run(new) }
    try converge([first, devices[1]])
    try databases.expectSound([first, devices[1]])
  }

  /// A store that takes over a whole store of its document.
  @Test func keysAreNotGivenOutTwiceAfterAWholeStore() throws {
    let devices = try databases.scratch.devices(
      2, Self.counted, configuration: AppTriggerTests.excluding("own"))
    try devices[0].run(
      Self.filled(["emptied"], through: 6)
        + "DROP TABLE own; CREATE TABLE own (id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT, w TEXT)")
    try devices[1].run(Self.filled(["own"], through: 9))
    _ = try devices[1].store.replaceContent(withSnapshotAt: databases.snapshot(devices[0]))
    for (table, next) in [("emptied", 7), ("own", 10)] {
      try devices[1].run("INSERT INTO \(table) (v) VALUES ('next')")
      #expect(try devices[1].rows("SELECT max(id) FROM \(table)") == ["\(next)"], "\(table)")
    }
    try converge(devices)
    try databases.expectSound(devices)
  }
}
