@testable import DocumentSync
import DocumentSyncTesting
import GRDB
import SyncModel
import SyncStore
import Synchronization
import Testing

/// What an application hears of the rows that a synchronization changes.
@Suite struct RowChangesTests {
  /// Two devices with tables of all kinds of identity, and what the second one hears.
  struct Pair {
    static let schema = """
      CREATE TABLE tag(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE note(
        id INTEGER PRIMARY KEY, title TEXT, tag INTEGER REFERENCES tag ON DELETE CASCADE);
      CREATE TABLE page(key TEXT PRIMARY KEY, body TEXT);
      CREATE TABLE plain(key TEXT, number INTEGER, body TEXT, PRIMARY KEY(key, number)) WITHOUT ROWID;
      CREATE TABLE link(
        note INTEGER REFERENCES note ON DELETE CASCADE, page TEXT REFERENCES page ON DELETE CASCADE,
        PRIMARY KEY(note, page)) WITHOUT ROWID;
      CREATE TABLE name(name TEXT PRIMARY KEY COLLATE NOCASE, body TEXT);
      CREATE TABLE loose(key, number INTEGER, body TEXT, PRIMARY KEY(key, number)) WITHOUT ROWID;
      CREATE TABLE amount(amount REAL PRIMARY KEY, body TEXT);
      CREATE TABLE city(
        id INTEGER PRIMARY KEY, land TEXT, name TEXT, body TEXT, UNIQUE(land, name));
      CREATE TABLE visit(
        id INTEGER PRIMARY KEY,
        city INTEGER REFERENCES city ON DELETE CASCADE ON UPDATE CASCADE, body TEXT);
      CREATE TABLE stay(
        city INTEGER REFERENCES city ON DELETE CASCADE ON UPDATE CASCADE,
        night INTEGER, body TEXT,
        PRIMARY KEY(city, night)) WITHOUT ROWID;
      """
    static let keys = [
      "tag": ["id"], "note": ["id"], "page": ["key"], "plain": ["key", "number"],
      "link": ["note", "page"], "name": ["name"], "loose": ["key", "number"], "amount": ["amount"],
      "city": ["land", "name"], "visit": ["id"], "stay": ["city", "night"],
    ]
    /// The tables whose keys can be spelled in several ways.
    static let loose: Set = ["name", "loose"]
    /// The tables with references that sealing may redirect.
    static let redirected: Set = ["visit", "stay"]

    let scratch: Scratch
    let memory = MemoryDirectory(seed: 1)
    let managers: [DocumentSyncManager]
    let databases: [DatabaseQueue]
    /// Connections with foreign keys off.
    let freeDatabases: [DatabaseQueue]
    let heard: AsyncStream<SyncEvent>

    init(delegate: (any SyncDelegate)? = nil, extra: String = "") async throws {
      scratch = try Scratch()
      let environment = World(seed: 1).environment
      var free = Configuration()
      free.foreignKeysEnabled = false
      let first = try DatabaseQueue(path: scratch.store("0"))
      try await first.write { try $0.execute(sql: Self.schema + extra) }
      var configuration = StoreConfiguration()
      configuration.identities["city"] = .columns(["land", "name"])
      let events = SyncEvents()
      managers = [
        try await .create(
          storeAt: scratch.store("0"), directory: memory, document: "main",
          options: .init(client: "0", configuration: configuration, environment: environment)),
        try await .join(
          storeAt: scratch.store("1"), directory: memory.view(seed: 2),
          options: .init(
            client: "1", delegate: delegate, events: events, environment: environment)),
      ]
      databases = [first, try DatabaseQueue(path: scratch.store("1"))]
      freeDatabases = [
        try DatabaseQueue(path: scratch.store("0"), configuration: free),
        try DatabaseQueue(path: scratch.store("1"), configuration: free),
      ]
      heard = events.stream()
    }

    /// Executes statements as the application of a device.
    func edit(
      _ device: Int, _ sql: String, _ arguments: StatementArguments = [],
      hasForeignKeys: Bool = true
    ) throws {
      try (hasForeignKeys ? databases : freeDatabases)[device].write {
        try $0.execute(sql: sql, arguments: arguments)
      }
    }

    /// Returns the rows of a device's tables, by table and key.
    func rows(_ device: Int) throws -> [String: [[Value]: String]] {
      try databases[device].read { database in
        try Self.keys.mapValues { $0 }.reduce(into: [:]) { tables, entry in
          let rows = try Row.fetchAll(database, sql: "SELECT * FROM \(entry.key)")
          tables[entry.key] = Dictionary(
            uniqueKeysWithValues: rows.map { row in
              (
                entry.value.map { name in
                  switch (row[name] as DatabaseValue).storage {
                  case .int64(let number): .integer(number)
                  case .double(let number): .real(number)
                  case .string(let text): .text(text)
                  default: .null
                  }
                }, row.description
              )
            })
        }
      }
    }

