import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncModel
import SyncStore
import Testing

/// The file beside a store with its older conflicts, in all that happens to a store.
@Suite struct OlderConflictsTests {
  private func numbers(_ manager: DocumentSyncManager) async throws -> [Int64] {
    try await manager.conflicts(before: nil, limit: 1_000).conflicts.map(\.number)
  }

  private func file(_ manager: DocumentSyncManager) -> String {
    manager.store.path + LocalStore.archiveSuffix
  }

  /// Two devices, the second of which has had more conflicts than its store holds.
  private func disagreement(_ count: Int = 6) async throws -> TestFleet {
    let fleet = try await TestFleet(2, rows: count) { environment in
      environment.store.conflictEntries = 2
      environment.store.clockTolerance = .max
    }
    try await disagree(fleet, count)
    return fleet
  }

  /// - Parameter round: Tells the values from those of earlier disagreements: which of these is shown depends on the
  ///   milliseconds.
  private func disagree(_ fleet: TestFleet, _ count: Int, _ round: Int = 1) async throws {
    for number in 0..<count {
      try fleet[0].put("seed-\(number)", "theirs \(round)")
      try fleet[1].put("seed-\(number)", "mine \(round)")
    }
    try await fleet.settle()
  }

  private func verified(_ manager: DocumentSyncManager) throws -> [String] {
    try LocalStore.verify(at: manager.store.path).report.findings
      .filter { $0.kind == .conflictFileUnusable }.map(\.message)
  }

  @Test func aMergeWithMoreConflictsThanTheStoreHoldsBringsItsFileAlong() async throws {
    let fleet = try await TestFleet(1, rows: 9) { $0.store.conflictEntries = 3 }
    let path = try fleet.scratch.makeNotes("j", rows: 9)
    let queue = try DatabaseQueue(path: path)
    try await queue.write { try $0.execute(sql: "UPDATE notes SET body = 'other ' || body") }
    try queue.close()
    try Data("former".utf8).write(to: URL(fileURLWithPath: path + LocalStore.archiveSuffix))
    let joined = try await DocumentSyncManager.join(
      storeAt: path, directory: fleet.memory, existing: .merge(prefer: .document),
      options: .init(environment: fleet.environment))
    #expect(try await joined.conflictPlaces().inArchive == 6)
    #expect(try await numbers(joined) == (1...9).reversed())
    #expect(try verified(joined) == [])
    let former = try fleet.scratch.names().filter {
      $0.contains(".backup-") && $0.hasSuffix(LocalStore.archiveSuffix)
    }
    #expect(former.count == 1)
    #expect(try !fleet.scratch.names().contains { $0.contains("docsync-tmp") })
    try await joined.restoreConflict(1)
    try await joined.synchronize()
    #expect(try await numbers(joined) == (1...9).reversed())
  }

  @Test func aFileOfADatabaseThatWasHereBeforeIsMovedAside() async throws {
    let fleet = try await disagreement()
    _ = try await fleet[1].uploadWholeStore()
    let store = fleet.scratch.store("new")
    try FileManager.default.copyItem(
      atPath: file(fleet[1]), toPath: store + LocalStore.archiveSuffix)
    let joined = try await DocumentSyncManager.join(
      storeAt: store, directory: fleet.memory, options: .init(environment: fleet.environment))
    #expect(try await numbers(joined) == [])
    for number in 0..<5 {
      try fleet[0].put("seed-\(number)", "theirs again")
      try joined.put("seed-\(number)", "new")
    }
    try await fleet[0].synchronize()
    let report = try await joined.synchronize()
    let places = try #require(report.conflictPlaces)
    #expect(places.inArchive > 0 && places.unreadable == 0)
    let warnings = report.warnings.filter { $0.code == .conflictArchive }
    #expect(warnings.map(\.reason) == ["movedAside"])
    #expect(FileManager.default.fileExists(atPath: file(joined) + ".old-1"))
    #expect(try await joined.synchronize().warnings.isEmpty)
  }

  @Test func aFileThatCannotBeWrittenIsWarnedOfInTheSameSynchronizationUntilItCan() async throws {
    let fleet = try await TestFleet(2, rows: 6) { environment in
      environment.store.conflictEntries = 2
      environment.store.clockTolerance = .max
    }
    for manager in fleet.managers {
      try FileManager.default.createDirectory(
        atPath: file(manager), withIntermediateDirectories: false)
    }
    for number in 0..<6 {
      try fleet[0].put("seed-\(number)", "theirs")
      try fleet[1].put("seed-\(number)", "mine")
    }
    try await fleet[0].synchronize()
    for _ in 0..<2 {
      let report = try await fleet[1].synchronize()
      let warning = try #require(report.warnings.first { $0.code == .conflictArchive })
      #expect(warning.reason == "notAFile" && warning.message.contains("Move it away"))
    }
    #expect(try await numbers(fleet[1]) == (1...6).reversed())
    #expect(try await fleet[1].status().conflictArchiveProblem != nil)
    #expect(try verified(fleet[1]).count == 1)
    try await fleet.settle()
    try fleet.expectEqual()
    for manager in fleet.managers { try FileManager.default.removeItem(atPath: file(manager)) }
    #expect(try await fleet[1].synchronize().warnings.isEmpty)
    #expect(try await fleet[1].conflictPlaces().inArchive == 4)
    #expect(try await numbers(fleet[1]) == (1...6).reversed())
  }

  @Test func theFileGoesOnWithAStoreThatTakesOverAWholeStore() async throws {
    var fleet = try await disagreement()
    let before = try await numbers(fleet[1])
    #expect(try await fleet[1].conflictPlaces().inArchive > 0)
    try await fleet[0].reset()
    try await fleet[1].synchronize()
    #expect(try await numbers(fleet[1]).suffix(before.count) == before[...])
    let oldest = try #require(before.last)
    try await fleet[1].restoreConflict(oldest)
    try await disagree(fleet, 6, 2)
    let after = try await numbers(fleet[1])
    #expect(after == (1...Int64(after.count)).reversed() && after.count > before.count)
    try await fleet.reopen(1)
    #expect(try await numbers(fleet[1]) == after)
    #expect(try verified(fleet[1]) == [])
  }

  @Test func leavingRemovesTheFile() async throws {
    let fleet = try await disagreement()
    let files = fleet.managers.map(file)
    #expect(FileManager.default.fileExists(atPath: files[1]))
    _ = try await fleet[1].leave()
    #expect(!FileManager.default.fileExists(atPath: files[1]))
  }
}
