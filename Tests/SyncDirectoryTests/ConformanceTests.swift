import DocumentSyncTesting
import SyncDirectory
import Testing

@Suite struct ConformanceTests {
  @Test(arguments: DirectoryConformance.checks)
  func folderConforms(to check: DirectoryConformance.Check) throws {
    let folder = try TemporaryFolder()
    try check.run(on: FolderDirectory(root: folder.path))
  }

  @Test(arguments: DirectoryConformance.checks)
  func memoryConforms(to check: DirectoryConformance.Check) throws {
    try check.run(on: MemoryDirectory(seed: 7))
  }

  @Test func wrappersConform() async throws {
    let failures = try await DirectoryConformance.run {
      RetryingDirectory(
        CountingDirectory(FaultyDirectory(MemoryDirectory())), sleep: { _ in })
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  @Test(arguments: DirectoryConformance.checks)
  func limitedInTimeConforms(to check: DirectoryConformance.Check) throws {
    let folder = try TemporaryFolder()
    try check.run(
      on: TimeLimitedDirectory(FolderDirectory(root: folder.path), limit: .seconds(60)))
  }

  @Test func suiteFindsADirectoryThatOverwrites() async throws {
    let failures = try await DirectoryConformance.run { OverwritingDirectory() }
    #expect(
      failures.map(\.check).contains(
        "publishing other bytes under a taken name fails and changes nothing"))
  }
}