    /// Synchronizes the second device, and returns the changes that it has told.
    func changes(_ body: () async throws -> Void) async throws -> [RowChanges] {
      try await body()
      managers[1].events.send(.vacuumed(VacuumReport()))
      var changes: [RowChanges] = []
      for await event in heard {
        if case .rowsChanged(let told) = event { changes.append(told) }
        if case .vacuumed = event { break }
      }
      return changes
    }
  }

  @Test func changesNameTheirAuthorsAndWhetherTriggersRan() async throws {
    let pair = try await Pair()
    try pair.edit(0, "INSERT INTO page VALUES('x', '1')")
    try await pair.managers[0].synchronize()
    let told = try await pair.changes { try await pair.managers[1].synchronize() }
    #expect(told.map(\.authors) == [[pair.managers[0].binding.client]])
    #expect(told.map(\.mayConcernOtherTables) == [false])
    #expect(told.flatMap(\.tables).map(\.inserted) == [[[.text("x")]]])
    // Own edits were made by the application.
    try pair.edit(1, "INSERT INTO page VALUES('y', '1')")
    #expect(try await pair.changes { try await pair.managers[1].synchronize() }.isEmpty)
  }

  /// Several change sets are applied in one transaction.
  @Test func aTransactionTellsWhatHasBecomeOfEachRow() async throws {
    let pair = try await Pair()
    let edits = [
      "INSERT INTO plain VALUES('gone', 1, ''), ('new', 1, ''), ('old', 1, '')",
      "DELETE FROM plain WHERE key = 'gone'; UPDATE plain SET body = '1' WHERE key = 'new'",
    ]
    try pair.edit(0, "INSERT INTO plain VALUES('again', 1, '')")
    try await pair.managers[0].synchronize()
    _ = try await pair.changes { try await pair.managers[1].synchronize() }
    for edit in edits {
      try pair.edit(0, edit)
      try await pair.managers[0].synchronize()
    }
    try pair.edit(0, "DELETE FROM plain WHERE key = 'again'")
    try await pair.managers[0].synchronize()
    try pair.edit(0, "INSERT INTO plain VALUES('again', 1, '2')")
    try await pair.managers[0].synchronize()
    let told = try await pair.changes { try await pair.managers[1].synchronize() }
    let tables = told.flatMap(\.tables)
    #expect(tables.count == 1)
    #expect(
      Set(tables.flatMap(\.inserted)) == [
        [.text("new"), .integer(1)], [.text("old"), .integer(1)],
      ])
    #expect(tables.flatMap(\.updated) == [[.text("again"), .integer(1)]])
    #expect(tables.flatMap(\.deleted) == [])
  }

  @Test func triggersMayConcernOtherTables() async throws {
    let pair = try await Pair(
      extra: """
        CREATE VIRTUAL TABLE found USING fts5(body);
        CREATE TRIGGER fill AFTER INSERT ON page BEGIN
          INSERT INTO found VALUES(NEW.body);
        END;
        """)
    try pair.edit(0, "INSERT INTO page VALUES('x', '1')")
    try await pair.managers[0].synchronize()
    let told = try await pair.changes { try await pair.managers[1].synchronize() }
    #expect(told.map(\.mayConcernOtherTables) == [true])
  }

  @Test func beyondTheBoundATableChangesAsAWhole() async throws {
    let pair = try await Pair()
    let add = """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
      INSERT INTO page SELECT ? || i, '' FROM n
      """
    for (count, isComplete) in [(RowChanges.bound, true), (RowChanges.bound + 1, false)] {
      try pair.edit(0, add, [count, "\(count)-"])
      try await pair.managers[0].synchronize()
      let told = try await pair.changes { try await pair.managers[1].synchronize() }
      #expect(told.flatMap(\.tables).map(\.isComplete) == [isComplete])
      #expect(told.flatMap(\.tables).map(\.inserted.count) == [isComplete ? count : 0])
    }
  }

  /// One key has several spellings.
  @Test func aTableWithLooseKeysChangesAsAWhole() async throws {
    let pair = try await Pair()
    try pair.edit(0, "INSERT INTO name VALUES('Abc', ''); INSERT INTO loose VALUES('1', 1, '')")
    try await pair.managers[0].synchronize()
    let told = try await pair.changes { try await pair.managers[1].synchronize() }
    #expect(told.flatMap(\.tables).map(\.isComplete) == [false, false])
  }

  /// An identity has the whole number as an integer.
  @Test func aKeyOfAColumnOfRealsIsToldAsAReal() async throws {
    let pair = try await Pair()
    try pair.edit(0, "INSERT INTO amount VALUES(1, ''), (2.5, '')")
    try await pair.managers[0].synchronize()
    let told = try await pair.changes { try await pair.managers[1].synchronize() }
    #expect(Set(told.flatMap(\.tables).flatMap(\.inserted)) == [[.real(1)], [.real(2.5)]])
  }

  /// With foreign keys off, a reference is left behind that sealing lets follow.
  @Test func aReferenceThatFollowsIsTold() async throws {
    let pair = try await Pair()
    try pair.edit(
      1,
      "INSERT INTO city VALUES(1, 'x', 'a', ''); INSERT INTO visit VALUES(1, 1, '');"
        + "INSERT INTO stay VALUES(1, 1, '')")
    _ = try await pair.changes { try await pair.managers[1].synchronize() }
    try pair.edit(1, "UPDATE city SET id = 7", hasForeignKeys: false)
    let told = try await pair.changes { try await pair.managers[1].synchronize() }
    #expect(told.flatMap(\.tables).map(\.name.text) == ["stay", "visit"])
    let stays = try pair.rows(1)["stay"]
    #expect(stays?.keys.first == [.integer(7), .integer(1)])
  }

  private struct Decider: SyncDelegate {
    func resolve(_ values: Conflict.Values, by name: String) -> Value? { .integer(5) }
  }

  /// The value that a function returns is written, found to be wrong, and taken back.
  @Test func anEditThatIsTakenBackIsNotTold() async throws {
    let pair = try await Pair(delegate: Decider())
    try pair.managers[1].store.setPolicies { $0.document = .resolve("function") }
    try pair.edit(0, "INSERT INTO page VALUES('x', '1')")
    try await pair.managers[0].synchronize()
    _ = try await pair.changes { try await pair.managers[1].synchronize() }
    try pair.edit(0, "UPDATE page SET body = 'other'")
    try await pair.managers[0].synchronize()
    try pair.edit(1, "UPDATE page SET body = 'own'")
    let told = try await pair.changes { try await pair.managers[1].synchronize() }
    #expect(told.isEmpty)
    let conflicts = try await pair.managers[1].conflicts()
    #expect(conflicts.map(\.status) == [.open])
    let pages = try pair.rows(1)["page"]
    #expect(pages?.values.first?.contains("own") == true)
  }

  @Test func aConflictThatIsAnsweredChangesRows() async throws {
    let pair = try await Pair()
    try pair.edit(0, "INSERT INTO page VALUES('x', '1')")
    try await pair.managers[0].synchronize()
    try await pair.managers[1].synchronize()
    try pair.edit(1, "UPDATE page SET body = 'own'")
    try pair.edit(0, "UPDATE page SET body = 'other'")
    try await pair.managers[0].synchronize()
    // What was told so far is taken.
    _ = try await pair.changes { try await pair.managers[1].synchronize() }
    let number = try #require(try await pair.managers[1].conflicts().first?.number)
    let told = try await pair.changes {
      _ = try await pair.managers[1].restoreConflict(number)
    }
    #expect(told.flatMap(\.tables).map(\.updated) == [[[.text("x")]]])
    #expect(told.map(\.authors) == [[]])
  }

  @Test func anExchangeOfContentChangesTablesAsAWhole() async throws {
    let pair = try await Pair()
    try pair.edit(0, "INSERT INTO page VALUES('x', '1')")
    try await pair.managers[0].reset()
    let told = try await pair.changes { try await pair.managers[1].synchronize() }
    #expect(told.flatMap(\.tables).contains { $0.name.text == "page" && !$0.isComplete })
  }

  /// Reads the rows on the application's connection before the commit.
  private final class Reader: SyncDelegate {
    let database = Mutex<DatabaseQueue?>(nil)
    let seen = Mutex<[(told: RowChanges, bodies: [String])]>([])

    func willCommit(_ changes: RowChanges) {
      do {
        let bodies = try database.withLock {
          try $0?.read { try String.fetchAll($0, sql: "SELECT body FROM page") } ?? []
        }
        seen.withLock { $0.append((changes, bodies)) }
      } catch {
        Issue.record(error)
      }
    }
  }

  @Test func theDelegateHearsBeforeTheCommit() async throws {
    let reader = Reader()
    let pair = try await Pair(delegate: reader)
    reader.database.withLock { $0 = pair.databases[1] }
    try pair.edit(0, "INSERT INTO page VALUES('x', '1')")
    try await pair.managers[0].synchronize()
    let told = try await pair.changes { try await pair.managers[1].synchronize() }
    #expect(reader.seen.withLock { $0.map(\.told) } == told)
    #expect(reader.seen.withLock { $0.map(\.bodies) } == [[]])
    #expect(try pair.rows(1)["page"]?.count == 1)
  }
}
