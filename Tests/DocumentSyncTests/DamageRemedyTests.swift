import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import Testing

@testable import DocumentSync

/// What verifying says to do about a file depends on whose it is, and on who
/// needs it.
struct DamageRemedyTests {
  private func strike(_ path: RelativePath, _ memory: MemoryDirectory) throws {
    var bytes = try memory.read(path, limit: .max)
    bytes[bytes.count / 2] ^= 0x10
    memory.put(.file(bytes), at: path)
  }

  private func finding(
    _ fleet: TestFleet, at path: RelativePath
  ) async throws -> VerifyReport.Finding {
    let report = try await ApplicationSyncManager(
      directory: fleet.memory, environment: fleet.environment
    ).verify()
    return try #require(report.findings.first { $0.path == path.description }, "\(report)")
  }

  /// The last of three devices has made a change set and left; another has
  /// heard of it.
  private func left(appliedBy count: Int) async throws -> (TestFleet, RelativePath) {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    try fleet[2].put("z", "of the third")
    try await fleet[2].synchronize()
    let path = try #require(fleet.changeSets(of: 2).last)
    for index in 0..<count { try await fleet[index].synchronize() }
    try await fleet[2].leave(isConfirmed: true)
    if count == 2 { try await fleet[1].synchronize() }
    try await fleet[0].synchronize()
    return (fleet, path)
  }

  @Test func whatAMemberLacksOfADeviceThatHasLeftTakesAReset() async throws {
    let (fleet, path) = try await left(appliedBy: 1)
    try strike(path, fleet.memory)
    let found = try await finding(fleet, at: path)
    #expect(found.severity == .error)
    #expect(found.remedy.actions.contains(.reset), "\(found)")
    // It does help.
    try await fleet[0].reset()
    try await fleet[1].synchronize()
    #expect(try fleet[1].notes().contains("z=of the third"))
  }

  @Test func fileOfADeviceThatHasLeftIsWaitedForWhileItMayBeArriving() async throws {
    let (fleet, path) = try await left(appliedBy: 1)
    let bytes = try fleet.memory.read(path, limit: .max)
    fleet.memory.put(.file(Array(bytes.prefix(bytes.count / 2))), at: path)
    let found = try await finding(fleet, at: path)
    #expect(found.kind == .truncated && found.severity == .waiting)
    #expect(found.remedy.hasPrefix("Wait until"), "\(found)")
    #expect(found.remedy.actions.contains(.reset), "\(found)")
  }

