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
      storeAt: try fleet.scratch.makeNotes("stranger"), directory: fleet.memory,
      document: "other", environment: fleet.environment)
    try await expect(.otherRoot, fleet)
    for path in fleet.memory.items.keys where path.components.count == 1 {
      fleet.memory.take(path)
    }
    fleet.memory.takeOver(items)
    try await expectArrival(fleet)
  }

  /// The same name in the same application, by someone who began with an
  /// empty directory: the document's folder has the same name.
  @Test func anotherDocumentOfThatNameInAnotherDirectory() async throws {
    let fleet = try await fleetWithEdits()
    let items = emptied(fleet)
    _ = try await DocumentSyncManager.create(
      storeAt: try fleet.scratch.makeNotes("stranger"), directory: fleet.memory,
      document: "main", environment: fleet.environment)
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
      storeAt: fleet.scratch.store("j"), directory: fleet.memory, environment: fleet.environment)
    let notes = try joined.notes()
    #expect(notes.contains("x=sealed") && notes.contains("y=logged"))
  }

  @Test func documentDeletedAndCreatedAgain() async throws {
    let fleet = try await fleetWithEdits()
    try await ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
      .deleteDocument("main", by: .random())
    _ = try await DocumentSyncManager.create(
      storeAt: try fleet.scratch.makeNotes("stranger", rows: 5), directory: fleet.memory,
      document: "main", environment: fleet.environment)
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
