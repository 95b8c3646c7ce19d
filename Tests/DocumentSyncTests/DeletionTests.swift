import DocumentSync
import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Synchronization
import Testing

/// Deleting documents, removing everything, and what the others are told.
@Suite struct DeletionTests {
  private func application(_ fleet: TestFleet) -> ApplicationSyncManager {
    ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
  }

  private func generation(_ fleet: TestFleet) -> RelativePath {
    let binding = fleet[0].binding
    return DirectoryLayout.Document(binding.document).generation(binding.generation).folder
  }

  @Test func deletedDocumentLeavesItsTombstoneAndTheOthersKeepTheirEdits() async throws {
    let fleet = try await TestFleet(2)
    try fleet[1].put("x", "not sent")
    let before = try await application(fleet).listDocuments(measuring: true)
    let contents = try #require(before.first?.contents)
    let files = fleet.paths { $0.components.first == "Documents" }
    #expect(contents.clients.count == 2 && contents.fileCount == files.count)
    #expect(contents.lastSyncMilliseconds != nil && contents.foreign == [])
    let bytes = fleet.memory.items.reduce(0) { sum, entry in
      guard case .file(let content) = entry.value, entry.key.description.contains("Documents/")
      else { return sum }
      return sum + content.count
    }
    #expect(contents.byteCount == bytes)

    let items = fleet.memory.items
    let preview = try await application(fleet).deleteDocument(
      "main", by: .random(), described: "attic", preview: true)
    #expect(fleet.memory.items == items && preview.isPreview)
    let stream = SyncEvents()
    let events = stream.stream()
    let manager = ApplicationSyncManager(
      directory: fleet.memory, events: stream, environment: fleet.environment)
    let report = try await manager.deleteDocument("main", by: .random(), described: "attic")
    #expect(report.fileCount == preview.fileCount && report.byteCount == preview.byteCount)
    // All but the file of the generation.
    #expect(report.fileCount == files.count - 1 && report.remaining == [])
    #expect(fleet.paths { $0.description.hasPrefix(generation(fleet).description) } == [])
    #expect(fleet.memory.items[generation(fleet)] == nil)
    let documents = try await manager.listDocuments(measuring: true)
    #expect(documents.first?.isDeleted == true)
    #expect(documents.first?.deletion?.clientDescription == "attic")
    #expect(documents.first?.contents?.fileCount == 2)

    let notes = try fleet[1].notes()
    let error = await syncError { try await fleet[1].synchronize() }
    #expect(error?.code == .documentDeleted && error?.message.contains("attic") == true)
    let deletion = try #require(documents.first?.deletion)
    #expect(fleet[1].state == .deleted(deletion))
    #expect(try fleet[1].notes() == notes)
    #expect(try fleet[1].store.status().unsealedEdits > 0)
    // Repeated, it changes nothing more.
    let again = try await manager.deleteDocument("main", by: .random())
    #expect(again.fileCount == 0)
    #expect(again.documents.first?.deletion?.clientDescription == "attic")
    var deletions = 0
    for await event in events {
      if case .documentDeleted = event { deletions += 1 }
      if case .activityEnded(let activity, _) = event, activity.verb == "delete the document" {
        break
      }
    }
    #expect(deletions == 1)
  }

  @Test func progressCountsFilesAndBytesToTheEnd() async throws {
    let fleet = try await TestFleet(2)
    let operation = RemoveAllOperation(
      directory: fleet.memory, by: .random(), described: "attic", environment: fleet.environment)
    let heard = Heard()
    operation.observe { heard.add($0) }
    operation.start()
    let report: RemovalReport = try await withCheckedThrowingContinuation { continuation in
      operation.whenFinished { continuation.resume(with: $0) }
    }
    let removing = heard.all.filter { $0.phase == .removing }
    // One part for the document, one for the rest.
    let ends = removing.filter { $0.completedCount == $0.totalCount && $0.totalCount > 0 }
    #expect(ends.reduce(0) { $0 + $1.totalCount } == report.fileCount)
    #expect(ends.reduce(0) { $0 + $1.totalBytes } == report.byteCount)
    #expect(ends.allSatisfy { $0.completedBytes == $0.totalBytes && $0.fraction == 1 })
    #expect(heard.all.last?.phase == .finished)
    let fractions = removing.compactMap(\.fraction)
    #expect(fractions.count > 8)
  }

