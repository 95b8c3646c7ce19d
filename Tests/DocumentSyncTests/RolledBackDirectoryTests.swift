import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// A directory that is put back to a state before the document was reset, and what begins the
/// generation of the devices there again.
@Suite struct RolledBackDirectoryTests {
  typealias Items = [RelativePath: MemoryDirectory.Item]

  /// Puts the directory back to an earlier state, as a backup does.
  private static func putBack(_ items: Items, _ fleet: TestFleet) {
    for (path, item) in fleet.memory.items where items[path] == nil {
      if case .file = item { fleet.memory.take(path) }
    }
    fleet.memory.takeOver(items)
  }

  /// Three devices in a directory that was put back: two have gone over to the second generation,
  /// and the last one has stayed in the first. Each has unsent edits.
  private static func fleet(keptChangeSetBytes: Int? = nil) async throws -> (TestFleet, Items) {
    let fleet = try await TestFleet(3, keptChangeSetBytes: keptChangeSetBytes)
    try fleet[2].put("x", "first")
    try await fleet.settle()
    let before = fleet.memory.items
    try await fleet[0].reset()
    try await fleet[1].synchronize()
    for index in 0...1 {
      try fleet[index].put("sent \(index)", "second")
      for _ in 0...1 { for index in 0...1 { try await fleet[index].synchronize() } }
    }
    try fleet[0].put("x", "second")
    try fleet[1].edit("DELETE FROM notes WHERE id = 'seed-0'")
    for _ in 0...1 { for index in 0...1 { try await fleet[index].synchronize() } }
    putBack(before, fleet)
    for index in 0...2 { try fleet[index].put("unsent \(index)", "1") }
    return (fleet, before)
  }

  private static let notes = [
    "seed-1=body 1", "sent 0=second", "sent 1=second", "unsent 0=1", "unsent 1=1", "unsent 2=1",
    "x=second",
  ]

  /// Expects that all devices have everything, and that the directory is complete once each of them
  /// has looked at its own files.
  private static func expectWhole(
    _ fleet: TestFleet, _ expected: [String] = notes,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    try await fleet.settle()
    try fleet.expectEqual(sourceLocation: sourceLocation)
    #expect(try fleet[0].notes() == expected, sourceLocation: sourceLocation)
    for manager in fleet.managers { try await manager.synchronizeThoroughly() }
    try await fleet.settle()
    for manager in fleet.managers {
      let faults = try await manager.verify().findings.filter { $0.severity == .error }
      #expect(faults == [], sourceLocation: sourceLocation)
    }
  }

  private static func files(_ items: Items) -> Items { items.filter { $0.value != .folder } }

  private static func generations(_ fleet: TestFleet) -> [RelativePath] {
    fleet.paths { $0.name.hasPrefix("generation.") }
  }

  @Test(arguments: [0, 1]) func aDeviceThatIsAskedBeginsItsGenerationAgain(
    index: Int
  ) async throws {
    let (fleet, before) = try await Self.fleet()
    let error = await syncError { try await fleet[index].synchronize() }
    #expect(error?.code == .generationMissing)
    #expect(error?.remedy.actions == [.synchronizeThoroughly])
    #expect(Self.files(fleet.memory.items) == Self.files(before))
    let report = try await fleet[index].synchronizeThoroughly()
    #expect(Self.generations(fleet).count == 2)
    #expect(report.uploadedWholeStore && report.rebootstrap == nil)
    #expect(report.restoredFiles.contains { $0.contains("generation.2.") })
    let other = try await fleet[1 - index].synchronize()
    #expect(other.rebootstrap == nil)
    let behind = try await fleet[2].synchronize()
    #expect(behind.rebootstrap?.reason == .reset)
    #expect(behind.rebootstrap?.returningChangeSets == 1)
    try await Self.expectWhole(fleet)
  }

