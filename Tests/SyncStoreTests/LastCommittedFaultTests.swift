import Foundation
import GRDB
import SyncModel
import Synchronization
import Testing

@testable import SyncStore

/// What may go wrong with a question to a store while a transaction runs.
@Suite struct LastCommittedFaultTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func devices(_ mode: String, options: StoreOptions = StoreOptions()) throws -> [Device] {
    try scratch.devices(
      2,
      """
      PRAGMA journal_mode = \(mode);
      CREATE TABLE t (id TEXT PRIMARY KEY, a); INSERT INTO t VALUES ('x', 0), ('y', 0)
      """, options: options)
  }

  /// In rollback mode, the transaction has to wait for who reads, however short its time limit is.
  @Test(arguments: ["wal", "delete"])
  func transactionIsCommittedThoughAQuestionIsBeingAnswered(_ mode: String) throws {
    var options = StoreOptions()
    options.busyTimeout = 0
    let devices = try devices(mode, options: options)
    let store = devices[1].store
    let halt = Halt()
    var question: Question<Int?>?
    for key in ["one", "two"] {
      try store.store.write { session in
        try session.records.write(key, to: [1])
        question = Question {
          store.store.connection.readers.use { database in
            try database.transaction(.deferred, .rollback) {
              let count = try Int.fetchOne(database, sql: "SELECT count(*) FROM docsync_record")
              halt.pass()
              return count ?? 0
            }
          }
        }
        if key == "one" {
          halt.reached.wait()
          Thread { [halt] in
            Thread.sleep(forTimeInterval: 0.2)
            halt.released.signal()
          }.start()
        } else {
          #expect(try question?.answer() != nil)
        }
      }
      #expect(try question?.answer() != .some(nil))
    }
    #expect(try store.record("one") == [1] && store.record("two") == [1])
    // Other programs are not waited for.
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let other = try DatabaseQueue(path: devices[1].path, configuration: configuration)
    try other.inDatabase { try $0.execute(sql: "BEGIN IMMEDIATE") }
    let error = #expect(throws: StoreError.self) { try store.setRecord("three", to: [1]) }
    #expect(error?.code == .busy)
    try other.inDatabase { try $0.execute(sql: "ROLLBACK") }
    try store.setRecord("three", to: [1])
    try other.close()
  }

  /// Whatever a connection that only reads reports, the store's own connection is asked.
  @Test func errorsOfOtherConnectionsAreNoAnswers() throws {
    let devices = try devices("wal")
    let store = devices[1].store
    for code: ResultCode in [
      .SQLITE_PROTOCOL, .SQLITE_IOERR, .SQLITE_CORRUPT, .SQLITE_BUSY, .SQLITE_NOMEM,
    ] {
      var question: Question<[Int]>?
      let calls = Mutex(0)
      try store.store.write { _ throws in
        let asked = Question {
          try store.store.readCommitted { _ throws in
            let count = calls.withLock { calls in
              calls += 1
              return calls
            }
            if count == 1 { throw DatabaseError(resultCode: code) }
            return [count]
          }
        }
        #expect(try asked.answer(within: 0.1) == nil)
        question = asked
      }
      #expect(try question?.answer() == [2])
    }
  }

  @Test func clientThatTheStoreDoesNotKnowHasNoHashes() throws {
    let devices = try devices("wal")
    let store = devices[1].store
    let asking = store.lastCommitted
    let client = scratch.binding("unknown").client
    try store.store.write { _ throws in
      #expect(try Question { try asking.hashes(of: client, from: 1) }.answer() == [:])
    }
    #expect(try store.hashes(of: client, from: 1) == [:])
  }

  /// A transaction that the question does not know of may have removed blocks of the file.
  @Test func olderConflictsAreAllThereOrAskedForAgain() throws {
    let pair = try Disagreement(8)
    let store = pair.one.store
    let asking = store.lastCommitted
    @Sendable func answers() throws -> [String] {
      [
        "\(try asking.conflicts(before: nil, limit: 100).conflicts.map(\.number))",
        "\(try asking.conflict(1).number)", "\(try asking.conflictPlaces())",
      ]
    }
    let before = try answers()
    try store.store.write { _ throws in #expect(try Question(answers).answer() == before) }
    let away = pair.archive.path + ".away"
    var question: Question<[String]>?
    let files = FileManager.default
    try store.store.write { _ throws in
      try files.moveItem(atPath: pair.archive.path, toPath: away)
      let asked = Question(answers)
      #expect(try asked.answer(within: 0.3) == nil)
      question = asked
      try files.moveItem(atPath: away, toPath: pair.archive.path)
    }
    #expect(try question?.answer() == before)
  }

  /// Closing waits for a question that is being answered.
  @Test func questionIsAnsweredBeforeTheStoreIsClosed() throws {
    let devices = try devices("wal")
    let store = devices[1].store
    let halt = Halt()
    let asked = Question {
      store.store.connection.readers.use { database in
        halt.pass()
        return try Int.fetchOne(database, sql: "SELECT count(*) FROM t")
      }
    }
    halt.reached.wait()
    let closing = Question { try store.close() }
    #expect(try closing.answer(within: 0.2) == nil)
    halt.released.signal()
    #expect(try asked.answer() == 2)
    #expect(try closing.answer() != nil)
    #expect(try devices[1].rows("PRAGMA integrity_check") == ["ok"])
  }
}