  private final class Heard: @unchecked Sendable {
    private let lock = NSLock()
    private var snapshots: [SyncProgress] = []

    func add(_ snapshot: SyncProgress) { lock.withLock { snapshots.append(snapshot) } }
    var all: [SyncProgress] { lock.withLock { snapshots } }
  }

  @Test func foreignFilesStayAndAreNamed() async throws {
    let fleet = try await TestFleet(1)
    let stranger = try #require(generation(fleet).appending("My notes (1).txt"))
    fleet.memory.put(.file([1]), at: stranger)
    let report = try await application(fleet).deleteDocument("main", by: .random())
    #expect(report.remaining == [stranger.description])
    #expect(fleet.memory.items[stranger] == .file([1]))
  }

  @Test func deletionThatIsStruckAtAnyCallIsCompletedByTheNext() async throws {
    var call = 0
    // After how many calls the others can be told, and after how many not.
    var (told, untold) = (0, 0)
    while true {
      call += 1
      let fleet = try await TestFleet(2, seed: UInt64(call))
      let faulty = FaultyDirectory(fleet.memory)
      faulty.script(FaultyDirectory.Fault(.stop, occurrence: call))
      let manager = ApplicationSyncManager(directory: faulty, environment: fleet.environment)
      do {
        try await manager.deleteDocument("main", by: .random(), described: "attic")
      } catch {
        faulty.restart()
        let isDeleted = try await manager.listDocuments().first?.isDeleted == true
        // Files go only once the others can be told.
        if isDeleted {
          told += 1
        } else {
          untold += 1
          #expect(fleet.paths { $0.name.hasSuffix(".store") }.count == 1)
        }
        try await manager.deleteDocument("main", by: .random(), described: "attic")
      }
      guard !faulty.firedFaults.isEmpty else { break }
      #expect(fleet.paths { $0.description.hasPrefix(generation(fleet).description) } == [])
      #expect(await syncError { try await fleet[1].synchronize() }?.code == .documentDeleted)
    }
    #expect(told > 3 && untold > 3, "\(told), \(untold)")
    #expect(call > 15)
  }

  /// The delegate asks the manager, which waits for the delegate's answer.
  @Test(.timeLimit(.minutes(2))) func delegateThatCallsItsManagerGetsTheError() async throws {
    final class Calling: SyncDelegate {
      let manager: DocumentSyncManager
      let code = Mutex<SyncError.Code?>(nil)

      init(_ manager: DocumentSyncManager) { self.manager = manager }

      func decide(_ question: SyncQuestion) async -> SyncQuestion.Decision {
        let error = await syncError { _ = try await self.manager.synchronize() }
        code.withLock { $0 = error?.code }
        return .stop
      }
    }
    let fleet = try await TestFleet(2)
    try await application(fleet).deleteDocument("main", by: .random(), described: "attic")
    let delegate = Calling(fleet[1])
    fleet[1].setDelegate(delegate)
    #expect(await syncError { _ = try await fleet[1].synchronize() }?.code == .documentDeleted)
    #expect(delegate.code.withLock(\.self) == .documentDeleted)
  }

  @Test func deviceThatCreatesItAgainBringsItsEditsAndTheOthersAreAsked() async throws {
    let fleet = try await TestFleet(3)
    try fleet[1].put("x", "not sent by 1")
    try fleet[2].put("y", "not sent by 2")
    try await application(fleet).deleteDocument("main", by: .random(), described: "attic")
    let delegate = Answering(.create)
    fleet[1].setDelegate(delegate)
    let events = fleet[1].events.stream()
    let client = fleet[1].binding.client
    #expect(try await fleet[1].synchronize().waiting.isEmpty)
    #expect(delegate.questions.count == 1)
    #expect(fleet[1].state == .registered)
    #expect(fleet[1].binding.generationOrdinal == 2 && fleet[1].binding.client != client)
    #expect(fleet[1].binding.ancestor == client)
    #expect(try fleet[1].notes().contains("x=not sent by 1"))
    let fourth = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("4"), directory: fleet.memory,
      options: .init(environment: fleet.environment))
    #expect(try fourth.notes() == fleet[1].notes())
    try fourth.put("x", "by 4")
    try await fourth.synchronize()
    try await fleet[1].synchronize()
    #expect(try fourth.store.digest() == fleet[1].store.digest())

