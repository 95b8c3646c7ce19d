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

  @Test(arguments: [SIGINT, SIGTERM])
  func aSyncThatIsInterruptedEndsByTheSignalAndTheNextContinues(number: Int32) throws {
    let scratch = try Scratch()
    try scratch.makeTwoDevices()
    try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('kept')")

    // Another program is writing, so that the sync has to wait for it.
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let other = try DatabaseQueue(path: scratch.path + "/a.db", configuration: configuration)
    try other.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
    let process = try Executable.start(["sync", "a.db"], in: scratch.path)
    while process.isRunning, try !Self.isWorking(process) { sched_yield() }
    #expect(process.isRunning)
    while process.isRunning {
      kill(process.processIdentifier, number)
      sched_yield()
    }
    process.waitUntilExit()
    #expect(process.terminationReason == .uncaughtSignal)
    #expect(process.terminationStatus == number)
    try other.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
    try other.close()

    try scratch.succeed("sync", "a.db", "b.db")
    #expect(try scratch.column("b.db", "SELECT title FROM notes").contains("\"kept\""))
  }
}
