import DocumentSyncTesting
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// What a synchronization that looks at every own file puts right.
struct ThoroughTests {
  /// A file that one device answers for.
  enum Kind: CaseIterable {
    case wholeStore, marker, description, application, generation, command, changeSet
  }

  /// What is done to it.
  enum Blow: CaseIterable {
    case flips, cuts, removes, empties
  }

  /// Two devices in the middle of their work, all of which is in the
  /// directory.
  private static func fleet() async throws -> TestFleet {
    let fleet = try await TestFleet(2)
    try fleet[0].put("x", "1")
    try await fleet[0].sendCommand(name: "first")
    try await fleet.settle()
    try await fleet[0].uploadWholeStore()
    try fleet[0].put("y", "2")
    try await fleet.settle()
    return fleet
  }

  private static func path(_ kind: Kind, in fleet: TestFleet) throws -> RelativePath {
    let own = fleet[0].binding.client.description
    let paths =
      switch kind {
      case .wholeStore: fleet.paths { $0.name.hasSuffix(".store") }
      case .marker: fleet.markers(of: 0)
      case .description:
        fleet.paths { $0.components.first == "ClientDevices" && $0.name.hasPrefix(own) }
      case .application: fleet.paths { $0.name.hasPrefix("application.") }
      case .generation: fleet.paths { $0.name.hasPrefix("generation.") }
      case .command: fleet.paths { $0.name.hasSuffix(".synccmd") }
      case .changeSet: fleet.changeSets(of: 0)
      }
    func number(_ path: RelativePath) -> UInt64 {
      MarkerName(path.name)?.revision ?? WholeStoreName(path.name)?.number ?? 0
    }
    return try #require(paths.max { number($0) < number($1) })
  }

  private static func strike(_ path: RelativePath, _ blow: Blow, _ memory: MemoryDirectory) throws {
    var bytes = try memory.read(path, limit: .max)
    switch blow {
    case .flips: bytes[bytes.count / 2] ^= 0x10
    case .cuts: bytes = Array(bytes.prefix(bytes.count / 2))
    case .empties: bytes = []
    case .removes: return memory.take(path)
    }
    memory.put(.file(bytes), at: path)
  }

  private func verify(_ fleet: TestFleet) async throws -> [VerifyReport.Finding] {
    try await ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
      .verify().findings
  }

