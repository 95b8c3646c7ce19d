import CSQLite
import Foundation
import GRDB
import SyncModel
import Testing

@testable import SyncStore

/// Counts what SQLite does for a store.
final class StepCounter {
  /// In hundreds of instructions of SQLite's virtual machine.
  private(set) var count = 0

  func watch(_ store: LocalStore) {
    store.connection.queue.inDatabase { database in
      sqlite3_progress_handler(
        database.sqliteConnection, 100,
        { counter in
          if let counter {
            Unmanaged<StepCounter>.fromOpaque(counter).takeUnretainedValue().count += 1
          }
          return 0
        }, Unmanaged.passUnretained(self).toOpaque())
    }
  }
}

/// A database with rows of its own joins a document.
@Suite struct DatabaseMergeTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let shop = """
    CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT UNIQUE, city TEXT, note TEXT DEFAULT 'none');
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer, total INTEGER);
    CREATE TABLE part (id INTEGER PRIMARY KEY, up INTEGER REFERENCES part, name TEXT);
    CREATE TABLE tag (name TEXT PRIMARY KEY, color TEXT, rank INTEGER);
    CREATE TABLE local (customer INTEGER REFERENCES customer, body TEXT);
    CREATE VIRTUAL TABLE words USING fts5(name, content='customer', content_rowid='id');
    CREATE TRIGGER c_ai AFTER INSERT ON customer BEGIN
      INSERT INTO words (rowid, name) VALUES (NEW.id, NEW.name); END;
    CREATE TRIGGER c_ad AFTER DELETE ON customer BEGIN
      INSERT INTO words (words, rowid, name) VALUES ('delete', OLD.id, OLD.name); END;
    CREATE TRIGGER c_au AFTER UPDATE ON customer BEGIN
      INSERT INTO words (words, rowid, name) VALUES ('delete', OLD.id, OLD.name);
      INSERT INTO words (rowid, name) VALUES (NEW.id, NEW.name); END;
    """

  private var configuration: StoreConfiguration {
    var configuration = AppTriggerTests.excluding("local")
    configuration.excludedColumns = ["customer": ["note"]]
    return configuration
  }

  /// A document with one device, and a device that joins with a database.
  private func join(
    _ schema: String, document: String, local: String, prefer: MergedRows.Preference = .document,
    configuration: StoreConfiguration? = nil
  ) throws -> (devices: [Device], merged: MergedRows) {
    let first = try scratch.devices(
      1, schema + document, configuration: configuration ?? self.configuration)[0]
    let database = scratch.path + "/local.db"
    if !FileManager.default.fileExists(atPath: database) {
      try Program(database).run(schema + local)
    }
    return try join(first, database, prefer: prefer)
  }

  private func join(
    _ first: Device, _ database: String, prefer: MergedRows.Preference = .document
  ) throws -> (devices: [Device], merged: MergedRows) {
    let path = scratch.path + "/joined-\(UInt64.random(in: 0 ... .max)).db"
    _ = try first.outgoing()
    _ = try first.store.snapshot(to: path)
    let (store, merged) = try LocalStore.adopt(
      snapshotAt: path, mergingDatabaseAt: database, prefer: prefer,
      binding: scratch.binding("joined"))
    let second = try Device(store: store, path: path)
    try second.checkIntegrity()
    return ([first, second], merged)
  }

  @Test func rowsWithNullInTheirKeyAreTakenAlong() throws {
    let schema = """
      CREATE TABLE t (k TEXT PRIMARY KEY, v, u UNIQUE, note TEXT);
      CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT UNIQUE, v);
      CREATE TABLE use (id INTEGER PRIMARY KEY, tag INTEGER REFERENCES tag);
      """
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["t": ["note"]]
    configuration.identities = ["tag": .columns(["name"])]
    let (devices, merged) = try join(
      schema,
      document: "INSERT INTO t VALUES ('a', 1, 1, NULL); INSERT INTO tag VALUES (1, 'x', 1)",
      local: """
        INSERT INTO t VALUES (NULL, 5, NULL, 'mine'), (NULL, 5, NULL, 'mine'), (NULL, 6, 1, NULL),
          ('b', 2, 2, NULL);
        INSERT INTO tag VALUES (1, NULL, 2);
        INSERT INTO use VALUES (1, 1);
        """, configuration: configuration)
    // Two rows with one unique value cannot both be here.
    #expect(merged.refusedRows == 1)
    #expect(merged.insertedRows == 5)
    #expect(
      try devices[1].rows("SELECT v, note FROM t WHERE k IS NULL") == ["5|mine", "5|mine"])
    #expect(try devices[1].rows("SELECT name, v FROM tag ORDER BY v") == ["x|1", "NULL|2"])
    #expect(
      try devices[1].rows("SELECT v FROM use JOIN tag ON tag.id = tag") == ["2"])
    let warnings = try devices[1].store.seal().warnings
    #expect(warnings.filter { $0.code == .keyMissing }.map(\.table) == ["t", "tag"])
    #expect(try devices[1].store.status().rowsWithoutKey == ["t": 2, "tag": 1])
    try converge(devices, "SELECT k, v FROM t WHERE k NOT NULL ORDER BY k", ["a|1", "b|2"])
    #expect(try devices[0].store.status().rowsWithoutKey == [:])
    let findings = try LocalStore.verify(at: devices[1].path).report.findings
    #expect(findings.map(\.kind) == [.rowWithoutKey, .rowWithoutKey])
  }

  /// A declared reference may lead nowhere, also in a table that refers to itself.
  @Test func rowsWithNullInTheirKeyMayReferToNoRow() throws {
    var configuration = StoreConfiguration()
    configuration.references = ["page": ["parent": "page"]]
    let (devices, merged) = try join(
      "CREATE TABLE page (slug TEXT PRIMARY KEY, parent TEXT NOT NULL DEFAULT '');",
      document: "INSERT INTO page VALUES ('a', '')",
      local: "INSERT INTO page VALUES (NULL, ''), ('b', ''), (NULL, 'b')",
      configuration: configuration)
    #expect(merged.refusedRows == 0 && merged.insertedRows == 3)
    #expect(
      try devices[1].rows("SELECT slug, parent FROM page ORDER BY slug, parent")
        == ["NULL|", "NULL|b", "a|", "b|"])
  }

  private static let circle = """
    CREATE TABLE page (id INTEGER PRIMARY KEY, slug TEXT UNIQUE, next INTEGER REFERENCES page);
    """

  private var circleConfiguration: StoreConfiguration {
    var configuration = StoreConfiguration()
    configuration.identities = ["page": .columns(["slug"])]
    return configuration
  }

  /// The key of a row that is refused is another row's in the document.
  @Test func nothingRefersToAnotherRowInPlaceOfOneThatIsRefused() throws {
    let (devices, merged) = try join(
      Self.circle, document: "INSERT INTO page VALUES (2, 'other', NULL)",
      local: "INSERT INTO page VALUES (1, NULL, 2), (2, NULL, 1), (3, 'c', 2)",
      configuration: circleConfiguration)
    #expect(merged.refusedRows == 3 && merged.insertedRows == 0)
    #expect(try devices[1].rows("SELECT slug FROM page WHERE next IS NOT NULL") == [])
    let messages = try devices[1].store.conflicts().map(\.message)
    #expect(
      messages == [
        "the row that it refers to is not there, or has no value there",
        "it and the row that it refers to refer to one another",
        "it and the row that it refers to refer to one another",
      ])
  }

  @Test func aRowWithoutAKeyIsMergedOnceIfAnotherLeadsToIt() throws {
    let (devices, merged) = try join(
      Self.circle, document: "INSERT INTO page VALUES (9, 'other', NULL)",
      local: "INSERT INTO page VALUES (1, 'c', 2), (2, NULL, NULL)",
      configuration: circleConfiguration)
    #expect(merged.insertedRows == 2)
    #expect(try devices[1].rows("SELECT id FROM page WHERE slug IS NULL") == ["2"])
  }

  /// Each row is looked for among those that are here.
  @Test func theStepsForRowsWithNullInTheirKeyGrowWithTheirNumber() throws {
    let steps = try [500, 1_000].map { count in
      let name = "\(count)"
      let first = try scratch.devices(1, "CREATE TABLE t (k TEXT PRIMARY KEY, v)")[0]
      let database = scratch.path + "/local-\(name).db"
      try Program(database).run(
        """
        CREATE TABLE t (k TEXT PRIMARY KEY, v);
        WITH RECURSIVE n (v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < \(count))
        INSERT INTO t SELECT NULL, v FROM n;
        """)
      let path = scratch.path + "/joined-\(name).db"
      _ = try first.outgoing()
      _ = try first.store.snapshot(to: path)
      try first.store.close()
      try FileManager.default.removeItem(atPath: first.path)
      let counter = StepCounter()
      let (store, merged) = try LocalStore.adopt(
        snapshotAt: path, mergingDatabaseAt: database, binding: scratch.binding(name),
        catchUp: counter.watch)
      #expect(merged.insertedRows == count)
      try store.close()
      return counter.count
    }
    #expect(steps[1] < 3 * steps[0], "\(steps)")
  }

  @Test func rowsThatAreTheSameAreNoEdits() throws {
    let rows = """
      INSERT INTO customer (id, name, city) VALUES (1, 'Ann', 'Rome'), (2, 'Bob', 'Oslo');
      INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20); INSERT INTO tag VALUES ('red', '#f00', 1);
      INSERT INTO part VALUES (1, 2, 'a'), (2, 1, 'b'), (3, 3, 'c'), (4, NULL, 'd');
      """
    let (devices, merged) = try join(
      Self.shop, document: rows,
      local: rows + "UPDATE customer SET note = 'mine'; INSERT INTO local VALUES (2, 'about Bob');")
    #expect(merged.equalRows == 9)
    #expect(merged.insertedRows + merged.differingRows + merged.refusedRows == 0)
    #expect(try devices[1].sealsNothing())
    #expect(try devices[1].rows("SELECT note FROM customer") == ["mine", "mine"])
    #expect(try devices[1].rows("SELECT * FROM local") == ["2|about Bob"])
    try converge(devices)
  }

  /// A row is known by its unique values, also where only some rows have to
  /// have unique ones, or expressions are unique.
  @Test func rowsAreToldByPartialIndexesAndExpressionsToo() throws {
    let (devices, merged) = try join(
      """
      CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, city TEXT, note TEXT);
      CREATE UNIQUE INDEX named ON customer (name) WHERE city IS NOT NULL;
      CREATE UNIQUE INDEX folded ON customer (lower(name), note COLLATE NOCASE);
      CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer, total);
      CREATE TABLE local (customer INTEGER, body TEXT);
      """,
      document: """
        INSERT INTO customer VALUES (1, 'Ann', 'Rome', NULL), (2, 'Bob', NULL, 'x'), (3, 'Cid', NULL, NULL);
        """,
      local: """
        INSERT INTO customer VALUES (5, 'Ann', 'Bern', NULL), (6, 'BOB', NULL, 'X'), (7, 'Cid', NULL, NULL);
        INSERT INTO orders VALUES (1, 5, 50), (2, 6, 60), (3, 7, 70);
        """, configuration: AppTriggerTests.excluding("local"))
    #expect(merged.refusedRows == 0)
    // Of the third nothing says that it is the same.
    #expect(merged.insertedRows == 4)
    #expect(merged.differingRows == 2)
    try converge(
      devices,
      "SELECT name, city, note, total FROM customer LEFT JOIN orders o ON o.customer = customer.id "
        + "ORDER BY name, total",
      ["Ann|Rome|NULL|50", "Bob|NULL|x|60", "Cid|NULL|NULL|NULL", "Cid|NULL|NULL|70"])
  }

  @Test(arguments: MergedRows.Preference.allCases)
  func whereRowsDifferOneSideStands(prefer: MergedRows.Preference) throws {
    let (devices, merged) = try join(
      Self.shop,
      document: """
        INSERT INTO tag VALUES ('red', 'theirs', 1), ('blue', 'same', NULL);
        INSERT INTO customer (id, name, city) VALUES (1, 'Ann', 'Rome');
        """,
      local: """
        INSERT INTO tag VALUES ('red', 'ours', 1.0), ('blue', 'same', 2), ('green', 'new', 3);
        INSERT INTO customer (id, name, city) VALUES (7, 'Ann', 'Bern'); INSERT INTO orders VALUES (1, 7, 70);
        INSERT INTO local VALUES (7, 'about Ann');
        """, prefer: prefer)
    #expect(merged.differingRows == 3)
    #expect(merged.differingCells == 3)
    #expect(merged.insertedRows == 2)
    let isLocal = prefer == .local
    let tags =
      isLocal
      ? ["blue|same|2", "green|new|3", "red|ours|1"]
      : ["blue|same|NULL", "green|new|3", "red|theirs|1"]
    try converge(devices, "SELECT * FROM tag ORDER BY name", tags)
    #expect(
      try devices[0].rows(
        "SELECT c.name, city, total FROM orders JOIN customer c ON c.id = customer") == [
          "Ann|\(isLocal ? "Bern" : "Rome")|70"
        ])
    #expect(
      try devices[1].rows("SELECT c.name, body FROM local JOIN customer c ON c.id = customer") == [
        "Ann|about Ann"
      ])
    let entries = try devices[1].store.conflicts()
    #expect(entries.count == 3)
    #expect(Set(entries.map(\.rule)) == [.join])
    // What lost can be put back.
    let color = try #require(entries.first { $0.column == "color" })
    #expect(color.local.cells?.first?.value == .text(Array("ours".utf8)))
    #expect(color.remote.cells?.first?.value == .text(Array("theirs".utf8)))
    try devices[1].store.restoreConflict(color.number)
    try converge(devices, "SELECT color FROM tag WHERE name = 'red'", [isLocal ? "theirs" : "ours"])
  }

  @Test func keysThatClashAreReplacedAndReferencesFollow() throws {
    let (devices, merged) = try join(
      Self.shop,
      document: """
        INSERT INTO customer (id, name) VALUES (1, 'Ann'), (2, 'Bob');
        INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20);
        INSERT INTO part VALUES (1, NULL, 'root'), (2, 1, 'leaf'), (9, 9, 'self');
        """,
      local: """
        INSERT INTO customer (id, name) VALUES (1, 'Cid'), (2, 'Ann'), (3, 'Dan');
        INSERT INTO orders VALUES (1, 1, 100), (2, 2, 200), (3, 3, 300), (4, 2, 10);
        INSERT INTO part VALUES (1, NULL, 'other root'), (2, 1, 'leaf'), (5, 6, 'x'), (6, 7, 'y'), (7, 5, 'z'), (9, 9, 'itself');
        INSERT INTO local VALUES (1, 'Cid'), (2, 'Ann'), (3, 'Dan');
        """)
    #expect(merged.refusedRows == 0)
    try converge(
      devices,
      "SELECT c.name, total FROM orders JOIN customer c ON c.id = customer ORDER BY total, 1",
      ["Ann|10", "Ann|10", "Bob|20", "Cid|100", "Ann|200", "Dan|300"])
    #expect(
      try devices[0].rows(
        "SELECT p.name, u.name FROM part p LEFT JOIN part u ON u.id = p.up ORDER BY 1, 2") == [
          "itself|itself", "leaf|other root", "leaf|root", "other root|NULL", "root|NULL",
          "self|self",
          "x|y", "y|z", "z|x",
        ])
    #expect(
      try devices[1].rows("SELECT name, body FROM local JOIN customer ON id = customer ORDER BY 1")
        == ["Ann|Ann", "Cid|Cid", "Dan|Dan"])
    #expect(try devices[1].rows("SELECT id FROM customer WHERE name = 'Dan'") == ["3"])
    for device in devices {
      try device.run("INSERT INTO words (words) VALUES ('integrity-check')")
      #expect(try device.rows("SELECT count(*) FROM words WHERE words MATCH 'Dan'") == ["1"])
    }
  }

  @Test func whatConditionsRefuseIsInTheJournalWithWhatRefersToIt() throws {
    let schema = "CREATE TABLE t (k TEXT PRIMARY KEY, v INTEGER)"
    let child = "CREATE TABLE c (k TEXT PRIMARY KEY, t TEXT NOT NULL REFERENCES t);"
    try Program(scratch.path + "/local.db").run(
      "\(schema); \(child) INSERT INTO t VALUES ('a', 1), ('b', -1); INSERT INTO c VALUES ('x', 'a'), ('y', 'b')"
    )
    let (devices, merged) = try join(
      "CREATE TABLE t (k TEXT PRIMARY KEY, v INTEGER CHECK (v > 0)); \(child)", document: "",
      local: "",
      configuration: StoreConfiguration())
    #expect(merged.insertedRows == 2 && merged.refusedRows == 2)
    try converge(devices, "SELECT t.k, c.k FROM t JOIN c ON c.t = t.k", ["a|x"])
    let entries = try devices[1].store.conflicts()
    #expect(entries.map(\.kind) == [.reference, .condition])
    #expect(entries.last?.local.cells?.map(\.value) == [.text(Array("b".utf8)), .integer(-1)])
  }

  @Test func columnsThatDifferAreNamed() throws {
    try Program(scratch.path + "/local.db").run(
      "CREATE TABLE t (k TEXT PRIMARY KEY, mine); CREATE TABLE u (k TEXT PRIMARY KEY)")
    #expect {
      _ = try join(
        "CREATE TABLE t (k TEXT PRIMARY KEY, theirs); CREATE TABLE u (k TEXT PRIMARY KEY);",
        document: "",
        local: "", configuration: StoreConfiguration())
    } throws: { error in
      guard let error = error as? StoreError else { return false }
      return error.code == .schemasDiffer && error.message.contains("t.mine")
        && error.message.contains("t.theirs") && !error.message.contains("u.")
    }
  }

  @Test func aTableThatTheDocumentDoesNotHaveBecomesPartOfIt() throws {
    try Program(scratch.path + "/local.db").run(
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 'mine');
      CREATE TABLE extra (id INTEGER PRIMARY KEY, t INTEGER REFERENCES t, v); INSERT INTO extra VALUES (1, 1, 'of mine');
      CREATE INDEX extra_v ON extra (v);
      CREATE VIEW both AS SELECT t.v, extra.v AS w FROM extra JOIN t ON t.id = extra.t;
      """)
    let (devices, merged) = try join(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, v);", document: "INSERT INTO t VALUES (1, 'theirs')",
      local: "",
      configuration: StoreConfiguration())
    #expect(merged.newTables == ["extra"])
    #expect(try devices[1].rows("SELECT * FROM both") == ["mine|of mine"])
    try exchange(devices)
    #expect(try devices[0].store.status().unknownNames == ["extra"])
    let first = try devices[0].changed(isOpen: false) {
      try $0.run("CREATE TABLE extra (id INTEGER PRIMARY KEY, t INTEGER REFERENCES t, v)")
    }
    try converge(
      [first, devices[1]], "SELECT t.v, extra.v FROM extra JOIN t ON t.id = extra.t",
      ["mine|of mine"])
  }

  @Test func twiceIsTheSameAsOnce() throws {
    var (devices, merged) = try join(
      Self.shop, document: "INSERT INTO tag VALUES ('red', 'theirs', 1);",
      local: """
        INSERT INTO tag VALUES ('red', 'ours', 1), ('green', 'g', 2);
        INSERT INTO customer (id, name, city) VALUES (5, 'Ann', 'Rome'); INSERT INTO orders VALUES (8, 5, 1);
        """)
    #expect(merged.insertedRows == 3)
    try converge(devices)
    devices.append(try join(devices[0], scratch.path + "/local.db").devices[1])
    #expect(try devices[2].sealsNothing())
    #expect(try devices[2].store.conflicts().count == 1)
    try converge(devices)
  }

  @Test func aDeclaredKeyIsOneRowAndKeepsItsPlaceIfThatIsFree() throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["city": .columns(["name"])]
    let (devices, _) = try join(
      """
      CREATE TABLE city (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, size INTEGER);
      CREATE TABLE person (name TEXT PRIMARY KEY, city INTEGER REFERENCES city);
      """, document: "INSERT INTO city VALUES (1, 'Rome', 1), (2, 'Oslo', 2);",
      local:
        "INSERT INTO city VALUES (1, 'Oslo', 2), (2, 'Bern', 3), (7, 'Kiel', 4); INSERT INTO person VALUES ('a', 1), ('b', 2), ('c', 7)",
      configuration: configuration)
    try converge(
      devices, "SELECT p.name, c.name FROM person p JOIN city c ON c.id = city ORDER BY 1",
      ["a|Oslo", "b|Bern", "c|Kiel"])
    #expect(try devices[1].rows("SELECT id FROM city WHERE name = 'Kiel'") == ["7"])
  }

  /// Numbers that refer to no row there are keys of rows of the document.
  @Test func plainNumbersStayPlain() throws {
    let schema = """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
      CREATE TABLE note (id TEXT PRIMARY KEY, person INTEGER);
      CREATE TABLE task (id TEXT PRIMARY KEY, person INTEGER REFERENCES person);
      CREATE TABLE meta (person INTEGER, name TEXT, value TEXT, PRIMARY KEY (person, name));
      """
    var configuration = StoreConfiguration()
    configuration.identities = ["person": .columns(["name"])]
    configuration.references = ["note": ["person": "person"], "meta": ["person": "person"]]
    let (devices, merged) = try join(
      schema,
      document: """
        INSERT INTO person VALUES (5, 'five'), (7, 'seven'); INSERT INTO meta VALUES (5, 'y', 'b');
        """,
      local: """
        PRAGMA foreign_keys = OFF; INSERT INTO person VALUES (6, 'six'), (8, 'seven');
        INSERT INTO note VALUES ('five', 5), ('six', 6), ('seven', 7), ('eight', 8);
        INSERT INTO meta VALUES (5, 'x', 'a'), (5, 'y', 'refused'), (6, 'x', 'c');
        INSERT INTO task VALUES ('refused', 5), ('kept', 6);
        """, configuration: configuration)
    #expect(merged.refusedRows == 2)
    let conflicts = try devices[1].store.conflicts()
    #expect(Set(conflicts.map(\.kind)) == [.uniqueValue, .reference])
    try converge(devices)
    // The numbers of persons change, and references follow them.
    for device in devices {
      try device.run("PRAGMA foreign_keys = OFF; UPDATE person SET id = id + 100")
    }
    try converge(devices)
    for device in devices {
      #expect(
        try device.rows(
          "SELECT note.id, note.person, name FROM note LEFT JOIN person ON person.id = person "
            + "ORDER BY 1"
        ).map { $0.replacing(/10[0-9]/, with: "n") } == [
          "eight|n|seven", "five|5|NULL", "seven|7|NULL", "six|n|six",
        ])
      #expect(
        try device.rows(
          "SELECT value, person.name FROM meta LEFT JOIN person ON person.id = person ORDER BY 1")
          == ["a|NULL", "b|five", "c|six"])
      #expect(try device.rows("SELECT person FROM meta WHERE value = 'a'") == ["5"])
      #expect(try device.rows("SELECT id FROM task") == ["kept"])
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }
}