    // The others are told that it is another one; their edits stay.
    let error = await syncError { try await fleet[2].synchronize() }
    #expect(error?.code == .documentReplaced && error?.classification == .refused)
    #expect(fleet[2].state == .replaced)
    #expect(try fleet[2].notes().contains("y=not sent by 2"))
    #expect(try fleet[2].store.status().unsealedEdits > 0)
    let leaving = Answering(.leave)
    fleet[2].setDelegate(leaving)
    let left = await syncError { try await fleet[2].synchronize() }
    #expect(left?.code == .notUnderSync && fleet[2].state == .left)
    guard case .documentReplaced("main", let found)? = leaving.questions.first else {
      Issue.record("\(leaving.questions)")
      return
    }
    #expect(found.generation == fleet[1].binding.generation)
    #expect(try fleet[2].notes().contains("y=not sent by 2"))
    #expect(try !LocalStore.isUnderSync(at: fleet[2].store.path))
    try await fleet[1].close()
    let heard = await names(of: events)
    #expect(
      heard.filter { $0.hasPrefix("state") }
        == ["state deleted", "state waiting", "state deleted", "state registered"])
    #expect(heard.filter { $0 == "deleted" }.count == 1)
    #expect(heard.contains("incarnation") && heard.contains("registered"))
  }

  @Test func creatingAgainThatIsStruckAtAnyCallIsCompletedByTheNextSync() async throws {
    var call = 0
    while true {
      call += 1
      var fleet = try await TestFleet(2, seed: UInt64(call))
      try fleet[1].put("x", "not sent")
      try await application(fleet).deleteDocument("main", by: .random())
      fleet[1].setDelegate(Answering(.create))
      fleet.directories[1].script(FaultyDirectory.Fault(.stop, occurrence: call))
      do {
        try await fleet[1].synchronize()
      } catch {
        fleet.directories[1].restart()
        if call % 2 == 0 {
          try await fleet[1].synchronize()
        } else {
          // As a new process does it.
          try await fleet[1].close()
          fleet.replace(
            1,
            with: try await DocumentSyncManager.register(
              storeAt: fleet.scratch.store("1"), directory: fleet.directories[1], document: "main",
              options: .init(delegate: Answering(.create), environment: fleet.environment)))
          try await fleet[1].synchronize()
        }
      }
      guard !fleet.directories[1].firedFaults.isEmpty else { break }
      #expect(fleet[1].binding.generationOrdinal == 2)
      let joined = try await DocumentSyncManager.join(
        storeAt: fleet.scratch.store("j"), directory: fleet.memory,
        options: .init(environment: fleet.environment))
      #expect(try joined.notes().contains("x=not sent"))
      #expect(try joined.notes() == fleet[1].notes())
    }
    #expect(call > 12)
  }

  @Test func everythingIsRemovedButTombstonesAndForeignFiles() async throws {
    let fleet = try await TestFleet(2)
    _ = try await DocumentSyncManager.create(
      storeAt: try fleet.scratch.makeNotes("second"), directory: fleet.memory, document: "second",
      options: .init(environment: fleet.environment))
    let stranger = try #require(RelativePath.root.appending("holiday.jpg"))
    fleet.memory.put(.file([1]), at: stranger)
    fleet.memory.put(
      .file([1, 2]), at: try #require(DirectoryLayout.temporary(of: .random()).appending("left")))
    let manager = application(fleet)
    let items = fleet.memory.items
    let preview = try await manager.removeAll(by: .random(), preview: true)
    #expect(fleet.memory.items == items)
    let report = try await manager.removeAll(by: .random(), described: "attic")
    #expect(report.documents.map(\.identifier) == ["main", "second"])
    #expect(report.clients.count == 3 && report.remaining == ["holiday.jpg"])
    #expect(report.fileCount == preview.fileCount && report.byteCount == preview.byteCount)
    let left = fleet.paths { _ in true }.map(\.name)
    #expect(left.filter { $0.hasPrefix("deleted.") }.count == 2)
    #expect(left.filter { $0.hasPrefix("generation.") }.count == 2)
    #expect(left.count == 5)
    #expect(await syncError { try await fleet[1].synchronize() }?.code == .documentDeleted)
    #expect(await syncError { _ = try await manager.listDocuments() }?.code == .applicationMissing)
    #expect(
      await syncError { try await manager.removeAll(by: .random()) }?.code == .applicationMissing)
    // A device that has it can begin it all again.
    fleet[1].setDelegate(Answering(.create))
    try await fleet[1].synchronize()
    let documents = try await manager.listDocuments()
    #expect(documents.filter { !$0.isDeleted }.map(\.identifier) == ["main"])
    #expect(fleet[1].binding.generationOrdinal == 2)
  }

  @Test func removingAllThatIsStruckAtAnyCallIsCompletedByTheNext() async throws {
    var call = 0
    while true {
      call += 1
      let fleet = try await TestFleet(1, seed: UInt64(call))
      let faulty = FaultyDirectory(fleet.memory)
      faulty.script(FaultyDirectory.Fault(.stop, occurrence: call))
      let manager = ApplicationSyncManager(directory: faulty, environment: fleet.environment)
      do {
        try await manager.removeAll(by: .random())
      } catch {
        faulty.restart()
        do {
          try await manager.removeAll(by: .random())
        } catch let error as SyncError {
          // It was the last call that was struck, after the last file.
          #expect(error.code == .applicationMissing)
        }
      }
      guard !faulty.firedFaults.isEmpty else { break }
      #expect(fleet.paths { _ in true }.count == 2)
    }
    #expect(call > 15)
  }

  @Test func whateverFindsTheDocumentDeletedAsksTheDelegate() async throws {
    typealias Call = (DocumentSyncManager, ClientIdentifier) async throws -> Void
    // With the error of the second time. The list of clients belongs to the
    // application: one that is in it can be removed in the new generation, too.
    let calls: [(Call, SyncError.Code?)] = [
      ({ manager, _ in try await manager.vacuum() }, nil),
      ({ manager, other in try await manager.retire(.client(other, .absent)) }, .clientUnknown),
      ({ manager, _ in try await manager.retire(.notSeen(for: .milliseconds(1))) }, nil),
      ({ manager, _ in try await manager.reset() }, nil),
      ({ manager, other in try await manager.removeClient(other) }, nil),
      ({ manager, _ in try await manager.uploadWholeStore() }, nil),
    ]
    for (index, (call, expected)) in calls.enumerated() {
      let fleet = try await TestFleet(2, seed: UInt64(index) + 1)
      let other = fleet[0].binding.client
      try fleet[1].put("x", "not sent")
      try await application(fleet).deleteDocument("main", by: .random())
      let stopping = Answering(.stop)
      fleet[1].setDelegate(stopping)
      let error = await syncError { try await call(fleet[1], other) }
      #expect(error?.code == .documentDeleted && stopping.questions.count == 1, "\(index)")
      guard case .deleted = fleet[1].state else {
        Issue.record("call \(index) leaves \(fleet[1].state)")
        continue
      }
      // Who is to be retired is not there in the new generation.
      fleet[1].setDelegate(Answering(.create))
      var again: SyncError.Code?
      do {
        try await call(fleet[1], other)
      } catch let error as SyncError {
        again = error.code
      }
      #expect(again == expected, "\(index)")
      #expect(fleet[1].binding.generationOrdinal >= 2)
      try await fleet[1].synchronize()
      #expect(fleet[1].state == .registered)
    }
  }
}