  @Test func whatItsFormatDoesNotAllowInAFileOfTheBeginningIsWrittenAgain() async throws {
    let fleet = try await TestFleet(1)
    try await fleet.settle()
    for (prefix, type) in [
      ("application.", Envelope.FileType.application), ("generation.", .generation),
      (fleet[0].binding.client.description, .clientDevice),
    ] {
      let path = try #require(
        fleet.paths {
          $0.name.hasPrefix(prefix) && $0.name.hasSuffix(".json")
            && !$0.components.contains("RecentSyncs")
        }.last)
      fleet.memory.put(.file(try Envelope.encodeJSON(["x": 1], type: type)), at: path)
      let found = try await finding(fleet, at: path)
      #expect(found.kind == .malformed)
      #expect(found.remedy.actions.contains(.synchronizeThoroughly), "\(found)")
      try await fleet[0].synchronizeThoroughly()
      #expect(
        try await ApplicationSyncManager(
          directory: fleet.memory, environment: fleet.environment
        ).verify().findings == [])
    }
  }

  @Test func missingChangeSetOfADeviceThatHasLeftTakesAReset() async throws {
    let (fleet, _) = try await left(appliedBy: 1)
    let path = try #require(fleet.changeSets(of: 2).first)
    fleet.memory.take(path)
    let report = try await ApplicationSyncManager(
      directory: fleet.memory, environment: fleet.environment
    ).verify()
    let kinds: Set<VerifyReport.Finding.Kind> = [
      .changeSetMissing, .markerWithoutFiles, .markerAhead,
    ]
    let found = report.findings.filter { kinds.contains($0.kind) }
    #expect(!found.isEmpty)
    for found in found { #expect(found.remedy.actions.contains(.reset), "\(found)") }
  }

  @Test func whatEveryMemberHasIsWorthAWholeStore() async throws {
    let (fleet, path) = try await left(appliedBy: 2)
    try strike(path, fleet.memory)
    #expect(try await finding(fleet, at: path).remedy.actions.contains(.upload))
    try await fleet[0].uploadWholeStore()
    #expect(fleet.memory.items[path] != nil)
    let found = try await finding(fleet, at: path)
    #expect(found.severity == .note, "\(found)")
  }

  /// Device 1 was offline when device 2, which was given up, came back.
  @Test func deviceThatHasReturnedIsNotTakenForGone() async throws {
    let fleet = try await TestFleet(3)
    try fleet[2].put("z", "of the third")
    try await fleet.settle()
    let path = try #require(fleet.changeSets(of: 2).last)
    let before = fleet.memory.items
    try fleet[2].put("y", "late")
    try await fleet[2].synchronize()
    let late = fleet.memory.items
    for path in late.keys where before[path] == nil { fleet.memory.take(path) }
    fleet.memory.takeOver(before)
    try await fleet[0].retire(.client(fleet[2].binding.client, .absent))
    try await fleet[1].synchronize()
    fleet.memory.takeOver(late)
    try await fleet[0].synchronize()
    try strike(path, fleet.memory)
    #expect(try await finding(fleet, at: path).remedy.actions.contains(.synchronizeThoroughly))
  }

  @Test func markerAndDescriptionOfADeviceThatHasLeftAreNotes() async throws {
    let (fleet, _) = try await left(appliedBy: 2)
    let own = fleet[2].binding.client.description
    let descriptions = fleet.paths {
      $0.components.first == "ClientDevices" && $0.name.hasPrefix(own)
    }
    for path in fleet.markers(of: 2) + descriptions {
      try strike(path, fleet.memory)
      let found = try await finding(fleet, at: path)
      #expect(found.severity == .note, "\(found)")
      #expect(!found.remedy.actions.contains(.synchronizeThoroughly), "\(found)")
    }
  }

  @Test func damageInAFormerGenerationIsANote() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try await fleet.settle()
    let path = try #require(fleet.changeSets(of: 0).first)
    try strike(path, fleet.memory)
    #expect(try await finding(fleet, at: path).severity == .error)
    try await fleet[1].reset()
    #expect(try await finding(fleet, at: path).severity == .note)
  }

  @Test func fileOfTheApplicationCanBeWrittenByAnybody() async throws {
    let fleet = try await TestFleet(1)
    let path = try #require(fleet.paths { $0.name.hasPrefix("application.") }.first)
    try strike(path, fleet.memory)
    #expect(try await finding(fleet, at: path).remedy.contains("any device"))
  }

  // MARK: - A store against its directory

  @Test func removedDeviceIsToldSoAndMissesNothing() async throws {
    let fleet = try await TestFleet(2)
    try fleet[1].put("y", "1")
    try await fleet.settle()
    try await fleet[0].removeClient(fleet[1].binding.client)
    for _ in 0..<4 { try await fleet[0].vacuum() }
    for path in fleet.markers(of: 1) + fleet.changeSets(of: 1) { fleet.memory.take(path) }
    let report = try await fleet[1].verify()
    #expect(report.findings.map(\.kind).contains(.storeRetired))
    #expect(!report.findings.map(\.kind).contains(.ownFileMissing), "\(report.findings)")
    let found = try #require(report.findings.first { $0.kind == .storeRetired })
    #expect(found.remedy.actions.contains(.synchronizeRejoining))
  }

  @Test func retiredDeviceIsToldToSynchronize() async throws {
    let fleet = try await TestFleet(3)
    try fleet[2].put("y", "1")
    try await fleet.settle()
    try await fleet[0].retire(.client(fleet[2].binding.client, .absent))
    for _ in 0..<4 { for index in 0..<2 { try await fleet[index].synchronize() } }
    for path in fleet.markers(of: 2) + fleet.changeSets(of: 2) { fleet.memory.take(path) }
    let report = try await fleet[2].verify()
    #expect(!report.findings.map(\.kind).contains(.ownFileMissing), "\(report.findings)")
    let found = try #require(report.findings.first { $0.kind == .storeRetired })
    #expect(found.remedy.actions.contains(.synchronize))
  }

  @Test func olderStateOfAStoreMissesNothingThatIsClearedAway() async throws {
    var fleet = try await TestFleet(2)
    try fleet[0].put("x", "0")
    try await fleet.settle()
    try await fleet[0].close()
    let store = fleet.scratch.store("0")
    let old = try Data(contentsOf: URL(fileURLWithPath: store))
    fleet.replace(
      0,
      with: try await DocumentSyncManager.open(
        storeAt: store, directory: fleet.memory, options: .init(environment: fleet.environment)))
    for number in 1...4 {
      try fleet[0].put("x", "\(number)")
      try await fleet.settle()
    }
    try await fleet[0].uploadWholeStore()
    try await fleet.settle()
    for index in [0, 1, 0] { try await fleet[index].vacuum() }
    #expect(fleet.changeSets(of: 0).isEmpty)
    try await fleet[0].close()
    try old.write(to: URL(fileURLWithPath: store))
    let report = try await DocumentSyncManager.verify(
      storeAt: store, directory: fleet.memory, environment: fleet.environment)
    #expect(!report.findings.map(\.kind).contains(.ownFileMissing), "\(report.findings)")
    #expect(report.findings.map(\.kind).contains(.storeBehind))
  }
}
