import DocumentSyncTesting
import Foundation
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// A store that stays open while another process works on it.
@Suite struct OtherProcessTests {
  /// Two devices, and a second manager of the second device's store, as another process has one.
  private func fleet(
    deciding decision: SyncQuestion.Decision
  ) async throws -> (fleet: TestFleet, other: DocumentSyncManager) {
    let fleet = try await TestFleet(2) { $0.store.places = nil }
    try await fleet.settle()
    let other = try await DocumentSyncManager.open(
      storeAt: fleet.scratch.store("1"), directory: fleet.directories[1],
      options: .init(delegate: Answering(decision), environment: fleet.environment))
    return (fleet, other)
  }

  @Test func theClientThatAnotherProcessHasMadeGoesOn() async throws {
    let (fleet, other) = try await fleet(deciding: .rejoin)
    let former = fleet[1].binding.client
    try await fleet[0].retire(.client(former, .removed))
    try await fleet[0].synchronize()
    #expect(await syncError { try await fleet[1].synchronize() }?.code == .clientRemoved)
    #expect(try await other.synchronize().incarnations.count == 1)
    #expect(other.binding.client != former)
    try fleet[1].put("y", "2")
    let report = try await fleet[1].synchronize()
    #expect(report.incarnations == [])
    #expect(fleet[1].binding == other.binding)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes().contains("y=2"))
    // Both go on as the same client.
    try fleet[1].put("z", "3")
    #expect(try await other.synchronize().incarnations == [])
    try await fleet.settle()
    #expect(try fleet[0].notes().contains("z=3"))
    try await other.close()
  }

  @Test func otherCallsDoNotBringTheFormerClientBack() async throws {
    let (fleet, other) = try await fleet(deciding: .rejoin)
    try await fleet[0].retire(.client(fleet[1].binding.client, .removed))
    try await fleet[0].synchronize()
    try await other.synchronize()
    try fleet[1].put("y", "2")
    // They seal edits, and change what the store is called.
    try await fleet[1].setPolicies { $0.set(.unionOfLines, table: "notes") }
    try await fleet[1].describeClient("renamed")
    #expect(fleet[1].binding.client == other.binding.client)
    #expect(try await other.synchronize().incarnations == [])
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes().contains("y=2"))
    #expect(try await fleet[0].listClients().contains { $0.description == "renamed" })
    try await other.close()
  }

  @Test func theDocumentThatAnotherProcessHasCreatedAgainGoesOn() async throws {
    let (fleet, other) = try await fleet(deciding: .create)
    try await ApplicationSyncManager(
      directory: fleet.memory, environment: fleet.environment
    ).deleteDocument("main", by: fleet[0].binding.client)
    #expect(await syncError { try await fleet[1].synchronize() }?.code == .documentDeleted)
    try await other.synchronize()
    try fleet[1].put("y", "2")
    let report = try await fleet[1].synchronize()
    #expect(report.incarnations == [])
    #expect(fleet[1].binding == other.binding)
    let third = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("2"), directory: fleet.memory.view(seed: 9),
      options: .init(client: "2", environment: fleet.environment))
    try await third.synchronize()
    #expect(try third.notes().contains("y=2"))
    for manager in [third, other] { try await manager.close() }
  }

  @Test func aStoreThatHasLeftIsNotDamaged() async throws {
    let (fleet, other) = try await fleet(deciding: .stop)
    try await other.leave()
    #expect(await syncError { try await fleet[1].synchronize() }?.code == .notUnderSync)
  }
}
