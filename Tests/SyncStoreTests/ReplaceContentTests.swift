import Foundation
import GRDB
import SyncModel
import Testing

@testable import SyncStore

/// Exchanging a store's content for that of a whole store.
@Suite struct ReplaceContentTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let shop = """
    CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT UNIQUE, note TEXT DEFAULT 'none');
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer ON DELETE CASCADE,
      total INTEGER NOT NULL DEFAULT 0, stock INTEGER DEFAULT 0);
    CREATE TABLE tag (name TEXT PRIMARY KEY COLLATE NOCASE, color TEXT) WITHOUT ROWID;
    CREATE TABLE tagging (customer INTEGER REFERENCES customer, tag TEXT REFERENCES tag,
      weight REAL, PRIMARY KEY (customer, tag));
    CREATE TABLE local (customer INTEGER, body TEXT);
    INSERT INTO customer (id, name) VALUES (1, 'Ann'), (2, 'Bob');
    INSERT INTO orders VALUES (1, 1, 10, 5), (2, 2, 20, 7);
    INSERT INTO tag VALUES ('red', '#f00');
    INSERT INTO tagging VALUES (1, 'red', 1.5);
    """

  private var configuration: StoreConfiguration {
    var configuration = AppTriggerTests.excluding("local")
    configuration.excludedColumns = ["customer": ["note"]]
    configuration.columnMergeTypes = ["orders": ["stock": .counter]]
    return configuration
  }

  private func snapshot(_ device: Device) throws -> String {
    let path = scratch.path + "/whole-\(UInt64.random(in: 0 ... .max)).db"
    _ = try device.outgoing()
    _ = try device.store.snapshot(to: path)
    return path
  }

  @discardableResult
  private func replace(_ device: Device, by other: Device) throws -> ContentReplacement {
    try device.store.replaceContent(withSnapshotAt: snapshot(other))
  }

  @Test func contentAndStateBecomeThoseOfTheWholeStore() throws {
    let devices = try scratch.devices(3, Self.shop, configuration: configuration)
    try devices[1].run(
      """
      INSERT INTO customer (id, name) VALUES (3, 'Cid'); INSERT INTO orders VALUES (3, 3, 30, 1);
      DELETE FROM tagging; UPDATE tag SET color = 'pink'; UPDATE orders SET stock = stock + 4;
      """)
    // The third device has heard of none of this, and hears of it at once.
    let result = try replace(devices[2], by: devices[1])
    #expect(!result.changedSchema)
    #expect(result.reapplied == [] && result.waiting == [])
    #expect(try devices[2].store.digest() == devices[1].store.digest())
    #expect(try devices[2].rows("SELECT name FROM customer ORDER BY 1") == ["Ann", "Bob", "Cid"])
    let copy = try Program(result.backup)
    #expect(try copy.rows("SELECT name FROM customer ORDER BY 1") == ["Ann", "Bob"])
    #expect(try copy.rows("PRAGMA integrity_check") == ["ok"])
    try devices[2].run("UPDATE orders SET total = 31 WHERE total = 30")
    try converge(devices, "SELECT total FROM orders ORDER BY 1", ["10", "20", "31"])
  }

  @Test func rowsKeepTheirKeysAndWhatStaysOnTheDevice() throws {
    let devices = try scratch.devices(3, Self.shop, configuration: configuration)
    // Both make a customer 3; on each the other's is 4.
    try devices[1].run(
      "INSERT INTO customer (id, name) VALUES (3, 'Eve'); INSERT INTO orders VALUES (3, 3, 1, 0)")
    try devices[2].run(
      "INSERT INTO customer (id, name) VALUES (3, 'Fay'); INSERT INTO orders VALUES (3, 3, 2, 0)")
    try exchange(Array(devices[1...]))
    #expect(
      try devices[2].rows("SELECT id, name FROM customer WHERE id > 2") == ["3|Fay", "4|Eve"])
    try devices[2].run(
      """
      UPDATE customer SET note = 'note of ' || name;
      INSERT INTO local VALUES (3, 'about Fay'), (4, 'about Eve');
      """)
    try devices[1].run(
      """
      UPDATE customer SET name = 'Fay!' WHERE name = 'Fay';
      INSERT INTO customer (id, name) VALUES (5, 'Guy'); INSERT INTO orders VALUES (9, 5, 3, 0);
      INSERT INTO tagging VALUES (5, 'red', 1), (3, 'red', 2)
      """)
    try replace(devices[2], by: devices[1])
    #expect(
      try devices[2].rows("SELECT id, name, note FROM customer ORDER BY id") == [
        "1|Ann|note of Ann", "2|Bob|note of Bob", "3|Fay!|note of Fay", "4|Eve|note of Eve",
        "5|Guy|none",
      ])
    #expect(
      try devices[2].rows("SELECT name, body FROM local JOIN customer ON customer = id ORDER BY 1")
        == ["Eve|about Eve", "Fay!|about Fay"])
    #expect(
      try devices[2].rows(
        "SELECT c.name, o.total FROM orders o JOIN customer c ON c.id = customer ORDER BY total")
        == ["Eve|1", "Fay!|2", "Guy|3", "Ann|10", "Bob|20"])
    #expect(
      try devices[2].rows(
        "SELECT c.name, weight FROM tagging JOIN customer c ON c.id = customer ORDER BY 2")
        == ["Guy|1.0", "Ann|1.5", "Eve|2.0"])
    #expect(try devices[2].store.digest() == devices[1].store.digest())
    try devices[2].run("DELETE FROM orders WHERE total = 1")
    try devices[0].run("UPDATE customer SET name = 'Zoe' WHERE id = 1")
    try converge(
      devices, "SELECT name FROM customer ORDER BY 1", ["Bob", "Eve", "Fay!", "Guy", "Zoe"])
  }

  @Test func ownEditsAreAppliedAgain() throws {
    let devices = try scratch.devices(3, Self.shop, configuration: configuration)
    let whole = try snapshot(devices[1])
    // Published and not in the whole store.
    try devices[2].run("UPDATE orders SET stock = stock + 1, total = 11 WHERE id = 1")
    try devices[0].receive(from: devices[2])
    // Sealed and not published.
    try devices[2].run("INSERT INTO customer (id, name) VALUES (7, 'Hal')")
    _ = try devices[2].store.seal()
    // In the log.
    try devices[2].run("INSERT INTO orders VALUES (8, 7, 70, 1); DELETE FROM tagging")
    let result = try devices[2].store.replaceContent(withSnapshotAt: whole)
    #expect(result.reapplied.map(\.number) == [1, 2, 3])
    #expect(result.waiting == [])
    #expect(try devices[2].store.head()?.number == 3)
    #expect(
      try devices[2].rows("SELECT id, total, stock FROM orders ORDER BY 1")
        == ["1|11|6", "2|20|7", "8|70|1"])
    #expect(try devices[2].store.sealedChangeSets().map(\.isPublished) == [true, false, false])
    #expect(try devices[2].store.history(limit: 9).map(\.number) == [3, 2, 1])
    try devices[2].run("UPDATE orders SET stock = stock + 1 WHERE id = 1")
    try converge(devices, "SELECT id, stock FROM orders ORDER BY total", ["1|7", "2|7", "8|1"])
    #expect(try devices[2].store.conflicts() == [])
  }

  @Test func ownChangeSetsWaitForWhatTheyDependOn() throws {
    let devices = try scratch.devices(3, Self.shop, configuration: configuration)
    let whole = try snapshot(devices[0])
    try devices[1].run("INSERT INTO customer (id, name) VALUES (5, 'Ida')")
    try devices[2].run("UPDATE tag SET color = 'blue'")
    _ = try devices[2].outgoing()
    try devices[2].receive(from: devices[1])
    try devices[2].run("INSERT INTO orders VALUES (5, 5, 50, 0)")
    _ = try devices[2].outgoing()
    try devices[2].run("UPDATE orders SET total = 55 WHERE id = 5")
    let result = try devices[2].store.replaceContent(withSnapshotAt: whole)
    #expect(result.reapplied.map(\.number) == [1])
    #expect(result.waiting.map(\.number) == [2, 3])
    #expect(try devices[2].rows("SELECT count(*) FROM orders") == ["2"])
    #expect(try devices[2].store.head()?.number == 3)
    #expect(try devices[2].store.appliedVector().entries.isEmpty)
    #expect(throws: StoreError.self) {
      try devices[2].store.snapshot(to: scratch.path + "/refused.db")
    }
    // What is edited meanwhile goes on with the next number.
    try devices[2].run("UPDATE tag SET color = 'green'; UPDATE orders SET total = 12 WHERE id = 1")
    #expect(try devices[2].store.seal().changeSets.map(\.number) == [4])
    #expect(try devices[2].store.waiting().map(\.number) == [2, 3])
    // A device that has all change sets can apply them.
    try devices[0].receive(from: devices[1])
    try devices[0].receive(from: devices[2])
    #expect(try devices[0].store.waiting() == [])
    #expect(try devices[0].rows("SELECT total FROM orders ORDER BY 1") == ["12", "20", "55"])
    // An edit that neither knew.
    try devices[1].run("UPDATE tag SET color = 'black'")
    let report = try devices[2].receive(from: devices[1])
    #expect(report.waiting == [])
    #expect(try devices[2].store.appliedVector().entries.count == 1)
    try devices[2].run("UPDATE tag SET color = color || '!'")
    #expect(try devices[2].store.seal().changeSets.map(\.number) == [5])
    try converge(
      devices, "SELECT total FROM orders JOIN tag WHERE color = 'black!' ORDER BY 1",
      ["12", "20", "55"])
    #expect(try devices[2].store.conflicts().count == 1)
  }

  @Test func conflictsOfOwnEditsAreEnteredOnce() throws {
    let devices = try scratch.devices(2, Self.shop, configuration: configuration)
    func edit(_ device: Int, at milliseconds: Int64, _ sql: String) throws {
      try devices[device].setClock(milliseconds: 1_700_000_000_000 + milliseconds)
      try devices[device].run(sql)
    }
    try edit(1, at: 1, "UPDATE tag SET color = 'mine'")
    try edit(0, at: 2, "UPDATE tag SET color = 'theirs'")
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].store.conflicts().count == 1)
    let before = try devices[1].store.conflicts()
    let result = try replace(devices[1], by: devices[0])
    #expect(result.reapplied.count == 1)
    #expect(try devices[1].store.conflicts() == before)
    try edit(0, at: 3, "UPDATE orders SET total = 1 WHERE id = 1")
    try edit(1, at: 4, "UPDATE orders SET total = 2 WHERE id = 1")
    try replace(devices[1], by: devices[0])
    let entry = try #require(try devices[1].store.conflicts().first)
    #expect(entry.local.cells?.map(\.value) == [.integer(2)])
    #expect(entry.remote.cells?.map(\.value) == [.integer(1)])
    #expect(entry.outcome == .local)
    try converge(devices, "SELECT total, color FROM orders JOIN tag WHERE id = 1", ["2|theirs"])
  }

  @Test func policiesDecideForOwnEditsThatAreNotPublished() throws {
    let devices = try scratch.devices(2, Self.shop, configuration: configuration)
    try devices[1].store.setPolicies { $0.document = .localWins }
    try devices[1].setClock(milliseconds: 1_700_000_000_001)
    try devices[0].setClock(milliseconds: 1_700_000_000_002)
    try devices[1].run(
      "UPDATE tag SET color = 'mine'; UPDATE customer SET name = 'Anna' WHERE id = 1")
    try devices[0].run("UPDATE tag SET color = 'theirs'; DELETE FROM tagging;")
    try devices[0].run(
      "PRAGMA foreign_keys = OFF; DELETE FROM customer WHERE id = 1; DELETE FROM orders WHERE customer = 1"
    )
    try replace(devices[1], by: devices[0])
    #expect(try devices[1].store.head()?.number == 2)
    try converge(
      devices, "SELECT color, customer.name FROM tag, customer WHERE id = 1", ["mine|Anna"])
  }

  @Test func parkedRowsAndTheJournalAreKept() throws {
    let devices = try scratch.devices(3, Self.shop, configuration: configuration)
    try devices[0].run("INSERT INTO customer (id, name) VALUES (5, 'Same')")
    try devices[1].run("INSERT INTO customer (id, name) VALUES (6, 'Same')")
    try devices[2].receive(from: devices[0])
    try devices[2].receive(from: devices[1])
    try devices[1].receive(from: devices[0])
    let entries = try devices[2].store.conflicts()
    #expect(entries.map(\.kind) == [.uniqueValue])
    try replace(devices[2], by: devices[1])
    #expect(try devices[2].store.conflicts() == entries)
    #expect(try devices[2].store.status().parked.count == 1)
    try devices[2].run("DELETE FROM customer WHERE name = 'Same'")
    try converge(devices, "SELECT count(*) FROM customer WHERE name = 'Same'", ["1"])
  }

  @Test func anotherProgramGoesOnMeanwhileAndAfterwards() throws {
    let devices = try scratch.devices(
      2, "PRAGMA journal_mode = wal; \(Self.shop)", configuration: configuration)
    let queue = try DatabaseQueue(path: devices[1].path)
    try queue.write { database in
      let reading = try database.makeStatement(sql: "SELECT name FROM customer ORDER BY name")
      let writing = try database.makeStatement(
        sql: "INSERT INTO customer (name) VALUES (?)")
      #expect(try String.fetchAll(reading) == ["Ann", "Bob"])
      try writing.execute(arguments: ["Jim"])
    }
    try devices[0].run("INSERT INTO customer (name) VALUES ('Kay')")
    try queue.inDatabase { database in
      let reading = try database.makeStatement(sql: "SELECT name FROM customer ORDER BY name")
      let writing = try database.makeStatement(sql: "INSERT INTO customer (name) VALUES (?)")
      #expect(try String.fetchAll(reading) == ["Ann", "Bob", "Jim"])
      try replace(devices[1], by: devices[0])
      #expect(try String.fetchAll(reading) == ["Ann", "Bob", "Jim", "Kay"])
      try writing.execute(arguments: ["Lea"])
    }
    try converge(
      devices, "SELECT name FROM customer ORDER BY 1", ["Ann", "Bob", "Jim", "Kay", "Lea"])
    try queue.close()
  }

  @Test func aStoreThatIsOpenElsewhereFollows() throws {
    let devices = try scratch.devices(2, Self.shop, configuration: configuration)
    let other = try LocalStore.open(at: devices[1].path)
    _ = try other.status()
    try devices[0].run("INSERT INTO customer (id, name) VALUES (3, 'Kay')")
    var binding = devices[1].store.binding
    binding.generationOrdinal = 2
    binding.generation = IntegrityKey(bits: Bits128(high: 9, low: 9))
    try devices[1].run("UPDATE tag SET color = 'x'")
    let result = try devices[1].store.replaceContent(
      withSnapshotAt: snapshot(devices[0]), binding: binding, records: ["marker": [1]])
    #expect(try other.status().head == 0)
    #expect(other.binding == binding && devices[1].store.binding == binding)
    #expect(result.pendingOwn.map(\.number) == [1])
    #expect(try other.returning() == result.pendingOwn)
    #expect(try devices[1].store.sealedChangeSets() == [])
    #expect(try devices[1].store.digest() == devices[0].store.digest())
    #expect(try other.record("marker") == [1])
    #expect(try other.rewriteReturning() == 1)
    #expect(try devices[1].store.returning() == [])
    try other.close()
  }

  @Test func aFailureChangesNothing() throws {
    let devices = try scratch.devices(2, Self.shop, configuration: configuration)
    try devices[1].run("UPDATE tag SET color = 'x'")
    try devices[0].run("INSERT INTO customer (id, name) VALUES (3, 'Kay')")
    let whole = try snapshot(devices[0])
    let before = try devices[1].store.digest()
    struct Stop: Error {}
    for limit in 0..<30 {
      var count = 0
      do {
        _ = try devices[1].store.replaceContent(
          withSnapshotAt: whole,
          checkCancellation: {
            count += 1
            if count > limit { throw Stop() }
          })
        break
      } catch is Stop {
        #expect(try devices[1].store.digest() == before)
        #expect(try devices[1].store.sealedChangeSets() == [])
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
        #expect(!names.contains { $0.contains(".before-") })
      }
    }
    try converge(devices, "SELECT customer.name, color FROM customer, tag WHERE id = 3", ["Kay|x"])
  }

  @Test func aFileThatIsNoWholeStoreIsRefused() throws {
    let devices = try scratch.devices(2, Self.shop, configuration: configuration)
    let whole = try snapshot(devices[0])
    try Program(whole).run(
      "CREATE TRIGGER evil AFTER INSERT ON tag BEGIN DELETE FROM docsync_outbox; END")
    for path in [whole, devices[0].path] {
      #expect {
        try devices[1].store.replaceContent(withSnapshotAt: path)
      } throws: {
        ($0 as? StoreError)?.code == .damaged
      }
    }
  }

  @Test(arguments: [
    "UPDATE docsync_client SET number = 1, hash = NULL",
    "UPDATE docsync_client SET number = 'many'",
    "UPDATE docsync_client SET hash = 'a text'",
    "UPDATE docsync_column SET refers = 'no table'",
    "UPDATE docsync_table SET origin = 'here'",
    "UPDATE docsync_meta SET value = 'a text' WHERE key = 'configuration'",
    "UPDATE docsync_range SET least = 'least'",
    "UPDATE docsync_range SET last = 9223372036854775807",
    "UPDATE docsync_client SET id = 3000000000",
    "UPDATE docsync_client SET client = x'00'",
    "INSERT INTO docsync_kept VALUES (999, x'00', 'tombstone', NULL, x'')",
    "INSERT INTO docsync_early VALUES (1, x'00', 0, 1, 3000000000, 1, x'', 1)",
    "INSERT INTO docsync_aside VALUES (x'00', x'00', 'c', 1)",
    "DROP TABLE docsync_claim", "ALTER TABLE docsync_kept ADD COLUMN more",
  ])
  func aWholeStoreWhoseBookkeepingIsOfAnotherShapeIsRefused(sql: String) throws {
    let devices = try scratch.devices(2, Self.shop, configuration: configuration)
    try devices[0].run("UPDATE tag SET color = 'x'")
    let whole = try snapshot(devices[0])
    try Program(whole).run(sql)
    let before = try devices[1].store.digest()
    #expect {
      try devices[1].store.replaceContent(withSnapshotAt: whole)
    } throws: {
      ($0 as? StoreError)?.code == .damaged
    }
    #expect(try devices[1].store.digest() == before)
  }

  /// A row that goes with the content, and comes back with change sets.
  @Test func whatStaysOnTheDeviceComesBackWithItsRowInOneTransaction() throws {
    let devices = try scratch.devices(3, Self.shop, configuration: configuration)
    try devices[1].run("INSERT INTO customer (id, name) VALUES (3, 'Eve')")
    try devices[2].receive(from: devices[1])
    try devices[2].run("UPDATE customer SET note = 'mine' WHERE name = 'Eve'")
    try replace(devices[2], by: devices[0])
    #expect(try devices[2].rows("SELECT name FROM customer ORDER BY 1") == ["Ann", "Bob"])
    try devices[2].receive(from: devices[1])
    #expect(try devices[2].rows("SELECT note FROM customer WHERE name = 'Eve'") == ["mine"])
    try devices[2].run("UPDATE customer SET note = 'newer' WHERE name = 'Eve'")
    try devices[1].run("UPDATE customer SET name = 'Eva' WHERE name = 'Eve'")
    try converge(devices)
    #expect(try devices[2].rows("SELECT note FROM customer WHERE name = 'Eva'") == ["newer"])
    #expect(try devices[2].rows("SELECT count(*) FROM docsync_aside") == ["0"])
  }

  @Test func whatStaysOnTheDeviceAndIsRefusedHoldsNothingUp() throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["n": ["draft", "mark"]]
    let devices = try scratch.devices(
      3,
      """
      CREATE TABLE n (id TEXT PRIMARY KEY, kind, draft, mark,
        CHECK (draft IS NULL OR kind = 'note'))
      """, configuration: configuration)
    try devices[1].run("INSERT INTO n (id, kind) VALUES ('x', 'note')")
    try devices[2].receive(from: devices[1])
    try devices[2].run("UPDATE n SET draft = 'mine', mark = 'red'")
    try devices[1].run("UPDATE n SET kind = 'task'; INSERT INTO n (id, kind) VALUES ('y', 'task')")
    let result = try replace(devices[2], by: devices[1])
    let warning = try #require(result.warnings.first)
    #expect(warning.code == .localValueRefused && warning.names == ["draft"])
    #expect(
      try devices[2].rows(
        "SELECT id, kind, coalesce(draft, '-'), coalesce(mark, '-') FROM n ORDER BY 1")
        == ["x|task|-|red", "y|task|-|-"])
    try converge(devices)
    // It is not lost.
    #expect(try devices[2].rows("SELECT col, value FROM docsync_aside") == ["draft|mine"])
    try devices[2].run("DROP TABLE n")
    _ = try devices[2].store.seal()
    #expect(try devices[2].rows("SELECT count(*) FROM docsync_aside") == ["0"])
  }

  @Test func aWholeStoreWithUnknownOwnChangeSetsIsRefused() throws {
    let devices = try scratch.devices(2, Self.shop, configuration: configuration)
    try devices[1].store.close()
    let earlier = scratch.path + "/earlier.db"
    try FileManager.default.copyItem(atPath: devices[1].path, toPath: earlier)
    let store = try LocalStore.open(at: devices[1].path)
    let device = try Device(store: store, path: devices[1].path)
    try device.run("UPDATE tag SET color = 'x'")
    try devices[0].receive(from: device)
    let old = try LocalStore.open(at: earlier)
    #expect {
      try old.replaceContent(withSnapshotAt: snapshot(devices[0]))
    } throws: {
      ($0 as? StoreError)?.code == .fork
    }
  }

  /// A store that was moved keeps what its former client has sent, also without the bytes.
  @Test(arguments: [false, true])
  func changeSetsOfAFormerClientWhoseBytesAreDroppedAreFetchedAgain(isOtherGeneration: Bool) throws
  {
    let devices = try scratch.devices(2, Self.shop, configuration: configuration)
    let whole = try snapshot(devices[0])
    let store = devices[1].store
    try devices[1].run("UPDATE tag SET color = 'x'")
    let sent = try devices[1].outgoing()
    try store.forgetSealedBytes(through: 1)
    try store.beginIncarnation(.copied, isAncestorGone: true)
    try devices[1].run("UPDATE orders SET total = 11 WHERE id = 1")
    _ = try store.seal()
    var binding = store.binding
    if isOtherGeneration {
      binding.generation = IntegrityKey(bits: Bits128(high: 9, low: 9))
      binding.generationOrdinal = 2
    }
    let result = try store.replaceContent(
      withSnapshotAt: whole, binding: isOtherGeneration ? binding : nil)
    #expect(result.pendingOwn.count == (isOtherGeneration ? 1 : 0))
    #expect(result.waiting.count == (isOtherGeneration ? 0 : 1))
    guard !isOtherGeneration else { return }
    _ = try store.apply(sent)
    #expect(try store.waiting() == [])
    #expect(try devices[1].rows("SELECT color FROM tag") == ["x"])
    #expect(try devices[1].rows("SELECT total FROM orders WHERE id = 1") == ["11"])
  }
}
