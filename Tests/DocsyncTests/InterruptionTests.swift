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
}
