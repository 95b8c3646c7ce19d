import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// `docsync watch`
@Suite(.timeLimit(.minutes(10))) struct WatchCommandTests {
  let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    try scratch.makeTwoDevices()
  }

  /// The objects that a command has printed, one on each line.
  private func lines(_ output: String) throws -> [[String: Any]] {
    try output.split(separator: "\n").map { line in
      try #require(
        try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
    }
  }

  @Test func onceIdleSynchronizesAndEnds() throws {
    try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('new')")
    let result = try scratch.succeed("watch", "a.db", "--once-idle", "--json")
    let events = try lines(result.output)
    #expect(events.compactMap { $0["event"] as? String }.first { $0 != "polling" } == "begins")
    #expect(events.contains { $0["event"] as? String == "synchronized" })
    #expect(events.last?["event"] as? String == "ended")
    #expect(events.allSatisfy { $0["schema"] as? Int == 1 })
    let said = try scratch.succeed("watch", "b.db", "--once-idle").output
    #expect(said.contains("applied 1 change set"))
    #expect(try scratch.column("b.db", "SELECT title FROM notes").contains("\"new\""))
  }

  @Test func onceIdleEndsWithTheCodeOfSync() throws {
    try FileManager.default.moveItem(
      atPath: scratch.path + "/shared", toPath: scratch.path + "/elsewhere")
    let away = try scratch.docsync("watch", "a.db", "--once-idle")
    #expect(away.status == 4, "\(away.errors)")
    #expect(away.output.contains("the shared directory is away"))
    let json = try scratch.docsync("watch", "a.db", "--once-idle", "--json")
    let stores = try #require(try lines(json.output).last?["stores"] as? [[String: Any]])
    let error = try #require(stores.first?["error"] as? [String: Any])
    #expect(json.status == 4 && error["code"] as? String == "directoryAway")
  }

  @Test func aWrongArgumentEndsItAtOnce() throws {
    for arguments in [["none.db"], ["a.db", "none.db"]] {
      let result = try Executable.run(["watch"] + arguments, in: scratch.path)
      #expect(result.status == 1 && result.errors.contains("none.db"), "\(result.errors)")
    }
    #expect(try scratch.docsync("watch", "a.db", "--interval", "0").status == 2)
  }

  /// What cannot succeed without the user is said once, and ends the command.
  @Test func itEndsIfNothingCanBeDone() throws {
    let output = Pipe()
    let errors = Pipe()
    let process = try Executable.start(
      ["watch", "a.db"], in: scratch.path, output: output, errors: errors)
    // Wait for the first line.
    #expect(!output.fileHandleForReading.availableData.isEmpty)
    try scratch.sql("a.db", "UPDATE docsync_meta SET value = x'00' WHERE key = 'binding'")
    process.waitUntilExit()
    let said = String(
      decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    #expect(process.terminationStatus == 1, "\(said)")
    #expect(said.contains("given up"))
  }

  @Test func itEndsWhenTheDatabaseHasLeft() throws {
    let output = Pipe()
    let errors = Pipe()
    let process = try Executable.start(
      ["watch", "a.db"], in: scratch.path, output: output, errors: errors)
    #expect(!output.fileHandleForReading.availableData.isEmpty)
    try scratch.succeed("leave", "a.db", "--yes", "--wait", "60")
    process.waitUntilExit()
    let said = String(
      decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    #expect(process.terminationStatus == 0, "\(said)")
    #expect(said.contains("The database is not under sync") && said.contains("no longer watched"))
  }

  @Test(arguments: [SIGINT, SIGTERM])
  func editsOfBothDevicesArriveUntilASignalEndsIt(number: Int32) throws {
    let processes = try ["a.db", "b.db"].map {
      try Executable.start(
        ["watch", $0, "--interval", "2"], in: scratch.path, output: Pipe(), errors: Pipe())
    }
    for (here, there) in [("a.db", "b.db"), ("b.db", "a.db")] {
      try scratch.sql(here, "INSERT INTO notes (title) VALUES ('of \(here)')")
      let limit = Date(timeIntervalSinceNow: 300)
      while try !scratch.column(there, "SELECT title FROM notes").contains("\"of \(here)\"") {
        try #require(Date() < limit, "\(here) does not arrive")
        usleep(50_000)
      }
    }
    for process in processes {
      kill(process.processIdentifier, number)
      process.waitUntilExit()
      #expect(process.terminationReason == .exit && process.terminationStatus == 0)
    }
    try scratch.succeed("sync", "a.db", "b.db")
    try scratch.succeed("verify", "a.db")
  }
}
