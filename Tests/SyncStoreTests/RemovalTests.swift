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

  /// Schemas in which something of ours could stay, or something of the
  /// application's could go.
  enum Hard: String, CaseIterable, CustomTestStringConvertible {
    case sequences = """
      PRAGMA user_version = 17; PRAGMA application_id = 99;
      CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT, n TEXT);
      CREATE TABLE b (id INTEGER PRIMARY KEY AUTOINCREMENT, a REFERENCES a ON DELETE CASCADE);
      INSERT INTO a (n) VALUES ('x'), ('y'), ('z'); DELETE FROM a WHERE id = 3;
      INSERT INTO b (a) VALUES (1);
      """
    case autoVacuum = """
      PRAGMA auto_vacuum = FULL; PRAGMA page_size = 1024; PRAGMA user_version = -3;
      CREATE TABLE a (k BLOB PRIMARY KEY, n REAL) WITHOUT ROWID;
      CREATE INDEX a_n ON a (n DESC) WHERE n > 0; INSERT INTO a VALUES (x'00', 1.5);
      """
    case wideCharacters = """
      PRAGMA encoding = 'UTF-16le'; PRAGMA auto_vacuum = INCREMENTAL;
      CREATE TABLE "tä\u{1F600} ""x"" y" ("ke.y" TEXT COLLATE NOCASE PRIMARY KEY, "a b" TEXT);
      INSERT INTO "tä\u{1F600} ""x"" y" VALUES ('é', 'ü');
      """
    case namesLikeOurs = """
      CREATE TABLE a (id INTEGER PRIMARY KEY, n TEXT);
      CREATE TABLE docsync_mine (n INTEGER); CREATE INDEX docsync_mine_n ON docsync_mine (n);
      CREATE TABLE docsync_log_book (n INTEGER); CREATE TABLE docsync_id_card (n INTEGER);
      CREATE TRIGGER docsync_mine_ai AFTER INSERT ON a BEGIN
        INSERT INTO docsync_mine VALUES (new.id); END;
      CREATE VIEW docsync_view AS SELECT * FROM a;
      INSERT INTO a (n) VALUES ('x');
      """
    case everyKindOfTable = """
      CREATE TABLE a (id INTEGER PRIMARY KEY, n TEXT CHECK (length(n) < 90) UNIQUE,
        len INT AS (length(n)) STORED) STRICT;
      CREATE TABLE b (x TEXT, y INT, a INTEGER REFERENCES a DEFERRABLE INITIALLY DEFERRED,
        PRIMARY KEY (x, y), FOREIGN KEY (x, y) REFERENCES b) WITHOUT ROWID;
      CREATE VIRTUAL TABLE words USING fts5 (n, content = 'a', content_rowid = 'id');
      CREATE TRIGGER a_words AFTER INSERT ON a BEGIN
        INSERT INTO words (rowid, n) VALUES (new.id, new.n); END;
      CREATE UNIQUE INDEX a_low ON a (lower(n)); CREATE VIEW v AS SELECT n FROM a;
      INSERT INTO a (n) VALUES ('x'); INSERT INTO b VALUES ('x', 1, 1);
      ANALYZE;
      """

    var testDescription: String {
      switch self {
      case .sequences: "sequences"
      case .autoVacuum: "autoVacuum"
      case .wideCharacters: "wideCharacters"
      case .namesLikeOurs: "namesLikeOurs"
      case .everyKindOfTable: "everyKindOfTable"
      }
    }
  }

  private static let everything =
    "SELECT type, name, ifnull(sql, '') FROM sqlite_schema ORDER BY type, name"

  /// Everything of a database that can be told apart, but for the places of
  /// its pages.
  private func description(_ program: Program) throws -> [String] {
    var lines: [String] = []
    for pragma in [
      "user_version", "application_id", "auto_vacuum", "page_size", "encoding", "journal_mode",
    ] {
      lines += try program.rows("PRAGMA \(pragma)").map { "\(pragma) \($0)" }
    }
    lines += try program.rows(
      "SELECT type, name, tbl_name, ifnull(sql, '') FROM sqlite_schema ORDER BY rowid")
    let tables = try program.rows(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_stat%' "
        + "ORDER BY name")
    for table in tables {
      lines += try program.rows("SELECT * FROM \(quoted(SQLName(table)))").map { "\(table): \($0)" }
    }
    return lines
  }

  @Test(arguments: Hard.allCases)
  func nothingOfOursStaysAndNothingElseGoes(schema: Hard) throws {
    let plain = try Program(scratch.path + "/plain.db")
    try plain.run(schema.rawValue)
    let device = try scratch.devices(1, schema.rawValue)[0]
    #expect(try device.rows("SELECT name FROM sqlite_schema WHERE name = 'docsync_meta'") != [])
    _ = try device.store.seal()
    try device.store.removeBookkeeping { _ in }
    try device.store.close()
    #expect(try description(try Program(device.path)) == description(plain))
    try device.checkIntegrity()
  }

  @Test func whatTheApplicationChangedMeanwhileStays() throws {
    let migration = """
      ALTER TABLE a RENAME TO c; ALTER TABLE c RENAME COLUMN n TO m; ALTER TABLE c ADD COLUMN o;
      CREATE TABLE d (id INTEGER PRIMARY KEY AUTOINCREMENT, x TEXT); DROP TABLE b;
      INSERT INTO d (x) VALUES ('new'); ANALYZE; PRAGMA user_version = 4;
      """
    let plain = try Program(scratch.path + "/plain.db")
    try plain.run(Self.schema + migration)
    let device = try scratch.devices(1, Self.schema)[0]
    try device.run(migration)
    _ = try device.store.seal()
    try device.run("UPDATE c SET o = 1")
    try plain.run("UPDATE c SET o = 1")
    try device.store.removeBookkeeping { _ in }
    try device.store.close()
    #expect(try description(try Program(device.path)) == description(plain))
    #expect(try device.rows("SELECT DISTINCT tbl FROM sqlite_stat1 WHERE tbl LIKE 'docs%'") == [])
  }

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
    let loss = try device.store.removalLoss()
    #expect(loss.parked.map(\.table) == ["b"] && loss.needsConfirmation)
  }

  @Test func whatWouldBeLostIsCountedAndRefusalChangesNothing() throws {
    struct Refusal: Error {}
    let devices = try scratch.devices(2, Self.schema)
    try devices[1].run(
      """
      ALTER TABLE a ADD COLUMN o TEXT; CREATE TABLE more (id INTEGER PRIMARY KEY, x TEXT);
      INSERT INTO more (x) VALUES ('1'), ('2'), ('3'); UPDATE a SET o = 'said';
      """)
    try devices[0].receive(from: devices[1])
    try devices[0].run("INSERT INTO a (n) VALUES ('sealed')")
    _ = try devices[0].store.seal()
    try devices[0].run("INSERT INTO a (n) VALUES ('logged')")
    var seen: RemovalLoss?
    #expect(throws: Refusal.self) {
      try devices[0].store.removeBookkeeping { loss in
        seen = loss
        throw Refusal()
      }
    }
    #expect(seen?.unknownRows == ["a.o": 1, "more": 3])
    #expect(seen?.unpublishedChangeSets == 1 && (seen?.unsealedEdits ?? 0) > 0)
    #expect(seen?.needsConfirmation == true)
    #expect(try devices[0].outgoing().count == 2)
  }

  @Test func aStoreThatBeginsAgainKeepsItsRowsAndForgetsItsChangeSets() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run("UPDATE a SET n = 'other'")
    try devices[1].run("INSERT INTO a (n) VALUES ('two')")
    try devices[0].receive(from: devices[1])
    try devices[0].run("INSERT INTO a (n) VALUES ('sealed')")
    let (store, client) = (devices[0].store, ClientIdentifier.random())
    _ = try store.seal()
    try devices[0].run("UPDATE a SET n = 'logged' WHERE n = 'sealed'")
    try store.setRecord("gone", to: [1])
    try store.setRecord("kept", to: [1])
    let digest = try store.digest().visible
    var binding = store.binding
    binding.client = client
    binding.generation = .random()
    binding.generationOrdinal = 2
    for content: UInt8 in 1...4 { try store.enqueueCommand([content]) }
    for command in try store.queuedCommands().prefix(2) {
      let entry = VersionVector.Entry(
        number: UInt64(command.sequence), hash: ContentHash(of: command.content))
      try store.sealCommand(command.sequence, as: entry, bytes: command.content, state: [])
    }
    try store.markCommandPublished(1, state: [])
    try store.beginAgain(as: binding, forgetting: ["gone"], keepsCommand: { $0 != [4] })
    // The new client sends what was not sent, sealed or not; what is only about the former
    // generation is forgotten.
    #expect(try store.queuedCommands().map(\.content) == [[2], [3]])
    #expect(try store.queuedCommands().allSatisfy { $0.sealed == nil })
    #expect(store.binding == binding)
    #expect(try store.digest().visible == digest)
    #expect(try store.sealedChangeSets().isEmpty)
    #expect(try store.appliedVector().entries.isEmpty)
    #expect(try store.record("gone") == nil)
    #expect(try store.record("kept") == [1])
    // Others start from it, and go on as if nothing had been before.
    let copy = scratch.path + "/third.db"
    _ = try store.snapshot(to: copy)
    binding.client = .random()
    let third = try Device(
      store: try LocalStore.adopt(snapshotAt: copy, binding: binding), path: copy)
    try devices[0].run("UPDATE a SET n = 'later' WHERE n = 'logged'")
    try third.run("DELETE FROM a WHERE n = 'two'")
    try devices[0].receive(from: third)
    try third.receive(from: devices[0])
    #expect(try store.digest() == third.store.digest())
    #expect(try devices[0].outgoing().count == 1)
    try devices[0].checkIntegrity()
    let again = try devices[0].changed(isOpen: false) { _ in }
    #expect(again.store.binding.client == client)
  }
}
