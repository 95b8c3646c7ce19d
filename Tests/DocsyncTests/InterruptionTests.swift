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

/// A command that is stopped by a signal.
@Suite struct InterruptionTests {
  /// Whether a process holds a store's lock, where the system tells; to try
  /// the lock would take it away from the process.
  private static func isWorking(_ process: Process) throws -> Bool {
    #if os(Linux)
      let locks = try String(contentsOfFile: "/proc/locks", encoding: .utf8)
      return locks.split(separator: "\n").contains { line in
        let words = line.split(separator: " ")
        return words.contains("FLOCK") && words.contains("\(process.processIdentifier)")
      }
    #else
      return true
    #endif
  }

  /// A store whose database another program is writing to, so that a sync
  /// of it, which is returned, has to wait.
  private func startBlocked(
    _ scratch: Scratch, errors: Pipe = Pipe()
  ) throws -> (Process, DatabaseQueue) {
    try scratch.makeTwoDevices()
    try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('kept')")
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let other = try DatabaseQueue(path: scratch.path + "/a.db", configuration: configuration)
    try other.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
    let process = try Executable.start(["sync", "a.db"], in: scratch.path, errors: errors)
    while process.isRunning, try !Self.isWorking(process) { sched_yield() }
    #expect(process.isRunning)
    return (process, other)
  }

  private func release(_ other: DatabaseQueue) throws {
    try other.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
    try other.close()
  }

  private func expectContinuation(_ scratch: Scratch) throws {
    try scratch.succeed("sync", "a.db", "b.db")
    #expect(try scratch.column("b.db", "SELECT title FROM notes").contains("\"kept\""))
  }

  @Test(arguments: [SIGINT, SIGTERM])
  func aSyncThatIsInterruptedEndsByTheSignalAndTheNextContinues(number: Int32) throws {
    let (scratch, errors) = (try Scratch(), Pipe())
    let (process, other) = try startBlocked(scratch, errors: errors)
    kill(process.processIdentifier, number)
    let said = String(decoding: errors.fileHandleForReading.availableData, as: UTF8.self)
    #expect(said.contains("stopping"))
    try release(other)
    process.waitUntilExit()
    #expect(process.terminationReason == .uncaughtSignal)
    #expect(process.terminationStatus == number)
    try expectContinuation(scratch)
  }

  @Test func aSecondSignalEndsASyncAtOnce() throws {
    let scratch = try Scratch()
    let (process, other) = try startBlocked(scratch)
    // Two that come together count as one.
    while process.isRunning {
      kill(process.processIdentifier, SIGINT)
      sched_yield()
    }
    process.waitUntilExit()
    #expect(process.terminationReason == .uncaughtSignal)
    try release(other)
    try expectContinuation(scratch)
  }

  #if os(Linux)
    /// Where the directory hangs: as a command lists markers, reads a change set,
    /// publishes, lists documents, and downloads a whole store.
    @Test(arguments: [
      (["sync", "a.db"], "RecentSyncs"), (["sync", "a.db"], ".syncchg"),
      (["sync", "a.db"], "Temporary"), (["verify", "--directory", "shared"], "RecentSyncs"),
      (["documents", "--directory", "shared"], "Documents"),
      (["join", "c.db", "--directory", "shared"], ".store"),
    ]) func aCommandWhoseDirectoryHangsEndsByTheSignal(arguments: [String], name: String) throws {
      let (scratch, errors) = (try Scratch(), Pipe())
      try scratch.makeTwoDevices()
      try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('kept')")
      try scratch.sql("b.db", "UPDATE notes SET title = 'of b' WHERE id = 1")
      try scratch.succeed("sync", "b.db")
      let folder = try HangingFolder(in: scratch.path)
      let process = try Executable.start(
        arguments, in: scratch.path, errors: errors, after: folder.shell(at: name))
      #expect(folder.hangs(process))
      kill(process.processIdentifier, SIGINT)
      // The clock by which it would give up on the directory stands, so the signal ends it or
      // nothing. It takes a twentieth of a second, and more on a busy machine.
      let deadline = ContinuousClock.now + .seconds(180)
      while process.isRunning, .now < deadline { usleep(5_000) }
      if process.isRunning {
        Issue.record("the signal does not end it")
        kill(process.processIdentifier, SIGKILL)
      }
      process.waitUntilExit()
      #expect(process.terminationReason == .uncaughtSignal)
      #expect(process.terminationStatus == SIGINT)
      let said = String(
        decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      #expect(said.contains("docsync: stopping; "), "\(said)")
      #expect(!said.contains("no answer within"), "\(said)")
      // What the process held, it holds no more.
      try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('later')")
      try scratch.succeed("sync", "a.db", "b.db", "a.db")
      try scratch.succeed("join", "c.db", "--directory", "shared")
      for store in ["a.db", "b.db", "c.db"] {
        let titles = try scratch.column(store, "SELECT title FROM notes ORDER BY title")
        #expect(titles == ["\"kept\"", "\"later\"", "\"of b\"", "\"two\""])
        try scratch.succeed("verify", store)
      }
      try scratch.succeed("verify", "--directory", "shared")
    }

    /// As it downloads the database, and as it reads what has come since.
    @Test(arguments: [".store", "RecentSyncs", ".syncchg"])
    func whatAnInterruptedJoinProposesCompletesIt(name: String) throws {
      let (scratch, errors) = (try Scratch(), Pipe())
      try scratch.makeTwoDevices()
      try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('later')")
      try scratch.succeed("sync", "a.db")
      let joining = ["join", "c.db", "--directory", "shared"]
      let folder = try HangingFolder(in: scratch.path)
      let process = try Executable.start(
        joining, in: scratch.path, errors: errors, after: folder.shell(at: name))
      #expect(folder.hangs(process))
      kill(process.processIdentifier, SIGINT)
      let said = String(
        decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      process.waitUntilExit()
      let goesOn = said.contains("next: Nothing is lost. To go on: “docsync sync c.db”.\n")
      let repeats = said.contains("next: Nothing is lost. Call the same command again.\n")
      #expect(goesOn != repeats, "\(said)")
      let next = try Executable.run(goesOn ? ["sync", "c.db"] : joining, in: scratch.path)
      #expect(next.status == 0, "\(said)\(next.errors)")
      #expect(try scratch.column("c.db", "SELECT title FROM notes").contains("\"later\""))
    }
  #endif
}
