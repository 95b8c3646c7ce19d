import DocumentSync
import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Testing

/// Commands that mean something to the application.
struct CommandTests {
  private func commands(_ fleet: TestFleet, of index: Int) -> [RelativePath] {
    let client = fleet[index].binding.client.description
    return fleet.paths {
      $0.components.contains("SyncCommands") && $0.components.contains(client)
    }
  }

  private func names(_ manager: DocumentSyncManager) async throws -> [String] {
    try await manager.pendingCommands().map(\.name)
  }

  @Test func commandReachesEveryOtherMemberOnceAndInOrder() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    try await fleet[0].sendCommand(name: "first", payload: [1, 2, 3])
    try await fleet[0].sendCommand(name: "second")
    try await fleet.settle()
    for index in 1...2 {
      let pending = try await fleet[index].pendingCommands()
      #expect(pending.map(\.name) == ["first", "second"])
      #expect(pending.map(\.number) == [1, 2])
      #expect(pending.first?.payload == [1, 2, 3])
      #expect(pending.first?.client == fleet[0].binding.client)
      for command in pending { try await fleet[index].acknowledgeCommand(command) }
      #expect(try await names(fleet[index]) == [])
    }
    #expect(try await names(fleet[0]) == [])
    try await fleet[1].sendCommand(name: "third")
    try await fleet.settle()
    #expect(try await names(fleet[0]) == ["third"])
    #expect(try await names(fleet[1]) == [])
    #expect(try await names(fleet[2]) == ["third"])
  }

  @Test func unacknowledgedCommandStaysWhenTheProcessEnds() async throws {
    var fleet = try await TestFleet(2)
    try await fleet[0].sendCommand(name: "stays")
    try await fleet.settle()
    try await fleet.reopen(1)
    try await fleet.settle()
    #expect(try await names(fleet[1]) == ["stays"])
  }

  @Test func acknowledgingTwiceDoesNotTakeALaterCommand() async throws {
    let fleet = try await TestFleet(2)
    try await fleet[0].sendCommand(name: "one")
    try await fleet.settle()
    let one = try await fleet[1].pendingCommands()[0]
    try await fleet[1].acknowledgeCommand(one)
    try await fleet[0].sendCommand(name: "two")
    try await fleet.settle()
    try await fleet[1].acknowledgeCommand(one)
    #expect(try await names(fleet[1]) == ["two"])
  }

  @Test func commandsBeforeTheWholeStoreAreNotForWhoJoinsFromIt() async throws {
    let fleet = try await TestFleet(2)
    try await fleet[0].sendCommand(name: "before")
    try await fleet.settle()
    _ = try await fleet[1].uploadWholeStore()
    try await fleet[0].sendCommand(name: "after")
    try await fleet[0].synchronize()
    let third = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("third"), directory: fleet.memory,
      options: .init(client: "third", environment: fleet.environment))
    try await third.synchronize()
    #expect(try await names(third) == ["after"])
  }

  @Test func commandIsProcessedBeforeTheChangesThatFollowIt() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    try await fleet[0].sendCommand(name: "prepare")
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    // The command is processed, and the directory fails before a change is.
    fleet.directories[1].script(
      FaultyDirectory.Fault(.stop, on: .read, pathPart: "SyncChanges"))
    _ = await syncError { try await fleet[1].synchronize() }
    #expect(try await names(fleet[1]) == ["prepare"])
  }

  @Test func damagedCommandHoldsUpItsAuthorsLaterCommandsAndNothingElse() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    try await fleet[0].sendCommand(name: "damaged")
    try await fleet[0].sendCommand(name: "later")
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    let path = try #require(commands(fleet, of: 0).first)
    let whole = fleet.memory.items[path]
    fleet.memory.put(.file([1, 2, 3]), at: path)
    try await fleet[1].sendCommand(name: "other")
    try await fleet[1].synchronize()
    let report = try await fleet[2].synchronize()
    #expect(try await names(fleet[2]) == ["other"])
    #expect(report.applied.count == 1)
    let wait = try #require(report.waiting.first)
    #expect(report.waiting.count == 1)
    #expect(wait.isCommand)
    #expect(wait.number == 1)
    #expect(wait.reason == .damaged)
    #expect(wait.path == path.description)
    fleet.memory.put(try #require(whole), at: path)
    try await fleet.settle()
    #expect(try await names(fleet[2]) == ["other", "damaged", "later"])
  }

  /// What another state of device 0 has sent without having heard of this one,
  /// in order.
  private func commandsOfAnotherState(
    _ fleet: inout TestFleet, _ names: [String]
  ) async throws -> [(path: RelativePath, file: MemoryDirectory.Item)] {
    try await fleet[0].close()
    let copy = fleet.scratch.store("copy")
    try FileManager.default.copyItem(atPath: fleet.scratch.store("0"), toPath: copy)
    fleet.replace(
      0,
      with: try await DocumentSyncManager.open(
        storeAt: fleet.scratch.store("0"), directory: fleet.directories[0],
        options: .init(environment: fleet.environment)))
    let elsewhere = MemoryDirectory(seed: 9)
    elsewhere.takeOver(fleet.memory.items)
    let other = try await DocumentSyncManager.open(
      storeAt: copy, directory: elsewhere, options: .init(environment: fleet.environment))
    for name in names { try await other.sendCommand(name: name) }
    try await other.synchronize()
    try await other.close()
    return elsewhere.items.filter { $0.key.name.hasSuffix(".synccmd") }
      .sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  @Test func commandThatDoesNotContinueTheOneBeforeIsNotProcessed() async throws {
    var fleet = try await TestFleet(2)
    try await fleet.settle()
    let others = try await commandsOfAnotherState(&fleet, ["one there", "two there"])
    for name in ["one", "two"] { try await fleet[0].sendCommand(name: name) }
    try await fleet[0].synchronize()
    let second = try #require(commands(fleet, of: 0).last)
    let file = try #require(fleet.memory.items[second])
    fleet.memory.take(second)
    fleet.memory.put(others[1].file, at: others[1].path)
    let report = try await fleet[1].synchronize()
    #expect(report.waiting.map(\.reason) == [.brokenChain])
    #expect(report.waiting.map(\.number) == [2])
    #expect(try await names(fleet[1]) == ["one"])
    fleet.memory.put(file, at: second)
    #expect(try await fleet[1].synchronize().waiting == [])
    #expect(try await names(fleet[1]) == ["one", "two"])
  }

  /// No device can tell which of them counts, and all must do the same.
  @Test func ofTwoCommandsOfOneNumberNoneIsProcessed() async throws {
    var fleet = try await TestFleet(2)
    try await fleet.settle()
    let other = try #require(try await commandsOfAnotherState(&fleet, ["there"]).first)
    try await fleet[0].sendCommand(name: "here")
    try await fleet[0].synchronize()
    fleet.memory.put(other.file, at: other.path)
    #expect(commands(fleet, of: 0).count == 2)
    let report = try await fleet[1].synchronize()
    #expect(report.waiting.map(\.reason) == [.fork])
    #expect(report.waiting.map(\.number) == [1])
    #expect(try await names(fleet[1]) == [])
    fleet.memory.take(other.path)
    #expect(try await fleet[1].synchronize().waiting == [])
    #expect(try await names(fleet[1]) == ["here"])
  }

  /// A file that is whole, and not the one that its name promises.
  @Test func commandUnderTheNameOfAnotherIsNotProcessed() async throws {
    var fleet = try await TestFleet(2)
    try await fleet.settle()
    let other = try #require(try await commandsOfAnotherState(&fleet, ["there"]).first)
    try await fleet[0].sendCommand(name: "here")
    try await fleet[0].synchronize()
    let path = try #require(commands(fleet, of: 0).first)
    let file = try #require(fleet.memory.items[path])
    fleet.memory.put(other.file, at: path)
    let report = try await fleet[1].synchronize()
    #expect(report.waiting.map(\.reason) == [.damaged])
    #expect(try await names(fleet[1]) == [])
    fleet.memory.put(file, at: path)
    #expect(try await fleet[1].synchronize().waiting == [])
    #expect(try await names(fleet[1]) == ["here"])
  }

  @Test func commandThatHasNotArrivedIsWaitedFor() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    try await fleet[0].sendCommand(name: "late")
    try await fleet[0].synchronize()
    let path = try #require(commands(fleet, of: 0).first)
    let file = try #require(fleet.memory.items[path])
    fleet.memory.take(path)
    let report = try await fleet[1].synchronize()
    #expect(report.waiting.map(\.reason) == [.notArrived])
    #expect(report.waiting.map(\.isCommand) == [true])
    fleet.memory.put(file, at: path)
    try await fleet.settle()
    #expect(try await names(fleet[1]) == ["late"])
  }

  @Test func interruptedPublicationPublishesTheSameBytes() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    try await fleet[0].sendCommand(name: "once")
    fleet.directories[0].script(
      FaultyDirectory.Fault(.stopAfterwards, on: .publish, pathPart: "SyncCommands"))
    _ = await syncError { try await fleet[0].synchronize() }
    let before = commands(fleet, of: 0)
    #expect(before.count == 1)
    fleet.directories[0].restart()
    try await fleet.settle()
    #expect(commands(fleet, of: 0) == before)
    #expect(try await names(fleet[1]) == ["once"])
  }

  /// As when a client was retired as absent, and came back after others had
  /// cleared up after it.
  @Test func commandThatIsNotThereAnyMoreIsPutBackInTime() async throws {
    let fleet = try await TestFleet(2)
    try await fleet[0].sendCommand(name: "a")
    try await fleet.settle()
    let path = try #require(commands(fleet, of: 0).first)
    let content = fleet.memory.items[path]
    fleet.memory.take(path)
    var restored: [String] = []
    for _ in 0..<4 { restored += try await fleet[0].synchronize().restoredFiles }
    #expect(restored == [path.description])
    #expect(fleet.memory.items[path] == content)
  }

  @Test func idleSyncAfterCommandsCostsThreeListings() async throws {
    let fleet = try await TestFleet(3)
    try await fleet[0].sendCommand(name: "a")
    try await fleet[2].sendCommand(name: "b")
    try await fleet.settle()
    for index in 0..<3 {
      for _ in 0..<5 {
        fleet.counters[index].reset()
        let report = try await fleet[index].synchronize()
        #expect(report.isIdle)
        #expect(fleet.counters[index].counts.listings == 3)
        #expect(fleet.counters[index].counts.reads == 0)
        #expect(fleet.counters[index].counts.writes == 0)
      }
    }
  }

  @Test func payloadBeyondTheLimitIsRefused() async throws {
    let fleet = try await TestFleet(2)
    let limit = 1 << 20
    let error = await syncError {
      try await fleet[0].sendCommand(name: "big", payload: [UInt8](repeating: 1, count: limit + 1))
    }
    #expect(error?.code == .commandTooLarge)
    try await fleet[0].sendCommand(name: "big", payload: [UInt8](repeating: 1, count: limit))
    try await fleet.settle()
    #expect(try await fleet[1].pendingCommands().first?.payload.count == limit)
  }
}
