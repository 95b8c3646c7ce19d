import DocumentSyncTesting
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// A document that begins anew from one device.
struct ResetTests {
  private let operation = SyncOperation<Void>("test", environment: SyncEnvironment())

  @Test func anotherGenerationTakesThePlaceOfThePresentOne() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try fleet[1].put("y", "2")
    try await fleet.settle()
    let before = fleet[0].binding
    let after = try await fleet[0].reset()
    #expect(after.generationOrdinal == before.generationOrdinal + 1)
    #expect(after.client != before.client && after.ancestor == before.client)
    #expect(after.document == before.document)
    let files = SharedFiles(fleet.memory, context: OperationContext(operation))
    let found = try #require(try DocumentSteps(files).find(after.document))
    #expect(found.file.generation == after.generation)
    #expect(found.file.previous == before.generation)
    // It says so in the generation that ends.
    let layout = DirectoryLayout.Document(before.document).generation(before.generation)
    let names = try files.list(layout.syncCommands(of: before.client), as: CommandName.self)
    let name = try #require(names.first)
    let command = try files.read(
      layout.path(of: name, by: before.client), as: SyncCommandFile.self, .syncCommand)
    #expect(command.command.reset?.generation == after.generation)
    #expect(command.command.reset?.ordinal == found.file.ordinal)
    // What the whole store contains of the old generation is known.
    let stores = try WholeStoreSteps(files).candidates(found.file)
    #expect(stores.first?.vector?.number(of: fleet[1].binding.client) == 1)
    // Who joins has everything, and it goes on.
    let late = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory, client: "late",
      environment: fleet.environment)
    #expect(try late.notes() == fleet[0].notes())
    try late.put("z", "3")
    try await late.synchronize()
    try await fleet[0].synchronize()
    #expect(try late.notes() == fleet[0].notes())
  }

  @Test func interruptedResetIsCompletedByTheNextCall() async throws {
    for call in 1...40 {
      let fleet = try await TestFleet(2, seed: UInt64(call))
      try fleet[0].put("x", "1")
      fleet.directories[0].script(
        FaultyDirectory.Fault(.stopAfterwards, on: .publish, occurrence: call))
      do {
        _ = try await fleet[0].reset()
        #expect(call > 3)
        break
      } catch {
        fleet.directories[0].restart()
      }
      let after = try await fleet[0].reset()
      #expect(after.generationOrdinal == 2, "call \(call)")
      let commands = fleet.paths { $0.components.contains("SyncCommands") }
      #expect(commands.count == 1, "call \(call)")
      let late = try await DocumentSyncManager.join(
        storeAt: fleet.scratch.store("late"), directory: fleet.memory, client: "late",
        environment: fleet.environment)
      #expect(try late.notes() == fleet[0].notes(), "call \(call)")
    }
  }

  @Test func othersGoOverAndBringAlongWhatTheyHaveEdited() async throws {
    let fleet = try await TestFleet(3)
    try fleet[1].put("seen", "1")
    try await fleet.settle()
    let (former, generation) = (fleet[1].binding.client, fleet[1].binding.generation)
    // Published, and not seen by the device that resets; and not published.
    try fleet[1].put("unseen", "2")
    let before = fleet.memory.items
    try await fleet[1].synchronize()
    let after = fleet.memory.items
    for path in after.keys where before[path] == nil { fleet.memory.take(path) }
    fleet.memory.takeOver(before)
    let binding = try await fleet[0].reset()
    fleet.memory.takeOver(after)
    try fleet[1].put("unsent", "3")
    try fleet[2].put("from 2", "4")
    let report = try await fleet[1].synchronize()
    #expect(report.rebootstrap?.reason == .reset)
    #expect(fleet[1].binding.generation == binding.generation)
    #expect(fleet[1].binding.client != former)
    #expect(fleet[1].binding.generation != generation)
    try await fleet.settle()
    try fleet.expectEqual()
    let notes = try fleet[0].notes()
    for note in ["seen=1", "unseen=2", "unsent=3", "from 2=4"] {
      #expect(notes.contains(note), "\(note)")
    }
    for manager in fleet.managers {
      #expect(try await manager.synchronize().isIdle)
    }
  }
}
