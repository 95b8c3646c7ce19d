import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

/// Registering a document: what is asked, and what is done without anybody
/// who could be asked.
@Suite struct RegistrationTests {
  let scratch: Scratch
  let directory = MemoryDirectory(seed: 1)
  let world = World(seed: 1)

  init() throws { scratch = try Scratch() }

  private func register(
    _ name: String, document: String = "main", in directory: (any SharedDirectory)? = nil,
    delegate: (any SyncDelegate)? = nil, events: SyncEvents = SyncEvents()
  ) async throws -> DocumentSyncManager {
    try await DocumentSyncManager.register(
      storeAt: scratch.store(name), directory: directory ?? self.directory, document: document,
      options: .init(
        application: "notes", descriptions: SyncDescriptions(client: name), delegate: delegate,
        events: events, environment: world.environment))
  }

  private func delete(_ document: String = "main") async throws {
    try await ApplicationSyncManager(directory: directory, environment: world.environment)
      .deleteDocument(document, by: .random(), described: "attic")
  }

  @Test func firstDeviceCreatesAndTheSecondJoinsWithoutBeingAsked() async throws {
    _ = try scratch.makeNotes("a", rows: 2)
    let events = SyncEvents()
    let stream = events.stream()
    #expect(events.state == .unregistered)
    let first = try await register("a", events: events)
    #expect(first.state == .registered)
    let second = try await register("b")
    #expect(try second.notes() == first.notes())
    let client = first.binding.client
    try await first.close()
    let heard = await names(of: stream)
    #expect(heard.filter { $0.hasPrefix("state") } == ["state registering", "state registered"])
    #expect(heard.contains("registered"))
    // Opened the next time, also while the directory is away.
    directory.isAway = true
    let again = try await register("a")
    #expect(again.state == .registered && again.binding.client == client)
  }

