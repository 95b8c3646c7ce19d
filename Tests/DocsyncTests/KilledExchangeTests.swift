#if os(Linux)
  import Foundation
  import GRDB
  import Testing

  /// A process that is killed while it takes over a whole store.
  @Suite struct KilledExchangeTests {
    /// When a process is killed: as it downloads the whole store, copies its own, begins the
    /// exchange, is amid it, commits it, announces its new client, and writes the first file.
    enum Point: CaseIterable, CustomTestStringConvertible {
      case download, copy, begin, amid, commit, announcement, firstFile

      var testDescription: String { "\(self)" }

      /// The call after which it is killed, in a store whose log is named `log`.
      func place(log: String) -> KillingCalls.Place {
        let copy = "/b.db.before-"
        return switch self {
        case .download: .init(call: .write, name: "/b.db-docsync-tmp.")
        case .copy: .init(call: .write, name: copy)
        case .begin: .init(call: .write, name: "/b.db-\(log)$", after: copy)
        case .amid: .init(call: .write, name: "/b.db-\(log)$", bytes: 100_000, after: copy)
        case .commit: .init(call: .write, name: "/b.db$", after: copy)
        case .announcement: .init(call: .rename, name: "/shared/ClientDevices/", after: copy)
        case .firstFile: .init(call: .create, name: "/shared/", after: copy)
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
      let calls = try KillingCalls(in: scratch.path)
      var wanted: [String] = []
      for (round, point) in Point.allCases.enumerated() {
        // Everything is another in the whole store, so that there is much to do.
        try scratch.sql(
          "a.db",
          "UPDATE notes SET body = hex(randomblob(150)); "
            + "INSERT INTO notes (title) VALUES ('a\(round)')")
        try scratch.succeed("reset", "a.db", "--yes")
        try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('b\(round)')")
        wanted += ["\"a\(round)\"", "\"b\(round)\""]
        let place = point.place(log: mode == "wal" ? "wal" : "journal")
        let killed = try Executable.run(
          ["sync", "b.db"], in: scratch.path, after: calls.shell(at: place))
        #expect(killed.wasSignalled && killed.status == SIGKILL, "\(point): \(killed)")
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
      let verified = try scratch.succeed("verify", "b.db").output
      #expect(!verified.contains("error"), "\(verified)")
    }
  }
#endif
