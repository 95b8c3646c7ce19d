import DocumentSync
import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Testing

/// A directory that is not what it was: each case has an error of its own,
/// nothing is written, and the edits of the store arrive once it is right.
@Suite struct IntegrityTests {
  /// A fleet whose second device has edits that are not sent, one of them
  /// sealed.
  private func fleetWithEdits() async throws -> TestFleet {
    let fleet = try await TestFleet(2)
    try fleet[1].put("x", "sealed")
    _ = try fleet[1].store.seal()
    try fleet[1].put("y", "logged")
    return fleet
  }

  private func expect(
    _ code: SyncError.Code, _ fleet: TestFleet, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let items = fleet.memory.items
    let notes = try fleet[1].notes()
    for _ in 0..<2 {
      let error = await syncError(
        { try await fleet[1].synchronize() }, sourceLocation: sourceLocation)
      #expect(error?.code == code, sourceLocation: sourceLocation)
      #expect(error?.remedy.isEmpty == false, sourceLocation: sourceLocation)
    }
    #expect(fleet.memory.items == items, sourceLocation: sourceLocation)
    #expect(try fleet[1].notes() == notes, sourceLocation: sourceLocation)
    let status = try fleet[1].store.status()
    #expect(
      status.unpublishedChangeSets == 1 && status.unsealedEdits > 0,
      sourceLocation: sourceLocation)
  }

  private func expectArrival(
    _ fleet: TestFleet, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    try await fleet.settle()
    try fleet.expectEqual(sourceLocation: sourceLocation)
    let notes = try fleet[0].notes()
    #expect(
      notes.contains("x=sealed") && notes.contains("y=logged"), sourceLocation: sourceLocation)
  }

  private func emptied(_ fleet: TestFleet) -> [RelativePath: MemoryDirectory.Item] {
    let items = fleet.memory.items
    for path in items.keys where path.components.count == 1 { fleet.memory.take(path) }
    return items
  }

  @Test func directoryThatWentAwayAndCameBack() async throws {
    let fleet = try await fleetWithEdits()
    fleet.memory.isAway = true
    try await expect(.directoryAway, fleet)
    fleet.memory.isAway = false
    try await expectArrival(fleet)
  }

  @Test func emptiedDirectory() async throws {
    let fleet = try await fleetWithEdits()
    let items = emptied(fleet)
    try await expect(.rootMissing, fleet)
    fleet.memory.takeOver(items)
    try await expectArrival(fleet)
  }

  @Test func directoryOfAnotherRoot() async throws {
    let fleet = try await fleetWithEdits()
    let items = emptied(fleet)
    _ = try await DocumentSyncManager.create(
      storeAt: try fleet.scratch.makeNotes("stranger"), directory: fleet.memory, document: "other",
      options: .init(environment: fleet.environment))
    try await expect(.otherRoot, fleet)
    for path in fleet.memory.items.keys where path.components.count == 1 {
      fleet.memory.take(path)
    }
    fleet.memory.takeOver(items)
    try await expectArrival(fleet)
  }

  /// The document is still there, and what says whose directory it is is not.
  @Test func applicationFileAway() async throws {
    let fleet = try await fleetWithEdits()
    let items = fleet.memory.items
    fleet.memory.take(try application(of: fleet))
    try await expect(.rootMissing, fleet)
    try await expectNothingSent(.rootMissing, fleet)
    fleet.memory.takeOver(items)
    try await expectArrival(fleet)
  }

  @Test func applicationFileOfAnotherInItsPlace() async throws {
    let fleet = try await fleetWithEdits()
    let items = fleet.memory.items
    let path = try application(of: fleet)
    let bytes = try fleet.memory.read(path, limit: .max)
    fleet.memory.take(path)
    let other = DirectoryLayout.path(
      of: ApplicationName(root: RootIdentifier(bits: Bits128(high: .max, low: 4))))
    fleet.memory.put(.file(bytes), at: other)
    try await expect(.otherRoot, fleet)
    try await expectNothingSent(.otherRoot, fleet)
    // Two created the application at one moment: either may be there.
    fleet.memory.takeOver(items)
    try await expectArrival(fleet)
    fleet.memory.take(other)
    try await expectArrival(fleet)
  }

  /// Nor is anything taken from a directory that may be another's.
  @Test func whatOthersPublishedIsNotAppliedWithoutTheApplicationFile() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "published")
    try await fleet[0].synchronize()
    let items = fleet.memory.items
    fleet.memory.take(try application(of: fleet))
    let notes = try fleet[1].notes()
    let error = await syncError { try await fleet[1].synchronize() }
    #expect(error?.code == .rootMissing)
    #expect(try fleet[1].notes() == notes)
    fleet.memory.takeOver(items)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[1].notes().contains("x=published"))
  }

  /// The folder of a document of the same name has a tombstone of its own.
  @Test func anotherDocumentOfThatNameThatWasDeleted() async throws {
    let fleet = try await fleetWithEdits()
    let items = emptied(fleet)
    _ = try await DocumentSyncManager.create(
      storeAt: try fleet.scratch.makeNotes("stranger"), directory: fleet.memory, document: "main",
      options: .init(environment: fleet.environment))
    try await ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
      .deleteDocument("main", by: .random())
    try await expect(.otherRoot, fleet)
    for path in fleet.memory.items.keys where path.components.count == 1 {
      fleet.memory.take(path)
    }
    fleet.memory.takeOver(items)
    try await expectArrival(fleet)
  }

  private func application(of fleet: TestFleet) throws -> RelativePath {
    DirectoryLayout.path(of: ApplicationName(root: fleet[0].binding.root))
  }

  /// Uploads, commands, removals and descriptions are refused as well.
  private func expectNothingSent(
    _ code: SyncError.Code, _ fleet: TestFleet, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let items = fleet.memory.items
    let other = fleet[1].binding.client
    let attempts: [@Sendable () async throws -> Void] = [
      { try await fleet[0].uploadWholeStore() },
      { try await fleet[0].describeClient("renamed") },
      { try await fleet[0].removeClient(other) },
      { try await fleet[0].reset() },
      { try await fleet[0].retire(.client(other, .absent)) },
      { try await fleet[0].leave() },
      {
        try await fleet[0].sendCommand(name: "hello")
        try await fleet[0].synchronize()
      },
    ]
    for attempt in attempts {
      let error = await syncError(attempt, sourceLocation: sourceLocation)
      #expect(error?.code == code, sourceLocation: sourceLocation)
      #expect(fleet.memory.items == items, sourceLocation: sourceLocation)
    }
  }

  /// The same name in the same application, by someone who began with an
  /// empty directory: the document's folder has the same name.
  @Test func anotherDocumentOfThatNameInAnotherDirectory() async throws {
    let fleet = try await fleetWithEdits()
    let items = emptied(fleet)
    _ = try await DocumentSyncManager.create(
      storeAt: try fleet.scratch.makeNotes("stranger"), directory: fleet.memory, document: "main",
      options: .init(environment: fleet.environment))
    try await expect(.otherRoot, fleet)
    for path in fleet.memory.items.keys where path.components.count == 1 {
      fleet.memory.take(path)
    }
    fleet.memory.takeOver(items)
    try await expectArrival(fleet)
  }

  @Test func documentThatHasNotArrived() async throws {
    let fleet = try await fleetWithEdits()
    let items = fleet.memory.items
    fleet.memory.take(DirectoryLayout.documents)
    try await expect(.generationMissing, fleet)
    fleet.memory.takeOver(items)
    try await expectArrival(fleet)
  }

  @Test func deletedDocument() async throws {
    let fleet = try await fleetWithEdits()
    try await ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
      .deleteDocument("main", by: .random())
    try await expect(.documentDeleted, fleet)
    fleet[1].setDelegate(Answering(.create))
    try await fleet[1].synchronize()
    let joined = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("j"), directory: fleet.memory,
      options: .init(environment: fleet.environment))
    let notes = try joined.notes()
    #expect(notes.contains("x=sealed") && notes.contains("y=logged"))
  }

  @Test func documentDeletedAndCreatedAgain() async throws {
    let fleet = try await fleetWithEdits()
    try await ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
      .deleteDocument("main", by: .random())
    _ = try await DocumentSyncManager.create(
      storeAt: try fleet.scratch.makeNotes("stranger", rows: 5), directory: fleet.memory,
      document: "main", options: .init(environment: fleet.environment))
    try await expect(.documentReplaced, fleet)
    fleet[1].setDelegate(Answering(.leave))
    #expect(await syncError { try await fleet[1].synchronize() }?.code == .notUnderSync)
    let notes = try fleet[1].notes()
    #expect(notes.contains("x=sealed") && notes.contains("y=logged"))
  }

  /// Another key under the same ordinal counts: both were begun at one time.
  @Test func anotherGenerationThatCounts() async throws {
    let fleet = try await fleetWithEdits()
    let binding = fleet[1].binding
    var key = IntegrityKey(bits: Bits128(high: 0, low: 1))
    if key > binding.generation { key = binding.generation }
    fleet.memory.put(
      .file([]),
      at: DirectoryLayout.Document(binding.document).path(
        of: GenerationName(ordinal: UInt64(binding.generationOrdinal), key: key)))
    try await expect(.generationReplaced, fleet)
  }

  /// What the folder of a generation holds can go missing; its author puts
  /// its own back.
  @Test func emptiedGeneration() async throws {
    let fleet = try await fleetWithEdits()
    let binding = fleet[0].binding
    fleet.memory.take(
      DirectoryLayout.Document(binding.document).generation(binding.generation).folder)
    try await expectArrival(fleet)
  }
}
