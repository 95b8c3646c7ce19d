import SyncModel
import Testing

@testable import SyncStore

/// What a change set says of a row that was edited more than once.
@Suite struct CoalescingTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE t (k TEXT PRIMARY KEY, a, b); CREATE TABLE i (id INTEGER PRIMARY KEY, a, b);
    INSERT INTO t VALUES ('old', 0, 0); INSERT INTO i VALUES (1, 0, 0);
    """

  @Test func aRowAppearsOnce() throws {
    let devices = try scratch.devices(2, Self.schema)
    for number in 0..<50 {
      try devices[0].run("UPDATE t SET a = \(number); INSERT OR IGNORE INTO t VALUES ('new', 1, 1)")
      try devices[0].run("UPDATE i SET b = \(number)")
    }
    let changes = try devices[0].changes()
    #expect(changes.map(\.letters).sorted() == ["iu", "u"])
    #expect(changes.first { $0.table == "i" }?.columnNames(0) == ["b"])
    try converge(devices, "SELECT * FROM t ORDER BY k", ["new|49|1", "old|49|0"])
  }

  @Test func insertThenDeleteVanishesOnlyIfItWasNeverPublished() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run("INSERT INTO t VALUES ('n', 1, 1); UPDATE t SET a = 2 WHERE k = 'n'")
    try devices[0].run("INSERT INTO i VALUES (2, 1, 1); DELETE FROM i WHERE id = 2")
    try devices[0].run("DELETE FROM t WHERE k = 'n'")
    #expect(try devices[0].sealsNothing())
    try devices[0].run("INSERT INTO t VALUES ('n', 1, 1)")
    #expect(try devices[0].changes().map(\.letters) == ["i"])
    try devices[0].run("DELETE FROM t WHERE k = 'n'")
    #expect(try devices[0].changes(after: 1).map(\.letters) == ["d"])
    try devices[0].run("INSERT INTO t VALUES ('n', 1, 1); DELETE FROM t WHERE k = 'n'")
    #expect(try devices[0].sealsNothing())
    try devices[0].run("DELETE FROM t; INSERT INTO t VALUES ('old', 5, 5); DELETE FROM t")
    #expect(try devices[0].changes(after: 2).map(\.letters) == ["d"])
    try converge(devices, "SELECT count(*) FROM t", ["0"])
  }

  @Test func deleteThenInsertIsAnInsertWithAllColumns() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run("DELETE FROM t; INSERT INTO t (k, a) VALUES ('old', 1)")
    try devices[0].run("DELETE FROM i; INSERT INTO i (id, b) VALUES (1, 1)")
    let changes = try devices[0].changes()
    #expect(changes.map(\.letters) == ["i", "i"])
    #expect(changes.map { $0.columnNames(0) } == [["a", "b"], ["a", "b"]])
    try converge(devices, "SELECT * FROM t, i", ["old|1|NULL|1|NULL|1"])
  }

  @Test(arguments: [1, 2, 3])
  func aBulkImportInPiecesAppliesInAnyInterleaving(seed: UInt64) throws {
    var options = StoreOptions()
    options.rowsPerChangeSet = 50
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE p (id INTEGER PRIMARY KEY, boss INTEGER REFERENCES p, name TEXT UNIQUE);
      CREATE TABLE c (id INTEGER PRIMARY KEY, p INTEGER NOT NULL REFERENCES p ON DELETE CASCADE);
      CREATE TABLE t (k TEXT PRIMARY KEY, v);
      INSERT INTO p VALUES (1000, NULL, 'root');
      """, options: options)
    try devices[0].run(
      """
      BEGIN; PRAGMA defer_foreign_keys = ON;
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
      INSERT INTO p SELECT i, CASE WHEN i < 300 THEN i + 1 ELSE 1000 END, 'p' || i FROM n;
      INSERT INTO c SELECT NULL, id FROM p; INSERT INTO t SELECT name, id FROM p;
      COMMIT;
      """)
    try devices[1].run("INSERT INTO p VALUES (7, 1000, 'mine'), (8, 7, 'p9')")
    var sets = try devices[0].outgoing()
    #expect(sets.count >= 18)
    #expect(sets.allSatisfy { $0.changeSet.rowCount <= 350 })
    var random = SeededGenerator(seed: seed)
    sets.shuffle(using: &random)
    var applied = 0
    while !sets.isEmpty {
      let group = (0..<min(3, sets.count)).map { _ in sets.removeLast() }
      applied += try devices[1].store.apply(group).applied.count
      #expect(try devices[1].rows("PRAGMA foreign_key_check") == [])
      if random.chance(30) {
        try devices[1].run("INSERT INTO t VALUES ('x\(applied)\(sets.count)', 1)")
      }
    }
    // Device 2 took a name that is among the imported ones, and later: its row
    // stands in for the imported one, so that no child waits.
    try converge(devices, "SELECT count(*) FROM c", ["301"])
  }

  @Test func aRowThatIsEditedOverALongTimeAppearsOnceInEachChangeSet() throws {
    var options = StoreOptions()
    options.rowsPerChangeSet = 4
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (k TEXT PRIMARY KEY, a, b); CREATE TABLE i (id INTEGER PRIMARY KEY, a, b);
      INSERT INTO t VALUES ('x', 0, 0), ('y', 0, 0); INSERT INTO i VALUES (1, 0, 0), (2, 0, 0);
      """, options: options)
    for round in 0..<12 {
      try devices[0].run("UPDATE t SET a = \(round); UPDATE i SET b = \(round)")
      // Rows that come and go fill the batches that the log is read in.
      try devices[0].run(
        "INSERT INTO t (k) VALUES ('n\(round)'); INSERT INTO i (a) VALUES (\(round))")
      try devices[0].run(
        "DELETE FROM t WHERE k = 'n\(round - 3)'; DELETE FROM i WHERE a = \(round - 3)")
    }
    try devices[0].run("DELETE FROM t WHERE k = 'x'; DELETE FROM i WHERE id = 1")
    try devices[0].run(
      "INSERT INTO t VALUES ('x', 'again', 1); INSERT INTO i VALUES (1, 'again', 1)")
    for set in try devices[0].outgoing() {
      for changes in set.changeSet.tables {
        let keys = (0..<changes.count).map { row in changes.keys.map { $0[row] } }
        #expect(Set(keys).count == keys.count)
      }
      #expect(Set(set.changeSet.tables.map(\.table)).count == set.changeSet.tables.count)
    }
    let rows = ["n10|11", "n11|NULL", "n9|11", "x|again", "y|11"]
    try converge(devices, "SELECT k, a FROM t ORDER BY k", rows)
    #expect(
      try devices[1].rows("SELECT a, b FROM i ORDER BY a")
        == ["9|11", "10|11", "11|NULL", "again|1"])
  }

  @Test func aParkedRowThatIsInsertedHereIsParkedNoMore() throws {
    let devices = try scratch.devices(
      2, "CREATE TABLE t (k TEXT PRIMARY KEY, u TEXT UNIQUE); CREATE TABLE o (k TEXT PRIMARY KEY)")
    try devices[0].setClock(offset: -100)
    try devices[0].run("INSERT INTO t VALUES ('loser', 'same')")
    try devices[1].run("INSERT INTO t VALUES ('winner', 'same')")
    try converge(devices, "SELECT k FROM t", ["winner"])
    #expect(try devices[0].store.status().parked.count == 1)
    try devices[0].setClock(offset: 0)
    try devices[0].run("INSERT INTO t VALUES ('loser', 'other')")
    try converge(devices, "SELECT k FROM t ORDER BY k", ["loser", "winner"])
    #expect(try devices.map { try $0.store.status().parked.count } == [0, 0])
    try devices[1].run("DELETE FROM t")
    try converge(devices, "SELECT k FROM t", [])
  }

  @Test func anEditOfADeletedRowComesBackWithItsNewInsertion() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].setClock(offset: -100)
    try devices[0].run("DELETE FROM t")
    try devices[1].run("UPDATE t SET a = 'edited'")
    try converge(devices, "SELECT * FROM t", [])
    try devices[0].setClock(offset: 0)
    try devices[0].run("INSERT INTO t VALUES ('old', 'new', 'new')")
    try converge(devices, "SELECT * FROM t", ["old|new|new"])
    #expect(try devices.map { try $0.store.status().parked.count } == [0, 0])
  }
}
