import DocumentSyncTesting
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// Devices that reset the document before they have what the others have sent.
@Suite struct ResetTogetherTests {
  private let scratch: Scratch
  private let memory = MemoryDirectory(seed: 1)

  init() throws { scratch = try Scratch() }

  /// Returns two devices with notes and a counter, which both have everything.
  private func devices(seed: UInt64) async throws -> [DocumentSyncManager] {
    let queue = try DatabaseQueue(path: scratch.makeNotes("0", rows: 8))
    try await queue.write {
      try $0.execute(
        sql: """
          CREATE TABLE stock (id TEXT PRIMARY KEY, n INTEGER);
          INSERT INTO stock VALUES ('apples', 10)
          """)
    }
    try queue.close()
    var configuration = StoreConfiguration()
    configuration.columnMergeTypes = ["stock": ["n": .counter]]
    let managers = try await scratch.share(
      through: memory, configuration: configuration, World(seed: seed).environment)
    for manager in managers + managers { try await manager.synchronize() }
    return managers
  }

  private func stock(_ manager: DocumentSyncManager) async throws -> Int? {
    let queue = try DatabaseQueue(path: manager.store.path)
    let count = try await queue.read { try Int.fetchOne($0, sql: "SELECT n FROM stock") }
    try queue.close()
    return count
  }

  /// Each device deletes a note, adds to a counter and resets the document, and
  /// sees the files of the other only then.
  ///
  /// - Parameter clearsAway: Whether the devices remove what is left of the
  ///   former generation as soon as they may.
  @Test(arguments: 1...6, [false, true])
  func whatBothHadSentIsInTheOneThatCounts(seed: UInt64, clearsAway: Bool) async throws {
    let devices = try await devices(seed: seed)
    let before = memory.items
    var made: [[RelativePath: MemoryDirectory.Item]] = []
    for (index, device) in devices.enumerated() {
      try device.edit("DELETE FROM notes WHERE id = 'seed-\(index)'")
      try device.edit("UPDATE stock SET n = n + \(index + 1)")
      try device.put("note of \(index)", "1")
      try await device.synchronize()
      try await device.reset()
      made.append(memory.items)
      for path in memory.items.keys where before[path] == nil { memory.take(path) }
      memory.takeOver(before)
    }
    for items in made { memory.takeOver(items) }
    for _ in 0..<3 {
      for device in seed % 2 == 0 ? devices : devices.reversed() {
        try await device.synchronize()
        if clearsAway { _ = try await device.vacuum() }
      }
    }
    for device in devices {
      let notes = try device.notes()
      #expect(notes.contains("note of 0=1") && notes.contains("note of 1=1"))
      #expect(!notes.contains { $0.hasPrefix("seed-0") || $0.hasPrefix("seed-1") }, "\(notes)")
      #expect(try await stock(device) == 13)
      #expect(try await device.verify().findings.isEmpty)
    }
    #expect(Set(devices.map(\.binding.generation)).count == 1)
    #expect(Set(try devices.map { try $0.store.digest() }).count == 1)
  }

  /// Two devices reset the document at one moment, and one of them removes a third device, which had
  /// gone over to its generation.
  @Test(arguments: 1...6) func aRemovedDeviceIsAskedWhicheverCounts(seed: UInt64) async throws {
    let fleet = try await TestFleet(3, seed: seed)
    try await fleet.settle()
    let before = fleet.memory.items
    try await fleet[0].reset()
    let first = fleet.memory.items
    for path in first.keys where before[path] == nil { fleet.memory.take(path) }
    fleet.memory.takeOver(before)
    try await fleet[1].reset()
    try await fleet[2].synchronize()
    #expect(fleet[2].binding.generation == fleet[1].binding.generation)
    try await fleet[1].synchronize()
    try await fleet[1].retire(.client(fleet[2].binding.client, .removed))
    try await fleet[1].synchronize()
    fleet.memory.takeOver(first)
    for index in [0, 1, 0] { try await fleet[index].synchronize() }
    let error = await syncError { try await fleet[2].synchronize() }
    #expect(error?.code == .clientRemoved)
    try StoreRecords(fleet[2].store).noteRejoins()
    try await fleet[2].synchronize()
    try await fleet.settle()
    try fleet.expectEqual()
  }

  /// Another generation may have been published between the one that the store has left and its own.
  @Test func aGenerationNamesTheOneThatItsStoreHasLeft() async throws {
    let fleet = try await TestFleet(1)
    let first = fleet[0].binding.generation
    try await fleet[0].reset()
    var binding = fleet[0].binding
    binding.generation = .random()
    binding.generationOrdinal += 1
    let operation = SyncOperation<Void>("test", environment: fleet.environment)
    let files = SharedFiles(fleet.memory, context: OperationContext(operation))
    let found = try DocumentSteps(files).create(binding, after: first, description: "main")
    #expect(found.file.generation == binding.generation && found.file.previous == first)
  }

  /// A store that takes the place of another one in the generation knows what that one knew.
  @Test func aStoreThatReplacesAnotherGoesOnToLookForWhatWasLeftBehind() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    let before = fleet.memory.items
    try fleet[1].put("last", "words")
    try await fleet[1].leave()
    let left = fleet.memory.items.filter { before[$0.key] == nil }
    for path in left.keys { fleet.memory.take(path) }
    fleet.memory.takeOver(before)
    try await fleet[0].reset()
    let other = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("other"), directory: fleet.directories[1],
      options: .init(client: "other", environment: fleet.environment))
    try await other.sendCommand(name: "unread", payload: [7])
    try await other.synchronize()
    try await fleet[0].synchronize()
    try await fleet[0].sendCommand(name: "unsent")
    try await fleet[0].close()
    let joined = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("0"), directory: fleet.directories[0],
      existing: .replaceKeepingBackup,
      options: .init(client: "again", environment: fleet.environment))
    #expect(try await joined.pendingCommands().map(\.name) == ["unread"])
    fleet.memory.takeOver(left)
    for _ in 0..<8 { for manager in [joined, other] { try await manager.synchronize() } }
    #expect(try joined.notes().contains("last=words"))
    #expect(try other.notes().contains("last=words"))
    #expect(try await other.pendingCommands().map(\.name) == ["unsent"])
    for manager in [joined, other] { try await manager.close() }
  }
}
