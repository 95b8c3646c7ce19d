import SyncModel
import Testing

@testable import SyncStore

/// The tables of frameworks that record migrations or name the present version, when a database with
/// rows becomes a store of a document.
@Suite struct JoinedVersionsTests {
  let databases: BroughtDatabases

  init() throws { databases = BroughtDatabases(scratch: try Scratch()) }

  private static let person = "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);"
  private static let tag = "CREATE TABLE tag (name TEXT PRIMARY KEY);"
  private static let index = "CREATE INDEX pn ON person (name);"

  // MARK: - Migrations

  private static let knex = """
    CREATE TABLE knex_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, batch INTEGER, migration_time INTEGER);
    """
  private static let laravel = """
    CREATE TABLE migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, migration TEXT, batch INTEGER);
    """
  private static let fluent = """
    CREATE TABLE _fluent_migrations (id UUID PRIMARY KEY, name TEXT UNIQUE, batch INTEGER);
    """
  private static let sqlx = """
    CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY, checksum BLOB NOT NULL);
    """

  /// The database was installed with both migrations at once, or has other sums of the same files.
  @Test(
    arguments: [
      (
        knex, "INSERT INTO knex_migrations VALUES (1, 'm1', 1, 5), (2, 'm2', 2, 6);",
        "INSERT INTO knex_migrations VALUES (1, 'm2', 1, 7), (2, 'm1', 1, 7);",
        "SELECT name FROM knex_migrations ORDER BY 1"
      ),
      (
        laravel, "INSERT INTO migrations VALUES (1, 'm1', 1), (2, 'm2', 2);",
        "INSERT INTO migrations VALUES (1, 'm1', 1), (2, 'm2', 1);",
        "SELECT migration FROM migrations ORDER BY 1"
      ),
      (
        fluent, "INSERT INTO _fluent_migrations VALUES ('a', 'm1', 1), ('b', 'm2', 2);",
        "INSERT INTO _fluent_migrations VALUES ('c', 'm1', 1), ('d', 'm2', 1);",
        "SELECT name FROM _fluent_migrations ORDER BY 1"
      ),
      (
        sqlx, "INSERT INTO _sqlx_migrations VALUES (1, 'a'), (2, 'b');",
        "INSERT INTO _sqlx_migrations VALUES (1, 'a'), (2, 'c');",
        "SELECT 'm' || version FROM _sqlx_migrations ORDER BY 1"
      ),
    ], BroughtDatabases.Way.allCases)
  func aMigrationIsToldFromOthersByItsName(
    framework: (schema: String, document: String, database: String, query: String),
    way: BroughtDatabases.Way
  ) throws {
    let schema = Self.person + framework.schema
    let devices = try databases.bring(
      schema + framework.database, to: schema + Self.index + framework.document, way)
    #expect(try devices[1].rows(framework.query) == ["m1", "m2"])
    #expect(try databases.names(devices[1], "index") == ["pn"])
    try converge(devices)
    try databases.expectSound(devices)
  }

  private static let flyway = """
    CREATE TABLE flyway_schema_history (installed_rank INT NOT NULL PRIMARY KEY, version VARCHAR(50),
      script VARCHAR(1000) NOT NULL, success BOOLEAN NOT NULL);
    INSERT INTO flyway_schema_history VALUES (1, '1', 'V1.sql', 1);
    """

