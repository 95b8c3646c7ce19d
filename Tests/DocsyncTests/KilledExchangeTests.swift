import Foundation
import GRDB
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A process that is killed while it takes over a whole store.
@Suite struct KilledExchangeTests {
  /// When a process is killed.
  enum Point: CaseIterable, CustomTestStringConvertible {
    case download, copy, begin, amid, commit, announcement, firstFile

    var testDescription: String { "\(self)" }
  }

  /// What can be seen of a store and its directory from outside.
  private struct Sight: Equatable {
    var temporaryFiles = 0
    var backups = 0
    var logBytes = 0
    var written: [Int] = []
    var descriptions = 0
    var files = 0

    init(_ scratch: Scratch) throws {
      for name in try FileManager.default.contentsOfDirectory(atPath: scratch.path) {
        if name.hasPrefix("b.db-docsync-tmp.") { temporaryFiles += 1 }
        if name.hasPrefix("b.db.before-") { backups += 1 }
      }
      for suffix in ["-wal", "-journal"] {
        logBytes += Self.status(scratch.path + "/b.db" + suffix).map { Int($0.st_size) } ?? 0
      }
      if let status = Self.status(scratch.path + "/b.db") {
        #if canImport(Darwin)
          let time = status.st_mtimespec
        #else
          let time = status.st_mtim
        #endif
        written = [Int(status.st_size), time.tv_sec, time.tv_nsec]
      }
      for name in try FileManager.default.subpathsOfDirectory(atPath: scratch.path + "/shared") {
        if name.hasPrefix("ClientDevices/") { descriptions += 1 }
        files += 1
      }
    }

    private static func status(_ path: String) -> stat? {
      var status = stat()
      return stat(path, &status) == 0 ? status : nil
    }

    /// Whether a process that was started at the sight `before` has come to a
    /// point.
    func isAt(_ point: Point, since before: Sight) -> Bool {
      switch point {
      case .download: temporaryFiles > 0
      case .copy: backups > before.backups
      case .begin: backups > before.backups && logBytes != before.logBytes && logBytes > 0
      case .amid: backups > before.backups && logBytes > before.logBytes + 100_000
      case .commit: backups > before.backups && written != before.written
      case .announcement: descriptions > before.descriptions
      case .firstFile: files > before.files
      }
    }
  }

  private func makeDevices(_ scratch: Scratch, mode: String) throws {
    try scratch.sql(
      "a.db",
      """
      CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT, body TEXT);
      WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
      INSERT INTO notes SELECT i, 'note ' || i, hex(randomblob(150)) FROM n;
      """)
    try scratch.succeed("init", "a.db", "--directory", "shared", "--document", "notes")
    try scratch.succeed("join", "b.db", "--directory", "shared")
    let queue = try DatabaseQueue(path: scratch.path + "/b.db")
    try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = \(mode)") }
    try queue.close()
  }

  @Test(arguments: ["delete", "wal"])
  func theNextSyncContinuesWithAllEdits(mode: String) throws {
    let scratch = try Scratch()
    try makeDevices(scratch, mode: mode)
    var wanted: [String] = []
    var points = Point.allCases
    var round = 0
    while let point = points.first, round < 4 * Point.allCases.count {
      defer { round += 1 }
      // Everything is another in the whole store, so that there is much to do.
      try scratch.sql(
        "a.db",
        "UPDATE notes SET body = hex(randomblob(150)); "
          + "INSERT INTO notes (title) VALUES ('a\(round)')")
      try scratch.succeed("reset", "a.db", "--yes")
      try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('b\(round)')")
      wanted += ["\"a\(round)\"", "\"b\(round)\""]
      let before = try Sight(scratch)
      let process = try Executable.start(["sync", "b.db"], in: scratch.path)
      while process.isRunning, try !Sight(scratch).isAt(point, since: before) { sched_yield() }
      kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
      // The process may be faster than the test that watches it: then once more.
      if process.terminationReason == .uncaughtSignal { points.removeFirst() }
      #expect(try scratch.column("b.db", "PRAGMA integrity_check") == ["\"ok\""], "\(point)")
      // Its own edit is in the rows, or stored to be published again.
      try scratch.succeed("sync", "b.db")
      for store in ["a.db", "b.db"] { try scratch.succeed("sync", store) }
      let titles = "SELECT title FROM notes WHERE title NOT LIKE 'note %' ORDER BY title"
      #expect(try scratch.column("a.db", titles) == wanted.sorted(), "\(point)")
      #expect(try scratch.column("b.db", titles) == wanted.sorted(), "\(point)")
      let digests = try ["a.db", "b.db"].map { store in
        try scratch.succeed("digest", store, "--json").json()["visible"] as? String
      }
      #expect(digests[0] == digests[1] && digests[0] != nil, "\(point)")
      let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
      #expect(!names.contains { $0.contains("-docsync-tmp.") }, "\(point)")
    }
    #expect(points.isEmpty, "never killed at \(points)")
    let verified = try scratch.succeed("verify", "b.db").output
    #expect(!verified.contains("error"), "\(verified)")
  }
}
