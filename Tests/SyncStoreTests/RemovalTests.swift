import SyncModel
import Testing

@testable import SyncStore

/// Taking a database out of sync.
@Suite struct RemovalTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE a (id INTEGER PRIMARY KEY, n TEXT UNIQUE);
    CREATE TABLE b (k TEXT PRIMARY KEY, a INTEGER REFERENCES a ON DELETE CASCADE) WITHOUT ROWID;
    CREATE VIRTUAL TABLE words USING fts5 (n);
    CREATE TRIGGER a_words AFTER INSERT ON a BEGIN INSERT INTO words VALUES (new.n); END;
    CREATE TABLE docsync_mine (n INTEGER);
    INSERT INTO a (n) VALUES ('one'); INSERT INTO b VALUES ('x', 1);
    """
  private static let everything =
    "SELECT type, name, ifnull(sql, '') FROM sqlite_schema ORDER BY type, name"

  @Test func theDatabaseIsAsItWasAndCanBePutUnderSyncAgain() throws {
    let plain = try Program(scratch.path + "/plain.db")
    try plain.run(Self.schema)
    let device = try scratch.devices(1, Self.schema)[0]
    try device.run("INSERT INTO a (n) VALUES ('sealed')")
    _ = try device.store.seal()
    try device.run("INSERT INTO a (n) VALUES ('logged')")
    #expect(try device.store.removeBookkeeping())
    try device.store.close()
    #expect(try device.rows(Self.everything) == plain.rows(Self.everything))
    #expect(try device.rows("SELECT n FROM words") == ["one", "sealed", "logged"])
    try device.checkIntegrity()
    try device.run("INSERT INTO a (n) VALUES ('free')")
    try LocalStore.create(
      at: device.path, binding: scratch.binding("again"), configuration: StoreConfiguration()
    ).close()
  }

  @Test func rowsThatOnlyBookkeepingHoldsAreNotLost() throws {
    let device = try scratch.devices(1, Self.schema)[0]
    // Left without its parent, as by a program with foreign keys off.
    try device.run("PRAGMA foreign_keys = OFF; DELETE FROM a")
    _ = try device.store.seal()
    #expect(try device.store.status().parked.count == 1)
    #expect(try !device.store.removeBookkeeping())
    #expect(try device.store.status().parked.count == 1)
  }
}
