import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// A process is killed while it exchanges a store's content: what the next
/// one finds is the store before or after, never anything in between.
@Suite struct KilledExchangeTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT UNIQUE, note TEXT);
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer, total INTEGER);
    CREATE TABLE local (customer INTEGER, body TEXT);
    """

  private static func rows(_ count: Int, from first: Int, note: String) -> String {
    """
    WITH RECURSIVE n(i) AS (VALUES (\(first)) UNION ALL SELECT i + 1 FROM n WHERE i < \(first + count - 1))
    INSERT INTO customer SELECT i, '\(note)' || i, hex(zeroblob(200)) FROM n;
    INSERT INTO orders SELECT id, id, id FROM customer WHERE id >= \(first);
    """
  }

  /// How the content is exchanged.
  enum Exchange: CaseIterable {
    /// A gap: own change sets are applied again.
    case gap
    /// A reset: they are set aside.
    case reset
    /// A document that has nothing to do with the store's: rows are merged.
    case merging
  }

  private static let cases = Exchange.allCases.flatMap { exchange in
    ["DELETE", "WAL"].map { (exchange, $0) }
  }

  @Test(arguments: cases)
  func filesThatAreLeftAreTheStoreBeforeOrAfter(exchange: Exchange, mode: String) throws {
    let configuration = AppTriggerTests.excluding("local")
    let devices = try scratch.devices(
      2, "PRAGMA journal_mode = \(mode);" + Self.schema + Self.rows(2_000, from: 1, note: "a"),
      configuration: configuration)
    let store = devices[1].store
    let other: Device
    if exchange == .merging {
      let path = scratch.path + "/stranger.db"
      try Program(path).run(Self.schema + Self.rows(2_000, from: 1, note: "b"))
      other = try Device(
        store: try LocalStore.create(
          at: path, binding: scratch.binding("stranger"), configuration: configuration), path: path)
    } else {
      other = devices[0]
      try other.run(
        "DELETE FROM orders WHERE id % 3 = 0; UPDATE customer SET note = 'x' WHERE id % 2 = 0;"
          + Self.rows(500, from: 3_000, note: "c"))
    }
    _ = try other.outgoing()
    let whole = scratch.path + "/whole.db"
    _ = try other.store.snapshot(to: whole)
    try devices[1].run(
      "INSERT INTO customer VALUES (7000, 'own', NULL); INSERT INTO local VALUES (7000, 'own')")
    // No other device has this row, and the store knows it before.
    _ = try store.seal()
    let before = try store.digest()
    let binding = store.binding

    var copies: [String] = []
    func kill() throws {
      let copy = scratch.path + "/killed-\(copies.count).db"
      for suffix in ["", "-wal", "-journal"] where exists(devices[1].path + suffix) {
        try FileManager.default.copyItem(
          atPath: devices[1].path + suffix, toPath: copy + suffix)
      }
      copies.append(copy)
    }
    var target = binding
    target.generation = .random()
    target.generationOrdinal = 2
    switch exchange {
    case .gap:
      _ = try store.replaceContent(withSnapshotAt: whole, checkCancellation: kill)
    case .reset:
      _ = try store.replaceContent(
        withSnapshotAt: whole, binding: target, checkCancellation: kill)
    case .merging:
      _ = try store.replaceContent(
        withSnapshotAt: whole, mergingInto: target, checkCancellation: kill)
    }
    try kill()
    let after = try store.digest()
    #expect(after != before && copies.count > 5)
    var found: [Bool] = []
    for copy in copies {
      let killed = try LocalStore.open(at: copy)
      let digest = try killed.digest()
      let isOver = digest == after
      #expect(isOver || digest == before, "\(copy)")
      found.append(isOver)
      #expect(
        (killed.binding.generation == binding.generation) == (!isOver || exchange == .gap),
        "\(copy)")
      #expect(try killed.returning().count == (isOver && exchange == .reset ? 1 : 0), "\(copy)")
      let program = try Program(copy)
      #expect(try program.rows("PRAGMA integrity_check") == ["ok"], "\(copy)")
      #expect(try program.rows("PRAGMA foreign_key_check") == [], "\(copy)")
      #expect(try program.rows("SELECT body FROM local") == ["own"], "\(copy)")
      #expect(
        try program.rows("SELECT count(*) FROM sqlite_schema WHERE name GLOB 'docsync_keys*'")
          == ["0"], "\(copy)")
      // What is edited is captured, and the exchange can be done again.
      try program.run("INSERT INTO customer (name) VALUES ('later')")
      #expect(try !killed.seal().changeSets.isEmpty, "\(copy)")
      if !isOver, exchange == .gap {
        let again = try killed.replaceContent(withSnapshotAt: whole)
        #expect(again.reapplied.count == 2, "\(copy)")
        #expect(
          try program.rows("SELECT name FROM customer WHERE name IN ('own', 'later') ORDER BY 1")
            == ["later", "own"], "\(copy)")
      }
      try killed.close()
    }
    #expect(found.contains(false) && found.last == true)
  }

  private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }
}
