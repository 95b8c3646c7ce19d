import DocumentSync
import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import Testing

/// What an author puts back of its own files when it is told to look at all.
struct PutBackTests {
  enum Loss: CaseIterable {
    case missing, damaged

    func happen(to path: RelativePath, in memory: MemoryDirectory) throws {
      var content = try memory.read(path, limit: .max)
      memory.take(path)
      guard self == .damaged else { return }
      content[content.count / 2] ^= 0x10
      memory.put(.file(content), at: path)
    }
  }

  @Test(arguments: Loss.allCases)
  func changeSetIsPutBack(_ loss: Loss) async throws {
    let fleet = try await TestFleet(2)
    for number in 1...2 {
      try fleet[0].put("x", "\(number)")
      try await fleet[0].synchronize()
    }
    let first = try #require(fleet.changeSets(of: 0).first)
    let content = try fleet.memory.bytes(at: first)
    try loss.happen(to: first, in: fleet.memory)
    #expect(try await fleet[1].synchronize().waiting.map(\.number) == [1])
    let report = try await fleet[0].synchronizeThoroughly()
    #expect(report.restored.map(\.number) == [1] && report.sent == [])
    #expect(try fleet.memory.bytes(at: first) == content)
    #expect(try await fleet[1].synchronize().waiting == [])
    try fleet.expectEqual()
  }

  @Test(arguments: Loss.allCases)
  func commandIsPutBack(_ loss: Loss) async throws {
    let fleet = try await TestFleet(2)
    for number in 1...2 { try await fleet[0].sendCommand(name: "command \(number)") }
    try await fleet[0].synchronize()
    let paths = fleet.paths { $0.name.hasSuffix(".synccmd") }
    let first = try #require(paths.first)
    let content = try fleet.memory.read(first, limit: .max)
    try loss.happen(to: first, in: fleet.memory)
    #expect(try await fleet[1].synchronize().waiting.contains { $0.isCommand })
    let report = try await fleet[0].synchronizeThoroughly()
    #expect(report.sentCommands == 0)
    #expect(try fleet.memory.read(first, limit: .max) == content)
    try await fleet.settle()
    #expect(try await fleet[1].synchronize().waiting.isEmpty)
    #expect(try fleet[1].store.pendingEvents().count == 2)
  }

  @Test(arguments: Loss.allCases)
  func markerIsSaidAgain(_ loss: Loss) async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try await fleet.settle()
    let newest = try #require(
      fleet.markers(of: 0).compactMap { path in MarkerName(path.name).map { (path, $0) } }
        .max { $0.1.revision < $1.1.revision }?.0)
    try loss.happen(to: newest, in: fleet.memory)
    #expect(try await fleet[0].verify().findings != [])
    try await fleet[0].synchronizeThoroughly()
    #expect(!fleet.markers(of: 0).contains(newest) && !fleet.markers(of: 0).isEmpty)
    #expect(try await fleet[0].verify().findings == [])
  }
}
