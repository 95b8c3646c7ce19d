import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Change sets that no honest author makes, and that readers cannot tell from
/// others: in whatever order they come, one thing comes of them.
///
/// `HostileChangeSetTests` finds such cases; the ones that it found are here.
@Suite struct AnyOrderTests {
  // MARK: - Making change sets

  /// One change to one row, by an author of its own.
  private struct Said {
    var action: RowAction
    var key: [Value]
    /// Milliseconds after the least time of an edit in these tests.
    var time: Int64
    var cells: [(name: SQLName, value: Value)] = []
    /// The stamp of single cells, by the cell's number, or of the existence.
    var stamps: [Int?: Stamp] = [:]
    var movedTo: RowIdentity?
  }

  private static func time(_ milliseconds: Int64) -> HybridTime {
    HybridTime(milliseconds: 1_790_000_000_000 + milliseconds)
  }

  private static func client(_ number: Int) -> ClientIdentifier {
    ClientIdentifier(bits: Bits128(high: 7, low: UInt64(number)))
  }

  /// The file of an author who says one thing.
  private func file(
    _ said: Said, of table: SQLName, identity: IdentityKind = .primaryKey, key: [SQLName],
    by author: Int, _ binding: StoreBinding
  ) throws -> ReceivedChangeSet {
    var changes = LooseChanges(
      TableChanges(
        table: table, identity: identity, keyColumns: key, columns: said.cells.map(\.name)))
    changes.rows = [
      LooseChanges.Row(
        action: said.action.rawValue, keys: said.key, time: Self.time(said.time),
        cells: said.cells.enumerated().map { ($0.offset, $0.element.value) },
        stamps: said.stamps, destination: said.movedTo)
    ]
    let set = SyncChangeSet(
      header: SyncChangeSet.Header(
        root: binding.root, document: binding.document, generation: binding.generation,
        client: Self.client(author), number: 1, previous: nil),
      dependencies: VersionVector(), schema: ContentHash(of: []), tables: [changes.changes])
    let bytes = try ChangeSetCodec.encode(set)
    return ReceivedChangeSet(
      changeSet: try ChangeSetCodec.decode(bytes), hash: ContentHash(of: bytes), bytes: bytes)
  }

  /// All orders of so many things.
  private static func orders(_ count: Int) -> [[Int]] {
    guard count > 1 else { return [Array(0..<count)] }
    return orders(count - 1).flatMap { order in
      (0..<count).map { position in
        var longer = order
        longer.insert(count - 1, at: position)
        return longer
      }
    }
  }

  /// Checks that what is said has one result in every order, to which verifying
  /// does not object, and which shows `rows`.
  private func expectOneResult(
    _ sql: String, _ table: SQLName, key: [SQLName], _ said: [Said],
    shows rows: [String]? = nil, identity: IdentityKind = .primaryKey,
    sourceLocation: SourceLocation = #_sourceLocation,
    _ configure: (inout StoreConfiguration) -> Void = { _ in }
  ) throws {
    let scratch = try Scratch()
    var configuration = StoreConfiguration()
    configure(&configuration)
    var options = StoreOptions()
    options.places = nil
    let original = try scratch.devices(1, sql, configuration: configuration, options: options)[0]
    let files = try said.enumerated().map {
      try file(
        $0.element, of: table, identity: identity, key: key, by: $0.offset + 1,
        original.store.binding)
    }
    try original.store.close()
    var first: StoreDigest?
    for (number, order) in Self.orders(files.count).enumerated() {
      let path = scratch.path + "/order\(number).db"
      try FileManager.default.copyItem(atPath: original.path, toPath: path)
      let device = try Device(store: try LocalStore.open(at: path, options: options), path: path)
      for index in order {
        let report = try device.store.apply([files[index]])
        #expect(report.refused == [], sourceLocation: sourceLocation)
      }
      let digest = try device.store.digest()
      #expect(digest == first ?? digest, "order \(order)", sourceLocation: sourceLocation)
      first = first ?? digest
      if let rows {
        let found = try device.rows("SELECT * FROM \(quoted(table)) ORDER BY 1, 2")
        #expect(found == rows, "order \(order)", sourceLocation: sourceLocation)
      }
      let findings = try LocalStore.verify(at: path).report.findings.filter { $0.severity > .note }
      #expect(findings.map(\.message) == [], "order \(order)", sourceLocation: sourceLocation)
      try device.store.close()
    }
  }

  // MARK: - Deletions

  private static let note = """
    CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, n INTEGER, x);
    INSERT INTO note VALUES ('a', 't', 1, 2), ('b', 'u', 2, 3)
    """

  @Test func deletionThatKeepsCellsAndOneThatTakesThemAlong() throws {
    try expectOneResult(
      Self.note, "note", key: ["id"],
      [
        Said(action: .update, key: [.text("b")], time: 2, cells: [("n", .integer(7))]),
        Said(action: .erase, key: [.text("b")], time: 1),
        Said(action: .delete, key: [.text("b")], time: 3),
      ], shows: ["a|t|1|2"])
  }

  @Test func insertionThatSaysNoCell() throws {
    try expectOneResult(
      Self.note, "note", key: ["id"],
      [
        Said(action: .erase, key: [.text("a")], time: 1),
        Said(action: .insert, key: [.text("a")], time: 2),
        Said(action: .delete, key: [.text("a")], time: 3),
      ], shows: ["b|u|2|3"])
  }

