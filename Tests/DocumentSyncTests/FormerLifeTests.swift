import DocumentSync
import DocumentSyncTesting
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

/// What is left of a generation that all members have left.
@Suite struct FormerLifeTests {
  private func files(_ fleet: TestFleet, in generation: IntegrityKey) -> [RelativePath] {
    fleet.paths { $0.components.contains(generation.description) }
  }

  private func vacuum(_ fleet: TestFleet, _ devices: [Int]) async throws -> [VacuumReport] {
    var reports: [VacuumReport] = []
    for index in devices { reports.append(try await fleet[index].vacuum()) }
    return reports
  }

  @Test func itsFilesGoByTheirAuthorsOnceAllMembersHaveGoneOver() async throws {
    let fleet = try await TestFleet(3)
    for index in 0..<3 {
      try fleet[index].put("x\(index)", "1")
      try await fleet[index].sendCommand(name: "hello")
    }
    try await fleet.settle()
    _ = try await fleet[1].uploadWholeStore()
    let before = fleet.managers.map(\.binding)
    let former = before[0].generation
    try await fleet[0].reset()
    try await fleet[1].synchronize()
    // Device 2 has not gone over.
    let items = files(fleet, in: former)
    for report in try await vacuum(fleet, [0, 1]) {
      let kept = report.kept.filter { $0.reason.contains("has not moved") }
      #expect(kept.contains { $0.kind == .changeSets } && kept.contains { $0.kind == .commands })
      #expect(kept.allSatisfy { $0.member == before[2].client })
    }
    #expect(files(fleet, in: former) == items)
    try await fleet.settle()
    let report = try await vacuum(fleet, [0])[0]
    // No device removes files of another device.
    #expect(Set(report.removed.map(\.client)) == [before[0].client])
    let left = files(fleet, in: former)
    #expect(!left.isEmpty && left.count < items.count)
    #expect(!left.contains { $0.description.contains(before[0].client.description) })
    for binding in before[1...] {
      #expect(left.contains { $0.description.contains(binding.client.description) })
    }
    _ = try await vacuum(fleet, [1, 2])
    #expect(files(fleet, in: former) == [])
    let folder = DirectoryLayout.Document(before[0].document).generation(former).folder
    #expect(fleet.memory.items[folder] == nil)
    // It is over: nothing is looked for any more.
    for report in try await vacuum(fleet, [0, 1, 2]) { #expect(report.removed.isEmpty) }
    try await fleet.settle()
    try fleet.expectEqual()
    let verified = try await ApplicationSyncManager(
      directory: fleet.memory, environment: fleet.environment
    ).verify()
    #expect(verified.findings.filter { $0.severity != .note } == [])
    let joined = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("j"), directory: fleet.memory,
      options: .init(environment: fleet.environment))
    #expect(try joined.notes() == fleet[0].notes())
  }

  @Test func housekeepingDoesItByItself() async throws {
    let fleet = try await TestFleet(1)
    let former = fleet[0].binding.generation
    try await fleet[0].reset()
    for number in 0..<70 {
      try fleet[0].put("x", "\(number)")
      try await fleet[0].synchronize()
    }
    #expect(files(fleet, in: former) == [])
  }

