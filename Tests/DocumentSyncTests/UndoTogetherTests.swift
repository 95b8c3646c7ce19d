import DocumentSyncTesting
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// Edits that can be undone only together: as many as possible, and no row gets another parent.
@Suite struct UndoTogetherTests {
  /// Two devices, and what the first one hears.
  private struct Pair {
    let scratch: Scratch
    let managers: [DocumentSyncManager]
    private let databases: [DatabaseQueue]
    private let heard: AsyncStream<SyncEvent>

    init(_ sql: String, rowsPerChangeSet: Int? = nil) async throws {
      scratch = try Scratch()
      let memory = MemoryDirectory(seed: 1)
      var environment = World(seed: 1).environment
      if let rowsPerChangeSet { environment.store.rowsPerChangeSet = rowsPerChangeSet }
      let events = SyncEvents()
      let first = try DatabaseQueue(path: scratch.store("0"))
      try await first.write { try $0.execute(sql: sql) }
      managers = [
        try await .create(
          storeAt: scratch.store("0"), directory: memory, document: "main",
          options: .init(client: "0", events: events, environment: environment)),
        try await .join(
          storeAt: scratch.store("1"), directory: memory.view(seed: 2),
          options: .init(client: "1", environment: environment)),
      ]
      databases = [first, try DatabaseQueue(path: scratch.store("1"))]
      heard = events.stream()
    }

    /// Edits as the application of a device, and lets both devices synchronize; returns the number of the change
    /// set.
    @discardableResult
    func edit(_ device: Int, _ sql: String) async throws -> UInt64 {
      try await databases[device].write { try $0.execute(sql: sql) }
      try await managers[device].synchronize()
      try await settle()
      return try #require(try managers[device].store.head()?.number)
    }

    /// Undoes a change set of the first device on some device. Both devices are then in order.
    func undo(_ number: UInt64, on device: Int = 0) async throws -> AppliedChangeSet.Undo {
      let undo = try await managers[device].undoChangeSet(number, of: managers[0].binding.client)
      try await settle()
      let digests = [try await managers[0].digest(), try await managers[1].digest()]
      #expect(digests[0] == digests[1])
      for manager in managers { #expect(try await manager.verify().findings == []) }
      return undo
    }

    func settle() async throws {
      for _ in 0..<2 { for manager in managers { try await manager.synchronize() } }
    }

    func value(_ sql: String) throws -> String? {
      try databases[0].read { try String.fetchOne($0, sql: sql) }
    }

    /// The changes that the first device has told of until now.
    func changes() async throws -> [RowChanges] {
      managers[0].events.send(.vacuumed(VacuumReport()))
      var changes: [RowChanges] = []
      for await event in heard {
        if case .rowsChanged(let told) = event { changes.append(told) }
        if case .vacuumed = event { break }
      }
      return changes
    }
  }

  private static func text(_ undo: AppliedChangeSet.Undo) -> [String] {
    undo.tables.map { "\($0.name) \($0.insertedRows) \($0.updatedRows) \($0.deletedRows)" }
  }

  /// One row replaces another one, and what refers to it follows. Rows whose references lead nowhere stay away. The
  /// device that has deleted a row still has its key; the other one has not.
  @Test(
    arguments: [
      ("place INTEGER REFERENCES place", "1"), ("place INTEGER NOT NULL REFERENCES place", "1"),
      ("code TEXT REFERENCES place(code)", "'p'"),
      ("code TEXT NOT NULL REFERENCES place(code)", "'p'"),
    ], [0, 1])
  func whatRefersToNothingKeepsNothingElseAway(
    column: (definition: String, value: String), device: Int
  ) async throws {
    let (definition, value) = column
    let pair = try await Pair(
      """
      CREATE TABLE owner(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE pet(id INTEGER PRIMARY KEY, owner INTEGER REFERENCES owner);
      CREATE TABLE place(id INTEGER PRIMARY KEY, code TEXT UNIQUE, slot INTEGER UNIQUE);
      CREATE TABLE visit(id INTEGER PRIMARY KEY, \(definition), next INTEGER REFERENCES visit);
      INSERT INTO owner VALUES (1, 'ann'); INSERT INTO pet VALUES (1, 1);
      """)
    // A row that was here when syncing began has its key for good.
    try await pair.edit(
      0,
      """
      INSERT INTO place VALUES (1, 'p', 1);
      INSERT INTO visit VALUES (1, \(value), 1), (2, \(value), 1), (3, \(value), 2)
      """)
    let number = try await pair.edit(
      0,
      """
      UPDATE pet SET owner = NULL; DELETE FROM owner; INSERT INTO owner VALUES (2, 'ann');
      UPDATE pet SET owner = 2; UPDATE visit SET next = NULL; DELETE FROM visit; DELETE FROM place
      """)
    try await pair.edit(0, "INSERT INTO place VALUES (9, 'q', 1)")
    let undo = try await pair.undo(number, on: device)
    #expect(Self.text(undo) == ["owner 1 0 1", "pet 0 1 0"])
    #expect(undo.leftRows.map(\.table).sorted() == ["place", "visit", "visit", "visit"])
    #expect(undo.leftRows.allSatisfy { $0.reason == .refused })
    #expect(try pair.value("SELECT name FROM pet JOIN owner ON owner = owner.id") == "ann")
    #expect(try pair.value("SELECT count(*) FROM visit") == "0")
  }

