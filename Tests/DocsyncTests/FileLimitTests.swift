import Foundation
import Testing

/// The disk fails in the middle of what the command writes: the system refuses to make any file
/// longer than some limit, which SQLite calls an input or output error (SQLITE_IOERR).
@Suite struct FileLimitTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Runs the command with files of so many blocks of 512 bytes at most; the system
  /// gives an error instead of a signal.
  private func limited(_ blocks: Int, _ arguments: String...) throws -> Executable.Result {
    try Executable.run(
      arguments, in: scratch.path, after: "trap '' XFSZ; ulimit -f \(blocks)")
  }

  /// What each of a device's edits makes: rows of two tables, each of about a page, more of
  /// them than SQLite keeps in memory.
  private static let rounds = (1...3).map { round in
    """
    UPDATE text SET round = \(round), body = body || \(round);
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
      INSERT INTO text SELECT '\(round)-' || i, \(round), hex(randomblob(1600)) FROM n;
    INSERT INTO link SELECT k, 'of ' || k FROM text WHERE round = \(round) AND k LIKE '\(round)-%';
    DELETE FROM text WHERE k = '\(round - 1)-7'
    """
  }

  /// Two devices that know of each other, with a journal of one kind.
  private func makeDevices(_ journal: String) throws {
    try scratch.load(
      "a.db",
      """
      PRAGMA journal_mode = \(journal);
      CREATE TABLE text (k TEXT PRIMARY KEY, round INTEGER, body TEXT);
      CREATE TABLE link (k TEXT PRIMARY KEY REFERENCES text ON DELETE CASCADE, note TEXT);
      INSERT INTO text VALUES ('0-7', 0, 'first');
      """)
    try scratch.succeed("init", "a.db", "--directory", "shared", "--client", "A")
    try scratch.succeed("join", "b.db", "--directory", "shared", "--client", "B")
    try scratch.load("b.db", "PRAGMA journal_mode = \(journal)")
    try scratch.succeed("sync", "a.db", "b.db", "a.db")
  }

  /// All rows of the application.
  private func rows(_ store: String) throws -> [String] {
    try scratch.column(store, "SELECT hex(k || round || body) FROM text ORDER BY k")
      + scratch.column(store, "SELECT hex(k || note) FROM link ORDER BY k")
  }

  private func size(_ name: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: scratch.path + "/" + name)
    return try #require(attributes[.size] as? Int)
  }

  private func expectFailure(
    _ result: Executable.Result, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(
      result.status == 1 && !result.wasSignalled, "\(result.errors)",
      sourceLocation: sourceLocation)
    #expect(result.errors.contains("next: "), "\(result.errors)", sourceLocation: sourceLocation)
  }

  /// The store shows one of some states, and none that is between them.
  private func expectWhole(
    _ store: String, _ states: [[String]], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let found = try rows(store)
    // Rows are long: their number says enough.
    let isWhole = states.contains(found)
    #expect(
      isWhole, "\(found.count) rows of \(states.map(\.count))", sourceLocation: sourceLocation)
    #expect(
      try scratch.column(store, "PRAGMA integrity_check") == ["\"ok\""],
      sourceLocation: sourceLocation)
  }

  /// The limits for a store of some length, in blocks: some are within the store, whose end then
  /// cannot be written to.
  private static func limits(of length: Int) -> [Int] {
    let within = [length / 8, length / 3, length * 2 / 3, length - 4096]
    let beyond = [0, 64, 256, 600, 1000, 1500, 2400, 3500].map { length + $0 << 10 }
    return (within.map { max($0, 64 << 10) } + beyond).map { $0 / 512 }
  }

  @Test(arguments: ["DELETE", "WAL"])
  func whatCannotBeWrittenIsNotHalfApplied(journal: String) throws {
    try makeDevices(journal)
    var states = [try rows("b.db")]
    for round in Self.rounds {
      try scratch.sql("a.db", round)
      states.append(try rows("a.db"))
      try scratch.succeed("sync", "a.db")
    }
    let before = try size("b.db")
    var failures = 0
    for limit in Self.limits(of: before) {
      let result = try limited(limit, "sync", "b.db")
      if result.status != 0 {
        failures += 1
        expectFailure(result)
      }
      try expectWhole("b.db", states)
    }
    #expect(failures >= 4)
    try scratch.succeed("sync", "b.db")
    try expectWhole("b.db", states.suffix(1))
    try scratch.succeed("verify", "b.db")
    try scratch.succeed("verify", "--directory", "shared")
  }

  @Test(arguments: ["DELETE", "WAL"])
  func whatCannotBeWrittenIsNotHalfSent(journal: String) throws {
    try makeDevices(journal)
    let former = try rows("b.db")
    try scratch.sql("a.db", Self.rounds[0])
    let edited = try rows("a.db")
    let before = try size("a.db")
    var failures = 0
    for limit in Self.limits(of: before) {
      let result = try limited(limit, "sync", "a.db")
      if result.status != 0 {
        failures += 1
        expectFailure(result)
      }
      try expectWhole("a.db", [edited])
      try scratch.succeed("sync", "b.db")
      try expectWhole("b.db", [former, edited])
    }
    #expect(failures >= 2)
    try scratch.succeed("sync", "a.db", "b.db")
    try expectWhole("b.db", [edited])
    for store in ["a.db", "b.db"] { try scratch.succeed("verify", store) }
    try scratch.succeed("verify", "--directory", "shared")
  }
}