  @Test func aDeviceThatComesLateFindsWhatItNeeds() async throws {
    let fleet = try await TestFleet(3)
    try fleet[2].put("x", "published")
    try await fleet.settle()
    try await fleet[0].retire(.client(fleet[2].binding.client, .absent))
    for index in [0, 1, 0, 1, 0] { try await fleet[index].synchronize() }
    // Beyond what all others have stopped at.
    try fleet[2].put("y", "beyond")
    let (former, gone) = (fleet[0].binding.generation, fleet[2].binding.client)
    let store = fleet[2].store
    _ = try store.seal()
    let sealed = try #require(try store.sealedChangeSets().last)
    let beyond = DirectoryLayout.Document(fleet[2].binding.document).generation(former)
      .path(
        of: ChangeSetName(number: sealed.number, hash: HashFragment(sealed.hash)), by: gone)
    fleet.memory.put(.file(try store.sealedBytes(sealed.number)), at: beyond)
    try await fleet[1].reset()
    for index in [0, 1, 0, 1] { try await fleet[index].synchronize() }
    // Who has retired it clears up after it.
    let reports = try await vacuum(fleet, [1, 0])
    #expect(!reports[0].removed.contains { $0.client == gone })
    #expect(reports[1].removed.contains { $0.client == gone && $0.kind == .changeSets })
    #expect(files(fleet, in: former) == [])
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes().contains("y=beyond"))
    #expect(try fleet[0].notes().contains("x=published"))
  }

  /// What a retired client has published goes once it is in the document, and
  /// not before.
  @Test(arguments: [1, 2, 3, 4, 5, 6] as [UInt64])
  func whatArrivesLateIsBroughtAlongBeforeItGoes(seed: UInt64) async throws {
    let fleet = try await TestFleet(3, seed: seed)
    try await fleet.settle()
    let (former, gone) = (fleet[0].binding.generation, fleet[2].binding.client)
    try await fleet[0].retire(.client(gone, .absent))
    for index in [0, 1, 0, 1, 0] { try await fleet[index].synchronize() }
    try fleet[2].put("y", "late")
    let store = fleet[2].store
    _ = try store.seal()
    let sealed = try #require(try store.sealedChangeSets().last)
    try await fleet[1].reset()
    for index in [0, 1, 0, 1] { try await fleet[index].synchronize() }
    let late = DirectoryLayout.Document(fleet[2].binding.document).generation(former)
      .path(
        of: ChangeSetName(number: sealed.number, hash: HashFragment(sealed.hash)), by: gone)
    fleet.memory.put(.file(try store.sealedBytes(sealed.number)), at: late)
    // At first it is not in the document; in the end it is, and the file is gone.
    #expect(try !fleet[0].notes().contains("y=late"))
    for _ in 0..<8 {
      // Whose turn it is to look there depends on the seed.
      _ = try await vacuum(fleet, [0])
      let isBrought = try fleet[0].notes().contains("y=late")
      if !isBrought { #expect(fleet.memory.items[late] != nil) }
    }
    #expect(try fleet[0].notes().contains("y=late"))
    _ = try await vacuum(fleet, [1, 0])
    #expect(files(fleet, in: former) == [])
  }

  /// A file never arrived at a device, and its author has cleared it away.
  @Test func whatItsAuthorHasBroughtAlongIsNotWaitedForForEver() async throws {
    let fleet = try await TestFleet(4)
    try await fleet.settle()
    let before = fleet.memory.items
    try fleet[2].put("x", "1")
    try await fleet[2].synchronize()
    let missing = try #require(fleet.changeSets(of: 2).last)
    try await fleet[3].synchronize()
    try fleet[3].put("x", "2")
    try await fleet[3].leave()
    let after = fleet.memory.items
    for path in after.keys where before[path] == nil { fleet.memory.take(path) }
    fleet.memory.takeOver(before)
    try await fleet[0].reset()
    fleet.memory.takeOver(after)
    fleet.memory.take(missing)
    let waiting = try await fleet[1].synchronize().waiting
    #expect(waiting.map(\.reason) == [.dependencies])
    for index in [2, 0, 2, 0] { try await fleet[index].synchronize() }
    _ = try await vacuum(fleet, [2, 0])
    for index in [1, 0, 2, 1] { try await fleet[index].synchronize() }
    for index in 0..<3 {
      #expect(try fleet[index].notes().contains("x=2"))
      for _ in 0..<8 { #expect(try await fleet[index].synchronize().waiting == []) }
    }
  }

  @Test func whoLeftOrWasRemovedIsNotWaitedFor() async throws {
    let fleet = try await TestFleet(4)
    try await fleet.settle()
    let former = fleet[0].binding.generation
    let others = [fleet[2].binding.client, fleet[3].binding.client]
    let owner = fleet[0].binding.client
    try await fleet[0].reset()
    try await fleet[1].synchronize()
    // It leaves the generation that it finds, and the document with it.
    try await fleet[2].leave()
    _ = try await vacuum(fleet, [0, 1])
    #expect(!files(fleet, in: former).isEmpty)
    try await fleet[0].removeClient(others[1])
    _ = try await vacuum(fleet, [0, 1])
    let left = files(fleet, in: former)
    #expect(!left.contains { $0.description.contains(owner.description) })
    #expect(
      left.allSatisfy { path in others.contains { path.description.contains($0.description) } })
  }

  @Test func copyThatHasGoneOverDoesNotSpeakForWhatItWasCopiedFrom() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    let (former, original) = (fleet[0].binding.generation, fleet[1].binding.client)
    // Another state of device 1 is in use, as a client of its own.
    let copy = fleet.scratch.store("copy")
    try fleet[1].store.copy(to: copy)
    let second = try await DocumentSyncManager.open(
      storeAt: copy, directory: fleet.memory, options: .init(environment: fleet.environment))
    try second.store.beginIncarnation(.copied)
    try await second.synchronize()
    try await fleet[1].synchronize()
    try await fleet[0].reset()
    try await second.synchronize()
    try await fleet[0].synchronize()
    let kept = try await vacuum(fleet, [0])[0].kept.filter { $0.reason.contains("has not moved") }
    #expect(!kept.isEmpty && kept.allSatisfy { $0.member == original })
    try await fleet.settle()
    _ = try await vacuum(fleet, [0, 1])
    _ = try await second.vacuum()
    #expect(files(fleet, in: former) == [])
  }

  @Test func fileThatCannotBeRemovedIsRemovedTheNextTime() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try await fleet.settle()
    let former = fleet[0].binding.generation
    try await fleet[0].reset()
    try await fleet.settle()
    fleet.directories[0].script(
      FaultyDirectory.Fault(.fail(.io), on: .remove, pathPart: former.description))
    _ = try await vacuum(fleet, [0, 1])
    #expect(files(fleet, in: former).count == 1)
    _ = try await vacuum(fleet, [0])
    #expect(files(fleet, in: former) == [])
  }

  @Test func clearingUpThatIsStruckAtAnyCallIsCompletedByTheNext() async throws {
    var call = 0
    while true {
      call += 1
      let fleet = try await TestFleet(2, seed: UInt64(call))
      try fleet[1].put("x", "1")
      try await fleet.settle()
      let former = fleet[0].binding.generation
      try await fleet[0].reset()
      try await fleet.settle()
      fleet.directories[1].script(FaultyDirectory.Fault(.stop, occurrence: call))
      do {
        _ = try await fleet[1].vacuum()
      } catch {
        fleet.directories[1].restart()
      }
      guard !fleet.directories[1].firedFaults.isEmpty else { break }
      fleet.directories[1].restart()
      _ = try await vacuum(fleet, [1, 0])
      #expect(files(fleet, in: former) == [])
    }
    #expect(call > 15)
  }
}

extension LocalStore {
  /// Copies the file as it is, as another program would.
  fileprivate func copy(to path: String) throws {
    let queue = try DatabaseQueue(path: self.path)
    try queue.writeWithoutTransaction {
      try $0.execute(sql: "VACUUM INTO ?", arguments: [path])
    }
    try queue.close()
  }
}
