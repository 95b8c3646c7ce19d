import DocumentSync
import DocumentSyncTesting
import Foundation
import SyncModel
import SyncStore
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

  @Test func everyOperationOfBothManagersBeginsAndEndsOnce() async throws {
    let fleet = try await TestFleet(3)
    let events = SyncEvents()
    let stream = events.stream()
    let (memory, environment) = (fleet.memory, fleet.environment)
    try await fleet[0].close()
    let manager = try await DocumentSyncManager.open(
      storeAt: fleet.scratch.store("0"), directory: memory,
      options: .init(events: events, environment: environment))
    try await manager.synchronize()
    try await manager.synchronizeThoroughly()
    try await manager.uploadWholeStore()
    _ = try await manager.vacuum()
    _ = try await manager.listClients()
    try await manager.retire(.client(fleet[1].binding.client, .absent))
    try await manager.removeClient(fleet[2].binding.client)
    try await manager.describeClient("attic")
    _ = try await manager.findStanding()
    _ = try await manager.verify()
    _ = try await DocumentSyncManager.verify(
      storeAt: manager.store.path, directory: memory, events: events, environment: environment)
    try await manager.setPolicies { _ in }
    _ = try await manager.policies()
    _ = try await manager.conflicts()
    _ = await syncError { _ = try await manager.conflict(1) }
    _ = await syncError { try await manager.resolveConflict(1, by: .local) }
    _ = await syncError { try await manager.restoreConflict(1) }
    _ = try await manager.droppedConflicts()
    try await manager.sendCommand(name: "greet")
    _ = try await manager.pendingCommands()
    try await manager.acknowledgeCommand(
      CommandEvent(client: .random(), number: 1, name: "", payload: []))
    try await manager.reset()
    let copy = try await DocumentSyncManager.register(
      storeAt: try fleet.scratch.makeNotes("new"), directory: memory, document: "new",
      options: .init(events: events, environment: environment))
    try await copy.leave()
    _ = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("joined"), directory: memory, document: "main",
      options: .init(events: events, environment: environment))

    let application = ApplicationSyncManager(
      directory: memory, events: events, environment: environment)
    let client = ClientIdentifier.random()
    try await application.register(client, description: "x", createIfMissing: false)
    _ = try await application.findApplication()
    _ = try await application.findDocument("main")
    _ = try await application.listDocuments()
    _ = try await application.listClients()
    _ = try await application.verify()
    try await application.deleteDocument("new", by: client)
    try await application.removeAll(by: client)
    try await manager.close()

    let all = await names(of: stream)
    let heard = all.filter { $0.hasPrefix("begin ") || $0.hasPrefix("end ") }
    let verbs = [
      "open the store", "synchronize", "synchronize", "upload the whole store",
      "remove files that no device needs", "list the clients", "retire clients",
      "remove the client", "describe the client", "look after the document", "verify the store",
      "verify the store", "set the policies", "read the policies", "list the conflicts",
      "show the conflict: noSuchConflict", "resolve the conflict: noSuchConflict",
      "restore the conflict: noSuchConflict", "list the conflicts", "send the command",
      "list the commands", "acknowledge the command", "begin the document again",
      "look for the document", "create the document", "leave the document",
      "download the whole store", "synchronize", "register the client", "find the application",
      "register the document", "list the documents", "list the clients", "verify the directory",
      "delete the document", "remove all synchronized data", "close the store",
    ]
    var expected: [String] = []
    for verb in verbs {
      expected += ["begin " + verb.prefix { $0 != ":" }, "end " + verb]
    }
    #expect(heard == expected)
  }
}
