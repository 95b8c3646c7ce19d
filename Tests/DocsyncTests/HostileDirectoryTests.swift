import Foundation
import SyncDirectory
import SyncModel
import Testing

@testable import DocumentSync

/// Whatever is in a shared directory: a synchronization takes less than 256 MB of memory, takes a
/// time in proportion to the bytes that are there, and brings what honest devices have edited.
@Suite(.serialized) struct HostileDirectoryTests {
  /// The most memory that a command may have at one time.
  private static let greatestMemory = 256_000_000

  /// What is put into the directory.
  struct Attack: CustomTestStringConvertible, Sendable {
    var testDescription: String
    /// Whether a sync says that it waits for what cannot be taken.
    var waits = true
    /// Puts it there; gives the paths of files that verifying is to name.
    let prepare: @Sendable (Forger, Scratch) throws -> [RelativePath]
  }

  let scratch: Scratch
  let forger: Forger

  init() throws {
    scratch = try Scratch()
    try scratch.makeTwoDevices()
    try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('honest')")
    try scratch.succeed("sync", "a.db")
    forger = try Forger(scratch.path + "/shared")
  }

  /// Runs a command within the bounds.
  private func run(
    _ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Executable.Result {
    // Of a debug build, on a machine that does other things as well.
    let size = try forger.size()
    let seconds = 20 + Double(size.bytes) / 2_000_000 + Double(size.names) / 2_000
    let measured = try Executable.measure(arguments, in: scratch.path, atMost: seconds)
    #expect(
      measured.peak < Self.greatestMemory, "\(arguments): \(measured.peak / 1_000_000) MB",
      sourceLocation: sourceLocation)
    #expect(
      !measured.isTooSlow && !measured.result.wasSignalled,
      "\(arguments): \(measured.seconds) s, \(measured.result.errors)",
      sourceLocation: sourceLocation)
    return measured.result
  }

  private func expectHonest(
    _ store: String, _ titles: [String] = ["honest"],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    #expect(
      try scratch.column(store, "SELECT title FROM notes WHERE title LIKE 'honest%' ORDER BY 1")
        == titles.map { "\"\($0)\"" }, sourceLocation: sourceLocation)
  }

  @Test(arguments: attacks + wideAttacks) func syncStaysWithinItsBounds(_ attack: Attack) throws {
    let named = try attack.prepare(forger, scratch)
    let sync = try run("sync", "b.db")
    #expect(sync.status == (attack.waits ? 3 : 0), "\(sync.errors)")
    try expectHonest("b.db")
    // Also when what is there is known, and more comes.
    try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('honest too')")
    _ = try run("sync", "a.db")
    _ = try run("sync", "b.db")
    try expectHonest("b.db", ["honest", "honest too"])
    let verify = try run("verify", "--directory", "shared")
    for path in named { #expect(verify.output.contains(path.description), "\(path)") }
  }
}

extension HostileDirectoryTests {
  private static let time = HybridTime(milliseconds: 1_790_000_000_000)

  static let attacks = [
    Attack(testDescription: "a few bytes for much text", waits: true) { forger, _ in
      // Each within the caps, and all at once.
      let text = Value.text([UInt8](repeating: 65, count: 60_000))
      for _ in 0..<4 {
        let client = ClientIdentifier.random()
        try forger.publish(
          forger.changeSet(by: client, [Forger.notes(500, title: text)]), by: client)
      }
      // Over them.
      let client = ClientIdentifier.random()
      return [
        try forger.publish(
          forger.changeSet(by: client, [Forger.notes(1_500, title: text)]), by: client)
      ]
    },
    Attack(testDescription: "rows and tables without end") { forger, _ in
      try [250_000, 1 << 40].map { rows in
        let client = ClientIdentifier.random()
        // Rows of which all is the same, keys included.
        return try forger.publish(
          forger.changeSet(
            by: client, rows: rows, time: time, structure: sameRows(rows)), by: client)
      }
        + [
          try {
            let client = ClientIdentifier.random()
            return try forger.publish(
              forger.changeSet(by: client, (0..<10_000).map { table("t\($0)", columns: 10) }),
              by: client)
          }()
        ]
    },
    Attack(testDescription: "unknown columns", waits: false) { forger, _ in
      let client = ClientIdentifier.random()
      try forger.publish(
        forger.changeSet(by: client, (0..<3).map { table("t\($0)", columns: 1_900) }), by: client)
      return []
    },
    Attack(testDescription: "values as long as may be, and longer") { forger, _ in
      let author = ClientIdentifier.random()
      try forger.publish(
        forger.changeSet(
          by: author, [Forger.notes(1, title: .blob(try randomBytes(63 << 20)))]), by: author)
      let client = ClientIdentifier.random()
      let zeros = try forger.publish(
        forger.changeSet(
          by: client,
          [Forger.notes(1, title: .text([UInt8](repeating: 48, count: 90 << 20)))]), by: client)
      let path = forger.layout.path(
        of: ChangeSetName(number: 1, hash: HashFragment(ContentHash(of: [1]))), by: .random())
      try forger.writeZeros(65 << 20, at: path)
      return [zeros, path]
    },
    Attack(testDescription: "change sets that wait for ever") { forger, _ in
      let missing = VersionVector([
        .random(): VersionVector.Entry(number: 1, hash: ContentHash(of: []))
      ])
      let text = Value.text([UInt8](repeating: 65, count: 50_000))
      for _ in 0..<40 {
        let client = ClientIdentifier.random()
        try forger.publish(
          forger.changeSet(by: client, needing: missing, [Forger.notes(100, title: text)]),
          by: client)
      }
      return []
    },
    Attack(testDescription: "2,000 segments one over the other") { forger, _ in
      let client = ClientIdentifier.random()
      let junk = try randomBytes(4_096)
      var paths: [RelativePath] = []
      for first in 1...2_000 {
        let parts = (0..<4).map { part in junk + Forger.varint(first + part) }
        paths.append(try forger.publish(parts, by: client, from: UInt64(first)))
      }
      try forger.announce(client, 2_000)
      return [paths[0]]
    },
    Attack(testDescription: "segments as long as may be") { forger, _ in
      let client = ClientIdentifier.random()
      let junk = try randomBytes(31 << 20)
      try forger.announce(client, 3)
      return try (1...3).map { first in
        try forger.publish([junk, junk + [UInt8(first)]], by: client, from: UInt64(first))
      }
    },
  ]

