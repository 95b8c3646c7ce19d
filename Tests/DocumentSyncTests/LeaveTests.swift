import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

/// Leaving a document, and removing others from it.
@Suite struct LeaveTests {
  private func schema(_ path: String) throws -> [String] {
    let queue = try DatabaseQueue(path: path)
    let lines = try queue.read {
      try String.fetchAll($0, sql: "SELECT type || name || ifnull(sql, '') FROM sqlite_schema")
    }
    try queue.close()
    return lines
  }

  @Test func whoLeavesSendsItsEditsAndIsAnOrdinaryDatabase() async throws {
    let fleet = try await TestFleet(2)
    let plain = try schema(try fleet.scratch.makeNotes("plain"))
    try fleet[1].put("x", "last words")
    let notes = try fleet[1].notes()
    let report = try await fleet[1].leave()
    #expect(report.synchronization?.sent.count == 1 && report.hasToldOthers)
    #expect(fleet[1].state == .left)
    #expect(try schema(fleet[1].store.path) == plain)
    #expect(try fleet[1].notes() == notes)
    try await fleet[0].synchronize()
    #expect(try fleet[0].notes().contains("x=last words"))
    let clients = try await fleet[0].listClients()
    let gone = try #require(clients.first { $0.client == report.binding.client })
    #expect(gone.status == .left && gone.leftMilliseconds != nil && gone.state?.changeHead == 1)
    try await fleet[1].close()
    // It can be put under sync again, as a new client.
    let again = try await DocumentSyncManager.register(
      storeAt: fleet.scratch.store("1"), directory: fleet.memory, document: "main",
      options: .init(delegate: Answering(.replace), environment: fleet.environment))
    #expect(again.binding.client != report.binding.client)
  }

  /// The command is processed before the change sets that came with it.
  @Test func lastEditsOfWhoHasLeftReachThoseWhoHearOfItFirst() async throws {
    let fleet = try await TestFleet(3)
    for number in 1...3 {
      try fleet[1].put("x", "\(number)")
      try await fleet[1].synchronize()
    }
    try fleet[1].put("y", "last words")
    let left = try await fleet[1].leave()
    for index in [0, 2] {
      let stream = fleet[index].events.stream()
      let report = try await fleet[index].synchronize()
      #expect(report.waiting.isEmpty && report.applied.count == 4)
      #expect(try fleet[index].notes().contains("y=last words"))
      try fleet[index].put("from \(index)", "x")
      var heard: [SyncEvent] = []
      for await event in stream {
        heard.append(event)
        if case .activityEnded = event { break }
      }
      let retired = heard.contains {
        if case .retired(left.binding.client, reason: .left) = $0 { true } else { false }
      }
      #expect(retired)
    }
    for _ in 0..<3 {
      for index in [0, 2] { try await fleet[index].synchronize() }
    }
    #expect(try fleet[0].store.digest() == fleet[2].store.digest())
    let clients = try await fleet[0].listClients()
    #expect(clients.filter { $0.status == .left }.map(\.client) == [left.binding.client])
  }

  /// It has said that it goes, and is edited before it is gone.
  @Test func editsAfterAnInterruptedFarewellArriveFromANewClient() async throws {
    var call = 0
    while true {
      call += 1
      var fleet = try await TestFleet(2, seed: UInt64(call))
      try fleet[1].put("x", "before")
      fleet.directories[1].script(FaultyDirectory.Fault(.stop, occurrence: call))
      do {
        try await fleet[1].leave()
      } catch {
        if fleet.directories[1].firedFaults.isEmpty { throw error }
        try fleet[1].put("y", "after")
        try await fleet.reopen(1)
        try await fleet[1].leave()
        try await fleet[0].synchronize()
        try await fleet[0].synchronize()
        let notes = try fleet[0].notes()
        #expect(notes.contains("x=before") && notes.contains("y=after"))
        let members = try await fleet[0].listClients().filter { $0.status == .member }
        #expect(members.map(\.client) == [fleet[0].binding.client])
      }
      guard !fleet.directories[1].firedFaults.isEmpty else { break }
    }
    #expect(call > 8)
  }

  @Test func directoryThatIsAwayKeepsTheStoreUnderSyncUnlessItIsAbandoned() async throws {
    let fleet = try await TestFleet(2)
    try fleet[1].put("x", "not sent")
    fleet.memory.isAway = true
    let error = await syncError { try await fleet[1].leave() }
    #expect(error?.code == .directoryAway)
    #expect(try fleet[1].store.status().unsealedEdits > 0 && fleet[1].state == .registered)
    let report = try await fleet[1].leave(abandoning: true)
    #expect(report.loss.unsealedEdits > 0 && !report.hasToldOthers)
    #expect(try fleet[1].notes().contains("x=not sent"))
    #expect(try !LocalStore.isUnderSync(at: fleet[1].store.path))
  }

