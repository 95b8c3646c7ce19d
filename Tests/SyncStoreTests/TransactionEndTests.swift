import GRDB
import SyncModel
import Testing

@testable import SyncStore

/// SQLite ends a transaction by itself: nothing is written outside it, the
/// store is as it was, and what comes next works.
@Suite struct TransactionEndTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE t (k TEXT PRIMARY KEY, v);
    CREATE TABLE note (id INTEGER PRIMARY KEY, k TEXT REFERENCES t ON DELETE CASCADE, body);
    CREATE TABLE trail (what TEXT UNIQUE ON CONFLICT ROLLBACK);
    INSERT INTO t VALUES ('a', 1), ('b', 2), ('c', 3);
    INSERT INTO note (k, body) VALUES ('a', 'one'), ('c', 'two');
    """

  private func devices(_ count: Int) throws -> [Device] {
    try scratch.devices(
      count, Self.schema, configuration: AppTriggerTests.excluding("trail"))
  }

  /// All that the file holds, bookkeeping included.
  private func contents(_ device: Device) throws -> [String: [String]] {
    let names = try device.rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")
    var result: [String: [String]] = [:]
    for name in names { result[name] = try device.rows("SELECT * FROM \(SQLName(name).quoted)") }
    return result
  }

  /// Has the store's connection make the file no longer than it is and a few
  /// pages; 0 for no bound.
  private func bound(_ device: Device, pages: Int) throws {
    let present = Int(try device.rows("PRAGMA page_count")[0]) ?? 0
    let limit = pages == 0 ? 1_000_000_000 : present + pages
    try device.store.connection.queue.writeWithoutTransaction {
      try $0.execute(sql: "PRAGMA main.max_page_count = \(limit)")
    }
  }

  private func expectNoSpace(_ body: () throws -> Void) {
    let error = #expect(throws: StoreError.self) { try body() }
    #expect(error?.code == .noSpace)
  }

  private static let growth = """
    UPDATE t SET v = 'edited' WHERE k = 'a'; DELETE FROM t WHERE k = 'b';
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
      INSERT INTO t SELECT 'n' || i, hex(randomblob(400)) FROM n;
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
      INSERT INTO note (k, body) SELECT 'n' || i, hex(randomblob(400)) FROM n;
    """

  // MARK: - No space

  @Test(arguments: [1, 5, 20, 60, 120])
  func whatDoesNotFitIsNotHalfApplied(pages: Int) throws {
    let devices = try devices(2)
    try devices[0].run(Self.growth)
    let before = try contents(devices[1])
    try bound(devices[1], pages: pages)
    expectNoSpace { try devices[1].receive(from: devices[0]) }
    #expect(try contents(devices[1]) == before)
    try bound(devices[1], pages: 0)
    try converge(devices, "SELECT count(*) FROM note", ["402"])
  }

  @Test(arguments: [1, 5, 20, 60])
  func whatDoesNotFitIsNotHalfSealed(pages: Int) throws {
    let devices = try devices(2)
    try devices[0].run(Self.growth)
    let before = try contents(devices[0])
    try bound(devices[0], pages: pages)
    expectNoSpace { _ = try devices[0].store.seal() }
    #expect(try contents(devices[0]) == before)
    try bound(devices[0], pages: 0)
    try converge(devices, "SELECT count(*) FROM note", ["402"])
  }

  @Test(arguments: [5, 60])
  func whatDoesNotFitIsNotHalfExchanged(pages: Int) throws {
    let devices = try devices(2)
    try devices[0].run(Self.growth)
    try devices[1].run("UPDATE t SET v = 'own' WHERE k = 'c'")
    _ = try devices[0].outgoing()
    _ = try devices[1].outgoing()
    let whole = scratch.path + "/whole.db"
    _ = try devices[0].store.snapshot(to: whole)
    let before = try contents(devices[1])
    try bound(devices[1], pages: pages)
    expectNoSpace { _ = try devices[1].store.replaceContent(withSnapshotAt: whole) }
    #expect(try contents(devices[1]) == before)
    try bound(devices[1], pages: 0)
    _ = try devices[1].store.replaceContent(withSnapshotAt: whole)
    try converge(devices, "SELECT v FROM t WHERE k IN ('a', 'c') ORDER BY k", ["edited", "own"])
  }

  // MARK: - ROLLBACK

  /// A table of the device says ROLLBACK, and the application's trigger writes
  /// to it.
  @Test func aTriggerThatWouldEndTheTransactionIsPassedOver() throws {
    let devices = try scratch.devices(
      2,
      Self.schema + """
        CREATE TRIGGER t_ad AFTER DELETE ON t BEGIN
          INSERT INTO trail VALUES ('deleted'); END;
        CREATE TRIGGER t_ai AFTER INSERT ON t BEGIN
          UPDATE trail SET what = 'taken'; SELECT RAISE(ROLLBACK, 'no') WHERE NEW.k = 'x'; END;
        """, configuration: AppTriggerTests.excluding("trail"))
    try devices[1].run("INSERT INTO trail VALUES ('deleted'), ('taken'), ('third')")
    try devices[0].run("UPDATE t SET v = 'edited' WHERE k = 'a'; DELETE FROM t WHERE k = 'c'")
    try devices[0].run("INSERT INTO t VALUES ('y', 1); UPDATE t SET v = 'late' WHERE k = 'y'")
    let report = try devices[1].receive(from: devices[0])
    #expect(report.warnings.map(\.code) == [.triggerFailed])
    #expect(try devices[1].rows("SELECT what FROM trail") == ["deleted", "taken", "third"])
    try converge(devices, "SELECT k, v FROM t ORDER BY k", ["a|edited", "b|2", "y|late"])
  }

  /// A group of change sets that is applied again counts once.
  @Test func whatIsAppliedAgainIsReportedOnce() throws {
    let devices = try scratch.devices(
      2,
      Self.schema + """
        CREATE TRIGGER t_au AFTER UPDATE ON t WHEN NEW.v = 'mine' BEGIN
          INSERT INTO trail VALUES ('taken'); END;
        """, configuration: AppTriggerTests.excluding("trail"))
    try devices[1].store.setPolicies { $0.document = .localWins }
    try devices[1].run("UPDATE t SET v = 'mine' WHERE k = 'a'")
    // Otherwise both edits may have one millisecond, and no decision restores the first.
    try devices[0].setClock(offset: 1)
    try devices[0].run("UPDATE t SET v = 'late' WHERE k = 'a'; INSERT INTO t VALUES ('y', 1)")
    let report = try devices[1].receive(from: devices[0])
    #expect(report.warnings.map(\.code) == [.triggerFailed])
    #expect(report.applied.count == 1 && report.insertedRows == 1 && report.conflicts == 1)
    try converge(devices, "SELECT k, v FROM t WHERE k IN ('a', 'y') ORDER BY k", ["a|mine", "y|1"])
  }

  @Test func afterAnEndedTransactionNothingIsWritten() throws {
    let devices = try devices(1)
    let before = try contents(devices[0])
    let error = #expect(throws: StoreError.self) {
      try devices[0].store.write { session in
        try session.database.execute(sql: "UPDATE t SET v = 'half'")
        let statement = try SQLStatement(
          "INSERT INTO trail VALUES ('x'), ('x')", on: session.database)
        do {
          try session.write(statement)
        } catch is DatabaseError {
          Issue.record("the end of the transaction counts as the error of one row")
        }
      }
    }
    #expect(error?.message.contains("rolled back the transaction") == true)
    #expect(error?.detail?.contains("as it was") == true)
    #expect(try contents(devices[0]) == before)
    try devices[0].run("UPDATE t SET v = 'whole' WHERE k = 'a'")
    #expect(try devices[0].store.seal().changeSets.count == 1)
  }

  // MARK: - A damaged full-text index

  @Test(arguments: ["block = x'00'", "block = x'ffffffffffffffffffff'", "block = zeroblob(40)"])
  func aDamagedFullTextIndexHoldsUpNothing(damage: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, body);
      CREATE VIRTUAL TABLE search USING fts5(body, content='note', content_rowid='id');
      CREATE TRIGGER ai AFTER INSERT ON note BEGIN
        INSERT INTO search (rowid, body) VALUES (NEW.id, NEW.body); END;
      CREATE TRIGGER bd BEFORE DELETE ON note BEGIN
        INSERT INTO search (search, rowid, body) VALUES ('delete', OLD.id, OLD.body); END;
      CREATE TRIGGER au AFTER UPDATE ON note BEGIN
        INSERT INTO search (search, rowid, body) VALUES ('delete', OLD.id, OLD.body);
        INSERT INTO search (rowid, body) VALUES (NEW.id, NEW.body); END;
      INSERT INTO note (body) VALUES ('one word'), ('two words'), ('three words');
      """)
    let blocks = try devices[1].rows("SELECT id, quote(block) FROM search_data")
    try devices[1].run("UPDATE search_data SET \(damage)")
    try devices[0].run(
      "UPDATE note SET body = 'other' WHERE id = 1; DELETE FROM note WHERE id = 2; "
        + "INSERT INTO note (body) VALUES ('new')")
    let report = try devices[1].receive(from: devices[0])
    #expect(Set(report.warnings.map(\.code)) == [.triggerFailed])
    #expect(
      try devices[1].rows("SELECT body FROM note ORDER BY id") == ["other", "three words", "new"])
    // An index that SQLite cannot even open is not rebuilt by a statement: its
    // data come back first.
    for block in blocks {
      let parts = block.split(separator: "|")
      try devices[1].run("UPDATE search_data SET block = \(parts[1]) WHERE id = \(parts[0])")
    }
    try devices[1].run("INSERT INTO search (search) VALUES ('rebuild')")
    try converge(devices)
    try devices[0].run("UPDATE note SET body = 'last' WHERE id = 1")
    #expect(try devices[1].receive(from: devices[0]).warnings == [])
    #expect(try devices[1].rows("SELECT rowid FROM search WHERE search MATCH 'last'") == ["1"])
  }
}
