import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// Change sets that no device applies as they are, and that are published again:
/// the change sets of a generation that another one has replaced, and those that
/// a device published before it knew that it was retired.
struct LeftBehindTests {
  /// Carries out an action whose files no device sees until the test takes over the
  /// returned items.
  private func unseen(
    _ fleet: TestFleet, _ body: () async throws -> Void
  ) async throws -> [RelativePath: MemoryDirectory.Item] {
    let before = fleet.memory.items
    try await body()
    let after = fleet.memory.items
    for path in after.keys where before[path] == nil { fleet.memory.take(path) }
    fleet.memory.takeOver(before)
    return after.filter { before[$0.key] == nil }
  }

  private func settle(_ managers: [DocumentSyncManager], rounds: Int = 10) async throws -> Int {
    var sent = 0
    for _ in 0..<rounds {
      for manager in managers { sent += try await manager.synchronize().sent.count }
    }
    return sent
  }

  @Test(arguments: [false, true])
  func whatADeviceLeftIsBroughtAlongByOneOfThoseWhoGoOver(arrivesLate: Bool) async throws {
    let fleet = try await TestFleet(4)
    try fleet[3].put("seen", "1")
    try await fleet.settle()
    let files = try await unseen(fleet) {
      try fleet[3].put("last", "words")
      try fleet[3].put("seen", "2")
      try await fleet[3].leave()
    }
    try await fleet[0].reset()
    let others = Array(fleet.managers[0..<3])
    if arrivesLate { _ = try await settle(others) }
    fleet.memory.takeOver(files)
    // One of them does it, although all find it.
    #expect(try await settle(others) == 1)
    for manager in others {
      #expect(try manager.notes().contains("last=words"))
      #expect(try manager.notes().contains("seen=2"))
    }
    #expect(Set(try others.map { try $0.store.digest() }).count == 1)
    #expect(try await settle(others, rounds: 1) == 0)
  }

