import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Change sets that are well-formed and senseless: each is refused, by every
/// device, or has one result on every device, whatever comes first; and no
/// store is left in a state that verifying objects to.
///
/// ```
/// DOCSYNC_HOSTILE=100000 swift test --filter HostileChangeSetTests
/// ```
///
/// tries so many files; 6,000 of them are the ones that are tried without it.
@Suite struct HostileChangeSetTests {
  private static let filesPerFleet = 40

  private static var fleets: Int {
    let files = ProcessInfo.processInfo.environment["DOCSYNC_HOSTILE"].flatMap(Int.init)
    return max(1, (files ?? 1_600) / filesPerFleet / schemas.count)
  }

  private static let schemas: [HostileSchema] = [
    HostileSchema(
      "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, n INTEGER, r REAL, x); "
        + "INSERT INTO note VALUES ('a', 't', 1, 1.5, x'01'), ('b', 'u', 2, 2, 'x')",
      edits: [
        "INSERT INTO note VALUES ('c', 'v', 3, 3.5, 1)", "UPDATE note SET title = 'w', n = 7",
        "DELETE FROM note WHERE id = 'b'", "INSERT INTO note VALUES ('b', 'again', 0, 0, NULL)",
        "UPDATE note SET id = 'A' WHERE id = 'a'", "INSERT OR REPLACE INTO note (id) VALUES ('d')",
      ]),
    HostileSchema(
      "CREATE TABLE folder (id INTEGER PRIMARY KEY, name TEXT UNIQUE COLLATE NOCASE); "
        + "CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, "
        + "folder INTEGER REFERENCES folder (id) ON DELETE CASCADE); "
        + "INSERT INTO folder VALUES (1, 'a'), (2, 'b'); INSERT INTO note VALUES (1, 't', 1)",
      edits: [
        "INSERT INTO folder (name) VALUES ('c')",
        "INSERT INTO note (title, folder) VALUES ('n', 2)",
        "UPDATE note SET folder = 2", "DELETE FROM folder WHERE id = 1",
        "UPDATE folder SET name = 'B2' WHERE id = 2", "UPDATE folder SET id = 9 WHERE id = 2",
        "INSERT INTO note (title) VALUES (x'00')",
      ]),
    HostileSchema(
      "CREATE TABLE tag (name TEXT COLLATE NOCASE, kind, note TEXT, PRIMARY KEY (name, kind)) "
        + "WITHOUT ROWID; CREATE TABLE use (tag TEXT COLLATE NOCASE, kind, "
        + "id TEXT PRIMARY KEY, FOREIGN KEY (tag, kind) REFERENCES tag (name, kind) "
        + "ON DELETE SET NULL ON UPDATE CASCADE); "
        + "INSERT INTO tag VALUES ('A', 1, 'x'), ('b', 'k', 'y'); INSERT INTO use VALUES ('a', 1, 'u')",
      edits: [
        "INSERT INTO tag VALUES ('c', 1.5, NULL)", "UPDATE tag SET name = 'C' WHERE name = 'c'",
        "UPDATE tag SET note = 'z'", "INSERT INTO use VALUES ('B', 'k', 'v')",
        "DELETE FROM tag WHERE name = 'a'", "UPDATE tag SET kind = 1.0 WHERE kind = 1",
      ]),
    HostileSchema(
      "CREATE TABLE item (code INTEGER, part INT, n INTEGER CHECK (n < 100), t TEXT NOT NULL, "
        + "PRIMARY KEY (code, part)) STRICT; INSERT INTO item VALUES (1, 1, 1, 'a'), (2, 1, 2, 'b')",
      edits: [
        "INSERT INTO item VALUES (3, 1, 3, 'c')", "UPDATE item SET n = n + 1",
        "DELETE FROM item WHERE code = 2", "UPDATE item SET part = 2 WHERE code = 1",
        "INSERT OR REPLACE INTO item VALUES (1, 1, 9, 'd')",
      ]),
    HostileSchema(
      "CREATE TABLE article (id TEXT PRIMARY KEY, name TEXT, stock INTEGER); "
        + "INSERT INTO article VALUES ('a', 'x', 5), ('b', 'y', 0)",
      edits: [
        "UPDATE article SET stock = stock + 3", "INSERT INTO article VALUES ('c', 'z', 1)",
        "DELETE FROM article WHERE id = 'a'", "UPDATE article SET stock = 50, name = 'n'",
        "INSERT INTO article VALUES ('a', 'back', 2)",
      ]
    ) { $0.tableMergeTypes = ["article": .editWins] },
  ]

  @Test(arguments: schemas.indices) func everyFileHasOneResultOrIsRefused(schema: Int) throws {
    var tried = HostileFleet.Counts()
    for seed in 0..<Self.fleets {
      let fleet = try HostileFleet(Self.schemas[schema], seed: UInt64(seed))
      tried.add(try fleet.run(Self.filesPerFleet))
      if !tried.problems.isEmpty { break }
    }
    withKnownIssue(
      "Some forged files have other results on other devices: Reliability.md, “Open faults”.",
      isIntermittent: true
    ) {
      for problem in tried.problems { Issue.record("schema \(schema): \(problem)") }
    }
    // Neither is everything refused, nor nothing.
    guard tried.problems.isEmpty else { return }
    #expect(tried.applied > tried.files / 10 && tried.refused > tried.files / 10)
  }
}