  /// The store has no bytes of change sets any more that all members had.
  @Test func changeSetsThatAllMembersHadAreInTheWholeStore() async throws {
    let (fleet, _) = try await Self.fleet(keptChangeSetBytes: 0)
    try await fleet[1].synchronizeThoroughly()
    try await Self.expectWhole(fleet)
    let late = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory,
      options: .init(client: "late", environment: fleet.environment))
    #expect(try late.notes() == Self.notes)
  }

  @Test func twoDevicesDoItAtOneMoment() async throws {
    let (fleet, before) = try await Self.fleet()
    try await fleet[0].synchronizeThoroughly()
    let theirs = fleet.memory.items
    Self.putBack(before, fleet)
    try await fleet[1].synchronizeThoroughly()
    fleet.memory.takeOver(theirs)
    try await Self.expectWhole(fleet)
  }

  @Test func aDeviceThatDoesItLaterChangesNothing() async throws {
    let (fleet, _) = try await Self.fleet()
    try await fleet[0].synchronizeThoroughly()
    let file = try fleet.memory.bytes(at: try #require(Self.generations(fleet).last))
    let report = try await fleet[1].synchronizeThoroughly()
    #expect(!report.uploadedWholeStore)
    #expect(try fleet.memory.bytes(at: try #require(Self.generations(fleet).last)) == file)
    try await Self.expectWhole(fleet)
  }

  /// What the device has sent there since is brought along.
  @Test func aDeviceHasGoneOnInTheEarlierGeneration() async throws {
    let (fleet, _) = try await Self.fleet()
    try await fleet[2].synchronize()
    try await fleet[0].synchronizeThoroughly()
    try await Self.expectWhole(fleet)
  }

  /// The generations then count as begun at one moment.
  @Test(arguments: [UInt64(1), 2, 3, 4]) func theDocumentWasResetFromTheEarlierState(
    seed: UInt64
  ) async throws {
    let (fleet, _) = try await Self.fleet()
    for _ in 0..<seed { _ = fleet.world.word() }
    try await fleet[2].reset()
    #expect(
      await syncError { try await fleet[0].synchronize() }?.remedy.actions
        == [.synchronizeThoroughly])
    try await fleet[0].synchronizeThoroughly()
    try await fleet.settle()
    try fleet.expectEqual()
    let notes = try fleet[0].notes()
    #expect(notes.filter { !$0.hasPrefix("seed-0") } == Self.notes)
  }

  /// A file of a reset arrives late, or its device looks later.
  @Test func aLaterGenerationStillCounts() async throws {
    let (fleet, before) = try await Self.fleet()
    try await fleet[0].synchronizeThoroughly()
    try await fleet[1].synchronize()
    try await fleet[1].reset()
    let third = fleet[1].binding.generation
    let after = fleet.memory.items
    Self.putBack(before, fleet)
    fleet.memory.takeOver(after.filter { $0.key.description.contains(third.description) })
    let report = try await fleet[0].synchronizeThoroughly()
    #expect(report.rebootstrap?.reason == .reset && !report.uploadedWholeStore)
    #expect(fleet[0].binding.generation == third)
    try await Self.expectWhole(fleet)
  }

  /// Devices of the second generation go over to the third, too.
  @Test func theLineOfGenerationsIsComplete() async throws {
    let (fleet, before) = try await Self.fleet()
    let second = fleet[0].binding.generation
    try await fleet[0].synchronizeThoroughly()
    try await fleet[1].synchronize()
    try await fleet[1].reset()
    Self.putBack(before, fleet)
    try fleet[0].put("unsent 0", "2")
    try await fleet[1].synchronizeThoroughly()
    let files = try Self.generations(fleet).map {
      try Envelope.decodeJSON(
        GenerationFile.self, from: try fleet.memory.bytes(at: $0), type: .generation)
    }.sorted { $0.ordinal < $1.ordinal }
    #expect(files.map(\.ordinal) == [1, 2, 3])
    #expect(files.map(\.previous) == [nil, files[0].generation, second])
    #expect(try await fleet[0].synchronize().rebootstrap?.reason == .reset)
    try await Self.expectWhole(
      fleet, Self.notes.map { $0 == "unsent 0=1" ? "unsent 0=2" : $0 })
  }

  /// It does not know that the generation in the directory comes before its own.
  @Test func aDeviceThatJoinedAfterTheResetLeavesItToTheOthers() async throws {
    let (fleet, before) = try await Self.fleet()
    try await fleet[0].synchronizeThoroughly()
    let late = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory,
      options: .init(client: "late", environment: fleet.environment))
    try late.put("late", "1")
    Self.putBack(before, fleet)
    #expect(await syncError { try await late.synchronizeThoroughly() }?.code == .generationMissing)
    #expect(Self.files(fleet.memory.items) == Self.files(before))
    try await fleet[1].synchronizeThoroughly()
    try await late.synchronize()
    try await Self.expectWhole(fleet, ["late=1"] + Self.notes)
  }

  @Test func aDeletedGenerationStaysDeleted() async throws {
    let (fleet, before) = try await Self.fleet()
    try await fleet[0].synchronizeThoroughly()
    try await ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
      .deleteDocument("main", by: fleet[1].binding.client)
    let tombstones = fleet.memory.items.filter { $0.key.name.hasPrefix("deleted.") }
    #expect(tombstones.count == 1)
    Self.putBack(before.merging(tombstones) { $1 }, fleet)
    #expect(
      await syncError { try await fleet[0].synchronizeThoroughly() }?.code == .documentDeleted)
    #expect(Self.generations(fleet).count == 1)
  }

  /// An interruption after the file of the generation was written.
  @Test func aGenerationWithoutAWholeStoreGetsOne() async throws {
    let (fleet, _) = try await Self.fleet()
    try await fleet[0].synchronizeThoroughly()
    for path in fleet.paths(where: { $0.name.hasSuffix(".store") }) { fleet.memory.take(path) }
    #expect(await syncError { try await fleet[2].synchronize() }?.code == .wholeStoreMissing)
    #expect(try await fleet[1].synchronizeThoroughly().uploadedWholeStore)
    try await Self.expectWhole(fleet)
  }

  /// The device and the directory were put back together. Its edits since have numbers that its edits
  /// had before, and the whole store of the second generation contains those.
  @Test(arguments: [0, 1, 2, 3, 5]) func aDeviceIsPutBackAsWell(count: Int) async throws {
    var fleet = try await TestFleet(3)
    try fleet[2].put("x", "first")
    try await fleet.settle()
    let before = fleet.memory.items
    let (store, backup) = (fleet.scratch.store("2"), fleet.scratch.store("backup"))
    try await fleet[2].close()
    try FileManager.default.copyItem(atPath: store, toPath: backup)
    try await fleet.reopen(2)
    let former = (1...3).map { "former \($0)" }
    for name in former {
      try fleet[2].put(name, "1")
      try await fleet[2].synchronize()
    }
    try await fleet.settle()
    try await fleet[0].reset()
    try await fleet.settle()
    try fleet[0].put("second", "1")
    try await fleet.settle()
    Self.putBack(before, fleet)
    try await fleet[2].close()
    try FileManager.default.removeItem(atPath: store)
    try FileManager.default.moveItem(atPath: backup, toPath: store)
    try await fleet.reopen(2)
    let new = (0..<count).map { "new \($0)" }
    for name in new {
      try fleet[2].put(name, "1")
      try await fleet[2].synchronize()
    }
    try fleet[2].put("unsent", "1")
    try await fleet[0].synchronizeThoroughly()
    try await Self.expectWhole(
      fleet,
      former.map { "\($0)=1" } + new.map { "\($0)=1" }
        + ["second=1", "seed-0=body 0", "seed-1=body 1", "unsent=1", "x=first"])
  }
}
