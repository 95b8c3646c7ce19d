import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// What is cleared away, and what is not.
struct HousekeepingTests {
  /// Makes as many change sets, of one row each, and sends them.
  private func edit(_ manager: DocumentSyncManager, times count: Int, prefix: String = "") throws {
    let program = try DatabaseQueue(path: manager.store.path)
    for number in 1...count {
      try program.write {
        try $0.execute(
          sql: "INSERT INTO notes VALUES(?, 'body')", arguments: ["\(prefix) row \(number)"])
      }
      _ = try manager.store.seal()
    }
    try program.close()
  }

  private func marker(_ fleet: TestFleet, _ index: Int) throws -> RecentSyncFile {
    let path = try #require(
      fleet.markers(of: index).max { left, right in
        revision(left) < revision(right)
      })
    guard case .file(let bytes) = fleet.memory.items[path] else {
      Issue.record("no marker")
      throw CodecError(.truncated, "marker")
    }
    return try Envelope.decodeJSON(RecentSyncFile.self, from: bytes, type: .recentSync)
  }

  private func revision(_ path: RelativePath) -> Int {
    let parts = path.name.split(separator: ".")
    return parts.count > 3 ? Int(parts[3]) ?? 0 : 0
  }

  private func wholeStores(_ fleet: TestFleet) -> [RelativePath] {
    fleet.paths { $0.components.contains("WholeStore") }
  }

  private func segments(_ fleet: TestFleet, _ index: Int) -> [RelativePath] {
    fleet.changeSets(of: index).filter { $0.name.hasSuffix(".segment") }
  }

  // MARK: Vacuum

  @Test func changeSetsGoWhenAllHaveThemAndAWholeStoreContainsThem() async throws {
    let fleet = try await TestFleet(3)
    try edit(fleet[0], times: 5)
    try await fleet.settle()
    // The whole store of the beginning contains none of them.
    let before = try await fleet[0].vacuum()
    #expect(before.removed.isEmpty)
    #expect(before.kept.contains { $0.kind == .changeSets && $0.reason.contains("whole store") })
    #expect(fleet.changeSets(of: 0).count == 5)
    _ = try await fleet[1].uploadWholeStore()
    try await fleet.settle()
    // The first one is listed by those who joined from it, until it is gone.
    _ = try await fleet[0].vacuum()
    #expect(wholeStores(fleet).count == 1)
    for index in 1...2 { _ = try await fleet[index].vacuum() }
    let after = try await fleet[0].vacuum()
    #expect(after.removed.map(\.kind) == [.changeSets])
    let removed = try #require(after.removed.first)
    #expect(removed.first == 1 && removed.last == 5)
    #expect(fleet.changeSets(of: 0).isEmpty)
    #expect(try marker(fleet, 0).lowestKept == 6)
    // Who joins now has everything.
    let late = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory,
      options: .init(client: "late", environment: fleet.environment))
    try await late.synchronize()
    #expect(try late.notes() == fleet[0].notes())
    // Nothing is put back, and numbers go on.
    try await fleet.settle()
    try fleet[0].put("x", "1")
    try await fleet.settle()
    let names = fleet.changeSets(of: 0).map(\.name)
    #expect(names.count == 1 && names[0].hasPrefix("6."))
    try fleet.expectEqual()
    let again = try await fleet[0].synchronizeThoroughly()
    #expect(again.restored.isEmpty && !again.uploadedWholeStore)
  }

  @Test func changeSetsStayWhileAMemberHasNotAppliedThem() async throws {
    let fleet = try await TestFleet(3)
    try edit(fleet[0], times: 4)
    try await fleet[0].synchronize()
    try await fleet[1].synchronize()
    _ = try await fleet[1].uploadWholeStore()
    for _ in 0..<2 { for index in 0...1 { _ = try await fleet[index].vacuum() } }
    let report = try await fleet[0].vacuum()
    #expect(report.removed.isEmpty)
    let kept = try #require(report.kept.first { $0.kind == .changeSets })
    #expect(kept.member == fleet[2].binding.client)
    #expect(kept.first == 1 && kept.last == 4)
    #expect(fleet.changeSets(of: 0).count == 4)
  }

  @Test func leastKeptNumberIsInTheMarkerBeforeTheFileGoes() async throws {
    let fleet = try await TestFleet(2)
    try edit(fleet[0], times: 3)
    try await fleet.settle()
    _ = try await fleet[0].uploadWholeStore()
    try await fleet.settle()
    for index in [0, 1] { _ = try await fleet[index].vacuum() }
    try edit(fleet[0], times: 3, prefix: "more")
    try await fleet.settle()
    _ = try await fleet[0].uploadWholeStore()
    try await fleet.settle()
    fleet.directories[0].script(
      FaultyDirectory.Fault(.stop, on: .remove, pathPart: "SyncChanges"))
    while !fleet.directories[0].isStopped {
      do {
        _ = try await fleet[1].vacuum()
        _ = try await fleet[0].vacuum()
      } catch {
        break
      }
    }
    let lowest = try marker(fleet, 0).lowestKept
    #expect(lowest > 1)
    // What may go is there still.
    let numbers = fleet.changeSets(of: 0).compactMap { ChangeSetName($0.name)?.number }
    #expect(numbers.contains { $0 < lowest })
    // The next one continues.
    fleet.directories[0].restart()
    _ = try await fleet[0].vacuum()
    #expect(fleet.changeSets(of: 0).allSatisfy { !$0.name.hasPrefix("1.") })
  }

  @Test func markerThatNamesAnotherHashProvesNothing() {
    let (a, b) = (ClientIdentifier.random(), ClientIdentifier.random())
    let hash = ContentHash(of: [1])
    func limit(_ entry: VersionVector.Entry?, contains: UInt64) -> UInt64 {
      ClearingLimits(words: [
        ClearingLimits.Word(
          member: b,
          marker: ClearingLimits.Said(
            applied: VersionVector(entry.map { [a: $0] } ?? [:]), commands: VersionVector(),
            wholeStores: [
              RecentSyncFile.WholeStore(
                client: b, number: 1, hash: hash,
                vector: VersionVector([a: VersionVector.Entry(number: contains, hash: hash)]),
                commands: VersionVector(), byteCount: 1)
            ]))
      ]).changeSets(of: a, head: 9) { $0 == 7 ? hash : nil }.number
    }
    #expect(limit(VersionVector.Entry(number: 7, hash: hash), contains: 9) == 7)
    #expect(limit(VersionVector.Entry(number: 7, hash: hash), contains: 5) == 5)
    #expect(limit(VersionVector.Entry(number: 7, hash: ContentHash(of: [2])), contains: 9) == 0)
    #expect(limit(nil, contains: 9) == 0)
  }

  /// The first of the members would upload one; the other has to wait.
  @Test func nothingIsClearedAwayWhileThereIsNoWholeStore() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    let clients = fleet.managers.map(\.binding.client)
    let index = clients[0] < clients[1] ? 1 : 0
    for path in wholeStores(fleet) { fleet.memory.take(path) }
    for manager in fleet.managers {
      try StoreRecords(manager.store).keep([] as [RecentSyncFile.WholeStore])
    }
    try await fleet[index].sendCommand(name: "kept")
    try edit(fleet[index], times: 3)
    try await fleet.settle()
    #expect(try marker(fleet, 0).wholeStores == [] && marker(fleet, 1).wholeStores == [])
    let report = try await fleet[index].vacuum()
    #expect(report.removed == [])
    let kept = try #require(report.kept.first { $0.kind == .changeSets })
    #expect(kept.first == 1 && kept.last == 3 && kept.member == nil)
    #expect(kept.reason.contains("no whole store"))
    #expect(fleet.changeSets(of: index).count == 3)
    #expect(fleet.paths { $0.components.contains("SyncCommands") }.count == 1)
    // A device that joins after a whole store was uploaded has everything.
    _ = try await fleet[1 - index].uploadWholeStore()
    try await fleet.settle()
    #expect(try await fleet[index].vacuum().removed.map(\.kind) == [.changeSets, .commands])
    let late = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory,
      options: .init(client: "late", environment: fleet.environment))
    #expect(try late.notes() == fleet[index].notes())
  }

  @Test func lastWholeStoreIsNeverRemoved() async throws {
    let fleet = try await TestFleet(2)
    for round in 0..<4 {
      try edit(fleet[round % 2], times: 2, prefix: "\(round)")
      try await fleet.settle()
      _ = try await fleet[round % 2].uploadWholeStore()
      for index in [0, 1, 0, 1] { _ = try await fleet[index].vacuum() }
      #expect(wholeStores(fleet).count == 1)
    }
  }

  @Test func ofTwoWholeStoresWithTheSameContentOneStays() {
    let client = ClientIdentifier.random()
    func store(_ byte: UInt8) -> RecentSyncFile.WholeStore {
      RecentSyncFile.WholeStore(
        client: client, number: 1, hash: ContentHash(of: [byte]), vector: VersionVector(),
        commands: VersionVector(), byteCount: 1)
    }
    #expect(store(1).supersedes(store(2)) != store(2).supersedes(store(1)))
    #expect(!store(1).supersedes(store(1)))
  }

  @Test func wholeStoreIsUploadedWhenJoiningWouldCostTooMuch() {
    let (a, b) = (ClientIdentifier.random(), ClientIdentifier.random())
    func vector(_ number: UInt64) -> VersionVector {
      VersionVector([a: VersionVector.Entry(number: number, hash: ContentHash(of: []))])
    }
    func isWorthIt(_ count: UInt64, bytes: Int, best: Int, rank: Int = 0) -> Bool {
      WholeStoreDecision(best: (vector(10), best), vector: vector(10 + count), rank: rank)
        .isWorthIt { _ in bytes }
    }
    #expect(!isWorthIt(0, bytes: 0, best: 100))
    #expect(isWorthIt(1_001, bytes: 0, best: 1 << 30))
    #expect(!isWorthIt(1_001, bytes: 0, best: 1 << 30, rank: 1))
    #expect(isWorthIt(1_251, bytes: 0, best: 1 << 30, rank: 1))
    #expect(!isWorthIt(10, bytes: 1 << 20, best: 100))
    #expect(isWorthIt(10, bytes: 1 << 20 + 1, best: 100))
    #expect(!isWorthIt(10, bytes: 5 << 20, best: 10 << 20))
    #expect(isWorthIt(10, bytes: 6 << 20, best: 10 << 20))
    #expect(!isWorthIt(10, bytes: 6 << 20, best: 10 << 20, rank: 1))
    #expect(WholeStoreDecision(best: nil, vector: vector(0), rank: 0).isWorthIt { _ in 0 })
    #expect(!WholeStoreDecision(best: nil, vector: vector(0), rank: 1).isWorthIt { _ in 0 })
    _ = b
  }

  // MARK: Segments

  @Test func manyLooseFilesBecomeASegmentAndGoWhenAnotherMemberHasCheckedIt() async throws {
    let fleet = try await TestFleet(3)
    try edit(fleet[0], times: 40)
    // Synchronizing keeps house by itself.
    let report = try await fleet[0].synchronize()
    #expect(report.housekeeping?.madeSegments == 1)
    #expect(segments(fleet, 0).count == 1)
    #expect(fleet.changeSets(of: 0).count == 41)
    for index in 1...2 {
      try await fleet[index].synchronize()
      _ = try await fleet[index].vacuum()
    }
    let cleared = try await fleet[0].vacuum()
    #expect(cleared.removed.contains { $0.kind == .changeSets && $0.count == 32 })
    #expect(fleet.changeSets(of: 0).count == 9)
    // A device that has nothing yet gets everything from the segment.
    let late = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory,
      options: .init(client: "late", environment: fleet.environment))
    #expect(try late.store.appliedVector().number(of: fleet[0].binding.client) == 40)
    #expect(try late.notes() == fleet[0].notes())
    let idle = try await fleet[0].synchronizeThoroughly()
    #expect(idle.restored.isEmpty)
  }

  @Test func looseFilesStayWhileOnlyTheAuthorHasTheSegment() async throws {
    let fleet = try await TestFleet(2)
    try edit(fleet[0], times: 40)
    try await fleet[0].synchronize()
    for _ in 0..<3 { _ = try await fleet[0].vacuum() }
    #expect(fleet.changeSets(of: 0).count == 41)
    let report = try await fleet[0].vacuum()
    #expect(report.kept.contains { $0.reason.contains("no other member has verified") })
  }

  @Test func damagedSegmentIsNotVerifiedAndItsFilesComeBack() async throws {
    let fleet = try await TestFleet(2)
    try edit(fleet[0], times: 40)
    try await fleet[0].synchronize()
    let path = try #require(segments(fleet, 0).first)
    var bytes = try fleet.memory.bytes(at: path)
    bytes[bytes.count / 2] ^= 1
    fleet.memory.put(.file(bytes), at: path)
    try await fleet[1].synchronize()
    #expect(try await fleet[1].vacuum().verifiedSegments == 0)
    _ = try await fleet[0].vacuum()
    #expect(fleet.changeSets(of: 0).filter { $0.name.hasSuffix(".syncchg") }.count == 40)
    // The author finds it, and makes a new one.
    try await fleet[0].synchronizeThoroughly()
    _ = try await fleet[0].vacuum()
    #expect(try await fleet[1].vacuum().verifiedSegments == 1)
    _ = try await fleet[0].vacuum()
    #expect(fleet.changeSets(of: 0).filter { $0.name.hasSuffix(".syncchg") }.count == 8)
    // Lost after that: the files that were in it come from the store.
    fleet.memory.take(try #require(segments(fleet, 0).first))
    let report = try await fleet[0].synchronizeThoroughly()
    #expect(report.restored.count == 32)
    #expect(!report.uploadedWholeStore)
  }

  // MARK: Gaps

  @Test func whoMissesWhatWasClearedAwayTakesOverAWholeStore() async throws {
    let fleet = try await TestFleet(3)
    try await fleet.settle()
    let slow = fleet[2].binding.client
    try fleet[2].put("mine", "kept")
    try await fleet[0].retire(.client(slow, .absent))
    try edit(fleet[0], times: 3)
    for _ in 0..<3 { for index in 0...1 { try await fleet[index].synchronize() } }
    _ = try await fleet[1].uploadWholeStore()
    for index in [0, 1, 0, 1, 0] { _ = try await fleet[index].vacuum() }
    #expect(fleet.changeSets(of: 0).isEmpty)
    let report = try await fleet[2].synchronize()
    let mended = try #require(report.rebootstrap)
    #expect(mended.reason == .gap)
    #expect(FileManager.default.fileExists(atPath: mended.backup))
    #expect(report.waiting.isEmpty)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes().contains("mine=kept"))
  }

  @Test func missingFileThatNoDeviceClearedAwayIsNoGap() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    try edit(fleet[0], times: 2)
    try await fleet[0].synchronize()
    _ = try await fleet[0].uploadWholeStore()
    let path = try #require(fleet.changeSets(of: 0).first)
    let file = try #require(fleet.memory.items[path])
    fleet.memory.take(path)
    let report = try await fleet[1].synchronize()
    #expect(report.rebootstrap == nil)
    #expect(report.waiting.map(\.reason) == [.notArrived])
    fleet.memory.put(file, at: path)
    try await fleet.settle()
    try fleet.expectEqual()
  }

  /// Where the folder arrives bit by bit, the author's marker may come after its whole store.
  @Test(arguments: ["join", "reset"])
  func deviceClearsNothingAwayThatTheAuthorOfItsWholeStoreHasNotApplied(after: String) async throws
  {
    let fleet = try await TestFleet(after == "join" ? 1 : 2)
    try edit(fleet[0], times: 2)
    try await fleet.settle()
    if after == "reset" {
      try await fleet[0].reset()
      try await fleet[1].close()
    }
    let elsewhere = MemoryDirectory(seed: 9)
    let late = fleet.markers(of: 0)
    elsewhere.takeOver(fleet.memory.items.filter { !late.contains($0.key) })
    let joined =
      after == "join"
      ? try await DocumentSyncManager.join(
        storeAt: fleet.scratch.store("1"), directory: elsewhere,
        options: .init(client: "1", environment: fleet.environment))
      : try await DocumentSyncManager.open(
        storeAt: fleet.scratch.store("1"), directory: elsewhere,
        options: .init(environment: fleet.environment))
    try await joined.synchronize()
    try joined.put("j", "1")
    try edit(fleet[0], times: 2, prefix: "later")
    for manager in [fleet[0], joined] {
      try await manager.synchronize()
      try await manager.uploadWholeStore()
      for _ in 0..<2 { _ = try await manager.vacuum() }
      // What was removed disappears at once.
      let gone = elsewhere.items.keys.filter {
        $0.components.contains("\(fleet[0].binding.client)") && fleet.memory.items[$0] == nil
      }
      for path in gone { elsewhere.take(path) }
    }
    fleet.memory.takeOver(elsewhere.items)
    try await joined.close()
    let again = try await DocumentSyncManager.open(
      storeAt: fleet.scratch.store("1"), directory: fleet.memory,
      options: .init(environment: fleet.environment))
    for round in 0..<8 {
      for manager in [fleet[0], again] {
        let report = try await manager.synchronize()
        if round == 7 { #expect(report.waiting.isEmpty) }
      }
    }
    #expect(try fleet[0].store.digest() == again.store.digest())
    try await again.close()
  }

  // MARK: Slow readers

  @Test func readerWithAnOldListingReadsOnFromTheSegment() async throws {
    let fleet = try await TestFleet(3)
    try edit(fleet[0], times: 40)
    try await fleet[0].synchronize()
    // Listed before the loose files go, and read afterwards.
    let memory = fleet.memory
    let loose = fleet.changeSets(of: 0).filter { $0.name.hasSuffix(".syncchg") }.prefix(32)
    let hooked = HookedRead(fleet.memory, part: "SyncChanges") {
      for path in loose { memory.take(path) }
    }
    try await fleet[2].close()
    let slow = try await DocumentSyncManager.open(
      storeAt: fleet.scratch.store("2"), directory: hooked,
      options: .init(environment: fleet.environment))
    let report = try await slow.synchronize()
    #expect(hooked.wasCalled)
    #expect(report.waiting.isEmpty)
    #expect(report.applied.count == 40)
    #expect(try slow.notes() == fleet[0].notes())
  }

  @Test func idleSyncAfterHousekeepingCostsThreeListings() async throws {
    let fleet = try await TestFleet(2)
    try edit(fleet[0], times: 40)
    try await fleet.settle()
    for _ in 0..<2 { for index in 0...1 { _ = try await fleet[index].vacuum() } }
    try await fleet.settle()
    for index in 0...1 {
      for _ in 0..<4 {
        fleet.counters[index].reset()
        let report = try await fleet[index].synchronize()
        let counts = fleet.counters[index].counts
        #expect(report.isIdle)
        #expect(counts.listings == 3)
        #expect(counts.reads + counts.writes + counts.removals == 0)
      }
    }
  }

  // MARK: Commands

  @Test func commandsGoWhenAllMembersAndWholeStoresHaveProcessedThem() async throws {
    let fleet = try await TestFleet(2)
    for number in 0..<3 { try await fleet[0].sendCommand(name: "\(number)") }
    try await fleet.settle()
    func count() -> Int { fleet.paths { $0.components.contains("SyncCommands") }.count }
    _ = try await fleet[0].vacuum()
    #expect(count() == 3)
    try edit(fleet[0], times: 1)
    try await fleet.settle()
    _ = try await fleet[1].uploadWholeStore()
    for index in [0, 1, 0, 1] { _ = try await fleet[index].vacuum() }
    #expect(count() == 0)
    #expect(try marker(fleet, 0).lowestKeptCommand == 4)
    try await fleet[0].sendCommand(name: "later")
    try await fleet.settle()
    #expect(try await fleet[1].pendingCommands().map(\.name) == ["0", "1", "2", "later"])
  }
}