  @Test func spellingOfAKeyThatADeletionTakesAlong() throws {
    try expectOneResult(
      """
      CREATE TABLE tag (name TEXT COLLATE NOCASE PRIMARY KEY, note TEXT) WITHOUT ROWID;
      INSERT INTO tag VALUES ('A', 'x')
      """, "tag", key: ["name"],
      [
        Said(action: .erase, key: [.text("a")], time: 1),
        Said(action: .delete, key: [.text("A")], time: 2),
      ], shows: [])
  }

  // MARK: - Stamps

  @Test func cellOfANewRowWithTheStampOfNothing() throws {
    try expectOneResult(
      "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, n INTEGER DEFAULT 3)", "note",
      key: ["id"],
      [
        Said(
          action: .insert, key: [.text("a")], time: 1,
          cells: [("title", .text("t")), ("n", .integer(7))], stamps: [1: .zero]),
        Said(action: .update, key: [.text("a")], time: 2, cells: [("title", .text("u"))]),
      ], shows: ["a|u|3"])
  }

  // MARK: - Values

  @Test func identityInAColumnThatRefersToNothing() throws {
    try expectOneResult(
      "CREATE TABLE article (id TEXT PRIMARY KEY, name TEXT)", "article", key: ["id"],
      [
        Said(
          action: .insert, key: [.text("a")], time: 1,
          cells: [("name", .identity(RowIdentity(bytes: [1, 2])))]),
        Said(action: .delete, key: [.text("a")], time: 2),
      ], shows: [])
  }

  @Test(arguments: [
    ("INTEGER", Value.text("5")), ("INTEGER", .text(" 7 ")), ("INTEGER", .real(2)),
    ("TEXT", .integer(5)), ("TEXT", .real(1e300)), ("REAL", .integer(3)), ("NUMERIC", .text("1.0")),
  ]) func valueThatTheColumnKeepsInAnotherForm(affinity: String, value: Value) throws {
    try expectOneResult(
      "CREATE TABLE article (id TEXT PRIMARY KEY, v \(affinity))", "article", key: ["id"],
      [
        Said(action: .insert, key: [.text("a")], time: 1, cells: [("v", value)]),
        Said(action: .delete, key: [.text("a")], time: 2),
      ], shows: [])
  }

  // MARK: - Counters

  private func expectOneCounter(
    _ said: [(value: Value, stamp: Stamp)], shows: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    try expectOneResult(
      "CREATE TABLE article (id TEXT PRIMARY KEY, stock); INSERT INTO article VALUES ('a', 5)",
      "article", key: ["id"],
      said.map { value, stamp in
        Said(
          action: .update, key: [.text("a")], time: 9, cells: [("stock", value)],
          stamps: [0: stamp])
      }, shows: ["a|\(shows)"], sourceLocation: sourceLocation
    ) { $0.columnMergeTypes = ["article": ["stock": .counter]] }
  }

  private static func stamp(_ milliseconds: Int64, _ author: Int) -> Stamp {
    Stamp(time: time(milliseconds), client: client(author))
  }

  private func added(_ value: Value, since stamp: Stamp) -> Value {
    CounterValue.added(sum: value, before: nil, since: stamp).encoded
  }

  @Test func counterThatIsSetToTwoNumbersWithOneStamp() throws {
    let set = Self.stamp(1, 7)
    try expectOneCounter(
      [
        (.integer(10), set), (.integer(20), set),
        (added(.integer(3), since: set), Self.stamp(2, 8)),
      ], shows: "23")
    var counter = try #require(Counter(base: .integer(7)))
    counter.sums[Self.client(8)] = Counter.Sum(.integer(4), at: Self.time(3))
    try expectOneCounter(
      [
        (CounterValue.counter(counter).encoded, set), (.integer(20), set),
        (added(.integer(3), since: set), Self.stamp(2, 8)),
      ], shows: "24")
  }

  @Test func counterThatIsSetToANumberAndToNoneWithOneStamp() throws {
    let set = Self.stamp(1, 7)
    try expectOneCounter(
      [
        (.integer(10), set), (.null, set), (added(.integer(3), since: set), Self.stamp(2, 8)),
      ], shows: "NULL")
    try expectOneCounter([(.text("b"), set), (.text("a"), set), (.null, set)], shows: "b")
  }

  @Test func sumsOfOneClientAndOneTime() throws {
    let at = Self.stamp(2, 8)
    let large = Int64(1) << 53
    for (one, other, total) in [
      (Value.integer(large), Value.integer(large + 1), "\(large + 6)"),
      (.integer(2), .real(2), "7.0"),
    ] {
      try expectOneCounter(
        [(added(one, since: .zero), at), (added(other, since: .zero), at)], shows: total)
    }
  }

  // MARK: - Keys

  @Test func rowsWithNullInTheirKeyArePassedOver() throws {
    try expectOneResult(
      Self.note, "note", key: ["id"],
      [
        Said(action: .insert, key: [.null], time: 1, cells: [("title", .text("no key"))]),
        Said(action: .update, key: [.null], time: 2, cells: [("n", .integer(1))]),
      ], shows: ["a|t|1|2", "b|u|2|3"])
    try expectOneResult(
      "CREATE TABLE pair (a TEXT, b INTEGER, v, PRIMARY KEY (a, b))", "pair", key: ["a", "b"],
      [
        Said(
          action: .insert, key: [.text("a"), .null], time: 1, cells: [("v", .integer(1))]),
        Said(
          action: .insert, key: [.text("a"), .integer(1)], time: 2, cells: [("v", .integer(2))]),
      ], shows: ["a|1|2"])
  }
}
