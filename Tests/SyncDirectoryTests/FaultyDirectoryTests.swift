import DocumentSyncTesting
import SyncDirectory
import SyncModel
import Testing

@Suite struct FaultyDirectoryTests {
  private let memory = MemoryDirectory(seed: 3)
  private var faulty: FaultyDirectory { FaultyDirectory(memory.view()) }

  @Test func aStopBeforeTheRenameLeavesALeftoverThatIsRemovedAfterwards() throws {
    let directory = faulty
    directory.script(.init(.stopBeforeRename, on: .publish))
    let file = try path("folder/file")
    #expect(throws: SimulatedStop.self) {
      try directory.publish([1, 2], at: file, by: Sample.alice)
    }
    #expect(throws: SimulatedStop.self) { _ = try directory.list(.root) }
    #expect(memory.items[file] == nil)
    let unfinished = DirectoryLayout.temporary(of: Sample.alice)
    #expect(try memory.list(unfinished).count == 1)

    directory.restart()
    try directory.removeLeftovers(of: Sample.alice)
    try directory.publish([1, 2], at: file, by: Sample.alice)
    #expect(try memory.list(unfinished).isEmpty)
    #expect(try memory.read(file, limit: 9) == [1, 2])
  }

  @Test func aStopAfterwardsHasPublished() throws {
    let directory = faulty
    directory.script(.init(.stopAfterwards, on: .publish))
    #expect(throws: SimulatedStop.self) {
      try directory.publish([1], at: try path("file"), by: Sample.alice)
    }
    #expect(try memory.read(try path("file"), limit: 9) == [1])
  }

  @Test func aFaultStrikesOnceAtItsCall() throws {
    let directory = faulty
    directory.script(.init(.fail(.noSpace), on: .publish, pathPart: "b", occurrence: 2))
    try directory.publish([1], at: try path("b1"), by: Sample.alice)
    try directory.publish([1], at: try path("a"), by: Sample.alice)
    try expectError(.noSpace) {
      try directory.publish([1], at: try path("b2"), by: Sample.alice)
    }
    try directory.publish([1], at: try path("b3"), by: Sample.alice)
    #expect(try memory.list(.root).map(\.name).sorted() == ["a", "b1", "b3"])
  }

  @Test func filesOfOthersArriveLateAndOwnFilesAtOnce() throws {
    let directory = faulty
    directory.lag = .init(listings: 1, missingReads: 1, halfReads: 1)
    try memory.publish([1, 2, 3, 4], at: try path("theirs"), by: Sample.bob)
    try directory.publish([5, 6], at: try path("ours"), by: Sample.alice)
    #expect(try directory.list(.root).map(\.name) == ["ours"])
    #expect(Set(try directory.list(.root).map(\.name)) == ["ours", "theirs"])
    let error = try expectError(.notFound) {
      _ = try directory.read(try path("theirs"), limit: 9)
    }
    #expect(error.isRetryable)
    #expect(try directory.read(try path("theirs"), limit: 9) == [1, 2])
    #expect(try directory.read(try path("theirs"), limit: 9) == [1, 2, 3, 4])
    #expect(try directory.read(try path("ours"), limit: 9) == [5, 6])
  }

  @Test func shortReadsAndDownloadsDoNotSaySo() throws {
    let folder = try TemporaryFolder()
    let directory = faulty
    try memory.publish([1, 2, 3], at: try path("file"), by: Sample.bob)
    directory.script(.init(.short(1), on: .read), .init(.short(0), on: .download))
    #expect(try directory.read(try path("file"), limit: 9) == [1])
    try directory.download(try path("file"), to: folder.path + "/to", limit: 9)
    #expect(try FolderDirectory(root: folder.path).read(try path("to"), limit: 9) == [])
  }

  @Test func randomFaultsRepeatWithTheirSeed() throws {
    func failures(seed: UInt64) throws -> [Int] {
      let directory = faulty
      directory.failAtRandom(rate: 0.3, codes: [.transient, .io], seed: seed)
      return (0..<100).filter { _ in
        do {
          _ = try directory.list(.root)
          return false
        } catch {
          return true
        }
      }
    }
    let first = try failures(seed: 1)
    #expect(try failures(seed: 1) == first)
    #expect((10...60).contains(first.count))
    #expect(try failures(seed: 2) != first)
  }
}