  /// Each side has run another migration as its second one.
  @Test(arguments: BroughtDatabases.Way.allCases)
  func migrationsWithTheSameRankAreOthers(way: BroughtDatabases.Way) throws {
    let schema = Self.person + Self.flyway
    let devices = try databases.bring(
      schema + Self.tag + Self.index + """
        INSERT INTO flyway_schema_history VALUES (2, '2', 'V2.sql', 1), (3, '3', 'V3.sql', 1);
        """,
      to: schema + "INSERT INTO flyway_schema_history VALUES (2, '1.1', 'V1.1.sql', 1);", way)
    #expect(
      try devices[1].rows("SELECT installed_rank, script FROM flyway_schema_history ORDER BY 1")
        == ["1|V1.sql", "2|V1.1.sql", "3|V2.sql", "4|V3.sql"])
    #expect(try databases.names(devices[1], "index") == ["pn"])
    let first = try devices[0].changed(isOpen: true) { try $0.run(Self.tag) }
    try converge([first, devices[1]])
    try databases.expectSound([first, devices[1]])
  }

  /// A migration that is not recorded would run again.
  @Test(arguments: BroughtDatabases.Way.allCases)
  func aRecordThatTheTableRefusesIsAnError(way: BroughtDatabases.Way) throws {
    let schema =
      Self.person + Self.knex + "CREATE UNIQUE INDEX times ON knex_migrations (migration_time);"
    try databases.expectRefusal(
      schema + "INSERT INTO knex_migrations VALUES (1, 'm1', 1, 5), (2, 'm2', 1, 6);",
      to: schema + "INSERT INTO knex_migrations VALUES (1, 'm1', 1, 6);", way,
      naming: "knex_migrations", "migration_time")
  }

  // MARK: - Tables that name the present version

  private static func alembic(_ version: String) -> String {
    """
    CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);
    INSERT INTO alembic_version VALUES ('\(version)');
    """
  }

  private static func room(_ hash: String) -> String {
    """
    CREATE TABLE room_master_table (id INTEGER PRIMARY KEY, identity_hash TEXT);
    INSERT INTO room_master_table VALUES (42, '\(hash)');
    """
  }

  /// Nothing tells which version is newer, and what it has made would be made again.
  @Test(arguments: BroughtDatabases.Way.allCases)
  func anotherVersionWithOtherObjectsIsRefused(way: BroughtDatabases.Way) throws {
    let (old, new) = (Self.person + Self.alembic("A"), Self.person + Self.alembic("B"))
    for (objects, label) in [
      (Self.tag, "table tag"), (Self.index, "index pn of person"),
      ("CREATE VIEW named AS SELECT name FROM person;", "view named"),
    ] {
      try databases.expectRefusal(
        new + objects, to: old, way,
        naming: "alembic_version", "\(label) exists only in the database")
      try databases.expectRefusal(
        old, to: new + objects, way,
        naming: "alembic_version", "\(label) exists only in the document")
    }
    try databases.expectRefusal(
      Self.person + Self.room("B") + Self.tag, to: Self.person + Self.room("A"), way,
      naming: "room_master_table", "table tag exists only in the database")
  }

  /// The version may have changed nothing but rows.
  @Test(arguments: BroughtDatabases.Way.allCases)
  func anotherVersionWithTheSameObjectsIsThatOfTheDocument(way: BroughtDatabases.Way) throws {
    let schema = Self.person + Self.index
    // Frameworks of one side, and the languages of devices, are no versions.
    let locale = "CREATE TABLE android_metadata (locale TEXT); INSERT INTO android_metadata VALUES"
    let devices = try databases.bring(
      schema + Self.alembic("B") + Self.room("x") + "\(locale) ('de');",
      to: schema + Self.alembic("A"), way)
    #expect(try devices[1].rows("SELECT * FROM alembic_version") == ["A"])
    let others = try databases.bring(
      schema + "\(locale) ('de');" + Self.tag, to: schema + "\(locale) ('en');", way,
      at: databases.scratch.path + "/others.db")
    #expect(try others[1].rows("SELECT * FROM android_metadata") == ["en"])
    #expect(try databases.names(others[1], "table") == ["android_metadata", "person", "tag"])
  }

  @Test(arguments: BroughtDatabases.Way.allCases)
  func theSameVersionGoesOnWithOtherObjects(way: BroughtDatabases.Way) throws {
    let schema = Self.person + Self.alembic("A")
    let devices = try databases.bring(schema + Self.tag, to: schema + Self.index, way)
    #expect(try databases.names(devices[1], "index") == ["pn"])
    #expect(try databases.names(devices[1], "table") == ["alembic_version", "person", "tag"])
  }
}
