import DocumentSync
import DocumentSyncTesting
import SyncDirectory
import SyncModel
import Testing

/// A document whose describing file is damaged is named, and never taken for
/// one that is not there.
struct UnreadableDocumentTests {
  private static func fleet() async throws -> (TestFleet, RelativePath) {
    let fleet = try await TestFleet(1)
    let path = try #require(fleet.paths { $0.name.hasPrefix("generation.") }.first)
    let bytes = try fleet.memory.read(path, limit: .max)
    fleet.memory.put(.file(Array(bytes.prefix(bytes.count / 2))), at: path)
    return (fleet, path)
  }

  @Test func listNamesIt() async throws {
    let (fleet, path) = try await Self.fleet()
    let manager = ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
    #expect(try await manager.listDocuments().isEmpty)
    let found = try await manager.listUnreadableDocuments()
    #expect(found.map(\.path) == [path.description])
    #expect(found.map(\.name) == [fleet[0].binding.document])
  }

  @Test(arguments: ["main", nil])
  func joiningNamesIt(_ document: String?) async throws {
    let (fleet, path) = try await Self.fleet()
    let error = await syncError {
      let manager = ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
      _ = try await manager.findDocument(document)
    }
    #expect(error?.code == .malformedFile)
    #expect(error?.path?.hasSuffix(path.description) ?? false)
  }

  @Test func lostFileIsNamedByItsFolder() async throws {
    let (fleet, path) = try await Self.fleet()
    fleet.memory.take(path)
    let folder = try #require(path.parent)
    let manager = ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
    #expect(try await manager.listUnreadableDocuments().map(\.path) == [folder.description])
    let error = await syncError { _ = try await manager.findDocument("main") }
    #expect(error?.code == .malformedFile)
    #expect(error?.message.contains("missing") ?? false)
    #expect(error?.remedy.actions.contains(.synchronizeThoroughly) ?? false)
  }

  @Test func deletedDocumentWithoutAFileIsNotThere() async throws {
    let (fleet, path) = try await Self.fleet()
    let layout = DirectoryLayout.Document(fleet[0].binding.document)
    let name = DeletedName(ordinal: 1, client: fleet[0].binding.client)
    fleet.memory.put(.file([1]), at: layout.path(of: name))
    fleet.memory.take(path)
    let manager = ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
    #expect(try await manager.listUnreadableDocuments().isEmpty)
    #expect(
      await syncError { _ = try await manager.findDocument("main") }?.code == .documentMissing)
  }

  @Test func documentsWithoutAnApplicationAreNotTakenForNothing() async throws {
    let fleet = try await TestFleet(1)
    fleet.memory.take(try #require(fleet.paths { $0.name.hasPrefix("application.") }.first))
    let manager = ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
    for attempt in [
      { _ = try await manager.listDocuments() }, { _ = try await manager.findDocument("main") },
    ] {
      let error = await syncError { try await attempt() }
      #expect(error?.code == .malformedFile)
      #expect(error?.remedy.actions.contains(.synchronizeThoroughly) ?? false)
    }
    let thorough = try await fleet[0].synchronizeThoroughly()
    #expect(thorough.restoredFiles.count == 1)
    try await manager.removeAll(by: fleet[0].binding.client)
    #expect(await syncError { _ = try await manager.listDocuments() }?.code == .applicationMissing)
  }

  @Test func noDeviceCreatesItOnceMore() async throws {
    let (fleet, _) = try await Self.fleet()
    let before = fleet.memory.items
    let store = try fleet.scratch.makeNotes("other")
    let error = await syncError {
      _ = try await DocumentSyncManager.create(
        storeAt: store, directory: fleet.memory, document: "main",
        options: .init(environment: fleet.environment))
    }
    #expect(error?.code == .malformedFile)
    #expect(fleet.memory.items == before)
    let another = try await DocumentSyncManager.create(
      storeAt: store, directory: fleet.memory, document: "another",
      options: .init(environment: fleet.environment))
    try await another.close()
  }
}
