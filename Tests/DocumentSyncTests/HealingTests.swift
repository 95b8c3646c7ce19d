import DocumentSync
import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import Testing

/// Files that a power cut has emptied, and that come back without a word typed.
@Suite struct HealingTests {
  enum Blow: CaseIterable {
    case emptied, cut, flipped, gone

    func strike(_ path: RelativePath, in memory: MemoryDirectory) throws {
      var bytes = try memory.read(path, limit: .max)
      memory.take(path)
      switch self {
      case .emptied: bytes = []
      case .cut: bytes.removeLast(bytes.count / 2)
      case .flipped: bytes[bytes.count / 2] ^= 1
      case .gone: return
      }
      memory.put(.file(bytes), at: path)
    }
  }

  /// The reader waits, waits once more, and says so; its author puts all back.
  @Test(arguments: Blow.allCases, [1, 2, 3] as [UInt64])
  func whatAReaderWaitsForIsPutBackAtTheNextSyncOfItsAuthor(
    _ blow: Blow, seed: UInt64
  ) async throws {
    let fleet = try await TestFleet(3, seed: seed)
    try await fleet.settle()
    for number in 1...3 {
      try fleet[0].put("x\(number)", "1")
      try await fleet[0].sendCommand(name: "c\(number)", payload: [1])
      try await fleet[0].synchronize()
    }
    let own = fleet.changeSets(of: 0).suffix(3) + fleet.paths { $0.name.hasSuffix(".synccmd") }
    #expect(own.count == 6)
    let before = fleet.memory.items
    for path in own { try blow.strike(path, in: fleet.memory) }
    for _ in 0..<2 {
      #expect(try await !fleet[1].synchronize().waiting.isEmpty)
    }
    try await fleet[0].synchronize()
    for path in own { #expect(fleet.memory.items[path] == before[path], "\(path)") }
    try await fleet[1].synchronize()
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try await fleet[1].pendingCommands().count == 3)
    // No device reads files because of it any more.
    for index in 0..<3 {
      for _ in 0..<6 {
        fleet.counters[index].reset()
        #expect(try await fleet[index].synchronize().isIdle)
        let counts = fleet.counters[index].counts
        #expect(counts.listings == 3 && counts.reads == 0 && counts.writes == 0)
      }
    }
  }

