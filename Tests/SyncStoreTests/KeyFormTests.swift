import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Tables that a migration makes again with another affinity or collation of a key column.
@Suite struct KeyFormTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// The types of the key before and after, and whether the spelling of a key can be another.
  struct Forms: CustomTestStringConvertible {
    var former: String
    var present: String
    /// The keys of the first rows, of rows that the devices insert, and of one that comes again.
    var keys = ["5", "7", "9", "13"]
    var testDescription: String { "\(former) → \(present)" }

    static let all = [
      Forms(former: "BIGINT", present: "VARCHAR(20)"), Forms(former: "TEXT", present: "BIGINT"),
      Forms(former: "TEXT", present: "TEXT COLLATE NOCASE", keys: ["Ab", "cD", "ef", "GH"]),
      Forms(former: "TEXT COLLATE NOCASE", present: "TEXT", keys: ["Ab", "cD", "ef", "GH"]),
      Forms(former: "TEXT COLLATE RTRIM", present: "BLOB", keys: ["Ab", "cD", "ef", "GH"]),
      Forms(former: "REAL", present: "TEXT", keys: ["5.5", "7.5", "9.5", "1.0e+30"]),
    ]
  }

  /// The tables with a form of the key: alone, with rows that refer to it, with a key that contains
  /// it, or with the columns that identify a row.
  enum Shape: CaseIterable {
    case alone, referred, contained, declared

    func tables(_ type: String) -> [String: String] {
      switch self {
      case .alone: ["w": "(k \(type) PRIMARY KEY, x TEXT)"]
      case .referred:
        [
          "w": "(k \(type) PRIMARY KEY, x TEXT)",
          "c": "(id INTEGER PRIMARY KEY, w \(type) REFERENCES w(k) ON DELETE CASCADE, y TEXT)",
        ]
      case .contained:
        [
          "w": "(k \(type) PRIMARY KEY, x TEXT)",
          "c": "(w \(type) REFERENCES w(k) ON DELETE CASCADE, n, y TEXT, PRIMARY KEY (w, n))",
        ]
      case .declared:
        [
          "w": "(id INTEGER PRIMARY KEY, k \(type) NOT NULL UNIQUE, x TEXT)",
          "c": "(w INTEGER REFERENCES w(id) ON DELETE CASCADE, n, y TEXT, PRIMARY KEY (w, n))",
        ]
      }
    }

    func creation(_ type: String) -> String {
      tables(type).sorted { $0.key > $1.key }.map { "CREATE TABLE \($0) \($1);" }.joined()
    }

    func migration(to type: String) -> String {
      "PRAGMA foreign_keys = OFF; BEGIN;"
        + tables(type).sorted { $0.key > $1.key }.map { name, columns in
          "CREATE TABLE new_\(name) \(columns); INSERT INTO new_\(name) SELECT * FROM \(name);"
            + "DROP TABLE \(name); ALTER TABLE new_\(name) RENAME TO \(name);"
        }.joined() + "COMMIT; PRAGMA foreign_keys = ON;"
    }

    /// Inserts a row, with a row that refers to it.
    func insertion(_ key: String, _ value: String) -> String {
      let row = "INSERT INTO w (k, x) VALUES ('\(key)', '\(value)');"
      return switch self {
      case .alone: row
      case .referred: row + "INSERT INTO c (w, y) VALUES ('\(key)', '\(value)');"
      case .contained: row + "INSERT INTO c VALUES ('\(key)', 1, '\(value)');"
      case .declared:
        row + "INSERT INTO c SELECT id, 1, '\(value)' FROM w WHERE k = '\(key)';"
      }
    }

    var query: String {
      switch self {
      case .alone: "SELECT CAST(k AS TEXT), x FROM w ORDER BY x"
      case .referred, .contained:
        "SELECT CAST(k AS TEXT), x, y FROM w LEFT JOIN c ON c.w = w.k ORDER BY x, y"
      case .declared:
        "SELECT CAST(k AS TEXT), x, y FROM w LEFT JOIN c ON c.w = w.id ORDER BY x, y"
      }
    }
  }

  private func devices(_ forms: Forms, _ shape: Shape) throws -> [Device] {
    var configuration = StoreConfiguration()
    if shape == .declared { configuration.identities = ["w": .columns(["k"])] }
    let first = zip(forms.keys, ["a", "b", "c", "d"]).map { shape.insertion($0, $1) }.joined()
    return try scratch.devices(
      2, shape.creation(forms.former) + first, configuration: configuration)
  }

  private func expect(
    _ devices: [Device], _ shape: Shape, _ rows: [String], areAlike: Bool = true,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    for device in devices {
      let shown = try device.rows(shape.query).map { $0.split(separator: "|").dropFirst().first }
      #expect(shown == rows.map { Substring($0) }, sourceLocation: sourceLocation)
      #expect(
        try LocalStore.verify(at: device.path).report.findings == [],
        sourceLocation: sourceLocation)
      #expect(try device.rows("PRAGMA foreign_key_check") == [], sourceLocation: sourceLocation)
    }
    guard areAlike else { return }
    let digests = try devices.map { try $0.store.digest().visible }
    #expect(Set(digests).count == 1, sourceLocation: sourceLocation)
  }

  /// All forms with all shapes but one: a reference by declared columns from a device with the former
  /// form does not tell “Ab” from “ab”.
  private static let cases = Forms.all.flatMap { forms in
    Shape.allCases.map { (forms, $0) }
  }.filter { $0.1 != .declared || $0.0.former != "TEXT COLLATE NOCASE" }

  /// Edits before, between and after the migrations of two devices reach both, and deletions stay.
  @Test(arguments: cases)
  func rowsKeepTheirStates(forms: Forms, shape: Shape) throws {
    let devices = try devices(forms, shape)
    let keys = forms.keys
    func edit(_ device: Int, _ sql: String) throws { try devices[device].run(sql) }
    try edit(0, "UPDATE w SET x = 'a1' WHERE k = '\(keys[0])'")
    try exchange(devices)
    // The first device migrates with an edit that is not sealed, and deletes a row afterwards.
    try edit(0, "UPDATE w SET x = 'b1' WHERE k = '\(keys[1])'")
    try edit(0, shape.migration(to: forms.present))
    try edit(0, "DELETE FROM w WHERE k = '\(keys[2])'")
    // The other one still has the former form.
    try edit(1, "DELETE FROM w WHERE k = '\(keys[3])'; UPDATE w SET x = 'a2' WHERE x = 'a1'")
    try exchange(devices)
    try expect(devices, shape, ["a2", "b1"], areAlike: false)
    try edit(1, shape.migration(to: forms.present))
    try exchange(devices)
    try expect(devices, shape, ["a2", "b1"])
    // What was deleted under its former key comes again.
    try edit(0, shape.insertion(keys[3], "e"))
    try edit(1, shape.insertion(keys[2], "f"))
    try exchange(devices)
    try expect(devices, shape, ["a2", "b1", "e", "f"])
    for device in devices { try device.run("ALTER TABLE w ADD COLUMN z") }
    try exchange(devices)
    try expect(devices, shape, ["a2", "b1", "e", "f"])
    try edit(1, "UPDATE w SET x = 'b2' WHERE x = 'b1'; DELETE FROM w WHERE x = 'a2'")
    try exchange(devices)
    try expect(devices, shape, ["b2", "e", "f"])
  }

  /// A deletion of which only the stamp is known takes precedence over an insertion that is older and
  /// arrives after the migration.
  @Test(arguments: [Shape.alone, .contained], [false, true])
  func anErasedRowStaysDeleted(shape: Shape, isMigratedFirst: Bool) throws {
    let devices = try scratch.devices(3, shape.creation("BIGINT") + shape.insertion("1", "a"))
    try devices[2].run(shape.insertion("9", "older"))
    let others = Array(devices[..<2])
    try devices[0].run(shape.insertion("9", "newer"))
    try exchange(others)
    try devices[0].run("DELETE FROM w WHERE k = 9")
    try exchange(others)
    for device in others { try device.run(shape.migration(to: "VARCHAR(20)")) }
    try exchange(others)
    if isMigratedFirst { try devices[2].run(shape.migration(to: "VARCHAR(20)")) }
    try exchange(devices)
    if !isMigratedFirst { try devices[2].run(shape.migration(to: "VARCHAR(20)")) }
    try exchange(devices)
    try expect(devices, shape, ["a"])
  }

  /// A row that is inserted after the migration, before docsync runs, and whose key would have been
  /// that of another row before, is a row of its own.
  @Test(
    arguments: [
      ("BIGINT", "7 007"), ("TEXT COLLATE NOCASE", "ab AB"),
      ("TEXT COLLATE NOCASE", "Ab ab"),
    ], [false, true])
  func aKeyThatWasEqualIsAnotherRow(
    form: (types: String, keys: String), isStamped: Bool
  ) throws {
    let former = form.types.hasPrefix("BIGINT") ? "BIGINT" : form.types
    let present = form.types.hasPrefix("BIGINT") ? "VARCHAR(20)" : "TEXT"
    let keys = form.keys.split(separator: " ").map(String.init)
    let shape = Shape.alone
    let devices = try scratch.devices(
      2, shape.creation(former) + (isStamped ? "" : shape.insertion(keys[0], "a")))
    if isStamped {
      try devices[1].run(shape.insertion(keys[0], "a"))
      try exchange(devices)
    }
    try devices[0].run(shape.migration(to: present))
    try devices[0].run(shape.insertion(keys[1], "b"))
    try devices[1].run(shape.migration(to: present))
    try exchange(devices)
    try expect(devices, shape, ["a", "b"])
    for device in devices { #expect(try device.sealsNothing()) }
  }

  /// Keys that become equal: the deletion of one, which another device applies to the row that is
  /// left, does not divide the devices.
  @Test(arguments: [true, false])
  func aDeletionOfAKeyThatBecomesEqualIsNoFork(isLater: Bool) throws {
    let shape = Shape.alone
    let devices = try scratch.devices(2, shape.creation("TEXT"))
    try devices[0].run(shape.insertion("ab", "a") + shape.insertion("AB", "b"))
    try exchange(devices)
    let migration = shape.migration(to: "TEXT COLLATE NOCASE")
    if !isLater { try devices[1].run("DELETE FROM w WHERE k = 'ab'") }
    try devices[0].run("DELETE FROM w WHERE k = 'ab'; " + migration)
    try devices[0].receive(from: devices[1])
    if isLater { try devices[1].run("DELETE FROM w WHERE k = 'ab'") }
    try devices[0].receive(from: devices[1])
    try devices[1].run(migration)
    try exchange(devices)
    let contents = try devices.map { try $0.rows(shape.query) }
    #expect(contents[0] == contents[1])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  /// The stamps of rows whose keys contain a row with declared columns are found by the spelling of
  /// that row: an edit that is older does not replace theirs.
  @Test func rowsWithSpelledParentsKeepTheirStamps() throws {
    let shape = Shape.declared
    var configuration = StoreConfiguration()
    configuration.identities = ["w": .columns(["k"])]
    let devices = try scratch.devices(
      3, shape.creation("TEXT") + shape.insertion("Ab", "a"), configuration: configuration)
    let others = Array(devices[..<2])
    try devices[2].run("UPDATE c SET y = 'older'")
    // Of edits in one millisecond, either may be the later one.
    usleep(2_000)
    try devices[0].run("UPDATE c SET y = 'newer'")
    try exchange(others)
    let migration = shape.migration(to: "TEXT COLLATE NOCASE")
    for device in others { try device.run(migration) }
    try exchange(others)
    try devices[2].run(migration)
    try exchange(devices)
    for device in devices { #expect(try device.rows("SELECT y FROM c") == ["newer"]) }
    try expect(devices, shape, ["a"])
  }

  /// Three devices edit and exchange, and each migrates from numbers to text and back at times of its
  /// own.
  @Test(arguments: Shape.allCases, 0..<RandomRuns.count)
  func devicesConvergeWheneverTheyMigrate(shape: Shape, run: Int) throws {
    let types = ["BIGINT", "VARCHAR(20)", "INT", "TEXT COLLATE NOCASE"]
    let seed = RandomRuns.first + UInt64(run)
    var random = SeededGenerator(seed: seed)
    var configuration = StoreConfiguration()
    if shape == .declared { configuration.identities = ["w": .columns(["k"])] }
    let devices = try scratch.devices(
      3, shape.creation(types[0]) + shape.insertion("1", "a") + shape.insertion("2", "b"),
      configuration: configuration)
    var versions = [0, 0, 0]
    var accepted = 0
    func migrate(_ device: Int) throws {
      versions[device] += 1
      try devices[device].run(shape.migration(to: types[versions[device]]))
      if random.chance(50) { _ = try devices[device].store.status() }
    }
    for step in 0..<120 {
      let device = random.below(3)
      let key = "\(random.below(6) + 1)"
      let isWritten: Bool
      switch random.below(100) {
      case 0..<4 where versions[device] + 1 < types.count: try migrate(device)
      case 0..<75:
        let statement =
          switch random.below(5) {
          case 0, 1: shape.insertion(key, "v\(step)")
          case 2: "DELETE FROM w WHERE k = '\(key)'"
          case 3 where shape != .alone: "UPDATE c SET y = 'y\(step)' WHERE y > 'v\(step / 2)'"
          default: "UPDATE w SET x = 'x\(step)' WHERE k = '\(key)'"
          }
        do {
          try devices[device].run(statement)
          isWritten = true
        } catch is Program.Failure {
          isWritten = false
        }
        if isWritten { accepted += 1 }
      default: try devices[device].receive(from: devices[(device + 1 + random.below(2)) % 3])
      }
    }
    while let device = versions.firstIndex(where: { $0 + 1 < types.count }) { try migrate(device) }
    #expect(accepted > 20, "seed \(seed)")
    try exchange(devices)
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("PRAGMA foreign_key_check") == [], "seed \(seed)")
      #expect(
        try LocalStore.verify(at: device.path).report.findings == [], "seed \(seed)")
    }
    let contents = try devices.map { try $0.rows(shape.query) }
    #expect(Set(contents).count == 1, "seed \(seed)")
    #expect(Set(try devices.map { try $0.store.digest().visible }).count == 1, "seed \(seed)")
  }

  /// The seeds of the random histories: `DOCSYNC_SEED` and `DOCSYNC_RUNS` name others.
  private enum RandomRuns {
    static let first = ProcessInfo.processInfo.environment["DOCSYNC_SEED"].flatMap(UInt64.init) ?? 1
    static let count = ProcessInfo.processInfo.environment["DOCSYNC_RUNS"].flatMap(Int.init) ?? 6
  }
}
