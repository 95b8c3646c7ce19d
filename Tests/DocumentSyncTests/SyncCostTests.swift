import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import Testing

/// What a synchronization asks of the directory, counted.
struct SyncCostTests {
  private func expectIdle(
    _ fleet: TestFleet, _ index: Int, times: Int, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    for _ in 0..<times {
      fleet.counters[index].reset()
      let report = try await fleet[index].synchronize()
      let counts = fleet.counters[index].counts
      #expect(counts.listings == 3, sourceLocation: sourceLocation)
      #expect(counts.reads == 0, sourceLocation: sourceLocation)
      #expect(counts.writes == 0, sourceLocation: sourceLocation)
      #expect(counts.removals == 0, sourceLocation: sourceLocation)
      #expect(counts.checks == 0, sourceLocation: sourceLocation)
      #expect(report.listings == 3, sourceLocation: sourceLocation)
      #expect(report.isIdle, sourceLocation: sourceLocation)
    }
  }

  /// Makes as many change sets, of one row each.
  private func edit(_ manager: DocumentSyncManager, times count: Int) throws {
    let program = try DatabaseQueue(path: manager.store.path)
    for number in 1...count {
      try program.write {
        try $0.execute(
          sql: "INSERT INTO notes VALUES(?, 'body')", arguments: ["row \(number)"])
      }
      _ = try manager.store.seal()
    }
    try program.close()
  }

  @Test func idleSyncWritesNothingToTheStore() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try await fleet.settle()
    let watcher = try DatabaseQueue(path: fleet[0].store.path)
    func version() async throws -> Int? {
      try await watcher.read { try Int.fetchOne($0, sql: "PRAGMA data_version") }
    }
    let before = try await version()
    for _ in 0..<3 { try await fleet[0].synchronize() }
    #expect(try await version() == before)
    try fleet[0].put("x", "2")
    #expect(try await version() != before)
    try watcher.close()
  }

  @Test func idleSyncOfTwoClientsListsThreeFoldersAndNothingElse() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try await fleet.settle()
    // Once round all turns.
    try await expectIdle(fleet, 0, times: 3)
    try await expectIdle(fleet, 1, times: 3)
  }

  @Test func idleSyncOfFiftyClientsCostsTheSame() async throws {
    let fleet = try await TestFleet(50)
    try fleet[7].put("x", "1")
    try await fleet.settle(rounds: 4)
    try await expectIdle(fleet, 7, times: 51)
    try await expectIdle(fleet, 0, times: 51)
  }

  @Test func idleSyncAfterTenThousandChangeSetsCostsTheSame() async throws {
    let fleet = try await TestFleet(2)
    try edit(fleet[0], times: 10_000)
    try await fleet[0].synchronize()
    try await fleet.settle()
    #expect(fleet.changeSets(of: 0).count { $0.name.hasSuffix(".syncchg") } == 10_000)
    try fleet.expectEqual()
    try await expectIdle(fleet, 0, times: 4)
    try await expectIdle(fleet, 1, times: 4)
  }

  /// One listing is of its folder, and one of the root, before it is read.
  @Test func newChangeSetOfOneOfManyCostsTwoListingsAndOneReadMore() async throws {
    let fleet = try await TestFleet(10)
    try await fleet.settle()
    try fleet[3].put("x", "1")
    try await fleet[3].synchronize()
    fleet.counters[5].reset()
    try await fleet[5].synchronize()
    let counts = fleet.counters[5].counts
    #expect((4...5).contains(counts.listings))
    #expect(counts.reads == 1)
    #expect(counts.writes == 1)
  }
}
