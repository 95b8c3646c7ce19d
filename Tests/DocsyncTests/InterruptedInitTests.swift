#if os(Linux)
  import Foundation
  import Testing

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #endif

  /// An `init` that was killed, and every command after it: whatever the command says to do next
  /// leads to a document that works, or to a database that is not under sync.
  ///
  /// ```
  /// DOCSYNC_EVERY_STEP=1 swift test --filter InterruptedInitTests
  /// ```
  ///
  /// tries all commands after all interruptions; otherwise one in seven.
  @Suite struct InterruptedInitTests {
    /// The name that `init` opens when it is killed.
    static let points = ["application.", "generation.", "RecentSyncs", "WholeStore", ".store"]

    /// What becomes of the directory before the command.
    enum Fate: CaseIterable { case stays, goes, isEmptied, isDeleted }

    static let initCommand = ["init", "a.db", "--directory", "shared"]
    static let leaving = ["leave", "a.db", "--abandon", "--yes"]
    static let commands = [
      initCommand, initCommand + ["--exclude", "notes.title"], initCommand + ["--document", "x"],
      ["init", "a.db", "--directory", "other"], ["sync", "a.db"], ["status", "a.db"],
      ["verify", "a.db"], ["join", "a.db", "--directory", "shared"],
      ["join", "b.db", "--directory", "shared"], ["upload", "a.db"], ["leave", "a.db", "--yes"],
      leaving, ["sync", "a.db", "--recreate"], ["conflicts", "a.db"],
      ["documents", "--directory", "shared"],
    ]

    private static let every =
      ProcessInfo.processInfo.environment["DOCSYNC_EVERY_STEP"].flatMap { Int($0) } ?? 7

    @Test(arguments: points, Fate.allCases)
    func whatACommandSaysToDoNextWorks(point: String, fate: Fate) throws {
      let row = (Self.points.firstIndex(of: point) ?? 0) * Fate.allCases.count
      let offset = row + (Fate.allCases.firstIndex(of: fate) ?? 0)
      for (number, command) in Self.commands.enumerated()
      where (number + offset) % Self.every == 0 {
        let scratch = try Scratch()
        try interrupt(scratch, at: point)
        try meet(fate, scratch)
        var story = try follow(command, scratch)
        // A command about the directory leaves the store as it is.
        if !command.contains("a.db") { story += try follow(Self.leaving, scratch) }
        let what: Comment =
          "killed at \(point), directory \(fate): \(story.joined(separator: "\n"))"
        try expectGood(scratch, what)
      }
    }

    /// Kills `init` when it opens a file of the name.
    private func interrupt(_ scratch: Scratch, at point: String) throws {
      try scratch.makeNotes("a.db")
      try FileManager.default.createDirectory(
        atPath: scratch.path + "/other", withIntermediateDirectories: false)
      let folder = try HangingFolder(in: scratch.path)
      let process = try Executable.start(
        Self.initCommand, in: scratch.path, after: folder.shell(at: point))
      #expect(folder.hangs(process))
      kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }

    private func meet(_ fate: Fate, _ scratch: Scratch) throws {
      let shared = scratch.path + "/shared"
      switch fate {
      case .stays: break
      case .goes: try FileManager.default.removeItem(atPath: shared)
      case .isEmptied:
        try FileManager.default.removeItem(atPath: shared)
        try FileManager.default.createDirectory(
          atPath: shared, withIntermediateDirectories: false)
      case .isDeleted:
        // Another device may do so, if the document is there yet.
        _ = try scratch.docsync("delete-document", "a", "--directory", "shared", "--yes")
      }
    }

    /// Runs a command, and up to three times what the last one says to do next.
    private func follow(_ command: [String], _ scratch: Scratch) throws -> [String] {
      var story: [String] = []
      var last = command
      for _ in 0...3 {
        let result = try Executable.run(last, in: scratch.path)
        story.append("\(last.joined(separator: " ")) = \(result.status) \(result.errors)")
        if last.first == "verify" { story.append(result.output) }
        let said = result.errors + (last.first == "verify" ? result.output : "")
        guard result.status != 0, let next = Self.next(in: said, after: last, scratch) else {
          break
        }
        last = next
      }
      return story
    }

    /// The first command that a message names and that was not run just now.
    private static func next(
      in said: String, after last: [String], _ scratch: Scratch
    ) -> [String]? {
      let isThere = FileManager.default.fileExists(atPath: scratch.path + "/shared")
      let remedies = said.components(separatedBy: "next:").dropFirst().joined()
      let commands: [(text: String, arguments: [String])] = [
        ("“docsync init ", initCommand), ("“docsync leave a.db --abandon”", leaving),
        ("“docsync sync a.db”", ["sync", "a.db"]),
        ("“docsync sync a.db --recreate”", ["sync", "a.db", "--recreate"]),
        ("“docsync join ", ["join", "b.db", "--directory", "shared"]),
        ("“docsync delete-document ", ["delete-document", "a", "--directory", "shared", "--yes"]),
        ("“docsync upload ", ["upload", "a.db"]),
      ]
      return commands.compactMap { command in
        remedies.range(of: command.text).map { ($0.lowerBound, command.arguments) }
      }.sorted { $0.0 < $1.0 }.map(\.1).first { arguments in
        // What is gone cannot be connected in a test.
        arguments != last && (isThere || !arguments.contains("shared"))
      }
    }

    /// Expects that the database is not under sync and can be put under sync, or that another
    /// device can join its document.
    private func expectGood(_ scratch: Scratch, _ what: Comment) throws {
      let tables = try scratch.column(
        "a.db", "SELECT name FROM sqlite_schema WHERE name LIKE 'docsync%'")
      var directory = "shared"
      if tables.isEmpty {
        #expect(
          try scratch.column("a.db", "SELECT count(*) FROM sqlite_schema WHERE type <> 'index'")
            == ["2"], what)
        directory = "new"
        try FileManager.default.createDirectory(
          atPath: scratch.path + "/new", withIntermediateDirectories: false)
        let begun = try scratch.docsync("init", "a.db", "--directory", "new")
        #expect(begun.status == 0, "\(what) \(begun.errors)")
      } else {
        let status = try scratch.docsync("status", "a.db", "--json")
        #expect(status.status == 0, "\(what) \(status.output)")
        directory = try #require(try status.json()["directory"] as? String, what)
      }
      let synchronized = try scratch.docsync("sync", "a.db")
      #expect(synchronized.status == 0, "\(what) \(synchronized.errors)")
      let document = try #require(
        try scratch.docsync("status", "a.db", "--json").json()["document"] as? String, what)
      let joined = try scratch.docsync(
        "join", "z.db", "--directory", directory, "--document", document)
      #expect(joined.status == 0, "\(what) \(joined.errors)")
    }
  }
#endif