  // MARK: - Rows that exchange values by which others refer to them

  private static let teams = """
    CREATE TABLE team(id INTEGER PRIMARY KEY, code TEXT UNIQUE);
    CREATE TABLE player(
      id INTEGER PRIMARY KEY, team_code TEXT REFERENCES team(code) ON UPDATE CASCADE);
    INSERT INTO team VALUES (1, 'x'), (2, 'y');
    """
  private static let exchanges = [
    """
    UPDATE team SET code = 't' WHERE id = 1; UPDATE team SET code = 'x' WHERE id = 2;
    UPDATE team SET code = 'y' WHERE id = 1
    """,
    "UPDATE team SET code = 'z' WHERE id = 2; UPDATE team SET code = 'y' WHERE id = 1",
  ]

  @Test(arguments: exchanges)
  func noRowGetsAnotherParent(exchange: String) async throws {
    let pair = try await Pair(Self.teams)
    let number = try await pair.edit(0, exchange)
    try await pair.edit(1, "INSERT INTO player VALUES (1, 'y')")
    let parent = "SELECT team.id FROM player JOIN team ON team_code = code"
    #expect(try pair.value(parent) == "1")
    _ = try await pair.changes()
    let undo = try await pair.undo(number)
    #expect(undo.rowCount == 0)
    #expect(undo.leftRows.map(\.reason) == [.refused, .refused])
    #expect(undo.leftRows.map(\.message).contains("A row of player refers to it."))
    #expect(try pair.value(parent) == "1")
    // Nothing tells of a change that was rolled back.
    #expect(try await pair.changes().isEmpty)
  }

  @Test(arguments: exchanges)
  func whatRefersToThemComesBackWithThem(exchange: String) async throws {
    let pair = try await Pair(
      Self.teams + "INSERT INTO player VALUES (1, 'x'), (2, 'y'), (3, 'x'), (4, 'y')")
    let parents = """
      SELECT group_concat(player.id || team.id || code)
      FROM player JOIN team ON team_code = code ORDER BY player.id
      """
    let before = try pair.value(parents)
    let number = try await pair.edit(0, exchange)
    #expect(try pair.value(parents) != before)
    let undo = try await pair.undo(number)
    #expect(undo.leftRows == [])
    #expect(Self.text(undo) == ["player 0 4 0", "team 0 2 0"])
    #expect(try pair.value(parents) == before)
  }

  // MARK: - Some of the rows that exchange values are refused

  /// The fourth row cannot have its place, and so the third one cannot.
  @Test(arguments: [[3, 4], [4, 3]])
  func aRefusedRowKeepsNoOthersFromExchanging(ids: [Int]) async throws {
    let pair = try await Pair(
      """
      CREATE TABLE step(id INTEGER PRIMARY KEY, position INTEGER NOT NULL UNIQUE, code TEXT UNIQUE);
      INSERT INTO step VALUES
        (1, 1, 'a'), (2, 2, 'b'), (\(ids[0]), 3, 'c'), (\(ids[1]), 4, 'd'), (5, 5, 'e');
      """)
    let number = try await pair.edit(
      0,
      """
      DELETE FROM step WHERE id = 5; UPDATE step SET position = 0 WHERE id = 1;
      UPDATE step SET position = 1 WHERE id = 2; UPDATE step SET position = 2, code = 'e' WHERE id = 1;
      UPDATE step SET position = 30 WHERE code = 'c'; UPDATE step SET position = 3 WHERE code = 'd'
      """)
    try await pair.edit(1, "INSERT INTO step VALUES (9, 4, 'new')")
    let undo = try await pair.undo(number)
    #expect(Self.text(undo) == ["step 1 2 0"])
    #expect(undo.leftRows.map(\.columns) == [["position"], ["position"]])
    #expect(
      Set(undo.leftRows.map(\.message)) == [
        "Another row already has this value, which must be unique: step.position."
      ])
    #expect(
      try pair.value(
        "SELECT group_concat(code || position, ' ') FROM (SELECT * FROM step ORDER BY code)")
        == "a1 b2 c30 d3 e5 new4")
  }

  /// Edits that do not fit into one change set: a row has the value of another one, which only the next change set
  /// deletes.
  @Test func aRowComesBackAfterTheChangeSetBeforeIsUndone() async throws {
    let pair = try await Pair(
      "CREATE TABLE step(id INTEGER PRIMARY KEY, position INTEGER UNIQUE); "
        + "INSERT INTO step VALUES (1, 1), (2, 2)", rowsPerChangeSet: 1)
    let last = try await pair.edit(
      0, "DELETE FROM step WHERE id = 2; UPDATE step SET position = 2 WHERE id = 1")
    #expect(last == 2)
    let refused = try await pair.undo(last)
    #expect(refused.leftRows.map(\.reason) == [.refused] && refused.rowCount == 0)
    #expect(try await Self.text(pair.undo(last - 1)) == ["step 0 1 0"])
    #expect(try await Self.text(pair.undo(last)) == ["step 1 0 0"])
    let rows = "SELECT group_concat(position) FROM (SELECT position FROM step ORDER BY 1)"
    #expect(try pair.value(rows) == "1,2")
  }
}
