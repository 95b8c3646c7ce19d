import DocumentSync
import DocumentSyncTesting
import SyncModel
import SyncStore
import Testing

/// Names of devices are shown in lists, so that not everything can be one.
struct ClientNameTests {
  private static let unsuitable = [
    "two\nlines", "a\u{1B}[2Jb", "a\u{2028}b", String(repeating: "n", count: 201),
  ]

  @Test(arguments: unsuitable)
  func noDocumentBeginsWithSuchAName(_ name: String) async throws {
    let scratch = try Scratch()
    let memory = MemoryDirectory(seed: 1)
    let path = try scratch.makeNotes("0")
    let error = await syncError {
      _ = try await DocumentSyncManager.create(
        storeAt: path, directory: memory, document: "main",
        options: .init(client: name, environment: World(seed: 1).environment))
    }
    #expect(error?.code == .nameUnsuitable)
    #expect(memory.items.isEmpty)
    #expect(try !LocalStore.isUnderSync(at: path))
  }

  @Test(arguments: unsuitable)
  func noDeviceJoinsOrIsRenamedSo(_ name: String) async throws {
    let fleet = try await TestFleet(1)
    let before = fleet.memory.items
    let joining = await syncError {
      _ = try await DocumentSyncManager.join(
        storeAt: fleet.scratch.store("new"), directory: fleet.memory,
        options: .init(client: name, environment: fleet.environment))
    }
    #expect(joining?.code == .nameUnsuitable)
    let renaming = await syncError { try await fleet[0].describeClient(name) }
    #expect(renaming?.code == .nameUnsuitable)
    #expect(fleet.memory.items == before)
  }

  @Test func namesInAnyScriptAreSuitable() async throws {
    let fleet = try await TestFleet(1)
    for name in ["Zoë’s 💻👩‍🔧", String(repeating: "ü", count: 200), "مكتب"] {
      try await fleet[0].describeClient(name)
      #expect(try await fleet[0].listClients().map(\.description) == [name])
    }
  }
}
