import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

/// What a store has sent and the directory has lost, when a new store replaces it.
@Suite struct LostChangeSetTests {
  let scratch: Scratch
  let directory = MemoryDirectory(seed: 1)
  let world = World(seed: 1)

  init() throws { scratch = try Scratch() }

  private func join(
    _ name: String, existing: ExistingFile = .refuse
  ) async throws -> DocumentSyncManager {
    try await DocumentSyncManager.join(
      storeAt: scratch.store(name), directory: directory, existing: existing,
      options: .init(client: name, environment: world.environment))
  }

  private func pair() async throws -> (DocumentSyncManager, DocumentSyncManager) {
    let first = try await DocumentSyncManager.create(
      storeAt: try scratch.makeNotes("a", rows: 1), directory: directory, document: "main",
      options: .init(application: "notes", client: "a", environment: world.environment))
    return (first, try await join("b"))
  }

  /// Removes what has come into the directory since, as a backup of an earlier state does.
  private func putBackEarlier(_ items: [RelativePath: MemoryDirectory.Item]) throws {
    for (path, item) in directory.items where items[path] == nil {
      if case .file = item { try directory.remove(path) }
    }
    directory.takeOver(items)
  }

  private func changeSets(of client: ClientIdentifier) -> [RelativePath] {
    directory.items.keys.filter {
      $0.components.contains("SyncChanges") && $0.components.contains(client.description)
        && $0.name.hasSuffix(".syncchg")
    }.sorted { $0.name < $1.name }
  }

  private func settle(_ devices: [DocumentSyncManager]) async throws {
    for _ in 0..<4 { for device in devices { try await device.synchronize() } }
  }

  @Test func aSentChangeSetThatTheDirectoryHasLostGoesOnInTheNewStore() async throws {
    let (first, second) = try await pair()
    try await settle([first, second])
    let earlier = directory.items
    try second.put("lost", "1")
    try await second.synchronize()
    try putBackEarlier(earlier)
    try second.put("unsent", "1")
    let former = second.binding.client
    try await second.close()
    let joined = try await join("b", existing: .replaceKeepingBackup)
    #expect(joined.replaced?.restoredChangeSets == 1 && joined.replaced?.unsentChangeSets == 1)
    #expect(joined.replaced?.missingChangeSets == [])
    try await settle([first, joined])
    for device in [first, joined] {
      #expect(try device.notes() == ["lost=1", "seed-0=body 0", "unsent=1"])
    }
    #expect(try await first.verify().findings.filter { $0.severity != .note } == [])
    let listed = try await first.listClients()
    #expect(listed.first { $0.client == former }?.status == .retired)
    #expect(try await joined.synchronize().isIdle)
  }

  /// Later change sets of the client wait for it.
  @Test func aChangeSetInTheMiddleIsPutBackAsItWas() async throws {
    let (first, second) = try await pair()
    for number in 1...3 {
      try second.put("n\(number)", "1")
      try await second.synchronize()
    }
    let files = changeSets(of: second.binding.client)
    try #require(files.count == 3)
    let bytes = try directory.bytes(at: files[1])
    try directory.remove(files[1])
    try await second.close()
    let joined = try await join("b", existing: .replaceKeepingBackup)
    #expect(try directory.bytes(at: files[1]) == bytes)
    try await settle([first, joined])
    #expect(try first.notes() == ["n1=1", "n2=1", "n3=1", "seed-0=body 0"])
    #expect(try joined.notes() == first.notes())
  }

  /// The store has dropped the bytes, or has removed the change set altogether.
  @Test(arguments: [
    "UPDATE docsync_outbox SET bytes = x'' WHERE number <= 2",
    "DELETE FROM docsync_outbox WHERE number <= 2",
  ])
  func whatTheStoreDoesNotHaveAnyMoreIsNamed(dropping: String) async throws {
    let (first, second) = try await pair()
    try await settle([first, second])
    let earlier = directory.items
    for number in 1...3 {
      try second.put("n\(number)", "1")
      try await second.synchronize()
    }
    try putBackEarlier(earlier)
    try await second.close()
    try second.edit(dropping)
    let joined = try await join("b", existing: .replaceKeepingBackup)
    let replaced = try #require(joined.replaced)
    #expect(replaced.unreadable == nil && replaced.isSameDocument)
    #expect(replaced.missingChangeSets == [1, 2] && replaced.restoredChangeSets == 1)
  }

  /// A whole store has the rows of a change set that was vacuumed.
  @Test func whatTheNewStoreBeginsWithIsNotMissed() async throws {
    let (first, second) = try await pair()
    try second.put("n", "1")
    try await settle([first, second])
    _ = try await first.uploadWholeStore()
    try second.edit("DELETE FROM docsync_outbox")
    for path in changeSets(of: second.binding.client) { try directory.remove(path) }
    try await second.close()
    let joined = try await join("b", existing: .replaceKeepingBackup)
    #expect(joined.replaced?.missingChangeSets == [])
    #expect(try joined.notes() == ["n=1", "seed-0=body 0"])
  }

  /// A second claim of the number would hinder other devices.
  @Test func aLostChangeSetWhoseNumberWasUsedIsWrittenAgain() async throws {
    let (first, second) = try await pair()
    try await settle([first, second])
    try second.put("lost", "1")
    try await second.synchronize()
    let path = try #require(changeSets(of: second.binding.client).first)
    try directory.remove(path)
    let name = ChangeSetName(number: 1, hash: HashFragment(ContentHash(of: [1])))
    let other = try #require(path.parent?.appending(name.description))
    directory.put(.file([1, 2, 3]), at: other)
    try await second.close()
    let joined = try await join("b", existing: .replaceKeepingBackup)
    #expect(joined.replaced?.restoredChangeSets == 1)
    #expect(directory.items[path] == nil)
    try await settle([first, joined])
    for device in [first, joined] { #expect(try device.notes() == ["lost=1", "seed-0=body 0"]) }
  }
}
