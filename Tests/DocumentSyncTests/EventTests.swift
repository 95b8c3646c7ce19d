import DocumentSync
import DocumentSyncTesting
import Foundation
import SyncModel
import Testing

/// What observers of a manager are told.
@Suite struct EventTests {
  @Test func everyObserverHearsEveryActivityOnce() async throws {
    let fleet = try await TestFleet(1)
    let streams = [fleet[0].events.stream(), fleet[0].events.stream()]
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    try await fleet[0].uploadWholeStore()
    fleet.memory.isAway = true
    let error = await syncError { try await fleet[0].synchronize() }
    #expect(error?.code == .directoryAway)
    try await fleet[0].close()
    for stream in streams {
      #expect(
        await names(of: stream) == [
          "begin synchronize", "end synchronize", "begin upload the whole store", "uploaded",
          "end upload the whole store", "begin synchronize", "end synchronize: directoryAway",
          "begin close the store", "end close the store",
        ])
    }
  }

  @Test func observerHearsOnlyWhatComesAfterItsBeginningAndNothingAfterTheEnd() async throws {
    let fleet = try await TestFleet(1)
    try await fleet[0].synchronize()
    let stream = fleet[0].events.stream()
    try await fleet[0].close()
    #expect(await names(of: stream) == ["begin close the store", "end close the store"])
    #expect(await names(of: fleet[0].events.stream()).isEmpty)
    var states: [String] = []
    for await state in fleet[0].states { states.append(name(of: state)) }
    #expect(states == ["registered"])
  }

  @Test func observerThatStopsIsForgotten() async throws {
    let fleet = try await TestFleet(1)
    for await event in fleet[0].events.stream().prefix(0) { Issue.record("\(event)") }
    for await state in fleet[0].states {
      #expect(state == .registered)
      break
    }
    try await fleet[0].synchronize()
  }

  @Test func observerThatDoesNotKeepUpLosesTheOldest() async throws {
    let fleet = try await TestFleet(1)
    let stream = fleet[0].events.stream()
    for _ in 0..<(SyncEvents.capacity / 2 + 10) { _ = try await fleet[0].conflicts() }
    for _ in 0..<3 { try await fleet[0].synchronize() }
    try await fleet[0].close()
    let heard = await names(of: stream)
    #expect(heard.count <= SyncEvents.capacity)
    #expect(heard.suffix(2) == ["begin close the store", "end close the store"])
  }

  @Test func commandsRetirementsAndClearingAwayAreTold() async throws {
    let fleet = try await TestFleet(3)
    let streams = fleet.managers.map { $0.events.stream() }
    for number in 1...3 {
      try fleet[0].put("x", "\(number)")
      try await fleet[0].synchronize()
    }
    try await fleet[0].sendCommand(name: "greet", payload: [1])
    try await fleet[0].removeClient(fleet[2].binding.client)
    try await fleet[0].uploadWholeStore()
    for _ in 0..<3 {
      for index in [1, 0] { try await fleet[index].synchronize() }
    }
    try await fleet[0].vacuum()
    for manager in fleet.managers { try await manager.close() }
    let author = await names(of: streams[0])
    #expect(author.filter { $0 == "uploaded" }.count == 1 && author.contains("vacuumed"))
    let other = await names(of: streams[1])
    #expect(other.filter { $0 == "command" }.count == 1)
    #expect(other.filter { $0 == "retired removed" }.count == 1)
  }

  @Test func statesFollowWhatHappens() async throws {
    let fleet = try await TestFleet(2)
    let states = fleet[1].states
    try await ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
      .deleteDocument("main", by: .random())
    fleet[1].setDelegate(Answering(.leave))
    _ = await syncError { try await fleet[1].synchronize() }
    try await fleet[1].close()
    var heard: [String] = []
    for await state in states { heard.append(name(of: state)) }
    #expect(heard == ["registered", "deleted", "waiting", "deleted", "left"])
  }
}