  @Test(arguments: Kind.allCases, Blow.allCases)
  func whatItsAuthorAnswersForIsPutRight(_ kind: Kind, _ blow: Blow) async throws {
    let fleet = try await Self.fleet()
    #expect(try await verify(fleet) == [])
    let path = try Self.path(kind, in: fleet)
    try Self.strike(path, blow, fleet.memory)
    // The marker before it is as good, to those who do not know its author.
    let isNoticed = kind != .marker || blow != .removes
    #expect(try await !verify(fleet).isEmpty == isNoticed)

    let heard = HeardProgress()
    let report = try await fleet[0].synchronizeThoroughly(onProgress: heard.handler)
    _ = heard.parts()
    #expect(report.waiting.isEmpty)
    #expect(report.restoredFiles.isEmpty == (kind == .changeSet))
    #expect(report.restored.isEmpty == (kind != .changeSet))
    #expect(try await verify(fleet) == [])
    #expect(try await fleet[0].synchronizeThoroughly().isIdle)
    try await fleet.settle()
    let joined = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("new"), directory: fleet.memory, document: "main",
      options: .init(environment: fleet.environment))
    try await joined.synchronize()
    #expect(try joined.notes() == fleet[0].notes())
    try await joined.close()
  }

  @Test func whatIsWholeIsLeftAsItIs() async throws {
    let fleet = try await Self.fleet()
    let before = fleet.memory.items
    #expect(try await fleet[0].synchronizeThoroughly().isIdle)
    #expect(fleet.memory.items == before)
  }

  @Test func damagedWholeStoreThatAnotherContainsIsOnlyCleared() async throws {
    let fleet = try await Self.fleet()
    try await fleet[1].uploadWholeStore()
    try await fleet.settle()
    let own = fleet[0].binding.client.description
    let path = try #require(
      fleet.paths { $0.name.hasSuffix(".store") && $0.components.contains(own) }.last)
    try Self.strike(path, .flips, fleet.memory)
    let report = try await fleet[0].synchronizeThoroughly()
    #expect(!report.uploadedWholeStore)
    #expect(report.removedFiles == [path.description] && report.damagedFiles == [])
    #expect(fleet.memory.items[path] == nil)
    #expect(try await verify(fleet) == [])
  }

  /// An edit is made just when the damage is found.
  @Test func damagedWholeStoreStaysAndIsToldOfWhileNoOtherCanBeMade() async throws {
    let fleet = try await Self.fleet()
    let path = try Self.path(.wholeStore, in: fleet)
    try Self.strike(path, .flips, fleet.memory)
    try await fleet[0].close()
    let store = fleet.scratch.store("0")
    let hooked = HookedRead(fleet.memory, part: ".store") {
      do {
        let program = try DatabaseQueue(path: store)
        try program.write { try $0.execute(sql: "UPDATE notes SET body = 'meanwhile'") }
        try program.close()
      } catch {
        Issue.record(error)
      }
    }
    let manager = try await DocumentSyncManager.open(
      storeAt: store, directory: hooked, options: .init(environment: fleet.environment))
    let report = try await manager.synchronizeThoroughly()
    #expect(report.damagedFiles == [path.description] && report.removedFiles == [])
    #expect(fleet.memory.items[path] != nil)
    let next = try await manager.synchronizeThoroughly()
    #expect(next.damagedFiles == [] && next.removedFiles == [path.description])
    #expect(next.uploadedWholeStore && fleet.memory.items[path] == nil)
    try await manager.close()
  }

  @Test func generationFileIsWrittenOnlyByADeviceThatWasAsked() async throws {
    let fleet = try await Self.fleet()
    let path = try Self.path(.generation, in: fleet)
    fleet.memory.take(path)
    let error = await syncError { try await fleet[0].synchronize() }
    #expect(error?.code == .generationMissing)
    #expect(error?.remedy.actions.contains(.synchronizeThoroughly) ?? false)
    #expect(fleet.memory.items[path] == nil)
  }

  @Test func generationWithoutAMarkerIsNotWrittenAgain() async throws {
    let fleet = try await Self.fleet()
    fleet.memory.take(try Self.path(.generation, in: fleet))
    for path in fleet.markers(of: 0) + fleet.markers(of: 1) { fleet.memory.take(path) }
    let error = await syncError { try await fleet[0].synchronizeThoroughly() }
    #expect(error?.code == .generationMissing)
    #expect(error?.remedy.actions.contains(.leaveAbandoning) ?? false)
  }

  /// A document's folder in another application's directory is not a reason to write
  /// an application file there.
  @Test func applicationFileIsNotWrittenBesideThatOfAnother() async throws {
    let fleet = try await Self.fleet()
    let path = try Self.path(.application, in: fleet)
    fleet.memory.take(path)
    let other = MemoryDirectory(seed: 5)
    _ = try await DocumentSyncManager.create(
      storeAt: try fleet.scratch.makeNotes("other", rows: 1), directory: other, document: "main",
      options: .init(application: "another", environment: fleet.environment))
    let theirs = other.items.filter { $0.key.name.hasPrefix("application.") }
    fleet.memory.takeOver(theirs)
    #expect(await syncError { try await fleet[0].synchronizeThoroughly() } != nil)
    #expect(fleet.paths { $0.name.hasPrefix("application.") } == theirs.keys.sorted())
    for path in theirs.keys { fleet.memory.take(path) }
    #expect(
      try await fleet[0].synchronizeThoroughly().restoredFiles == [path.description])
  }

  /// Without the one before it the line of generations would end there, and
  /// who has not gone over yet would be a stranger.
  @Test func generationThatHasFollowedAnotherIsNotWrittenWithoutThatOne() async throws {
    let fleet = try await Self.fleet()
    let first = try Self.path(.generation, in: fleet)
    let before = fleet[0].binding.generation
    try await fleet[0].reset()
    let file = try #require(fleet.memory.items[first])
    let second = try #require(
      fleet.paths { $0.name.hasPrefix("generation.") }.first { $0 != first })
    for path in [first, second] { fleet.memory.take(path) }
    #expect(
      await syncError { try await fleet[0].synchronizeThoroughly() }?.code == .generationMissing)
    #expect(fleet.paths { $0.name.hasPrefix("generation.") }.isEmpty)
    fleet.memory.put(file, at: first)
    try await fleet[0].synchronizeThoroughly()
    let bytes = try fleet.memory.read(second, limit: .max)
    let written = try Envelope.decodeJSON(GenerationFile.self, from: bytes, type: .generation)
    #expect(written.previous == before)
    let report = try await fleet[1].synchronize()
    #expect(report.rebootstrap?.reason == .reset)
  }

  @Test func deletedDocumentIsNotWrittenAgain() async throws {
    let fleet = try await Self.fleet()
    let markers = fleet.memory.items.filter { $0.key.components.contains("RecentSyncs") }
    try await ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
      .deleteDocument("main", by: fleet[1].binding.client)
    // A slow synchronizer has brought some back.
    fleet.memory.takeOver(markers)
    func beginnings() -> [RelativePath] {
      fleet.paths { $0.name.hasPrefix("generation.") || $0.name.hasPrefix("application.") }
    }
    for path in beginnings() { fleet.memory.take(path) }
    let error = await syncError { try await fleet[0].synchronizeThoroughly() }
    #expect(error != nil && beginnings() == [])
  }

  @Test func lostNoteOfAClientIsTakenFromWhatItSaidBefore() async throws {
    let fleet = try await Self.fleet()
    try await fleet[0].describeClient(userInfo: ["colour": "green"])
    try await fleet[0].describeClient("renamed")
    try Self.strike(
      try #require(
        fleet.paths { $0.components.first == "ClientDevices" && $0.name.hasSuffix(".3.json") }.first
      ),
      .cuts, fleet.memory)
    #expect(try await fleet[0].synchronizeThoroughly().restoredFiles.count == 1)
    let clients = try await fleet[1].listClients()
    let described = try #require(clients.first { $0.client == fleet[0].binding.client })
    #expect(described.description == "renamed")
    #expect(described.userInfo == ["colour": "green"])
  }

  @Test func damagedCopyBesideAGoodFileHoldsUpNoDevice() async throws {
    let fleet = try await Self.fleet()
    let path = try #require(fleet.changeSets(of: 0).first)
    var bytes = try fleet.memory.read(path, limit: .max)
    for fragment in ["aaaaaaaaaa", "7777777777"] {
      bytes[bytes.count / 2] ^= 0x10
      fleet.memory.put(
        .file(bytes), at: try #require(path.parent) / "1.\(fragment).syncchg")
    }
    for _ in 0..<8 {
      for index in 0..<2 {
        #expect(try await fleet[index].synchronize().waiting == [])
      }
    }
    #expect(try await fleet[0].synchronizeThoroughly().waiting == [])
    let findings = try await verify(fleet)
    #expect(findings.count == 2)
    for finding in findings {
      #expect(finding.remedy.hasPrefix("Remove the file by hand"), "\(finding)")
    }
  }
}
