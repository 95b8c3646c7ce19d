import DocumentSync
import DocumentSyncTesting
import Testing

/// What a manager says once its store is closed, has left, or has a directory that is no folder.
struct EndedManagerTests {
  private let scratch: Scratch
  private let world = World(seed: 1)

  init() throws { scratch = try Scratch() }

  private func create(_ directory: any SharedDirectory) async throws -> DocumentSyncManager {
    try await DocumentSyncManager.create(
      storeAt: try scratch.makeNotes("a", rows: 1), directory: directory, document: "main",
      options: .init(environment: world.environment))
  }

  @Test func aClosedStoreIsSaidToBeClosed() async throws {
    let manager = try await create(MemoryDirectory(seed: 1))
    try await manager.close()
    for error in [
      await syncError { _ = try await manager.synchronize() },
      await syncError { _ = try await manager.status() },
    ] {
      #expect(error?.code == .storeClosed)
      #expect(error?.message == "The store is closed.")
    }
    try await manager.close()
  }

  @Test func aStoreThatHasLeftIsSaidToHaveLeft() async throws {
    let manager = try await create(MemoryDirectory(seed: 1))
    _ = try await manager.leave(isConfirmed: true)
    for error in [
      await syncError { _ = try await manager.synchronize() },
      await syncError { _ = try await manager.status() },
    ] {
      #expect(error?.code == .notUnderSync)
      #expect(error?.message.contains("has left its document") == true)
    }
    try await manager.close()
  }

  @Test func aDirectoryThatIsNoFolderHasToBeGiven() async throws {
    let directory = MemoryDirectory(seed: 1)
    try await create(directory).close()
    let error = await syncError {
      _ = try await DocumentSyncManager.open(
        storeAt: scratch.store("a"), options: .init(environment: world.environment))
    }
    #expect(error?.code == .directoryFailed)
    #expect(error?.message.contains("is not a folder") == true)
    let opened = try await DocumentSyncManager.open(
      storeAt: scratch.store("a"), directory: directory,
      options: .init(environment: world.environment))
    try await opened.synchronize()
  }
}
