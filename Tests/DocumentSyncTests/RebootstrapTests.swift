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
          session: SyncSession(
            files: SharedFiles(directory, context: OperationContext(self)), store: manager.store)
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

  /// A synchronization is killed when it has taken over a reset: the store becomes a new client at
  /// the next one, also if it has brought no edits along.
  @Test(arguments: [true, false])
  func aStoreThatWentOverBecomesANewClient(hasEdits: Bool) async throws {
    let fleet = try await TestFleet(2)
    try fleet[1].put("x", "sent")
    try await fleet.settle()
    let before = fleet[1].binding
    try await fleet[0].reset()
    if hasEdits { try fleet[1].put("y", "kept") }
    let operation = SyncOperation<Void>("test", environment: fleet.environment)
    let files = SharedFiles(fleet.memory, context: OperationContext(operation))
    let generation = try DocumentSteps(files).find(before.document)
    _ = try await rebootstrap(fleet, 1, into: try #require(generation).file)
    #expect(fleet[1].binding.client == before.client)
    try await fleet[1].synchronize()
    #expect(fleet[1].binding.client != before.client)
    #expect(fleet[1].binding.ancestor == before.client)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes().contains("y=kept") == hasEdits)
    for manager in fleet.managers {
      #expect(try await manager.verify().findings == [])
    }
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

  // MARK: - Gaps that not every whole store closes

  /// Two whole stores, of which each lacks what the other device has done:
  /// the greater one lacks what was cleared away.
  private func makeFleetWithTwoWholeStores() async throws -> TestFleet {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    let before = fleet.memory.items
    try fleet[1].put("a", "cleared away")
    try await fleet[1].synchronize()
    try await fleet[1].uploadWholeStore()
    let after = fleet.memory.items
    for path in after.keys where before[path] == nil { fleet.memory.take(path) }
    fleet.memory.takeOver(before)
    for number in 1...5 {
      try fleet[2].put("b\(number)", "loose")
      try await fleet[2].synchronize()
    }
    try await fleet[2].uploadWholeStore()
    fleet.memory.takeOver(after)
    try StoreRecords(fleet[1].store).keep(StoreRecords.Kept(changeSets: 2))
    try await fleet[1].synchronize()
    for path in fleet.changeSets(of: 1) { try fleet.memory.remove(path) }
    return fleet
  }

  @Test func aGapIsClosedByTheWholeStoreThatContainsIt() async throws {
    let fleet = try await makeFleetWithTwoWholeStores()
    let report = try await fleet[0].synchronize()
    #expect(report.rebootstrap?.wholeStore.client == fleet[1].binding.client)
    #expect(report.waiting == [])
    #expect(try await fleet[0].synchronize().rebootstrap == nil)
    try await fleet[2].synchronize()
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes().first == "a=cleared away")
  }

  @Test func whoJoinsTakesTheWholeStoreThatLacksNothingThatWasClearedAway() async throws {
    let fleet = try await makeFleetWithTwoWholeStores()
    let late = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory,
      options: .init(client: "late", environment: fleet.environment))
    #expect(try late.notes().first == "a=cleared away")
    let report = try await late.synchronize()
    #expect(report.rebootstrap == nil && report.waiting == [])
    #expect(try late.notes() == fleet[1].notes())
  }

  @Test func whereNoWholeStoreClosesAGapOneIsAskedFor() async throws {
    let fleet = try await makeFleetWithTwoWholeStores()
    for path in fleet.paths(where: {
      $0.components.contains("WholeStore")
        && $0.components.contains(fleet[1].binding.client.description)
    }) { try fleet.memory.remove(path) }
    let report = try await fleet[0].synchronize()
    #expect(report.rebootstrap == nil)
    #expect(report.waiting.map(\.reason) == [.clearedAway])
    #expect(report.sentCommands == 1)
    // Once is enough.
    #expect(try await fleet[0].synchronize().sentCommands == 0)
    #expect(try await fleet[1].synchronize().uploadedWholeStore)
    #expect(try await !fleet[1].synchronize().uploadedWholeStore)
    #expect(try await fleet[0].synchronize().rebootstrap?.reason == .gap)
    try await fleet[2].synchronize()
    try await fleet.settle()
    try fleet.expectEqual()
  }

  /// Of two whole stores one has what is missing, and lacks what the device has
  /// of another and could not get again.
  @Test func aWholeStoreThatWouldOpenAnotherGapIsNotTakenOver() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    let before = fleet.memory.items
    try fleet[1].put("a", "of 1")
    try await fleet[1].uploadWholeStore()
    let after = fleet.memory.items
    for path in after.keys where before[path] == nil { fleet.memory.take(path) }
    fleet.memory.takeOver(before)
    try fleet[2].put("b", "of 2")
    try await fleet[2].uploadWholeStore()
    try await fleet[0].synchronize()
    fleet.memory.takeOver(after)
    for index in 1...2 {
      try StoreRecords(fleet[index].store).keep(StoreRecords.Kept(changeSets: 2))
      try await fleet[index].synchronize()
    }
    for index in 1...2 {
      for path in fleet.changeSets(of: index) { try fleet.memory.remove(path) }
    }
    let report = try await fleet[0].synchronize()
    #expect(report.rebootstrap == nil)
    #expect(report.waiting.map(\.reason) == [.clearedAway])
    #expect(try fleet[0].notes().contains("b=of 2"))
    // It has asked for one that has both.
    try await fleet[1].synchronize()
    try await fleet[2].synchronize()
    #expect(try await fleet[0].synchronize().rebootstrap?.reason == .gap)
    #expect(try await fleet[0].synchronize().waiting == [])
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes().prefix(2) == ["a=of 1", "b=of 2"])
  }

  /// Each of two whole stores lacks what the other's author has cleared away.
  @Test func aWholeStoreIsUploadedWhereNoDeviceCouldJoinAnyMore() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    let before = fleet.memory.items
    try fleet[0].put("a", "of 0")
    try await fleet[0].uploadWholeStore()
    let after = fleet.memory.items
    for path in after.keys where before[path] == nil { fleet.memory.take(path) }
    fleet.memory.takeOver(before)
    try fleet[1].put("b", "of 1")
    try await fleet[1].uploadWholeStore()
    fleet.memory.takeOver(after)
    try await fleet.settle()
    for index in 0...1 {
      for path in fleet.changeSets(of: index) { try fleet.memory.remove(path) }
      try StoreRecords(fleet[index].store).keep(StoreRecords.Kept(changeSets: 2))
      try fleet[index].put("c", "\(index)")
    }
    try await fleet.settle()
    for _ in 0..<4 { for manager in fleet.managers { try await manager.synchronize() } }
    let findings = try await fleet[0].verify().findings
    #expect(!findings.contains { $0.kind == .joinImpossible })
    let late = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory,
      options: .init(client: "late", environment: fleet.environment))
    #expect(try await late.synchronize().waiting == [])
    #expect(try late.notes() == fleet[0].notes())
  }

  @Test func theFirstChangeSetIsFetchedAlthoughTheSecondIsKeptAlready() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    for number in 1...2 {
      try fleet[1].put("n\(number)", "x")
      _ = try fleet[1].store.seal()
    }
    let bytes = try fleet[1].store.sealedBytes(2)
    _ = try fleet[0].store.apply([
      ReceivedChangeSet(
        changeSet: try ChangeSetCodec.decode(bytes), hash: ContentHash(of: bytes), bytes: bytes)
    ])
    #expect(try fleet[0].store.waiting().map(\.number) == [2])
    try await fleet[1].synchronize()
    #expect(try await fleet[0].synchronize().waiting == [])
    try fleet.expectEqual()
  }
}