  /// A table that no device has, with one row of integers.
  private static func table(_ name: String, columns: Int) -> TableChanges {
    var table = TableChanges(
      table: SQLName(name), identity: .primaryKey, keyColumns: ["k"],
      columns: (0..<columns).map { SQLName("c\($0)") })
    table.actions = [RowAction.insert.rawValue]
    table.times = [time]
    table.keys[0].append(integer: 1)
    table.shapes = [Array(0..<columns)]
    table.rowShapes = [0]
    for column in 0..<columns { table.cells[column].append(integer: 1) }
    return table
  }

  /// The structure of rows of `tags`, each with the key NULL and nothing else.
  private static func sameRows(_ count: Int) -> [UInt8] {
    func name(_ text: String) -> [UInt8] { Forger.varint(text.utf8.count) + Array(text.utf8) }
    func same(_ number: Int) -> [UInt8] { [0] + Forger.varint(number << 1) }
    var bytes = name("tags") + [0, 1] + name("name") + [0] + Forger.varint(count)
    bytes += same(0) + same(0)
    bytes += same(Int(time.rawValue))
    return bytes + [1, 0] + same(0) + [0, 0]
  }

  private static func randomBytes(_ count: Int) throws -> [UInt8] {
    let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/dev/urandom"))
    defer { file.closeFile() }
    return Array(try file.read(upToCount: count) ?? Data())
  }
}

// MARK: - Whole stores

extension HostileDirectoryTests {
  /// Whole stores that claim to be the best, of which markers say so, too. A marker names only so
  /// many.
  private func forgeStores(_ count: Int, database: [UInt8]) throws {
    for first in stride(from: 0, to: count, by: 200) {
      try forgeStoresOfOneClient(min(200, count - first), database: database)
    }
  }

  private func forgeStoresOfOneClient(_ count: Int, database: [UInt8]) throws {
    let client = ClientIdentifier.random()
    let vector = VersionVector([
      client: VersionVector.Entry(number: 1 << 40, hash: ContentHash(of: []))
    ])
    let bytes = try (1...count).map { number in
      try forger.publish(
        wholeStore: forger.wholeStore(
          by: client, number: UInt64(number), vector: vector, database: database),
        by: client, number: UInt64(number), vector: vector)
    }
    try forger.announce(client) { $0.wholeStores = bytes }
  }

  @Test func forgedWholeStoresDoNotHideAnHonestOne() throws {
    try forgeStores(1_900, database: [1, 2, 3])
    try forgeStores(100, database: [UInt8](repeating: 0, count: 8 << 20))
    // One that only its claim makes long.
    let client = ClientIdentifier.random()
    try forger.publish(
      wholeStore: forger.wholeStore(
        by: client, vector: VersionVector(), database: [1], claimedByteCount: 1 << 40),
      by: client, vector: VersionVector())
    let join = try run("join", "c.db", "--directory", "shared")
    #expect(join.status == 0, "\(join.errors)")
    try expectHonest("c.db")
    try scratch.succeed("sync", "c.db")
  }
}
