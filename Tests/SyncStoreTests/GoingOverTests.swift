import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// A store of one document goes over to another, with its rows.
@Suite struct GoingOverTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let shop = """
    CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT UNIQUE, city TEXT, note TEXT DEFAULT 'none');
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer, total INTEGER);
    CREATE TABLE tag (name TEXT PRIMARY KEY, color TEXT);
    CREATE TABLE code (key INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE, text TEXT);
    CREATE TABLE local (customer INTEGER REFERENCES customer, body TEXT);
    CREATE TABLE pairs (customer INTEGER REFERENCES customer, n INTEGER, body TEXT,
      PRIMARY KEY (customer, n)) WITHOUT ROWID;
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
    var configuration = AppTriggerTests.excluding("local", "pairs")
    configuration.excludedColumns = ["customer": ["note"]]
    configuration.identities = ["code": .columns(["code"])]
    return configuration
  }

  /// The first device of a document of its own.
  private func document(
    _ name: String, _ sql: String, configuration: StoreConfiguration? = nil,
    options: StoreOptions = StoreOptions()
  ) throws -> Device {
    try scratch.document(
      name, sql, configuration: configuration ?? self.configuration, options: options)
  }

  private func snapshot(_ device: Device) throws -> String {
    let path = scratch.path + "/whole-\(UInt64.random(in: 0 ... .max)).db"
    _ = try device.outgoing()
    _ = try device.store.snapshot(to: path)
    return path
  }

  @discardableResult
  private func goOver(_ device: Device, to other: Device) throws -> ContentReplacement {
    try goOver(device, to: try snapshot(other), of: other)
  }

  private func goOver(
    _ device: Device, to snapshot: String, of other: Device, between: @escaping () -> Void = {}
  ) throws -> ContentReplacement {
    var binding = device.store.binding
    binding.generation = other.store.binding.generation
    return try device.store.replaceContent(
      withSnapshotAt: snapshot, mergingInto: binding, checkCancellation: between)
  }

  @Test func rowsOfBothAreInTheOneDocument() throws {
    let winner = try document(
      "winner",
      Self.shop + """
        INSERT INTO customer (id, name, city) VALUES (1, 'Ann', 'Rome'), (2, 'Bob', 'Oslo');
        INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20); INSERT INTO tag VALUES ('red', 'theirs');
        INSERT INTO code VALUES (5, 'x', 'theirs'); PRAGMA user_version = 3;
        """)
    let loser = try document(
      "loser",
      Self.shop + """
        INSERT INTO customer (id, name, city) VALUES (1, 'Cid', 'Bern'), (2, 'Ann', 'Rome');
        INSERT INTO orders VALUES (1, 1, 100), (2, 2, 200); INSERT INTO tag VALUES ('red', 'ours');
        INSERT INTO code VALUES (7, 'x', 'theirs'), (8, 'y', 'ours');
        INSERT INTO local (rowid, customer, body) VALUES (40, 1, 'about Cid'), (50, 2, 'about Ann');
        INSERT INTO pairs VALUES (1, 1, 'Cid'), (2, 1, 'Ann'); PRAGMA user_version = 4;
        """)
    // Published in its own document, sealed, and neither.
    try loser.run("INSERT INTO customer (id, name) VALUES (3, 'Dan')")
    _ = try loser.outgoing()
    try loser.run("INSERT INTO orders VALUES (3, 3, 300)")
    _ = try loser.store.seal()
    try loser.run(
      "INSERT INTO tag VALUES ('blue', 'b'); UPDATE customer SET note = 'note of ' || name")
    let before = loser.store.binding
    let result = try goOver(loser, to: winner)
    #expect(result.merged?.refusedRows == 0)
    #expect(result.merged?.differingCells == 1)
    #expect(!result.changedSchema)
    let binding = loser.store.binding
    #expect(binding.generation == winner.store.binding.generation)
    #expect(binding.client != before.client && binding.ancestor == before.client)
    #expect(try loser.store.unannouncedIncarnations().map(\.reason) == [.begunAgain])
    #expect(try loser.store.status().head == 0)
    try converge(
      [winner, loser],
      "SELECT c.name, total FROM orders JOIN customer c ON c.id = customer ORDER BY total, 1",
      ["Ann|10", "Bob|20", "Cid|100", "Ann|200", "Dan|300"])
    #expect(
      try winner.rows("SELECT name, color FROM tag ORDER BY 1") == ["blue|b", "red|theirs"])
    #expect(try winner.rows("SELECT code, text FROM code ORDER BY 1") == ["x|theirs", "y|ours"])
    // What stays on the device follows the rows.
    #expect(
      try loser.rows(
        "SELECT l.rowid, name, body FROM local l JOIN customer c ON c.id = customer ORDER BY 1")
        == ["40|Cid|about Cid", "50|Ann|about Ann"])
    #expect(
      try loser.rows("SELECT name, body FROM pairs JOIN customer c ON c.id = customer ORDER BY 1")
        == ["Ann|Ann", "Cid|Cid"])
    #expect(
      try loser.rows("SELECT name, note FROM customer ORDER BY 1") == [
        "Ann|note of Ann", "Bob|none", "Cid|note of Cid", "Dan|note of Dan",
      ])
    #expect(
      try loser.rows("SELECT rowid FROM words WHERE words MATCH 'Dan'")
        == loser.rows("SELECT id FROM customer WHERE name = 'Dan'"))
    let lost = try #require(try loser.store.conflicts().first { $0.column == "color" })
    #expect(lost.local.cells?.first?.value == .text(Array("ours".utf8)))
    #expect(try loser.rows("PRAGMA user_version") == ["4"])
    let copy = try Program(result.backup)
    #expect(try copy.rows("SELECT name FROM customer ORDER BY 1") == ["Ann", "Cid", "Dan"])
    // It continues from there, also after it was opened again.
    let again = try loser.changed(isOpen: false) { _ in }
    #expect(again.store.binding == binding)
    try again.run("UPDATE customer SET city = 'Linz' WHERE name = 'Dan'")
    try converge([winner, again], "SELECT name FROM customer WHERE city = 'Linz'", ["Dan"])
  }

  @Test func rowsThatSeveralDevicesBringAreOne() throws {
    let rows = "INSERT INTO customer (id, name) VALUES (1, 'Ann'), (2, 'Bob');"
    let winner = try document(
      "winner", Self.shop + "INSERT INTO orders VALUES (1, NULL, 1), (2, NULL, 2)")
    let loser = try document(
      "loser", Self.shop + rows + "INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20)")
    let path = try snapshot(loser)
    let member = try Device(
      store: try LocalStore.adopt(snapshotAt: path, binding: loser.store.binding.as(.random())),
      path: path)
    try loser.run("INSERT INTO orders VALUES (3, 2, 30)")
    try member.receive(from: loser)
    // A key says nothing of which row it is; its values are others by now.
    try member.run(
      "UPDATE orders SET total = 21 WHERE id = 2; INSERT INTO orders VALUES (4, 1, 40)")
    try goOver(loser, to: winner)
    try winner.receive(from: loser)
    let result = try goOver(member, to: winner)
    #expect(result.merged?.differingRows == 1 && result.merged?.insertedRows == 1)
    try converge(
      [winner, loser, member],
      "SELECT name, total FROM orders LEFT JOIN customer c ON c.id = customer ORDER BY total",
      ["NULL|1", "NULL|2", "Ann|10", "Bob|20", "Bob|30", "Ann|40"])
    let lost = try #require(try member.store.conflicts().first)
    #expect(lost.local.cells?.first?.value == .integer(21))
    try member.store.restoreConflict(lost.number)
    try converge([winner, loser, member], "SELECT count(*) FROM orders WHERE total = 21", ["1"])
  }

  /// As after a deletion, when another device has created the document again.
  @Test func whatWasSaidLaterStandsIfBothStemFromOneDocument() throws {
    var options = configuration
    options.columnMergeTypes = ["orders": ["total": .counter]]
    let devices = try scratch.devices(
      2,
      Self.shop + """
        INSERT INTO customer (id, name, city) VALUES (1, 'Ann', 'Rome'), (2, 'Bob', 'Oslo'), (3, 'Cid', 'Bern');
        INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20), (3, 3, 30);
        INSERT INTO tag VALUES ('red', 'old'), ('blue', 'old'), ('gone', 'old'), ('kept', 'old');
        """, configuration: options)
    let (winner, loser) = (devices[0], devices[1])
    try loser.setClock(milliseconds: 1_700_000_001_000)
    try loser.run(
      """
      UPDATE tag SET color = 'earlier' WHERE name = 'red'; UPDATE customer SET city = 'Paris' WHERE id = 1;
      UPDATE orders SET total = total + 5 WHERE id = 1;
      UPDATE customer SET city = 'unseen' WHERE id = 3;
      """)
    try winner.setClock(milliseconds: 1_700_000_002_000)
    try winner.run(
      """
      UPDATE tag SET color = 'later' WHERE name = 'red'; UPDATE customer SET name = 'Anna' WHERE id = 1;
      DELETE FROM tag WHERE name IN ('gone', 'kept'); DELETE FROM orders WHERE id = 3;
      DELETE FROM customer WHERE id = 3; UPDATE orders SET total = total + 1 WHERE id = 1;
      """)
    try loser.setClock(milliseconds: 1_700_000_003_000)
    try loser.run("UPDATE tag SET color = 'late' WHERE name IN ('blue', 'kept')")
    _ = try winner.outgoing()
    var binding = winner.store.binding
    binding.generation = .random()
    binding.client = .random()
    try winner.store.beginAgain(as: binding, forgetting: [])
    let result = try goOver(loser, to: winner)
    #expect(result.merged?.refusedRows == 3)
    try converge(
      devices, "SELECT name, color FROM tag ORDER BY 1",
      ["blue|late", "kept|late", "red|later"])
    #expect(
      try winner.rows("SELECT name, city FROM customer ORDER BY 1") == ["Anna|Paris", "Bob|Oslo"])
    #expect(try winner.rows("SELECT total FROM orders ORDER BY 1") == ["11", "20"])
    // What did not stand is in the journal, on whichever side it was.
    let entries = try loser.store.conflicts()
    let texts = entries.flatMap { ($0.local.cells ?? []) + ($0.remote.cells ?? []) }.map(\.value)
    for text in ["earlier", "old", "unseen", "Ann"] {
      #expect(texts.contains(.text(Array(text.utf8))), "\(text)")
    }
    #expect(texts.contains(.integer(15)))
    let deleted = entries.filter { $0.kind == .existence }
    #expect(Set(deleted.map(\.table)) == ["tag", "customer"])
    let gone = try #require(deleted.first { $0.table == "tag" })
    try loser.store.restoreConflict(gone.number)
    try converge(devices, "SELECT count(*) FROM tag WHERE name = 'gone'", ["1"])
  }

  @Test(arguments: [
    "ALTER TABLE tag ADD COLUMN rank INTEGER", "ALTER TABLE tag RENAME color TO colour",
    "DROP TABLE tag; CREATE VIEW tag AS SELECT 1 AS name",
  ])
  func tablesThatDifferAreRefusedAndTheStoreIsAsItWas(change: String) throws {
    let winner = try document("winner", Self.shop)
    let loser = try document(
      "loser", Self.shop + "INSERT INTO tag VALUES ('red', 'ours');" + change)
    try expectRefusal(loser, winner)
  }

  @Test func whatStaysOnTheDeviceIsNotSharedByGoingOver() throws {
    var other = configuration
    other.excludedTables = ["pairs"]
    let shop = Self.shop.replacingOccurrences(
      of: "customer INTEGER REFERENCES customer, body TEXT);",
      with: "customer INTEGER PRIMARY KEY, body TEXT);")
    let loser = try document("loser", shop + "INSERT INTO local VALUES (1, 'secret')")
    try expectRefusal(loser, try document("sharing", shop, configuration: other))
    // Of which the other document knows nothing.
    try expectRefusal(
      loser, try document("unaware", shop + "DROP TABLE local", configuration: other))
    other = configuration
    other.excludedColumns = [:]
    try expectRefusal(loser, try document("column", shop, configuration: other))
  }

  private func expectRefusal(
    _ loser: Device, _ winner: Device, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    try loser.run("INSERT OR IGNORE INTO customer (id, name) VALUES (9, 'Zoe')")
    _ = try loser.store.seal()
    func state() throws -> [String] {
      try loser.rows("SELECT name, sql FROM sqlite_schema ORDER BY 1, 2")
        + loser.rows("SELECT id, name FROM customer") + loser.rows("SELECT * FROM docsync_outbox")
        + loser.rows("SELECT key, value FROM docsync_meta ORDER BY 1")
    }
    let before = try state()
    do {
      try goOver(loser, to: winner)
      Issue.record("it went over", sourceLocation: sourceLocation)
    } catch let error as StoreError {
      #expect(error.code == .schemasDiffer, sourceLocation: sourceLocation)
      #expect(error.path == loser.path, sourceLocation: sourceLocation)
    }
    #expect(try state() == before, sourceLocation: sourceLocation)
    try loser.checkIntegrity()
    let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
    #expect(!names.contains { $0.contains(".before-") }, sourceLocation: sourceLocation)
    // It can be written to as before.
    try loser.run("UPDATE customer SET name = name || '!'")
    #expect(try !loser.sealsNothing(), sourceLocation: sourceLocation)
  }

  @Test func tablesThatOnlyOneSideHasAreThoseOfBoth() throws {
    let winner = try document(
      "winner",
      "CREATE TABLE a (id TEXT PRIMARY KEY, v); CREATE TABLE b (id INTEGER PRIMARY KEY, v); "
        + "INSERT INTO a VALUES ('x', 1); INSERT INTO b VALUES (1, 'b')",
      configuration: StoreConfiguration())
    let loser = try document(
      "loser",
      "CREATE TABLE a (id TEXT PRIMARY KEY, v); CREATE TABLE c (id INTEGER PRIMARY KEY, v); "
        + "CREATE INDEX c_v ON c (v); INSERT INTO a VALUES ('y', 2); INSERT INTO c VALUES (1, 'c')",
      configuration: StoreConfiguration())
    let result = try goOver(loser, to: winner)
    #expect(result.merged?.newTables == ["c"] && result.changedSchema)
    #expect(
      try loser.rows("SELECT * FROM a UNION ALL SELECT * FROM b UNION ALL SELECT * FROM c")
        == ["x|1", "y|2", "1|b", "1|c"])
    #expect(try loser.rows("SELECT count(*) FROM sqlite_schema WHERE name = 'c_v'") == ["1"])
    try winner.run("CREATE TABLE c (id INTEGER PRIMARY KEY, v)")
    try converge([winner, loser], "SELECT v FROM c", ["c"])
  }

  @Test func rowsThatAreKeptAndNotShownAreInTheJournal() throws {
    let winner = try document("winner", Self.shop)
    let loser = try document("loser", Self.shop)
    let program = try Program(loser.path, foreignKeys: false)
    try program.run("INSERT INTO orders VALUES (1, 99, 10)")
    _ = try loser.store.seal()
    #expect(try loser.store.status().parked.count == 1)
    let known = try loser.store.conflicts().count
    try goOver(loser, to: winner)
    let entries = try loser.store.conflicts()
    #expect(entries.count == known + 1)
    let cells = try #require(entries.first?.local.cells)
    #expect(entries.first?.table == "orders" && entries.first?.kind == .reference)
    #expect(cells.contains { $0.column == "total" && $0.value == .integer(10) })
    try converge([winner, loser], "SELECT count(*) FROM orders", ["0"])
  }

  /// Whatever is written at whatever moment is in the document.
  @Test(arguments: ["WAL", "DELETE"])
  func programsThatWriteMeanwhileLoseNothing(mode: String) throws {
    let winner = try document("winner", Self.shop)
    let whole = try snapshot(winner)
    var written = 0
    var call = 0
    while call < 40 {
      call += 1
      let clock = HookedClock()
      var options = StoreOptions()
      options.now = { clock.now() }
      let loser = try document(
        "loser\(call)", "PRAGMA journal_mode = \(mode);" + Self.shop, options: options)
      try loser.run("INSERT INTO tag VALUES ('before', '\(call)')")
      let program = try Program(loser.path)
      try program.run("PRAGMA busy_timeout = 0")
      let isWritten = Flag()
      clock.hook(at: call) {
        do {
          try program.run("INSERT INTO tag VALUES ('meanwhile', '\(call)')")
          isWritten.set()
        } catch {
          // It is our turn to write.
        }
      }
      _ = try goOver(loser, to: whole, of: winner) { _ = clock.now() }
      guard clock.wasCalled else { break }
      if isWritten.isSet { written += 1 }
      #expect(
        try loser.rows("SELECT name FROM tag ORDER BY 1")
          == (isWritten.isSet ? ["before", "meanwhile"] : ["before"]), "call \(call)")
      #expect(
        try loser.changes().reduce(0) { $0 + $1.count } == (isWritten.isSet ? 2 : 1),
        "call \(call)")
    }
    // Without a log beside the file, a reader blocks writers.
    #expect(written >= (mode == "WAL" ? 3 : 1) && call > written && call < 40)
  }

  @Test func programsThatWriteAllTheTimeAreReported() throws {
    let winner = try document("winner", Self.shop)
    let clock = HookedClock()
    var options = StoreOptions()
    options.now = { clock.now() }
    let loser = try document("loser", Self.shop, options: options)
    let program = try Program(loser.path)
    try program.run("PRAGMA busy_timeout = 0")
    let whole = try snapshot(winner)
    clock.hook(at: nil) {
      do {
        try program.run("INSERT INTO tag VALUES (hex(randomblob(9)), '')")
      } catch {
        // It is our turn to write.
      }
    }
    do {
      _ = try goOver(loser, to: whole, of: winner)
      Issue.record("it went over")
    } catch let error as StoreError {
      #expect(error.code == .busy)
    }
    #expect(loser.store.binding.generation != winner.store.binding.generation)
  }
}

extension StoreBinding {
  /// The same for another client.
  fileprivate func `as`(_ client: ClientIdentifier) -> StoreBinding {
    var binding = self
    binding.client = client
    return binding
  }
}

/// Time that stands still, and does something when it is asked.
private final class HookedClock: @unchecked Sendable {
  private let lock = NSLock()
  private var callsLeft: Int?
  private var hook: (() -> Void)?

  /// - Parameter call: The call at which to run it; `nil` for each.
  func hook(at call: Int?, _ hook: @escaping () -> Void) {
    lock.withLock { (callsLeft, self.hook) = (call, hook) }
  }

  var wasCalled: Bool { lock.withLock { callsLeft.map { $0 <= 0 } ?? true } }

  func now() -> Int64 {
    let due: (() -> Void)? = lock.withLock {
      guard let left = callsLeft else { return hook }
      callsLeft = left - 1
      return left == 1 ? hook : nil
    }
    due?()
    return 1_700_000_000_000
  }
}

private final class Flag: @unchecked Sendable {
  private(set) var isSet = false
  func set() { isSet = true }
}