  /// Once no device of the former generation is left, no device reads it. So a device
  /// that leaves reads it as well, whichever folder is next in turn.
  @Test(arguments: 0..<5)
  func whoLeavesBringsAlongWhatHasArrivedByThen(turn: Int) async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    let files = try await unseen(fleet) {
      try fleet[1].put("last", "words")
      try await fleet[1].leave()
    }
    try await fleet[0].reset()
    let other = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("other"), directory: fleet.directories[1],
      options: .init(client: "other", environment: fleet.environment))
    _ = try await settle([fleet[0], other], rounds: 1 + turn)
    fleet.memory.takeOver(files)
    try await fleet[0].leave()
    _ = try await settle([other], rounds: 2)
    #expect(try other.notes().contains("last=words"))
  }

  @Test func whatDependsOnWhatHasNotArrivedWaitsAndSaysSo() async throws {
    let fleet = try await TestFleet(4)
    try await fleet.settle()
    let first = try await unseen(fleet) {
      try fleet[2].put("note", "of 2")
      try await fleet[2].synchronize()
      try await fleet[2].leave()
    }
    let before = fleet.memory.items
    fleet.memory.takeOver(first)
    let second = try await unseen(fleet) {
      try await fleet[3].synchronize()
      try fleet[3].put("note", "of 3")
      try await fleet[3].leave()
    }
    for path in first.keys where before[path] == nil { fleet.memory.take(path) }
    try await fleet[0].reset()
    fleet.memory.takeOver(second)
    let report = try await fleet[1].synchronize()
    #expect(report.waiting.map(\.reason) == [.dependencies])
    #expect(try fleet[1].notes().allSatisfy { !$0.hasPrefix("note=") })
    fleet.memory.takeOver(first)
    _ = try await settle([fleet[0], fleet[1]])
    #expect(try fleet[0].notes().contains("note=of 3"))
    #expect(try fleet[0].store.digest() == fleet[1].store.digest())
    #expect(try await fleet[1].synchronize().waiting == [])
  }

  @Test func whatARemovedDevicePublishedComesOnlyWithItself() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    let before = fleet.memory.items
    try await fleet[0].retire(.client(fleet[2].binding.client, .removed))
    _ = try await settle([fleet[0], fleet[1]], rounds: 3)
    let removal = fleet.memory.items
    // Device 2 knows nothing of it.
    for path in removal.keys where before[path] == nil { fleet.memory.take(path) }
    fleet.memory.takeOver(before)
    try fleet[2].put("x", "unaware")
    try await fleet[2].synchronize()
    fleet.memory.takeOver(removal)
    try await fleet[0].reset()
    _ = try await settle([fleet[0], fleet[1]])
    #expect(try fleet[1].notes().allSatisfy { !$0.hasPrefix("x=") })
    let error = await syncError { try await fleet[2].synchronize() }
    #expect(error?.code == .clientRemoved)
    try StoreRecords(fleet[2].store).noteRejoins()
    try await fleet[2].synchronize()
    _ = try await settle(fleet.managers, rounds: 3)
    #expect(try fleet[1].notes().contains("x=unaware"))
    try fleet.expectEqual()
  }

  // MARK: - Restored stores

  private func environment(_ fleet: TestFleet) -> SyncEnvironment {
    var environment = fleet.world.environment
    environment.store.places = StorePlaces(
      machine: "one", folder: fleet.scratch.path + "/tokens")
    return environment
  }

  private func open(_ fleet: TestFleet, _ store: String) async throws -> DocumentSyncManager {
    try await DocumentSyncManager.open(
      storeAt: fleet.scratch.store(store), directory: fleet.memory,
      options: .init(delegate: Answering(.rejoin), environment: environment(fleet)))
  }

  /// Removes a device, which publishes a note before it knows that.
  private func publishUnaware(
    _ fleet: TestFleet, _ device: DocumentSyncManager, removedBy other: DocumentSyncManager,
    _ note: String
  ) async throws {
    let before = fleet.memory.items
    try await other.retire(.client(device.binding.client, .removed))
    for _ in 0..<2 { try await other.synchronize() }
    let removal = fleet.memory.items
    for path in removal.keys where before[path] == nil { fleet.memory.take(path) }
    fleet.memory.takeOver(before)
    try device.put(note, "unaware")
    try await device.synchronize()
    fleet.memory.takeOver(removal)
    try await other.synchronize()
    #expect(try other.notes().allSatisfy { !$0.hasPrefix(note) })
  }

  private func restore(_ fleet: TestFleet, _ manager: DocumentSyncManager) async throws {
    try await manager.close()
    let content = try Data(contentsOf: URL(fileURLWithPath: fleet.scratch.store("backup")))
    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: fleet.scratch.store("0")))
    try handle.truncate(atOffset: 0)
    try handle.write(contentsOf: content)
    try handle.close()
  }

  @Test(arguments: [1, 2])
  func restoredDeviceFindsWhatItPublishedUnawareOfItsRemoval(times: Int) async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    for manager in fleet.managers { try await manager.close() }
    var first = try await open(fleet, "0")
    let second = try await open(fleet, "1")
    for manager in [first, second, first] { try await manager.synchronize() }
    try first.put("a", "1")
    try await first.synchronize()
    try await first.close()
    try FileManager.default.copyItem(
      atPath: fleet.scratch.store("0"), toPath: fleet.scratch.store("backup"))
    first = try await open(fleet, "0")
    try first.put("a", "2")
    // The second time the backup knows nothing of the client that the store
    // has become the first time.
    for number in 1...times {
      _ = try await settle([first, second], rounds: 4)
      try await publishUnaware(fleet, first, removedBy: second, "n\(number)")
      try await restore(fleet, first)
      first = try await open(fleet, "0")
    }
    _ = try await settle([first, second])
    for number in 1...times {
      #expect(try second.notes().contains("n\(number)=unaware"))
    }
    #expect(try second.notes().contains("a=2"))
    #expect(try first.store.digest() == second.store.digest())
    for manager in [first, second] { try await manager.close() }
  }

  @Test func restoredDeviceThatFindsTheDocumentBegunAgainGoesOver() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    try fleet[1].put("a", "1")
    try await fleet.settle()
    try await fleet[1].close()
    let store = fleet.scratch.store("1")
    try FileManager.default.copyItem(atPath: store, toPath: fleet.scratch.store("backup"))
    let used = try await DocumentSyncManager.open(
      storeAt: store, directory: fleet.memory, options: .init(environment: fleet.environment))
    try used.put("b", "published")
    try await used.synchronize()
    try await used.close()
    try await fleet[0].synchronize()
    try await fleet[0].reset()
    try FileManager.default.removeItem(atPath: store)
    try FileManager.default.copyItem(atPath: fleet.scratch.store("backup"), toPath: store)
    // Nothing outside of the store tells that it is older.
    let restored = try await DocumentSyncManager.open(
      storeAt: store, directory: fleet.memory, options: .init(environment: fleet.environment))
    try restored.put("c", "after")
    let report = try await restored.synchronize()
    #expect(report.rebootstrap?.reason == .reset)
    _ = try await settle([fleet[0], restored], rounds: 4)
    for note in ["a=1", "b=published", "c=after"] {
      #expect(try fleet[0].notes().contains(note))
    }
    #expect(try fleet[0].store.digest() == restored.store.digest())
    try await restored.close()
  }
}