struct HostileSchema: Sendable {
  var sql: String
  var edits: [String]
  var configuration = StoreConfiguration()

  init(
    _ sql: String, edits: [String],
    _ configure: (inout StoreConfiguration) -> Void = { _ in }
  ) {
    self.sql = sql
    self.edits = edits
    configure(&configuration)
  }
}

/// Three devices and some that mean harm.
struct HostileFleet {
  struct Counts {
    var files = 0
    var applied = 0
    var refused = 0
    var problems: [String] = []

    mutating func add(_ other: Counts) {
      files += other.files
      applied += other.applied
      refused += other.refused
      problems += other.problems
    }
  }

  private let scratch: Scratch
  private let devices: [Device]
  private let seed: UInt64
  private let honest: [[ReceivedChangeSet]]

  init(_ schema: HostileSchema, seed: UInt64) throws {
    self.seed = seed
    scratch = try Scratch()
    devices = try scratch.devices(3, schema.sql, configuration: schema.configuration)
    var generator = SeededGenerator(seed: seed)
    for (index, device) in devices.enumerated() {
      // In real time, so that clocks say something else than before.
      try device.setClock(milliseconds: 1_790_000_000_000 + Int64(generator.below(3)))
      try device.setIdentities(letter: UInt8(index + 1))
    }
    for round in 0..<2 {
      for device in devices {
        for _ in 0...generator.below(3) {
          do {
            try device.run(schema.edits[generator.below(schema.edits.count)])
          } catch is Program.Failure {
            // What the schema refuses is passed over.
            continue
          }
        }
        _ = try device.store.seal()
      }
      if round == 0 { try devices[1].receive(from: devices[0]) }
    }
    honest = try devices.map { try $0.outgoing() }
  }

  /// Makes files, gives them to the devices in different orders, and compares
  /// what becomes of them.
  func run(_ count: Int) throws -> Counts {
    var counts = Counts()
    let sets = honest.flatMap { $0.map(\.changeSet) }
    var mutations = HostileMutations(of: sets, seed: seed)
    var files: [ReceivedChangeSet] = []
    for _ in 0..<count {
      counts.files += 1
      var set = sets[mutations.generator.below(sets.count)]
      set.header.client = .random(using: &mutations.generator)
      set.header.number = 1
      set.header.previous = nil
      set = mutations.mutate(set)
      do {
        let bytes = try ChangeSetCodec.encode(set)
        files.append(
          ReceivedChangeSet(
            changeSet: try ChangeSetCodec.decode(bytes), hash: ContentHash(of: bytes),
            bytes: bytes))
      } catch is CodecError {
        counts.refused += 1
      }
    }
    var refused: [Set<ContentHash>] = []
    for (index, device) in devices.enumerated() {
      let others = honest.enumerated().flatMap { $0.offset == index ? [] : $0.element }
      let all = (files + others).shuffled(using: &mutations.generator)
      var refusals: Set<ContentHash> = []
      var position = 0
      while position < all.count {
        let end = min(all.count, position + 1 + mutations.generator.below(6))
        let report = try device.store.apply(Array(all[position..<end]))
        refusals.formUnion(report.refused.map(\.hash))
        position = end
      }
      refused.append(refusals)
    }
    counts.refused += refused[0].count
    counts.applied += files.count - refused[0].count
    counts.problems = try problems(refused, files)
    return counts
  }

  private func problems(
    _ refused: [Set<ContentHash>], _ files: [ReceivedChangeSet]
  ) throws -> [String] {
    var problems: [String] = []
    for set in refused.dropFirst() where set != refused[0] {
      problems.append("seed \(seed): refused by one and not by the other")
    }
    try exchange(devices)
    let digests = try devices.map { try $0.store.digest() }
    for digest in digests.dropFirst() {
      if digest.visible != digests[0].visible { problems.append("seed \(seed): visible") }
      if digest.logical != digests[0].logical { problems.append("seed \(seed): logical") }
    }
    for device in devices {
      let found = try LocalStore.verify(at: device.path).report.findings
      problems += found.filter { $0.severity > .note }.map { "seed \(seed): \($0)" }
      if try device.rows("PRAGMA integrity_check") != ["ok"]
        || device.rows("PRAGMA foreign_key_check") != []
      {
        problems.append("seed \(seed): integrity")
      }
      if try !device.store.waiting().isEmpty {
        let waiting = try device.store.waiting()
        let known = Set(files.map(\.changeSet.header.client))
        if waiting.contains(where: { !known.contains($0.client) }) {
          problems.append("seed \(seed): an honest change set waits")
        }
      }
    }
    return problems
  }
}
