import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// The write-ahead log of a store that stays open.
@Suite struct CheckpointTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func logSize(_ device: Device) throws -> Int {
    let path = device.path + "-wal"
    guard FileManager.default.fileExists(atPath: path) else { return 0 }
    return try #require(
      FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber
    ).intValue
  }

  @Test func theFileAloneHasAllEdits() throws {
    let device = try scratch.devices(1, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)")[0]
    try device.run("PRAGMA journal_mode = WAL; INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    _ = try device.store.seal()
    #expect(try logSize(device) > 0)
    try device.store.checkpoint()
    #expect(try logSize(device) == 0)
    let copy = scratch.path + "/copy.db"
    try FileManager.default.copyItem(atPath: device.path, toPath: copy)
    #expect(try Program(copy).rows("SELECT v FROM t ORDER BY id") == ["a", "b"])
    try device.checkIntegrity()
  }

  @Test func aProgramThatReadsIsNotWaitedFor() throws {
    let device = try scratch.devices(
      1, "PRAGMA journal_mode = WAL; CREATE TABLE t (id INTEGER PRIMARY KEY, v)")[0]
    try device.run("PRAGMA journal_mode = WAL")
    let reader = try Program(device.path)
    try reader.run("BEGIN; SELECT * FROM t")
    try device.run("INSERT INTO t VALUES (1, 'a')")
    let start = ContinuousClock.now
    try device.store.checkpoint()
    #expect(ContinuousClock.now - start < .seconds(2))
    #expect(try reader.rows("SELECT v FROM t") == [])
    try reader.run("COMMIT; BEGIN IMMEDIATE; INSERT INTO t VALUES (2, 'b')")
    try device.store.checkpoint()
    try reader.run("COMMIT")
    try device.store.checkpoint()
    #expect(try logSize(device) == 0)
    #expect(try device.rows("SELECT v FROM t ORDER BY id") == ["a", "b"])
    // The store waits for other programs as before.
    _ = try device.store.seal()
  }

  @Test func otherJournalModesHaveNone() throws {
    let device = try scratch.devices(1, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)")[0]
    try device.run("PRAGMA journal_mode = DELETE; INSERT INTO t VALUES (1, 'a')")
    try device.store.checkpoint()
    #expect(try device.rows("SELECT v FROM t") == ["a"])
  }
}
