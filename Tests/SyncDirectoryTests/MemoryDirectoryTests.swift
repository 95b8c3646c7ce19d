import DocumentSyncTesting
import SyncDirectory
import SyncModel
import Testing

@Suite struct MemoryDirectoryTests {
  @Test func viewsShareContentAndOrderListingsBySeed() throws {
    let directory = MemoryDirectory(seed: 1)
    for number in 0..<20 {
      try directory.publish([], at: try path("\(number)"), by: Sample.alice)
    }
    let orders = try (0..<2).map { _ in try directory.view(seed: 9).list(.root) }
    #expect(orders[0] == orders[1])
    #expect(try directory.view(seed: 10).list(.root) != orders[0])
    #expect(Set(orders[0].map(\.name)).count == 20)
  }

  @Test func aFullReadOnlyOrAbsentDirectorySaysSo() throws {
    let directory = MemoryDirectory()
    directory.capacity = 10
    try directory.publish([1, 2, 3], at: try path("a"), by: Sample.alice)
    try expectError(.noSpace) {
      try directory.publish(Array(repeating: 0, count: 8), at: try path("b"), by: Sample.alice)
    }
    try directory.remove(try path("a"))
    try directory.publish(Array(repeating: 0, count: 8), at: try path("b"), by: Sample.alice)
    directory.isReadOnly = true
    try directory.check(for: .reading)
    try expectError(.notWritable) { try directory.check(for: .writing) }
    try expectError(.notWritable) { try directory.remove(try path("b")) }
    directory.isAway = true
    try expectError(.away) { _ = try directory.view().list(.root) }
  }

  @Test func countsTellEveryCall() throws {
    let directory = CountingDirectory(MemoryDirectory())
    try directory.publish([1], at: try path("a"), by: Sample.alice)
    _ = try directory.list(.root)
    _ = try directory.read(try path("a"), limit: 9)
    try directory.remove(try path("a"))
    try directory.check(for: .reading)
    let counts = directory.reset()
    #expect(counts.listings == 1 && counts.reads == 1 && counts.writes == 1)
    #expect(counts.removals == 1 && counts.checks == 1)
    #expect(counts.listed == [.root])
    #expect(directory.counts == .init())
  }
}