  /// Its author is away: what it waits for is said once.
  @Test func whoWaitsForLongSaysSoOnce() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    let path = try #require(fleet.changeSets(of: 0).last)
    let bytes = try fleet.memory.read(path, limit: .max)
    try Blow.emptied.strike(path, in: fleet.memory)
    for _ in 0..<2 { try await fleet[1].synchronize() }
    let said = try #require(
      fleet.markers(of: 1).compactMap { MarkerName($0.name) }.max {
        $0.revision < $1.revision
      })
    #expect(said.saysWaiting)
    for _ in 0..<6 { #expect(try await !fleet[1].synchronize().publishedMarker) }
    // It arrives by itself, and that it is waited for is not said any more.
    fleet.memory.put(.file(bytes), at: path)
    try await fleet[1].synchronize()
    let last = try #require(
      fleet.markers(of: 1).compactMap { MarkerName($0.name) }.max {
        $0.revision < $1.revision
      })
    #expect(last.revision == said.revision + 1 && !last.saysWaiting)
    try await fleet.settle()
    try fleet.expectEqual()
  }

  /// Neither half alone both finds that a file is missing and says so.
  @Test(arguments: [Blow.flipped, .gone])
  func halvesSayWhatTheyWaitFor(_ blow: Blow) async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    let path = try #require(fleet.changeSets(of: 0).last)
    let bytes = try fleet.memory.read(path, limit: .max)
    try blow.strike(path, in: fleet.memory)
    func saysWaiting() -> Bool {
      fleet.markers(of: 1).contains { MarkerName($0.name)?.saysWaiting ?? false }
    }
    for number in 1...2 {
      #expect(!saysWaiting())
      #expect(try await !fleet[1].fetchChanges().waiting.isEmpty)
      #expect(try await fleet[1].sendChanges().publishedMarker == (number == 2))
    }
    #expect(saysWaiting())
    #expect(try await !fleet[1].sendChanges().publishedMarker)
    try await fleet[0].sendChanges()
    #expect(try fleet.memory.read(path, limit: .max) == bytes)
    try await fleet[1].fetchChanges()
    #expect(try await fleet[1].sendChanges().publishedMarker)
    #expect(try fleet[1].notes() == fleet[0].notes())
    try await fleet.settle()
    try fleet.expectEqual()
  }

  /// Calls of the halves alternate, whatever the number of folders that have
  /// turns.
  @Test(arguments: [2, 3], [1, 2, 3] as [UInt64])
  func eachHalfReachesAllItsFolders(_ count: Int, seed: UInt64) async throws {
    let fleet = try await TestFleet(count, seed: seed)
    try await fleet.settle()
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    try await fleet.settle()
    for path in fleet.changeSets(of: 0).suffix(1) {
      let before = fleet.memory.items[path]
      fleet.memory.take(path)
      for _ in 1...2 {
        try await fleet[0].fetchChanges()
        try await fleet[0].sendChanges()
      }
      #expect(fleet.memory.items[path] == before)
    }
    // No marker tells of an edit if it is lost.
    for author in 1..<count {
      let before = fleet.markers(of: author)
      try fleet[author].put("from \(author)", "1")
      try await fleet[author].synchronize()
      for path in fleet.markers(of: author) where !before.contains(path) {
        fleet.memory.take(path)
      }
      for _ in 1...count {
        try await fleet[0].fetchChanges()
        try await fleet[0].sendChanges()
      }
      #expect(try fleet[0].notes().contains("from \(author)=1"))
    }
  }

  /// A file that is late is no reason for a marker.
  @Test func whatArrivesAtTheNextSyncIsNotAskedFor() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    try fleet[0].put("x", "1")
    try await fleet[0].synchronize()
    let path = try #require(fleet.changeSets(of: 0).last)
    let bytes = try fleet.memory.read(path, limit: .max)
    fleet.memory.take(path)
    #expect(try await !fleet[1].synchronize().publishedMarker)
    fleet.memory.put(.file(bytes), at: path)
    try await fleet[1].synchronize()
    #expect(fleet.markers(of: 1).compactMap { MarkerName($0.name) }.allSatisfy { !$0.saysWaiting })
  }

  /// Only a device that joins can need what all members have.
  @Test(arguments: [Blow.emptied, .gone])
  func aWholeStoreTakesThePlaceOfWhatItsAuthorHasGivenUp(_ blow: Blow) async throws {
    let fleet = try await TestFleet(2, keptChangeSetBytes: 0)
    for number in 1...3 {
      try fleet[0].put("x\(number)", "1")
      try await fleet.settle()
    }
    for _ in 0..<2 { try await fleet[0].synchronize() }
    for path in fleet.changeSets(of: 0) { try blow.strike(path, in: fleet.memory) }
    let joined = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("j"), directory: fleet.memory,
      options: .init(client: "j", environment: fleet.environment))
    for _ in 0..<3 {
      try await joined.synchronize()
      try await fleet[0].synchronize()
    }
    try await joined.synchronize()
    #expect(try joined.notes() == fleet[0].notes())
    #expect(try await joined.synchronize().waiting.isEmpty)
    try await fleet.settle()
    #expect(try joined.store.digest().visible == fleet[0].store.digest().visible)
  }

  /// As Documentation/SharedDirectory.md states it: 32 lengths at each turn of
  /// the own folder, which comes once in as many synchronizations as there are
  /// others and two more, and one more where there are own commands.
  @Test func everyOwnFileIsLookedAtWithinTheStatedNumberOfSyncs() async throws {
    let fleet = try await TestFleet(2)
    for number in 1...30 {
      try fleet[0].put("x\(number)", "1")
      try await fleet[0].synchronize()
    }
    try await fleet[0].sendCommand(name: "c", payload: [1])
    try await fleet.settle()
    let turns = 1 + 2 + 1
    let bound = turns * (1 + (30 - 8 + 23) / 24)
    let last = fleet.markers(of: 0).compactMap { MarkerName($0.name)?.revision }.max()
    let own =
      fleet.changeSets(of: 0) + fleet.paths { $0.name.hasSuffix(".synccmd") }
      + fleet.markers(of: 0).filter { MarkerName($0.name)?.revision == last }
    for path in own.enumerated().filter({ $0.offset % 7 == 0 || $0.offset > 28 }).map(\.element) {
      let before = fleet.memory.items[path]
      try Blow.emptied.strike(path, in: fleet.memory)
      for _ in 0..<bound where fleet.memory.items[path] != before {
        try await fleet[0].synchronize()
      }
      #expect(fleet.memory.items[path] == before, "\(path)")
    }
    // A whole store is replaced, too, by a new one.
    let store = try #require(
      fleet.paths { $0.components.contains(fleet[0].binding.client.description) }
        .first { $0.name.hasSuffix(".store") })
    try Blow.cut.strike(store, in: fleet.memory)
    for _ in 0..<turns { try await fleet[0].synchronize() }
    let joined = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("j"), directory: fleet.memory,
      options: .init(client: "j", environment: fleet.environment))
    #expect(try joined.notes() == fleet[0].notes())
  }
}
