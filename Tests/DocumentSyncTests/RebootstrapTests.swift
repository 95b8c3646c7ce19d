import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// Taking over a whole store, by way of the directory.
@Suite struct RebootstrapTests {
  /// Runs the step alone.
  final class Operation: SyncOperation<SyncReport.Rebootstrap>, @unchecked Sendable {
    private let manager: DocumentSyncManager
    private let directory: any SharedDirectory
    private let generation: GenerationFile?

    init(
      _ manager: DocumentSyncManager, _ directory: any SharedDirectory,
      _ generation: GenerationFile?, _ environment: SyncEnvironment
    ) {
      self.manager = manager
      self.directory = directory
      self.generation = generation
      super.init("take over the whole store", environment: environment)
    }

    override func perform() async throws -> SyncReport.Rebootstrap {
      try await blocking { [self] in
        try RebootstrapStep(
          SharedFiles(directory, context: OperationContext(self)), store: manager.store
        ).run(.gap, into: generation)
      }
    }
  }

  private func rebootstrap(
    _ fleet: TestFleet, _ index: Int, into generation: GenerationFile? = nil
  ) async throws -> SyncReport.Rebootstrap {
    try await OperationQueue().run(
      Operation(fleet[index], fleet.directories[index], generation, fleet.environment))
  }

  @Test func aGapIsMendedAndOwnEditsGoAlong() async throws {
    let fleet = try await TestFleet(3)
    try fleet[0].put("a", "zero")
    _ = try await fleet.settle()
    try fleet[0].put("b", "zero")
    try await fleet[0].synchronize()
    _ = try await fleet[0].uploadWholeStore()
    // What the whole store contains is cleared away before the third has it.
    for path in fleet.changeSets(of: 0) { try fleet.memory.remove(path) }
    try fleet[2].put("c", "two")
    try fleet[0].put("d", "zero, later")
    try await fleet[0].synchronize()
    let result = try await rebootstrap(fleet, 2)
    #expect(result.reappliedChangeSets == 1)
    #expect(FileManager.default.fileExists(atPath: result.backup))
    #expect(try StoreRecords(fleet[2].store).wholeStores().last?.hash == result.wholeStore.hash)
    #expect(try fleet.scratch.names().filter { $0.contains("docsync-tmp") } == [])
    try await fleet[2].synchronize()
    #expect(try fleet[2].notes().suffix(2) == ["seed-0=body 0", "seed-1=body 1"])
    #expect(
      try fleet[2].notes().prefix(4) == ["a=zero", "b=zero", "c=two", "d=zero, later"])
    _ = try await rebootstrap(fleet, 1)
    try await fleet.settle()
    try fleet.expectEqual()
  }

  @Test func ownFilesAreReadWhereTheStoreHasGivenUpTheirBytes() async throws {
    let fleet = try await TestFleet(2, keptChangeSetBytes: 0)
    _ = try await fleet[0].uploadWholeStore()
    for number in 0..<3 {
      try fleet[1].put("n", "\(number)")
      try await fleet.settle()
    }
    #expect(try fleet[1].store.sealedChangeSets().contains { !$0.isKept })
    let result = try await rebootstrap(fleet, 1)
    #expect(result.reappliedChangeSets == 3)
    #expect(try fleet[1].notes().first == "n=2")
    try fleet.expectEqual()
    // Without the file nothing is changed.
    let lost = try fleet[1].store.sealedChangeSets().first { !$0.isKept }
    let path = try #require(
      fleet.changeSets(of: 1).first { $0.name.hasPrefix("\(lost?.number ?? 0).") })
    try fleet.memory.remove(path)
    let error = await syncError { _ = try await rebootstrap(fleet, 1) }
    #expect(error?.code == .wholeStoreMissing)
    #expect(try fleet[1].notes().first == "n=2")
    try fleet.expectEqual()
  }
}
