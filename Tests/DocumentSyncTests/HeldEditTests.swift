import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncModel
import SyncStore
import Testing

/// Edits that are too large to be sent, in synchronizations. The caps are small here: 32 KiB.
@Suite struct HeldEditTests {
  private func fleet(_ count: Int) async throws -> TestFleet {
    try await TestFleet(count) { $0.store.limits.memoryBytes = 64 << 10 }
  }

  private let large = String(repeating: "x", count: 40_000)

  @Test func warningsNameTheRowAndTheRestIsCounted() async throws {
    let fleet = try await fleet(2)
    try fleet[0].put("seed-0", large)
    try fleet[0].put("small", "value")
    try fleet[1].put("other", "value")
    let report = try await fleet[0].synchronize()
    let warning = try #require(report.warnings.first)
    #expect(report.warnings.count == 1 && warning.code == .editTooLarge)
    #expect(warning.table == "notes" && warning.row == "“seed-0”" && warning.names == ["body"])
    #expect(warning.message.contains("32 KiB"))
    try await fleet.settle()
    #expect(
      try fleet[1].notes() == ["other=value", "seed-0=body 0", "seed-1=body 1", "small=value"])
    #expect(try await fleet[0].status().heldEdits.map(\.kind) == [.update])
    try fleet[0].edit(
      """
      WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 30)
      INSERT INTO notes SELECT 'many' || n, printf('%.*c', 40000, 'y') FROM i
      """)
    let warnings = try await fleet[0].synchronize().warnings
    #expect(warnings.count == 21 && warnings.last?.count == 11 && warnings.last?.row == nil)
    #expect(warnings.allSatisfy { $0.code == .editTooLarge })
    #expect(try await fleet[0].verify().findings.count == 21)
    try fleet[0].edit("UPDATE notes SET body = 'short' WHERE length(body) > 100")
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try await fleet[0].synchronize().warnings == [])
  }

  /// A device that holds an edit uploads no whole store, and everything else works: others join from
  /// the whole store that is there.
  @Test func aLoneDeviceGoesOn() async throws {
    let fleet = try await fleet(1)
    try fleet[0].put("seed-0", large)
    for number in 1...5 {
      try fleet[0].put("note-\(number)", "value")
      try await fleet[0].synchronize()
    }
    let error = try #require(await syncError { _ = try await fleet[0].uploadWholeStore() })
    #expect(error.code == .unpublishedEdits && error.message.contains("“seed-0”"))
    #expect(error.remedy.description.contains("32 KiB"))
    _ = try await fleet[0].vacuum()
    let joined = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory,
      options: .init(client: "late", environment: fleet.environment))
    try await joined.synchronize()
    #expect(try joined.notes().count == 7 && joined.notes().contains("seed-0=body 0"))
    try fleet[0].put("seed-0", "short")
    _ = try await fleet[0].uploadWholeStore()
    try await joined.synchronize()
    #expect(try joined.notes() == fleet[0].notes())
  }

  @Test func leavingCountsThem() async throws {
    let fleet = try await fleet(2)
    try fleet[0].put("seed-0", large)
    try await fleet[0].synchronize()
    #expect(try await fleet[0].removalLoss().heldEdits == 1)
    let report = try await fleet[0].leave()
    #expect(report.loss.heldEdits == 1 && report.hasToldOthers)
    #expect(try fleet[0].notes().contains("seed-0=\(large)"))
    try await fleet[1].synchronize()
  }

  /// In a generation that begins with a store, all devices have what the store has.
  @Test func aResetSendsThemInTheWholeStore() async throws {
    let fleet = try await fleet(2)
    try fleet[0].put("seed-0", large)
    try fleet[0].put("big", large)
    try await fleet.settle()
    #expect(try await fleet[0].status().heldEdits.count == 2)
    try await fleet[0].reset()
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[1].notes().contains("big=\(large)"))
    #expect(try await fleet[0].status().heldEdits == [])
    _ = try await fleet[0].uploadWholeStore()
    try fleet[1].put("seed-0", "short")
    try await fleet.settle()
    try fleet.expectEqual()
  }

  /// If another device begins a generation, what this device kept back stays here, and is sent when it
  /// fits.
  @Test func aResetElsewhereLeavesThemHere() async throws {
    let fleet = try await fleet(2)
    try fleet[0].put("seed-0", large)
    try fleet[0].put("big", large)
    try await fleet.settle()
    try fleet[1].put("seed-1", "of 1")
    try await fleet[1].reset()
    try await fleet.settle()
    #expect(fleet[0].binding.generationOrdinal == 2)
    #expect(try fleet[0].notes() == ["big=\(large)", "seed-0=\(large)", "seed-1=of 1"])
    #expect(try fleet[1].notes() == ["seed-0=body 0", "seed-1=of 1"])
    #expect(try await fleet[0].status().heldEdits.count == 2)
    try fleet[0].edit("UPDATE notes SET body = 'short' WHERE length(body) > 100")
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[1].notes() == ["big=short", "seed-0=short", "seed-1=of 1"])
    #expect(try await fleet[0].status().heldEdits == [])
  }

  /// A reset ends after its whole store is there. What a program writes then stays here, and the
  /// generation is complete all the same.
  @Test func aResetThatWasInterruptedIsCompleted() async throws {
    let fleet = try await fleet(2)
    try await fleet.settle()
    fleet.directories[0].script(
      .init(.stopAfterwards, on: .upload, pathPart: "WholeStore"))
    await #expect(throws: (any Error).self) { try await fleet[0].reset() }
    #expect(!fleet.directories[0].firedFaults.isEmpty)
    fleet.directories[0].restart()
    try fleet[0].put("seed-0", large)
    try await fleet[0].reset()
    #expect(try await fleet[0].status().heldEdits.count == 1)
    try fleet[0].put("small", "value")
    try await fleet.settle()
    #expect(fleet[1].binding.generation == fleet[0].binding.generation)
    #expect(try fleet[1].notes() == ["seed-0=body 0", "seed-1=body 1", "small=value"])
    #expect(try fleet[0].notes().contains("seed-0=\(large)"))
    try fleet[0].put("seed-0", "short")
    try await fleet.settle()
    try fleet.expectEqual()
  }

  /// A migration that makes the table again changes values and rows that no other device knows.
  @Test func aRemadeTableHasOtherValues() async throws {
    let fleet = try await fleet(2)
    for id in ["seed-0", "seed-1", "big", "gone", "same"] { try fleet[0].put(id, large) }
    try await fleet.settle()
    #expect(try await fleet[0].status().heldEdits.count == 5)
    try fleet[0].edit(
      """
      CREATE TABLE new__notes AS SELECT * FROM notes; DROP TABLE notes;
      CREATE TABLE notes (id TEXT PRIMARY KEY, body TEXT);
      INSERT INTO notes SELECT id, CASE id WHEN 'seed-0' THEN NULL WHEN 'seed-1' THEN 'body 1'
        WHEN 'big' THEN 'short' ELSE body END FROM new__notes WHERE id <> 'gone';
      DROP TABLE new__notes;
      """)
    try await fleet.settle()
    #expect(try await fleet[0].status().heldEdits.map(\.row) == ["“same”"])
    try fleet[0].put("same", "short")
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[1].notes().count == 4 && fleet[1].notes().contains("big=short"))
    #expect(try await fleet[0].status().heldEdits == [])
  }

  /// What the journal puts back may be too large again.
  @Test func aLargeSideIsRestored() async throws {
    let fleet = try await fleet(2)
    try fleet[0].put("seed-0", large)
    try await fleet.settle()
    try fleet[1].edit("DELETE FROM notes WHERE id = 'seed-0'")
    try await fleet.settle()
    try fleet.expectEqual()
    let conflict = try #require(try await fleet[0].conflicts().first { $0.kind == .existence })
    try await fleet[0].restoreConflict(conflict.number)
    try await fleet.settle()
    #expect(try fleet[0].notes().contains("seed-0=\(large)"))
    #expect(try await fleet[0].status().heldEdits.map(\.kind) == [.insertion])
    #expect(try fleet[1].notes() == ["seed-1=body 1"])
    try fleet[0].put("seed-0", "short")
    try await fleet.settle()
    try fleet.expectEqual()
  }

  /// The rows of a database that is added to a document are edits like others.
  @Test func aDatabaseWithALargeRowIsMerged() async throws {
    let fleet = try await fleet(1)
    let path = try fleet.scratch.makeNotes("merged", rows: 1)
    let queue = try DatabaseQueue(path: path)
    try await queue.write {
      try $0.execute(sql: "INSERT INTO notes VALUES ('big', printf('%.*c', 40000, 'z'))")
    }
    try queue.close()
    let manager = try await DocumentSyncManager.join(
      storeAt: path, directory: fleet.memory, existing: .merge(prefer: .document),
      options: .init(client: "m", environment: fleet.environment))
    try manager.put("with it", "value")
    try await manager.synchronize()
    #expect(try await manager.status().heldEdits.map(\.row) == ["“big”"])
    try await fleet[0].synchronize()
    #expect(try fleet[0].notes().contains("with it=value"))
  }

  /// Joining again keeps the edit in the backup alone, and says so.
  @Test func joiningAgainTellsOfThem() async throws {
    let fleet = try await fleet(2)
    try fleet[1].put("seed-0", large)
    try await fleet[1].synchronize()
    try await fleet[1].close()
    let manager = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("1"), directory: fleet.memory, existing: .replaceKeepingBackup,
      options: .init(environment: fleet.environment))
    #expect(manager.replaced?.heldEdits == 1)
    #expect(try manager.notes() == fleet[0].notes())
  }
}
