import DocumentSync
import DocumentSyncTesting
import SyncDirectory
import SyncModel
import SyncStore
import Testing

/// Commands that were removed before a device came back, since no device
/// waited for it.
struct MissedCommandTests {
  private func names(_ manager: DocumentSyncManager) async throws -> [String] {
    try await manager.pendingCommands().map(\.name)
  }

  private func settle(_ fleet: TestFleet, _ devices: [Int], rounds: Int = 6) async throws {
    for _ in 0..<rounds { for index in devices { try await fleet[index].synchronize() } }
  }

  private func commands(_ fleet: TestFleet, of index: Int) -> [RelativePath] {
    let client = fleet[index].binding.client.description
    return fleet.paths {
      $0.components.contains("SyncCommands") && $0.components.contains(client)
    }
  }

  /// Has all devices but device 2, which is retired, process what there is, and
  /// clear it away.
  private func clearAway(_ fleet: TestFleet) async throws {
    try await settle(fleet, [0, 1])
    _ = try await fleet[1].uploadWholeStore()
    for index in [0, 1, 0, 1, 0] { _ = try await fleet[index].vacuum() }
  }

  @Test(arguments: [RetirementSelection.Reason.absent, .removed])
  func deviceThatComesBackTakesOverAWholeStore(reason: RetirementSelection.Reason) async throws {
    let fleet = try await TestFleet(3)
    try await fleet[0].sendCommand(name: "early")
    try await fleet.settle()
    let gone = fleet[2].binding.client
    try fleet[2].put("x", "not sent")
    try await fleet[0].sendCommand(name: "missed")
    try await fleet[0].retire(.client(gone, reason))
    try await fleet[0].sendCommand(name: "missed, too")
    try await clearAway(fleet)
    #expect(commands(fleet, of: 0) == [])
    try await fleet[0].sendCommand(name: "late")
    try await settle(fleet, [0, 1])
    #expect(try await names(fleet[1]) == ["early", "missed", "missed, too", "late"])

    if reason == .removed {
      // Only by the whole store it finds out.
      #expect(await syncError { try await fleet[2].synchronize() }?.code == .clientRemoved)
      fleet[2].setDelegate(Answering(.rejoin))
    }
    let report = try await fleet[2].synchronize()
    let rebootstrap = try #require(report.rebootstrap)
    #expect(rebootstrap.reason == .gap)
    let warning = try #require(rebootstrap.warnings.first { $0.code == .commandsMissed })
    #expect(warning.client == fleet[0].binding.client && warning.count == 3)
    #expect(report.incarnations.map(\.reason) == [.retired])
    #expect(try await fleet[2].synchronize().rebootstrap == nil)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes().contains("x=not sent"))
    // Each at most once, in order.
    #expect(try await names(fleet[2]) == ["early", "late"])
    try await fleet[0].sendCommand(name: "later")
    try await fleet.settle()
    #expect(try await names(fleet[2]) == ["early", "late", "later"])
    #expect(try await fleet[2].synchronize().waiting == [])
  }

  @Test func commandsThatAreStillThereReachIt() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    try await fleet[0].retire(.client(fleet[2].binding.client, .absent))
    try await fleet[0].sendCommand(name: "missed")
    try await clearAway(fleet)
    for name in ["second", "third"] { try await fleet[0].sendCommand(name: name) }
    try await settle(fleet, [0, 1])
    // The best whole store had processed them, and others have not been
    // superseded yet.
    _ = try await fleet[1].uploadWholeStore()
    try await fleet[0].sendCommand(name: "fourth")
    try await fleet[0].synchronize()
    #expect(commands(fleet, of: 0).count == 3)
    let report = try await fleet[2].synchronize()
    #expect(report.rebootstrap?.warnings.first { $0.code == .commandsMissed }?.count == 2)
    #expect(try await names(fleet[2]) == ["second", "third", "fourth"])
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try await names(fleet[2]) == ["second", "third", "fourth"])
  }

  /// Their author came and went meanwhile, and no marker of its own tells of
  /// them.
  @Test func commandsOfWhoWasNeverSeen() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    let author = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("author"), directory: fleet.memory,
      options: .init(client: "author", environment: fleet.environment))
    try await author.sendCommand(name: "missed")
    try await author.synchronize()
    try await settle(fleet, [0, 1])
    try await fleet[0].retire(.client(fleet[2].binding.client, .absent))
    try await fleet[0].retire(.client(author.binding.client, .absent))
    try await clearAway(fleet)
    let left = fleet.paths { $0.description.contains(author.binding.client.description) }
    #expect(left.filter { !$0.components.contains("ClientDevices") } == [])
    let report = try await fleet[2].synchronize()
    let missed = report.rebootstrap?.warnings.filter { $0.code == .commandsMissed } ?? []
    #expect(Set(missed.map(\.client)) == [author.binding.client, fleet[0].binding.client])
    try await settle(fleet, [0, 1, 2])
    #expect(try await names(fleet[2]) == [])
    #expect(try await fleet[2].synchronize().waiting == [])
    #expect(try fleet[2].store.digest() == fleet[0].store.digest())
  }

  @Test func withoutAWholeStoreThatHasProcessedThemItSaysWhatItWaitsFor() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    try await fleet[0].retire(.client(fleet[2].binding.client, .absent))
    try await clearAway(fleet)
    let items = fleet.memory.items
    for path in items.keys where path.name.hasSuffix(".store") { fleet.memory.take(path) }
    let report = try await fleet[2].synchronize()
    #expect(report.waiting.contains { $0.isCommand && $0.reason == .clearedAway })
    #expect(report.rebootstrap == nil)
    fleet.memory.takeOver(items)
    #expect(try await fleet[2].synchronize().rebootstrap?.reason == .gap)
  }

  /// What has only not arrived is not missed, whatever a whole store contains.
  @Test func commandThatHasNotArrivedIsWaitedForAllTheSame() async throws {
    let fleet = try await TestFleet(3)
    try fleet[0].put("x", "1")
    try await fleet.settle()
    // Change sets that device 2 needs are cleared away, and commands are not.
    try await fleet[0].retire(.client(fleet[2].binding.client, .absent))
    try fleet[0].put("x", "2")
    try await clearAway(fleet)
    try await fleet[1].sendCommand(name: "of 1")
    try await settle(fleet, [1, 0])
    _ = try await fleet[0].uploadWholeStore()
    let path = try #require(commands(fleet, of: 1).first)
    let file = try #require(fleet.memory.items[path])
    fleet.memory.take(path)
    let report = try await fleet[2].synchronize()
    #expect(report.rebootstrap?.reason == .gap)
    #expect(report.rebootstrap?.wholeStore.client == fleet[0].binding.client)
    #expect(report.waiting.map(\.reason) == [.notArrived])
    #expect(try await names(fleet[2]) == [])
    fleet.memory.put(file, at: path)
    try await fleet.settle()
    #expect(try await names(fleet[2]) == ["of 1"])
    #expect(try await names(fleet[0]) == ["of 1"])
    try fleet.expectEqual()
  }

  /// Those of the generation that ends, and those of the next.
  @Test func whoGoesOverToAnotherGenerationGetsTheCommandsOfBoth() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    try await fleet[1].sendCommand(name: "before")
    try await fleet[1].synchronize()
    _ = try await fleet[0].reset()
    try await fleet[0].sendCommand(name: "after")
    try await fleet[0].synchronize()
    _ = try await fleet[0].uploadWholeStore()
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try await names(fleet[0]) == ["before"])
    #expect(try await names(fleet[1]) == ["after"])
    #expect(try await names(fleet[2]) == ["before", "after"])
  }
}
