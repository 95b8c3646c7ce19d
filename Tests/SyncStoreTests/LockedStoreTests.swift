import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// A store that another program keeps locked.
@Suite struct LockedStoreTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func devices(_ mode: String) throws -> [Device] {
    var options = StoreOptions()
    options.busyTimeout = 0.05
    return try scratch.devices(
      2, "PRAGMA journal_mode = \(mode); CREATE TABLE t (k TEXT PRIMARY KEY, v)",
      options: options)
  }

  private func expectBusy(
    _ body: () throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(sourceLocation: sourceLocation) {
      try body()
    } throws: {
      ($0 as? StoreError)?.code == .busy
    }
  }

  @Test(arguments: ["wal", "delete"], ["IMMEDIATE", "EXCLUSIVE"])
  func aLockedStoreIsBusyAndNothingChanges(mode: String, lock: String) throws {
    let devices = try devices(mode)
    try devices[0].run("INSERT INTO t VALUES ('mine', 1)")
    try devices[1].run("INSERT INTO t VALUES ('theirs', 2)")
    let sets = try devices[1].outgoing()
    let other = try Program(devices[0].path)
    try other.run("BEGIN \(lock)")
    expectBusy { _ = try devices[0].store.seal() }
    expectBusy { _ = try devices[0].store.apply(sets) }
    expectBusy { try devices[0].store.setRecord("key", to: [1]) }
    if mode == "delete" && lock == "EXCLUSIVE" {
      expectBusy { _ = try devices[0].store.snapshot(to: scratch.path + "/copy.db") }
      var options = StoreOptions()
      options.busyTimeout = 0.05
      expectBusy { _ = try LocalStore.open(at: devices[0].path, options: options) }
    }
    try other.run("ROLLBACK")
    #expect(try devices[0].store.sealedChangeSets() == [])
    #expect(try devices[0].rows("SELECT k FROM t") == ["mine"])
    #expect(try devices[0].store.record("key") == nil)
    try converge(devices, "SELECT * FROM t ORDER BY k", ["mine|1", "theirs|2"])
  }

  @Test func aReaderInRollbackModeIsWaitedForAtCommit() throws {
    let devices = try devices("delete")
    try devices[0].run("INSERT INTO t VALUES ('mine', 1)")
    let reader = try Program(devices[0].path)
    try reader.run("BEGIN; SELECT * FROM t")
    expectBusy { _ = try devices[0].store.seal() }
    try reader.run("COMMIT")
    #expect(try devices[0].store.seal().changeSets.count == 1)
    try converge(devices, "SELECT k FROM t", ["mine"])
  }

  @Test(arguments: ["wal", "delete"])
  func programsThatWriteAllTheTimeAreWaitedFor(mode: String) throws {
    let devices = try scratch.devices(
      2,
      """
      PRAGMA journal_mode = \(mode); CREATE TABLE t (k TEXT PRIMARY KEY, v INTEGER);
      INSERT INTO t VALUES ('count', 0);
      """, options: .patient)
    let writer = Writer(path: devices[0].path, statement: "UPDATE t SET v = v + 1")
    writer.start()
    for number in 0..<10 {
      try devices[1].run("INSERT INTO t VALUES ('n\(number)', \(number))")
      try devices[0].receive(from: devices[1])
      try devices[1].receive(from: devices[0])
    }
    try writer.stop()
    try converge(devices, "SELECT count(*) FROM t", ["11"])
    #expect(
      try devices[0].rows("SELECT v FROM t WHERE k = 'count'")
        == devices[1].rows("SELECT v FROM t WHERE k = 'count'"))
  }
}