  @Test func questionsAreAskedAndStoppingChangesNothing() async throws {
    let path = try scratch.makeNotes("a", rows: 2)
    let stopping = Answering(.stop)
    let error = await syncError { _ = try await register("a", delegate: stopping) }
    #expect(error?.code == .applicationMissing)
    #expect(stopping.questions == [.applicationMissing(application: "notes", directory: "memory")])
    #expect(directory.items.isEmpty)
    #expect(try !LocalStore.isUnderSync(at: path))
    try await register("a").close()
    _ = try scratch.makeNotes("b", rows: 1)
    let before = directory.items
    let second = await syncError {
      _ = try await register("b", document: "other", delegate: stopping)
    }
    #expect(second?.code == .documentMissing)
    #expect(stopping.questions.last == .documentMissing(identifier: "other", others: ["main"]))
    let third = await syncError { _ = try await register("b", delegate: stopping) }
    #expect(third?.code == .documentExists && third?.classification == .refused)
    #expect(
      stopping.questions.last == .databaseInTheWay(identifier: "main", path: scratch.store("b")))
    #expect(directory.items == before)
    #expect(try !LocalStore.isUnderSync(at: scratch.store("b")))
  }

  @Test func withoutADatabaseThereIsNothingToBeCreatedAndTheDelegateIsNotAsked() async throws {
    let creating = Answering(.create)
    let error = await syncError { _ = try await register("a", delegate: creating) }
    #expect(error?.code == .applicationMissing)
    try await ApplicationSyncManager(
      directory: directory, applicationIdentifier: "notes", environment: world.environment
    ).register(.random(), description: "x", createIfMissing: true)
    let second = await syncError { _ = try await register("a", delegate: creating) }
    #expect(second?.code == .documentMissing)
    #expect(creating.questions.isEmpty)
  }

  @Test func deletedDocumentIsCreatedAgainIfThatIsDecided() async throws {
    _ = try scratch.makeNotes("a", rows: 1)
    try await register("a").close()
    try await delete()
    _ = try scratch.makeNotes("b", rows: 3)
    let stopping = Answering(.stop)
    let error = await syncError { _ = try await register("b", delegate: stopping) }
    #expect(error?.code == .documentDeleted)
    #expect(error?.message.contains("attic") == true)
    guard
      case .documentDeleted("main", let deletion, isUnderSync: false)? =
        stopping.questions.first
    else {
      Issue.record("\(stopping.questions)")
      return
    }
    #expect(deletion.clientDescription == "attic" && deletion.milliseconds != nil)
    // Without a delegate the document stays deleted.
    #expect(await syncError { _ = try await register("b") }?.code == .documentDeleted)
    let manager = try await register("b", delegate: Answering(.create))
    #expect(manager.binding.generationOrdinal == 2)
    #expect(try await register("c").notes().count == 3)
  }

  @Test func databaseInTheWayIsReplacedIfThatIsDecided() async throws {
    _ = try scratch.makeNotes("a", rows: 1)
    try await register("a").close()
    _ = try scratch.makeNotes("b", rows: 3)
    let manager = try await register("b", delegate: Answering(.replace))
    #expect(try manager.notes().count == 1)
    let backup = try DatabaseQueue(path: try #require(manager.backup))
    let count = try await backup.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM notes") }
    #expect(count == 3)
  }

  @Test func decisionThatIsNotPossibleCountsAsStopping() async throws {
    _ = try scratch.makeNotes("a")
    let error = await syncError { _ = try await register("a", delegate: Answering(.rejoin)) }
    #expect(error?.code == .applicationMissing)
    #expect(directory.items.isEmpty)
  }

  @Test func interruptedCreationIsCompletedByRegisteringAgain() async throws {
    var call = 0
    while true {
      call += 1
      let name = "a\(call)"
      _ = try scratch.makeNotes(name, rows: 2)
      let memory = MemoryDirectory(seed: UInt64(call))
      let faulty = FaultyDirectory(memory)
      faulty.script(FaultyDirectory.Fault(.stop, occurrence: call))
      let manager: DocumentSyncManager
      do {
        manager = try await register(name, in: faulty)
      } catch {
        faulty.restart()
        manager = try await register(name, in: faulty)
      }
      guard !faulty.firedFaults.isEmpty else { break }
      #expect(try await manager.synchronize().isIdle)
      #expect(try await register("b\(call)", in: memory).notes().count == 2)
    }
    #expect(call > 10)
  }

  /// Whatever the moment at which another device's document arrives.
  @Test func twoThatRegisterAtOnceEndWithOneDocument() async throws {
    var (call, lost, merged) = (0, 0, 0)
    while true {
      call += 1
      let (here, there) = (MemoryDirectory(seed: 1), MemoryDirectory(seed: 2))
      let (other, mine) = ("other\(call)", "mine\(call)")
      _ = try scratch.makeNotes(other)
      let path = try scratch.makeNotes(mine, rows: 2)
      try await ApplicationSyncManager(
        directory: here, applicationIdentifier: "notes", environment: world.environment
      ).register(.random(), description: "x", createIfMissing: true)
      there.takeOver(here.items)
      try await register(other, in: there).close()
      let hooked = HookedDirectory(here, beforeCall: call) { here.takeOver(there.items) }
      let rows = try Scratch.contents(of: path)
      // One who decides is asked, and may leave the database as it was.
      if call % 2 == 0 {
        do {
          try await register(mine, in: hooked, delegate: Answering { Self.stopping($0) }).close()
        } catch let error as SyncError {
          #expect(error.code == .documentExists)
          #expect(try !LocalStore.isUnderSync(at: path))
          #expect(try Scratch.contents(of: path) == rows)
          lost += 1
        }
        guard hooked.wasCalled else { break }
        continue
      }
      let manager: DocumentSyncManager
      do {
        manager = try await register(mine, in: hooked)
      } catch let error as SyncError where error.code == .documentExists {
        // It was there before anything was begun here.
        #expect(try Scratch.contents(of: path) == rows)
        continue
      }
      #expect(try manager.notes().count == 2)
      let documents = try await ApplicationSyncManager(
        directory: here, environment: world.environment
      ).listDocuments()
      if hooked.wasCalled { #expect(documents.count == 1) }
      if manager.backup != nil {
        // Its rows were merged into the other's.
        #expect(documents.first?.generation == manager.binding.generation)
        let third = try await register("third\(call)", in: here)
        #expect(try third.notes() == manager.notes())
        merged += 1
      } else if documents.first?.generation != manager.binding.generation {
        // Each saw the other's only when both were done.
        let report = try await manager.synchronize()
        #expect(report.rebootstrap?.reason == .createdTwice)
        #expect(documents.first?.generation == manager.binding.generation)
        #expect(try manager.notes().count == 2)
      }
      try await manager.close()
      guard hooked.wasCalled else { break }
    }
    #expect(lost > 3 && merged > 1)
  }

  private static func stopping(_ question: SyncQuestion) -> SyncQuestion.Decision {
    if case .databaseInTheWay = question { .stop } else { question.usualDecision }
  }

  @Test func userInfoAndDescriptionsAreListed() async throws {
    _ = try scratch.makeNotes("a")
    let described = SyncDescriptions(
      client: "desk", clientInfo: ["color": "red", "level": 3], document: "My notes",
      documentInfo: ["tags": .list(["x", .null, true, 1.5])], application: "Notes",
      applicationInfo: ["nested": .dictionary(["a": 1])])
    let manager = try await DocumentSyncManager.register(
      storeAt: scratch.store("a"), directory: directory, document: "main",
      options: .init(application: "notes", descriptions: described, environment: world.environment))
    let application = ApplicationSyncManager(directory: directory, environment: world.environment)
    let found = try await application.findApplication()
    #expect(found.description == "Notes" && found.userInfo == described.applicationInfo)
    let document = try #require(try await application.listDocuments().first)
    #expect(document.description == "My notes" && document.userInfo == described.documentInfo)
    var client = try #require(try await application.listClients().first)
    #expect(client.description == "desk" && client.userInfo == described.clientInfo)
    #expect(client.status == .member && client.document == manager.binding.document)
    try await manager.describeClient(userInfo: ["color": "blue"])
    client = try #require(try await application.listClients().first)
    #expect(client.description == "desk" && client.userInfo == ["color": "blue"])
    try await manager.describeClient("attic")
    let items = directory.items
    try await manager.describeClient("attic")
    #expect(directory.items == items)
    client = try #require(try await manager.listClients().first)
    #expect(client.description == "attic" && client.userInfo == ["color": "blue"])
    #expect(manager.binding.clientDescription == "attic")
  }
}
