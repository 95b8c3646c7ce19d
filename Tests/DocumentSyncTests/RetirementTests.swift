import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// Clients that no device waits for any more, and their return.
struct RetirementTests {
  private static let day: Int64 = 24 * 60 * 60 * 1000

  private func marker(_ fleet: TestFleet, _ index: Int) throws -> RecentSyncFile {
    try #require(try StoreRecords(fleet[index].store).ownMarker()).content
  }

  private func settle(_ fleet: TestFleet, _ devices: [Int], rounds: Int = 8) async throws {
    for _ in 0..<rounds { for index in devices { try await fleet[index].synchronize() } }
  }

  /// What a device has sealed and published itself, without anybody having
  /// seen its marker.
  private func publishUnseen(_ fleet: TestFleet, _ index: Int, _ id: String) async throws {
    try fleet[index].put(id, "unseen")
    fleet.directories[index].script(
      FaultyDirectory.Fault(.stopAfterwards, on: .publish, pathPart: "SyncChanges"))
    _ = await syncError { try await fleet[index].synchronize() }
    fleet.directories[index].restart()
  }

  @Test func absentClientIsNotWaitedForAndWhatItLeftIsClearedAway() async throws {
    let fleet = try await TestFleet(3)
    try fleet[2].put("x", "from 2")
    try await fleet.settle()
    let gone = fleet[2].binding.client
    try await fleet[0].retire(.client(gone, .absent))
    try await settle(fleet, [0, 1])
    let said = try marker(fleet, 1).retired
    #expect(said.map { $0.client } == [gone])
    #expect(said.map { $0.cut } == [1])
    // Vacuum goes on without it.
    try fleet[0].put("y", "from 0")
    try await settle(fleet, [0, 1], rounds: 2)
    _ = try await fleet[1].uploadWholeStore()
    for index in [0, 1, 0, 1, 0] { _ = try await fleet[index].vacuum() }
    #expect(fleet.changeSets(of: 0).isEmpty)
    #expect(fleet.markers(of: 2).isEmpty)
    #expect(fleet.changeSets(of: 2).isEmpty)
    #expect(try marker(fleet, 0).retired.first?.lowestKept == 2)
    #expect(try await statuses(of: gone, fleet) == [.retired, .retired])
    let idle = try await fleet[0].synchronize()
    #expect(idle.isIdle && idle.waiting.isEmpty)
    #expect(try await fleet[0].verify().findings.filter { $0.severity != .note } == [])
  }

  @Test func whatARetiredClientLeftIsClearedAwayByWhoRetiredIt() async throws {
    let fleet = try await TestFleet(4)
    try fleet[3].put("x", "from 3")
    try await fleet[3].sendCommand(name: "from 3")
    try await fleet.settle()
    let gone = fleet[3].binding.client
    func left() -> [RelativePath] {
      fleet.paths {
        $0.description.contains("\(gone)") && !$0.components.contains("ClientDevices")
      }
    }
    try await fleet[1].retire(.client(gone, .absent))
    try await settle(fleet, [0, 1, 2], rounds: 4)
    _ = try await fleet[0].uploadWholeStore()
    for _ in 0..<3 { for index in [0, 2] { _ = try await fleet[index].vacuum() } }
    for folder in ["RecentSyncs", "SyncChanges", "SyncCommands"] {
      #expect(left().contains { $0.components.contains(folder) }, "\(folder)")
    }
    _ = try await fleet[1].vacuum()
    _ = try await fleet[0].vacuum()
    _ = try await fleet[1].vacuum()
    #expect(left() == [])
    try await settle(fleet, [0, 1, 2], rounds: 2)
    #expect(try await fleet[0].verify().findings.filter { $0.severity != .note } == [])
  }

