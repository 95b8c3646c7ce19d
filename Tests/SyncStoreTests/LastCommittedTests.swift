import Foundation
import GRDB
import SyncModel
import Testing

@testable import SyncStore

/// Questions to a store while a transaction of the same object runs.
@Suite struct LastCommittedTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// All that a store answers by reading, as text. Rows are counted, and digests computed, only if
  /// `withLong`.
  @Sendable private static func answers(
    _ store: LocalStore, withLong: Bool
  ) throws -> [String: String] {
    var answers = [
      "status": "\(try store.status())", "tables": "\(try store.unsuitableTables())",
      "parked": "\(try store.parkedRows())", "history": "\(try store.history(limit: 10))",
      "applied": "\(try store.appliedVector())", "vector": "\(try store.vector())",
      "head": "\(String(describing: try store.head()))", "waiting": "\(try store.waiting())",
      "conflicts": "\(try store.conflicts())", "open": "\(try store.openConflictCount())",
      "page": "\(try store.conflicts(before: nil, limit: 5))",
      "places": "\(try store.conflictPlaces())", "dropped": "\(try store.droppedConflicts())",
      "policies": "\(try store.policies())", "events": "\(try store.pendingEvents())",
      "commands": "\(String(describing: try store.commandState()))",
      "record": "\(String(describing: try store.record("key")))",
      "count": "\(try store.pendingCount())",
    ]
    if withLong {
      answers["rows"] = "\(try store.rowCount())"
      answers["pending"] = "\(try store.pendingChanges(limit: 10))"
      answers["digest"] = "\(try store.digest())"
      answers["loss"] = "\(try store.removalLoss())"
    }
    // Dictionaries have no order, so the members are sorted.
    answers = answers.mapValues { text in
      text.split { ",[]()".contains($0) }.map { $0.drop { $0 == " " } }.sorted()
        .joined(separator: ",")
    }
    answers["order of history"] = "\(try store.history(limit: 10).map(\.number))"
    answers["order of conflicts"] = "\(try store.conflicts().map(\.number))"
    return answers
  }

  private func devices(_ mode: String, options: StoreOptions = StoreOptions()) throws -> [Device] {
    try scratch.devices(
      2,
      """
      PRAGMA journal_mode = \(mode);
      CREATE TABLE t (id TEXT PRIMARY KEY, a, b UNIQUE); INSERT INTO t VALUES ('x', 0, 0), ('y', 0, 1)
      """, options: options)
  }

  /// Has the second device apply edits that lead to a conflict and to a row that is not shown. Calls
  /// `body` when they are written and not committed.
  private func applying(_ devices: [Device], _ body: (LocalStore) throws -> Void) throws {
    let stamp = UInt64.random(in: 0 ... .max)
    for (device, name) in zip(devices, ["remote", "local"]) {
      try device.run(
        "UPDATE t SET a = '\(name) \(stamp)' WHERE id = 'x'; "
          + "INSERT INTO t VALUES ('\(name) \(stamp)', 1, \(stamp >> 1))")
    }
    let incoming = try devices[0].outgoing()
    _ = try devices[1].outgoing()
    var failure: (any Error)?
    var count = 0
    _ = try devices[1].store.apply(
      incoming,
      onApplied: { _ in
        count += 1
        do { try body(devices[1].store) } catch { failure = error }
      })
    if let failure { throw failure }
    #expect(count == 1)
  }

  @Test(arguments: ["wal", "delete"])
  func questionsAreAnsweredFromTheLastCommittedState(_ mode: String) throws {
    let devices = try devices(mode)
    let isWAL = mode == "wal"
    for _ in 0..<3 {
      var before: [String: String] = [:]
      try applying(devices) { store throws in
        let asking = store.lastCommitted
        before = try #require(
          try Question { try Self.answers(asking, withLong: isWAL) }.answer())
        // Several at once, while the first ones are not over.
        let others = (0..<4).map { _ in
          Question { try Self.answers(asking, withLong: isWAL) }
        }
        for other in others { #expect(try other.answer() == before) }
      }
      let after = try Self.answers(devices[1].store, withLong: isWAL)
      for name in ["status", "history", "applied", "conflicts"] {
        #expect(after[name] != before[name], "\(name)")
      }
      #expect(try Self.answers(devices[1].store.lastCommitted, withLong: isWAL) == after)
      // What was said to be committed is the state before.
      #expect(before["places"] != after["places"] && before["page"] != after["page"])
    }
    #expect(try devices[1].store.status().parked.count + devices[0].store.status().parked.count > 0)
  }

  /// The answers are those that the store's own connection gives.
  @Test(arguments: ["wal", "delete"])
  func answersAreThoseOfTheStoresOwnConnection(_ mode: String) throws {
    let devices = try devices(mode)
    try applying(devices) { _ throws in }
    try devices[1].store.setRecord("key", to: [1, 2, 3])
    try devices[1].store.setPolicies { $0.document = .ask }
    let own = try Self.answers(devices[1].store, withLong: true)
    let asking = devices[1].store.lastCommitted
    try devices[1].store.store.connection.use { _ throws in
      let answers = try Question { try Self.answers(asking, withLong: mode == "wal") }.answer()
      for (name, answer) in try #require(answers) { #expect(answer == own[name], "\(name)") }
    }
  }

  /// A transaction that writes to the file before its end locks all others out.
  @Test func questionWaitsWhereTheFileIsBeingWritten() throws {
    var options = StoreOptions()
    options.busyTimeout = 0.01
    let devices = try devices("delete", options: options)
    let store = devices[1].store
    let before = try store.status()
    let asking = store.lastCommitted
    var question: Question<StoreStatus>?
    try store.store.write { session in
      try session.database.execute(sql: "PRAGMA cache_size = 5; PRAGMA cache_spill = 5")
      try session.records.write("large", to: [UInt8](repeating: 1, count: 4 << 20))
      let asked = Question { try asking.status() }
      #expect(try asked.answer(within: 0.3) == nil)
      question = asked
    }
    #expect(try question?.answer() == before)
  }

  /// Counting all rows would keep the transaction from committing.
  @Test func longQuestionWaitsForATransactionInRollbackMode() throws {
    let devices = try devices("delete")
    let asking = devices[1].store.lastCommitted
    var question: Question<Int>?
    try applying(devices) { _ throws in
      let asked = Question { try asking.rowCount() }
      #expect(try asked.answer(within: 0.3) == nil)
      question = asked
    }
    #expect(try question?.answer() == devices[1].store.rowCount())
  }

  @Test(arguments: ["wal", "delete"])
  func closedStoreAnswersNoMore(_ mode: String) throws {
    let devices = try devices(mode)
    let store = devices[1].store
    try applying(devices) { store throws in
      let asking = store.lastCommitted
      #expect(try Question { try asking.status() }.answer() != nil)
    }
    try store.close()
    for question: @Sendable (LocalStore) throws -> Void in [
      { _ = try $0.status() }, { _ = try $0.digest() }, { _ = try $0.record("key") },
    ] {
      #expect {
        try question(store.lastCommitted)
      } throws: {
        ($0 as? StoreError)?.code == .closed
      }
    }
    #expect(store.store.connection.readers.use { _ in 1 } == nil)
    #expect(try devices[1].rows("PRAGMA integrity_check") == ["ok"])
  }

  /// The connection that can clear the log away is closed last.
  @Test func nothingStaysBesideAClosedStore() throws {
    let devices = try devices("wal")
    let store = try LocalStore.open(at: devices[1].path)
    let asking = store.lastCommitted
    let copy = scratch.path + "/alone.db"
    _ = try devices[1].store.snapshot(to: copy)
    let alone = try LocalStore.adopt(snapshotAt: copy, binding: scratch.binding("alone"))
    let aloneAsking = alone.lastCommitted
    for (store, asking) in [(store, asking), (alone, aloneAsking)] {
      try store.store.write { _ throws in
        #expect(try Question { try asking.status() }.answer() != nil)
      }
      try store.close()
    }
    #expect(!FileManager.default.fileExists(atPath: copy + "-wal"))
    #expect(!FileManager.default.fileExists(atPath: copy + "-shm"))
  }

  /// Another file in the place of the store is another database.
  @Test func fileInThePlaceOfTheStoreIsNotRead() throws {
    let devices = try devices("delete")
    try devices[0].run("INSERT INTO t VALUES ('other', 1, 2)")
    _ = try devices[0].outgoing()
    let store = devices[1].store
    let before = try store.status()
    let asking = store.lastCommitted
    var question: Question<StoreStatus>?
    let files = FileManager.default
    let (path, away) = (devices[1].path, devices[1].path + ".away")
    try store.store.write { _ throws in
      try files.moveItem(atPath: path, toPath: away)
      try files.copyItem(atPath: devices[0].path, toPath: path)
      let asked = Question { try asking.status() }
      #expect(try asked.answer(within: 0.3) == nil)
      question = asked
      try files.removeItem(atPath: path)
      try files.moveItem(atPath: away, toPath: path)
    }
    #expect(try question?.answer() == before)
  }

  /// Bookkeeping that is not in line with the schema has to be renewed before anything is answered.
  @Test func schemaThatTheApplicationHasChangedIsAnsweredFor() throws {
    let devices = try devices("wal")
    let store = devices[1].store
    let asking = store.lastCommitted
    func tables() throws -> [SQLName]? {
      try Question { try asking.status().tables.map(\.name) }.answer()
    }
    try store.store.write { _ throws in #expect(try tables() == ["t"]) }
    for change in ["CREATE TABLE u (id TEXT PRIMARY KEY)", "ALTER TABLE t ADD COLUMN c"] {
      try devices[1].run(change)
      var question: Question<StoreStatus>?
      try store.store.connection.use { _ throws in
        let asked = Question { try asking.status() }
        #expect(try asked.answer(within: 0.3) == nil, "\(change)")
        question = asked
      }
      #expect(try question?.answer()?.tables.map(\.name) == ["t", "u"])
    }
    try store.store.write { _ throws in #expect(try tables() == ["t", "u"]) }
  }

  /// The binding is that of the last committed state, whatever the transaction makes of it.
  @Test func clientIsThatOfTheLastCommittedState() throws {
    let devices = try devices("wal")
    let store = devices[1].store
    let asking = store.lastCommitted
    try devices[1].run("INSERT INTO t VALUES ('z', 0, 3)")
    _ = try store.seal()
    let head = try #require(try store.head())
    for _ in 0..<2 {
      try store.store.write { _ throws in
        #expect(try Question { try asking.head() }.answer() == head)
      }
    }
    try store.beginIncarnation(.copied)
    let new = try store.head()
    #expect(new != head)
    try store.store.write { _ throws in
      #expect(try Question { try asking.head() }.answer() == .some(new))
      #expect(
        try Question { try asking.vector() }.answer()?[
          store.binding.ancestor ?? store.binding.client]
          == head)
    }
  }
}
