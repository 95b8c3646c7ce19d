import DocumentSyncTesting
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// A table that a program makes again, and what is found in the shared
/// directory of what it was.
@Suite struct RemakeTests {
  private static let remake = """
    CREATE TABLE new__notes AS SELECT * FROM notes; DROP TABLE notes;
    CREATE TABLE notes (id TEXT PRIMARY KEY, body TEXT);
    INSERT INTO notes SELECT * FROM new__notes; DROP TABLE new__notes;
    """

  private static let edits = """
    UPDATE notes SET body = 'unseen' WHERE id = 'a'; DELETE FROM notes WHERE id = 'seed-0';
    INSERT INTO notes VALUES ('n', 'new');
    """

  private func wholeStores(_ fleet: TestFleet) -> [RelativePath] {
    fleet.paths { $0.components.contains("WholeStore") }
  }

  @Test func whatNoTriggerSawIsFoundInTheDocument() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("a", "zero")
    try await fleet.settle()
    try fleet[0].edit(Self.remake)
    try fleet[0].edit(Self.edits)
    try fleet[1].put("seed-1", "one")
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes() == ["a=unseen", "n=new", "seed-1=one"])
    #expect(try fleet[0].store.remadeTables() == [])
    #expect(try fleet.scratch.names().filter { $0.contains("docsync-tmp") } == [])
    try fleet[1].edit(Self.remake)
    try fleet[1].put("a", "later")
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes() == ["a=later", "n=new", "seed-1=one"])
  }

  @Test func aRemakeAloneSendsNothing() async throws {
    let fleet = try await TestFleet(2)
    try fleet[1].put("a", "one")
    try await fleet.settle()
    let before = [0, 1].map { fleet.changeSets(of: $0) }
    for index in [0, 1] {
      try fleet[index].edit(Self.remake)
      let report = try await fleet[index].synchronize()
      #expect(report.warnings == [])
    }
    try await fleet.settle()
    #expect([0, 1].map { fleet.changeSets(of: $0) } == before)
    try fleet.expectEqual()
  }

  /// Triggers saw a row come and go, and not that another row got its key. The comparison finds that
  /// row as a new one.
  @Test(arguments: [TableMergeType.latestWins, .wholeRow, .keepBoth], [false, true])
  func anotherRowHasTheKeyOfARowThatCameAndWent(
    type: TableMergeType, hasNumbers: Bool
  ) async throws {
    var configuration = StoreConfiguration()
    configuration.tableMergeTypes = ["item": type]
    let column = hasNumbers ? "id INTEGER PRIMARY KEY" : "id TEXT PRIMARY KEY"
    let scratch = try Scratch()
    let memory = MemoryDirectory(seed: 1)
    var databases = [try DatabaseQueue(path: scratch.store("0"))]
    try await databases[0].write {
      try $0.execute(
        sql: "CREATE TABLE item (\(column), name TEXT); INSERT INTO item VALUES (1, 'old')")
    }
    let managers = try await scratch.share(through: memory, configuration: configuration)
    databases.append(try DatabaseQueue(path: scratch.store("1")))
    for (index, database) in databases.enumerated() {
      let key = hasNumbers ? 5 : 5 + index
      try await database.write {
        try $0.execute(
          sql: "INSERT INTO item VALUES (\(key), 'x'); DELETE FROM item WHERE name = 'x'")
        try $0.execute(
          sql: "CREATE TABLE new (\(column), name TEXT); INSERT INTO new SELECT * FROM item; "
            + "DROP TABLE item; ALTER TABLE new RENAME TO item; "
            + "INSERT INTO item VALUES (\(key), 'new \(index)')")
      }
    }
    for _ in 0..<3 { for manager in managers { try await manager.synchronize() } }
    for (manager, database) in zip(managers, databases) {
      let names = try await database.read {
        try String.fetchAll($0, sql: "SELECT name FROM item ORDER BY name")
      }
      #expect(names == ["new 0", "new 1", "old"])
      #expect(try manager.store.status().parked.isEmpty)
      #expect(try LocalStore.verify(at: manager.store.path).report.findings == [])
    }
    #expect(try managers[0].store.digest() == managers[1].store.digest())
  }

  /// A row comes unseen, and an edit of it that triggers saw is sealed before the comparison finds the
  /// row, since the schema changes once more.
  @Test(arguments: [TableMergeType.latestWins, .wholeRow, .keepBoth])
  func aRowThatCameUnseenIsInsertedAlthoughItsEditIsSealed(type: TableMergeType) async throws {
    var configuration = StoreConfiguration()
    configuration.tableMergeTypes = ["notes": type]
    let fleet = try await TestFleet(2, configuration: configuration)
    try await fleet.settle()
    try fleet[0].edit(Self.remake)
    try fleet[0].edit("INSERT INTO notes VALUES ('n', 'new')")
    _ = try fleet[0].store.status()
    try fleet[0].edit(
      "ALTER TABLE notes ADD COLUMN colour TEXT; UPDATE notes SET body = 'seen' WHERE id = 'n'")
    try fleet[1].edit("ALTER TABLE notes ADD COLUMN colour TEXT")
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[1].notes() == ["n=seen", "seed-0=body 0", "seed-1=body 1"])
    #expect(try fleet[1].store.status().parked.isEmpty)
  }

  /// What this store has sealed and not published is not in the directory.
  @Test func whatIsNotPublishedIsKnownAsWell() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("a", "zero")
    _ = try fleet[0].store.seal()
    try fleet[0].edit(Self.remake)
    try fleet[0].edit(Self.edits)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[1].notes() == ["a=unseen", "n=new", "seed-1=body 1"])
  }

  /// Of a whole store that is newer than this one only what both know is
  /// compared: what others have edited since stands.
  @Test func aNewerWholeStoreTellsWhatBothKnow() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("a", "zero")
    try await fleet.settle()
    try fleet[1].put("seed-1", "one")
    try fleet[1].put("b", "one")
    try await fleet[1].synchronize()
    let former = wholeStores(fleet)
    _ = try await fleet[1].uploadWholeStore()
    for path in former { try fleet.memory.remove(path) }
    try fleet[0].edit(Self.remake)
    try fleet[0].edit(Self.edits)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes() == ["a=unseen", "b=one", "n=new", "seed-1=one"])
  }

  /// Without any whole store all rows are said, as of 1970.
  @Test func withoutAWholeStoreAllRowsAreSaid() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("a", "zero")
    try await fleet.settle()
    for path in wholeStores(fleet) { try fleet.memory.remove(path) }
    try fleet[0].edit(Self.remake)
    try fleet[0].edit("UPDATE notes SET body = 'unseen' WHERE id = 'a'")
    try fleet[1].put("seed-1", "one")
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes() == ["a=unseen", "seed-0=body 0", "seed-1=one"])
  }

  /// Each store knows other additions to a counter than the whole store with which it is compared.
  @Test(arguments: [false, true])
  func unseenEditsOfCountersAreFoundInANewerWholeStore(isNewer: Bool) async throws {
    let create =
      "CREATE TABLE page (id INTEGER PRIMARY KEY, views INTEGER, stars INTEGER, title TEXT);"
    let scratch = try Scratch()
    let memory = MemoryDirectory(seed: 1)
    var databases = [try DatabaseQueue(path: scratch.store("0"))]
    try await databases[0].write {
      try $0.execute(
        sql: create + "INSERT INTO page VALUES (1, 3, 7, 'a'), (2, 3, 7, 'b'), (3, 3, 7, 'c')")
    }
    var configuration = StoreConfiguration()
    configuration.columnMergeTypes["page"] = ["views": .counter, "stars": .counter]
    let managers = try await scratch.share(through: memory, configuration: configuration)
    databases.append(try DatabaseQueue(path: scratch.store("1")))
    func edit(_ device: Int, _ sql: String) throws {
      try databases[device].write { try $0.execute(sql: sql) }
    }
    func rows(_ device: Int) throws -> [String] {
      try databases[device].read { database in
        try Row.fetchAll(database, sql: "SELECT title, views, stars FROM page ORDER BY title").map {
          $0.map { "\($0.1)" }.joined(separator: " ")
        }
      }
    }
    // Own additions, sealed, and such of the other device that are here.
    try edit(0, "UPDATE page SET views = views + 10 WHERE id < 3")
    try await managers[0].synchronize()
    try edit(1, "UPDATE page SET views = views + 20 WHERE title = 'a'")
    for manager in [managers[1], managers[0]] { try await manager.synchronize() }
    // Additions that only the newer whole store has.
    try edit(1, "UPDATE page SET views = views + 100, stars = stars + 100 WHERE title < 'c'")
    try await managers[1].synchronize()
    if isNewer {
      let former = memory.items.keys.filter { $0.components.contains("WholeStore") }
      try await managers[1].uploadWholeStore()
      for path in former { if case .file = memory.items[path] { memory.take(path) } }
    }
    try edit(
      0,
      "ALTER TABLE page RENAME TO old; \(create) INSERT INTO page SELECT * FROM old; DROP TABLE old"
    )
    try edit(
      0,
      "UPDATE page SET views = views + 1; UPDATE page SET stars = stars - 5 WHERE id = 1; "
        + "UPDATE page SET stars = NULL WHERE id = 3; UPDATE page SET title = 'z' WHERE id = 3")
    for _ in 0..<2 { for manager in managers { try await manager.synchronize() } }
    #expect(
      try rows(0) == ["\"a\" 134 102", "\"b\" 114 107", "\"z\" 4 NULL"])
    #expect(try rows(1) == rows(0))
    #expect(try await managers[0].digest() == managers[1].digest())
  }

  /// Triggers that are there again have logged later edits of a counter, but not those before.
  @Test func unseenEditsOfCountersBeforeSeenOnesAreFound() async throws {
    let create = "CREATE TABLE page (id INTEGER PRIMARY KEY, views INTEGER);"
    let scratch = try Scratch()
    let memory = MemoryDirectory(seed: 1)
    let first = try DatabaseQueue(path: scratch.store("0"))
    try await first.write {
      try $0.execute(sql: create + "INSERT INTO page VALUES (1, 10), (2, 10), (3, 10)")
    }
    var configuration = StoreConfiguration()
    configuration.columnMergeTypes["page"] = ["views": .counter]
    let managers = try await scratch.share(through: memory, configuration: configuration)
    let second = try DatabaseQueue(path: scratch.store("1"))
    try await first.write { try $0.execute(sql: "UPDATE page SET views = views + 1 WHERE id = 1") }
    try await first.write {
      try $0.execute(
        sql:
          "ALTER TABLE page RENAME TO old; \(create) INSERT INTO page SELECT * FROM old; DROP TABLE old; "
          + "UPDATE page SET views = views + 3 WHERE id < 3")
    }
    _ = try await managers[0].status()
    try await first.write { try $0.execute(sql: "UPDATE page SET views = views + 2") }
    for _ in 0..<2 { for manager in managers { try await manager.synchronize() } }
    for database in [first, second] {
      let rows = try await database.read {
        try Int.fetchAll($0, sql: "SELECT views FROM page ORDER BY id")
      }
      #expect(rows == [16, 15, 12])
    }
    #expect(try await managers[0].digest() == managers[1].digest())
  }

  /// A table was made again on a device that takes over a reset, or that joins again: nothing but its own edits
  /// is sent.
  @Test(arguments: ["nothing", "reset", "join"])
  func aRemakeBeforeATakeoverSendsOnlyEdits(takeover: String) async throws {
    var fleet = try await TestFleet(3, rows: 3)
    try fleet[1].put("seed-0", "by one")
    try fleet[2].put("seed-1", "by two")
    try await fleet[1].synchronize()
    if takeover == "reset" {
      try await fleet[0].reset()
      try await fleet[1].synchronize()
    }
    try fleet[2].edit(Self.remake)
    try fleet[2].edit(
      "INSERT INTO notes VALUES ('n', 'new'); DELETE FROM notes WHERE id = 'seed-2'")
    if takeover == "join" {
      try await fleet[2].close()
      let path = fleet.scratch.store("2")
      fleet.replace(
        2,
        with: try await DocumentSyncManager.join(
          storeAt: path, directory: fleet.directories[2], existing: .replaceKeepingBackup,
          options: .init(client: "2", environment: fleet.environment)))
    }
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes() == ["n=new", "seed-0=by one", "seed-1=by two"])
    #expect(try fleet[2].store.remadeTables() == [])
  }
}