  @Test func retiredClientThatReturnsIsANewOneAndItsEditsArrive() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    let before = fleet[2].binding.client
    // One published edit that no other device has, and one that is not published.
    try await publishUnseen(fleet, 2, "published")
    try fleet[2].put("unpublished", "1")
    let hidden = fleet.changeSets(of: 2)
    #expect(hidden.count == 1)
    let file = try #require(fleet.memory.items[hidden[0]])
    fleet.memory.take(hidden[0])
    try await fleet[0].retire(.client(before, .absent))
    try await settle(fleet, [0, 1])
    // Too late: it arrives after all others have stopped.
    fleet.memory.put(file, at: hidden[0])
    try await settle(fleet, [0, 1])
    #expect(try fleet[0].notes().allSatisfy { !$0.hasPrefix("published") })

    let report = try await fleet[2].synchronize()
    #expect(report.incarnations.map(\.reason) == [.retired])
    #expect(fleet[2].binding.client != before)
    #expect(fleet[2].binding.ancestor == before)
    try await fleet.settle()
    try fleet.expectEqual()
    let notes = try fleet[0].notes()
    #expect(notes.contains("published=unseen"))
    #expect(notes.contains("unpublished=1"))
  }

  @Test func clientThatIsThereAllTheSameCancelsItsRetirement() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    let client = fleet[2].binding.client
    try await fleet[0].retire(.client(client, .absent))
    // Device 1 has not stopped when device 2 looks.
    let report = try await fleet[2].synchronize()
    #expect(report.publishedMarker)
    #expect(report.incarnations.isEmpty)
    try fleet[2].put("x", "still here")
    try await fleet.settle()
    #expect(fleet[2].binding.client == client)
    try fleet.expectEqual()
    #expect(try marker(fleet, 0).retired.isEmpty)
    #expect(try fleet[0].notes().contains("x=still here"))
    #expect(try await statuses(of: client, fleet) == [.member, .member])
  }

  /// A marker of device 1 says that device 2 is retired; device 0 has read
  /// all that device 1 had, and knows better.
  @Test func listGoesByTheMarkerThatKnowsMore() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    let client = fleet[2].binding.client
    try await fleet[0].retire(.client(client, .absent))
    try await fleet[1].synchronize()
    #expect(try await statuses(of: client, fleet) == [.retired, .retired])
    let old = try marker(fleet, 1)
    #expect(old.retired.map(\.client) == [client])
    var knowing = try marker(fleet, 0)
    #expect(RecentSyncFile.retired(by: [old, knowing]) == [client])
    knowing.retired = []
    for countsOwn in [true, false] {
      #expect(RecentSyncFile.retired(by: [old, knowing], countsOwn: countsOwn) == [])
    }
    // Its own says the same; that of one that has left does not count.
    knowing.client = client
    #expect(RecentSyncFile.retired(by: [old, knowing]) == [])
    #expect(RecentSyncFile.retired(by: [old, knowing], countsOwn: false) == [client])
    knowing.commandsApplied = VersionVector()
    #expect(RecentSyncFile.retired(by: [old, knowing]) == [client])
  }

  /// How a client stands by the list of a document and by that of the
  /// directory.
  private func statuses(
    of client: ClientIdentifier, _ fleet: TestFleet
  ) async throws -> [ClientDescription.Status?] {
    let application = ApplicationSyncManager(
      directory: fleet.memory, environment: fleet.environment)
    return [try await fleet[0].listClients(), try await application.listClients()].map { list in
      list.first { $0.client == client }?.status
    }
  }

  @Test func removedClientIsToldAndGoesOnOnlyIfItIsDecided() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    let before = fleet[2].binding.client
    try await fleet[0].retire(.client(before, .removed))
    try await settle(fleet, [0, 1])
    try fleet[2].put("x", "kept")
    let error = await syncError { try await fleet[2].synchronize() }
    #expect(error?.code == .clientRemoved)
    #expect(fleet[2].binding.client == before)
    try StoreRecords(fleet[2].store).noteRejoins()
    try await fleet[2].synchronize()
    #expect(fleet[2].binding.client != before)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes().contains("x=kept"))
  }

  /// A device that was removed says so when it returns, although it was retired before that.
  @Test(arguments: [[1], []])
  func retiredClientThatIsRemovedIsToldWhenItReturns(others: [Int]) async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    let before = fleet[2].binding.client
    try await fleet[0].retire(.client(before, .absent))
    try await fleet[0].removeClient(before)
    for other in others { try await fleet[other].synchronize() }
    #expect(try await statuses(of: before, fleet) == [.removed, .removed])
    try fleet[2].put("x", "kept")
    let error = await syncError { try await fleet[2].synchronize() }
    #expect(error?.code == .clientRemoved)
    #expect(fleet[2].binding.client == before)
    try StoreRecords(fleet[2].store).noteRejoins()
    try await fleet.settle()
    #expect(fleet[2].binding.client != before)
    try fleet.expectEqual()
    #expect(try fleet[0].notes().contains("x=kept"))
  }

  /// The new generation does not know the clients of the former one.
  @Test func removedClientIsToldAfterAResetAsWell() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    let before = fleet[2].binding.client
    try await fleet[0].removeClient(before)
    try await settle(fleet, [0, 1])
    try await fleet[0].reset()
    try await fleet[1].synchronize()
    try fleet[2].put("x", "kept")
    let error = await syncError { try await fleet[2].synchronize() }
    #expect(error?.code == .clientRemoved)
    #expect(fleet[2].binding.client == before)
    try StoreRecords(fleet[2].store).noteRejoins()
    try await fleet.settle()
    #expect(fleet[2].binding.generation == fleet[0].binding.generation)
    try fleet.expectEqual()
    #expect(try fleet[0].notes().contains("x=kept"))
  }

  @Test func rejoiningThatIsStruckAtAnyCallIsCompletedByTheNextSync() async throws {
    var call = 0
    while true {
      call += 1
      let fleet = try await TestFleet(2, seed: UInt64(call))
      try await fleet.settle()
      let before = fleet[1].binding.client
      try fleet[1].put("x", "kept")
      try await fleet[0].removeClient(before)
      let delegate = Answering(.rejoin)
      fleet[1].setDelegate(delegate)
      fleet.directories[1].script(
        FaultyDirectory.Fault(call % 2 == 0 ? .stop : .stopAfterwards, occurrence: call))
      do {
        try await fleet[1].synchronize()
      } catch {
        fleet.directories[1].restart()
      }
      guard !fleet.directories[1].firedFaults.isEmpty else { break }
      try await fleet.settle()
      #expect(delegate.questions.count == 1, "call \(call)")
      #expect(fleet[1].binding.client != before && fleet[1].binding.ancestor == before)
      #expect(fleet[1].state == .registered)
      try fleet.expectEqual()
      #expect(try fleet[0].notes().contains("x=kept"))
    }
    #expect(call > 10)
  }

  @Test func noDeviceGoesOnWithARetiredClientBeforeAllHaveStopped() async throws {
    let fleet = try await TestFleet(4)
    try await fleet.settle()
    let gone = fleet[3].binding.client
    try fleet[3].put("x", "1")
    try await fleet[3].synchronize()
    // Device 1 has it, device 0 has not when it retires its author.
    try await fleet[1].synchronize()
    let hidden = try #require(fleet.changeSets(of: 3).first)
    let file = try #require(fleet.memory.items[hidden])
    fleet.memory.take(hidden)
    try await fleet[0].retire(.client(gone, .removed))
    fleet.memory.put(file, at: hidden)
    // Device 2 has not said anything.
    let report = try await fleet[0].synchronize()
    #expect(report.waiting.map(\.reason) == [.retiring])
    #expect(try fleet[0].notes().allSatisfy { $0 != "x=1" })
    try await settle(fleet, [1, 2, 0])
    #expect(try fleet[0].notes().contains("x=1"))
    #expect(try fleet[2].notes().contains("x=1"))
    #expect(try marker(fleet, 0).retired.map { $0.cut } == [1])
    #expect(try await fleet[0].synchronize().isIdle)
  }

  @Test func whoJoinsFromAWholeStoreThatContainsMoreMakesAllOthersGoFurther() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    let gone = fleet[2].binding.client
    // No device sees the files that device 2 publishes, its whole store included.
    let before = fleet.memory.items
    try fleet[2].put("x", "only in the whole store")
    _ = try await fleet[2].uploadWholeStore()
    let after = fleet.memory.items
    for path in after.keys where before[path] == nil { fleet.memory.take(path) }
    fleet.memory.takeOver(before)
    try await fleet[0].retire(.client(gone, .removed))
    try await settle(fleet, [0, 1])
    #expect(try marker(fleet, 0).retired.map { $0.cut } == [0])
    fleet.memory.takeOver(after)
    let late = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory,
      options: .init(client: "late", environment: fleet.environment))
    #expect(try late.notes().contains("x=only in the whole store"))
    try await settle(fleet, [0, 1])
    try await late.synchronize()
    try await settle(fleet, [0, 1])
    #expect(try fleet[0].notes() == late.notes())
    #expect(try fleet[1].notes() == late.notes())
  }

  @Test func whoJoinsFindsTheCommandsOfThoseWhoAreGone() async throws {
    let fleet = try await TestFleet(4)
    try fleet[2].put("x", "of a device that is removed")
    try fleet[3].put("y", "of a device that leaves")
    try await fleet.settle()
    let gone = fleet[3].binding.client.description
    try await fleet[3].leave()
    try await settle(fleet, [0, 1, 2], rounds: 3)
    try await fleet[0].retire(.client(fleet[2].binding.client, .removed))
    try await settle(fleet, [0, 1], rounds: 3)
    for index in [0, 1] { _ = try await fleet[index].vacuum() }
    #expect(fleet.paths { $0.name.hasPrefix(gone) && $0.components.contains("RecentSyncs") } == [])
    // From the first whole store, which knows nothing of all that.
    let late = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory,
      options: .init(client: "late", environment: fleet.environment))
    #expect(try await late.synchronize().waiting == [])
    #expect(try late.notes() == fleet[0].notes())
  }

  @Test func clientIsRetiredAfterItWasNotSeenForTheSetTime() async throws {
    let fleet = try await TestFleet(3) { $0.retireAfter = .milliseconds(5 * Self.day) }
    try await fleet.settle()
    let gone = fleet[2].binding.client
    // A week's absence of device 0 itself counts for a day.
    fleet.world.advance(7 * Self.day)
    try await settle(fleet, [0, 1], rounds: 1)
    #expect(try CommandSteps.retirements(of: fleet[0]).isEmpty)
    for day in 1...6 {
      fleet.world.advance(Self.day)
      try fleet[0].put("x", "\(day)")
      try fleet[1].put("y", "\(day)")
      try await settle(fleet, [0, 1], rounds: 1)
    }
    try await settle(fleet, [0, 1], rounds: 3)
    #expect(try CommandSteps.retirements(of: fleet[0]).map(\.client).contains(gone))
    #expect(try marker(fleet, 0).retired.map { $0.client } == [gone])
    try await fleet[2].synchronize()
    try await fleet.settle()
    try fleet.expectEqual()
  }

  @Test func timeInWhichTheOwnDeviceWasOffCountsForADayAtMost() async throws {
    let fleet = try await TestFleet(2) { $0.retireAfter = .milliseconds(3 * Self.day) }
    try await fleet.settle()
    fleet.world.advance(30 * Self.day)
    for _ in 0..<5 {
      try await fleet[0].synchronize()
      fleet.world.advance(Self.day / 12)
    }
    #expect(try CommandSteps.retirements(of: fleet[0]).isEmpty)
    for _ in 0..<2 {
      fleet.world.advance(Self.day)
      try await fleet[0].synchronize()
    }
    #expect(try CommandSteps.retirements(of: fleet[0]).count == 1)
  }

  @Test func absenceCountsOnlyFromThreeSynchronizationsOn() async throws {
    let fleet = try await TestFleet(2) { $0.retireAfter = .milliseconds(Self.day / 4) }
    try await fleet.settle()
    for _ in 0..<2 {
      fleet.world.advance(Self.day)
      try await fleet[0].synchronize()
    }
    #expect(try CommandSteps.retirements(of: fleet[0]).isEmpty)
    fleet.world.advance(Self.day)
    try await fleet[0].synchronize()
    #expect(try CommandSteps.retirements(of: fleet[0]).count == 1)
  }

  @Test func leavingClientIsWaitedForByNoDevice() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    let gone = fleet[2].binding.client
    try fleet[2].put("x", "last words")
    try await fleet[2].leave()
    try await settle(fleet, [0, 1])
    #expect(try marker(fleet, 0).retired.map { $0.client } == [gone])
    #expect(try fleet[0].notes().contains("x=last words"))
    #expect(try fleet[0].notes() == fleet[1].notes())
  }

  /// Its files, apart from the marker that announces them, arrive when it is retired already.
  @Test func farewellThatArrivesAfterTheRetirementCounts() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    let gone = fleet[1].binding.client
    let before = fleet.memory.items
    try fleet[1].put("x", "last words")
    try await fleet[1].leave()
    let late = fleet.memory.items.filter { path, _ in
      before[path] == nil && !path.components.contains("RecentSyncs")
    }
    for path in late.keys { fleet.memory.take(path) }
    try await fleet[0].synchronize()
    try await fleet[0].retire(.client(gone, .absent))
    try await settle(fleet, [0], rounds: 2)
    #expect(try marker(fleet, 0).retired.map { $0.cut } == [0])
    _ = try await fleet[0].vacuum()
    // The device that cleared away is not asked again.
    let other = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("other"), directory: fleet.memory,
      options: .init(client: "other", environment: fleet.environment))
    try await other.synchronize()
    fleet.memory.takeOver(late)
    for _ in 0..<8 { try await other.synchronize() }
    #expect(try other.notes().contains("x=last words"))
  }

  /// The markers that announce it are removed before device 1 or 0, whichever is not responsible,
  /// has seen them.
  @Test func farewellIsHeardOfThroughTheMarkersOfOthers() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    let gone = fleet[2].binding.client
    let before = fleet.memory.items
    try fleet[2].put("x", "last words")
    try await fleet[2].leave()
    let after = fleet.memory.items
    for path in after.keys where before[path] == nil { fleet.memory.take(path) }
    try await fleet[0].retire(.client(gone, .absent))
    try await settle(fleet, [0, 1], rounds: 4)
    for index in [0, 1] { #expect(try marker(fleet, index).retired.map { $0.cut } == [0]) }
    fleet.memory.takeOver(after)
    let first = fleet[0].binding.client < fleet[1].binding.client ? 0 : 1
    try await settle(fleet, [first], rounds: 2)
    _ = try await fleet[first].vacuum()
    #expect(try fleet[first].notes().contains("x=last words"))
    #expect(fleet.markers(of: 2).isEmpty)
    try await settle(fleet, [0, 1])
    #expect(try fleet[0].notes() == fleet[1].notes())
    #expect(try await fleet[1 - first].synchronize().isIdle)
  }

  @Test func unknownClientCannotBeRetired() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    for client in [ClientIdentifier.random(), fleet[0].binding.client] {
      let error = await syncError { try await fleet[0].retire(.client(client, .absent)) }
      #expect(error?.code == .clientUnknown)
    }
  }
}

extension CommandSteps {
  fileprivate static func retirements(
    of manager: DocumentSyncManager
  ) throws -> [CommandState.Retirement] {
    try CommandState.read(from: manager.store).retirements
  }
}