  @Test func rowsThatOnlyBookkeepingHoldsWantAConfirmation() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].edit(
      """
      CREATE TABLE more (id INTEGER PRIMARY KEY, x TEXT);
      INSERT INTO more (x) VALUES ('1'), ('2');
      """)
    // The schema is noticed at the next transaction, and rows from then on.
    try await fleet[0].synchronize()
    try fleet[0].edit("INSERT INTO more (x) VALUES ('3')")
    try await fleet[0].synchronize()
    let before = fleet.memory.items
    let error = await syncError { try await fleet[1].leave() }
    #expect(error?.code == .confirmationNeeded && error?.classification == .refused)
    #expect(error?.message.contains("more") == true)
    // The other devices were not told that it left.
    let clients = try await fleet[0].listClients()
    #expect(clients.allSatisfy { $0.status == .member })
    #expect(try LocalStore.isUnderSync(at: fleet[1].store.path))
    #expect(before.keys.filter { $0.name.contains("removed") }.isEmpty)
    let report = try await fleet[1].leave(isConfirmed: true)
    #expect(report.loss.unknownRows["more"] ?? 0 > 0)
    #expect(try !LocalStore.isUnderSync(at: fleet[1].store.path))
  }

  @Test(arguments: [FaultyDirectory.Effect.stop, .stopAfterwards, .fail(.io)])
  func leavingThatIsStruckAtAnyCallIsCompletedByTheNext(
    effect: FaultyDirectory.Effect
  ) async throws {
    var call = 0
    while true {
      call += 1
      var fleet = try await TestFleet(2, seed: UInt64(call))
      try fleet[1].put("x", "last words")
      fleet.directories[1].script(FaultyDirectory.Fault(effect, occurrence: call))
      do {
        try await fleet[1].leave()
      } catch {
        if fleet.directories[1].firedFaults.isEmpty { throw error }
        if try LocalStore.isUnderSync(at: fleet[1].store.path) {
          try await fleet.reopen(1)
          try await fleet[1].leave()
        }
      }
      guard !fleet.directories[1].firedFaults.isEmpty else { break }
      #expect(try !LocalStore.isUnderSync(at: fleet[1].store.path))
      try await fleet[0].synchronize()
      #expect(try fleet[0].notes().contains("x=last words"))
    }
    #expect(call > 6)
  }

  @Test func tokenOutsideTheStoreGoesWithIt() async throws {
    let fleet = try await TestFleet(1)
    let folder = fleet.scratch.path + "/tokens"
    var environment = fleet.environment
    environment.store.places = StorePlaces(machine: "here", folder: folder)
    let manager = try await DocumentSyncManager.create(
      storeAt: try fleet.scratch.makeNotes("n"), directory: fleet.memory, document: "n",
      options: .init(environment: environment))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).count == 1)
    try await manager.leave()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
  }

  @Test func removedClientIsMarkedAndTheOthersSeeIt() async throws {
    let fleet = try await TestFleet(3)
    let client = fleet[2].binding.client
    let removed = try await fleet[0].removeClient(client)
    #expect(removed.client == client && removed.status == .removed)
    let listed = try await fleet[1].listClients().first { $0.client == client }
    #expect(listed?.status == .removed)
    #expect(listed?.removal?.client == fleet[0].binding.client)
    #expect(listed?.removal?.clientDescription == "0" && listed?.removal?.milliseconds != nil)
    // Once is enough, whichever device does it.
    let items = fleet.memory.items
    try await fleet[1].removeClient(client)
    let marks = fleet.memory.items.keys.filter { $0.name.contains(".removed.") }
    #expect(marks.count == 1 && items.keys.contains(where: { marks.contains($0) }))
    let application = ApplicationSyncManager(
      directory: fleet.memory, environment: fleet.environment)
    #expect(try await application.listClients().filter { $0.status == .removed }.count == 1)
    // One command, however often it was said.
    let commands = fleet.paths { $0.name.hasSuffix(".synccmd") }
    #expect(commands.count == 1)
  }

  @Test func removedClientIsToldAndKeepsItsEdits() async throws {
    let fleet = try await TestFleet(3)
    try fleet[2].put("x", "not sent")
    try await fleet[0].removeClient(fleet[2].binding.client)
    let error = await syncError { try await fleet[2].synchronize() }
    #expect(error?.code == .clientRemoved && error?.classification == .refused)
    #expect(fleet[2].state == .removed)
    #expect(try fleet[2].store.status().unsealedEdits > 0)
    let leaving = Answering(.leave)
    fleet[2].setDelegate(leaving)
    #expect(await syncError { try await fleet[2].synchronize() }?.code == .notUnderSync)
    #expect(leaving.questions == [.clientRemoved(identifier: "main")])
    #expect(fleet[2].state == .left)
    #expect(try fleet[2].notes().contains("x=not sent"))
    try await fleet[1].synchronize()
    let clients = try await fleet[1].listClients()
    #expect(clients.filter { $0.status == .removed }.count == 1)
  }

  /// It was known by its description alone, and stayed a member for which the others waited.
  @Test func clientWhoseMarkerArrivesLaterIsRemoved() async throws {
    let fleet = try await TestFleet(3)
    let client = fleet[2].binding.client
    let markers = fleet.memory.items.filter { path, _ in
      path.components.contains("RecentSyncs") && path.name.hasPrefix(client.description)
    }
    #expect(!markers.isEmpty)
    for path in markers.keys { fleet.memory.take(path) }
    try await fleet[0].removeClient(client)
    for (path, item) in markers { fleet.memory.put(item, at: path) }
    #expect(await syncError { try await fleet[2].synchronize() }?.code == .clientRemoved)
    try await fleet[1].synchronize()
    #expect(try await fleet[1].listClients().first { $0.client == client }?.status == .removed)
  }

  /// It was listed as removed for ever, and all waited for it.
  @Test func clientThatARemovedClientHasRemovedIsAMember() async throws {
    let fleet = try await TestFleet(4)
    let (remover, client) = (fleet[0].binding.client, fleet[2].binding.client)
    let before = fleet.memory.items
    try await fleet[1].retire(.client(remover, .removed))
    // The remover has not heard of it.
    let late = fleet.memory.items.filter { before[$0.key] == nil }
    for path in late.keys { fleet.memory.take(path) }
    func putBack(_ items: [RelativePath: MemoryDirectory.Item]) {
      for (path, item) in items where fleet.memory.items[path] == nil {
        fleet.memory.put(item, at: path)
      }
    }
    putBack(before)
    try await fleet[0].removeClient(client)
    putBack(late)
    for _ in 0..<2 { for index in [3, 1] { try await fleet[index].synchronize() } }
    func status(_ client: ClientIdentifier) async throws -> ClientDescription.Status? {
      try await fleet[3].listClients().first { $0.client == client }?.status
    }
    #expect(try await status(remover) == .removed)
    #expect(try await status(client) == .member)
    try await fleet[3].removeClient(client)
    #expect(try await status(client) == .removed)
    #expect(await syncError { try await fleet[2].synchronize() }?.code == .clientRemoved)
  }

  @Test func clientThatIsNotThereOrIsTheOwnOneIsNotRemoved() async throws {
    let fleet = try await TestFleet(1)
    let items = fleet.memory.items
    for client in [fleet[0].binding.client, .random()] {
      let error = await syncError { try await fleet[0].removeClient(client) }
      #expect(error?.code == .clientMissing)
    }
    #expect(fleet.memory.items == items)
  }

  @Test func clientsAreListedWithWhatTheyLack() async throws {
    let fleet = try await TestFleet(3)
    for number in 1...3 {
      try fleet[0].put("x", "\(number)")
      try await fleet[0].synchronize()
    }
    try await fleet[1].synchronize()
    let application = ApplicationSyncManager(
      directory: fleet.memory, environment: fleet.environment)
    try await application.register(.random(), description: "idle", createIfMissing: false)
    let clients = try await fleet[0].listClients()
    let byName = Dictionary(clients.map { ($0.description, $0) }, uniquingKeysWith: { $1 })
    #expect(Set(byName.keys) == ["0", "1", "2"])
    #expect(byName["0"]?.state?.changeHead == 3 && byName["0"]?.lag == 0)
    #expect(byName["1"]?.lag == 0 && byName["1"]?.status == .member)
    #expect(byName["2"]?.lag == 3)
    #expect(
      byName["2"]?.state?.lacking
        == [ClientDescription.Lack(client: fleet[0].binding.client, first: 1, last: 3)])
    #expect(byName["1"]?.state?.applied?.number(of: fleet[0].binding.client) == 3)
    #expect(byName["1"]?.state?.milliseconds != nil)
    let all = try await application.listClients()
    #expect(all.count == 4)
    #expect(all.first { $0.description == "idle" }?.status == .neverSynced)
  }
}
