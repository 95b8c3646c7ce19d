import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import Testing

@testable import DocumentSync

/// Numbers in names and files of others may be anything: none ends the
/// program, and none is counted up to.
struct HostileNumbersTests {
  /// Beside the change sets of a device, in the generation that counts and in
  /// one before it.
  @Test func nameOfASegmentWithoutEndCostsNothing() async throws {
    let fleet = try await TestFleet(2)
    try fleet[1].put("x", "1")
    try await fleet.settle()
    let bogus = "1-999999999999999.aaaaaaaaaa.segment"
    func plant() throws {
      let folder = try #require(fleet.changeSets(of: 1).last?.parent)
      fleet.memory.put(.file([1, 2, 3]), at: folder / bogus)
    }
    try plant()
    for manager in fleet.managers { #expect(try await manager.synchronize().waiting == []) }
    let report = try await ApplicationSyncManager(
      directory: fleet.memory, environment: fleet.environment
    ).verify()
    #expect(report.findings.contains { $0.path?.hasSuffix(bogus) ?? false })
    try fleet[1].put("x", "2")
    try await fleet[1].synchronize()
    try await fleet[0].reset()
    for _ in 0..<4 {
      for manager in fleet.managers { #expect(try await manager.synchronize().waiting == []) }
    }
    #expect(try fleet[0].notes().contains("x=2"))
    try fleet.expectEqual()
  }

  /// Also one that could be, and is not what it says.
  @Test func whatIsSaidToBeClearedAwayIsNotCountedUpTo() async throws {
    let fleet = try await TestFleet(2)
    try fleet[1].put("x", "1")
    try await fleet.settle()
    let client = fleet[1].binding.client
    let operation = SyncOperation<Void>("test", environment: fleet.environment)
    let reader = LeftBehindReader(
      SharedFiles(fleet.memory, context: OperationContext(operation)), binding: fleet[0].binding,
      generation: fleet[0].binding.generation, contained: [:], lowestKept: [client: 1 << 60],
      limits: [:])
    let folder = try #require(fleet.changeSets(of: 1).last?.parent)
    for name in ["3-60000", "7-65000", "70000-70000"] {
      fleet.memory.put(.file([1]), at: folder / "\(name).aaaaaaaaaa.segment")
    }
    try reader.look(at: [client])
    #expect(reader.remainingCount == 1 + (65_000 - 2) + 1)
    #expect(try reader.next(100, bytes: 1 << 20).map(\.changeSet.header.number) == [1])
    #expect(reader.waiting.map(\.number) == [3])
  }

  /// Numbers in markers that no device has made.
  @Test(
    arguments: [
      { $0.commandsApplied[$1] = Self.entry(.max) }, { $0.applied[$1] = Self.entry(.max) },
      { $0.commandsApplied[$1] = Self.entry(VersionVector.greatestNumber) },
      { $0.applied[$1] = Self.entry(VersionVector.greatestNumber) },
      { marker, _ in
        marker.lowestKept = .max
        marker.lowestKeptCommand = .max
      },
      { marker, _ in
        marker.segments.append(
          RecentSyncFile.Segment(
            client: marker.client, first: 9, last: 3, hash: ContentHash(of: [])))
      },
    ] as [@Sendable (inout RecentSyncFile, ClientIdentifier) -> Void])
  func numbersInAMarkerEndNothing(
    _ change: @Sendable (inout RecentSyncFile, ClientIdentifier) -> Void
  ) async throws {
    let fleet = try await TestFleet(2)
    try fleet[1].put("x", "1")
    try await fleet.settle()
    var random = SeededRandom(seed: 2)
    let strangers = (0..<3).map { _ in ClientIdentifier.random(using: &random) }
    try DamagedDirectory(of: fleet).publishMarker(of: 1) { marker in
      for client in strangers { change(&marker, client) }
    }
    try fleet[0].put("y", "1")
    for _ in 0..<2 { _ = try await fleet[0].synchronize() }
    _ = try await fleet[0].vacuum()
    #expect(try await fleet[0].verify().fileCount > 0)
    // Missing information of other devices prevents no exchange.
    #expect(try fleet[0].notes().contains("y=1"))
    try fleet[1].put("z", "1")
    for index in [1, 0, 1, 0] { _ = try await fleet[index].synchronize() }
    #expect(try Set(fleet[1].notes()).isSuperset(of: ["x=1", "y=1", "z=1"]))
    #expect(try Set(fleet[0].notes()).isSuperset(of: ["x=1", "y=1", "z=1"]))
  }

  private static func entry(_ number: UInt64) -> VersionVector.Entry {
    VersionVector.Entry(number: number, hash: ContentHash(of: []))
  }

  @Test func numbersInACommandAreWithinBounds() {
    var random = SeededRandom(seed: 2)
    let client = ClientIdentifier.random(using: &random)
    func retire(_ revision: UInt64, _ head: UInt64?) -> SyncCommand {
      SyncCommand(
        SyncCommand.Retire(
          client: client, reason: .left, lastRevision: revision, changeHead: head))
    }
    #expect(retire(1, 2).isWellFormed && retire(1, nil).isWellFormed)
    #expect(!retire(.max, 2).isWellFormed && !retire(1, .max).isWellFormed)
    #expect(!SyncCommand(SyncCommand.Upload(client: client, number: .max)).isWellFormed)
  }
}
