import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// Two states of one store that go on as one client: what becomes of the branch that does not count.
@Suite struct ForkedBranchTests {
  private typealias Items = [RelativePath: MemoryDirectory.Item]

  /// A state of the first device's store, and the directory that it sees.
  private struct State {
    var store: String
    var items: Items
    var hash: HashFragment
  }

  private func open(
    _ fleet: TestFleet, _ store: String, _ directory: MemoryDirectory
  ) async throws -> DocumentSyncManager {
    try await DocumentSyncManager.open(
      storeAt: fleet.scratch.store(store), directory: directory,
      options: .init(environment: fleet.environment))
  }

  /// Copies the store of the first device twice. Each copy sends an edit in a directory of its own.
  /// Returns the one whose change set counts, and then the other one.
  private func split(_ fleet: TestFleet) async throws -> (counting: State, other: State) {
    try await fleet[0].close()
    var states: [State] = []
    for store in ["one", "two"] {
      try FileManager.default.copyItem(
        atPath: fleet.scratch.store("0"), toPath: fleet.scratch.store(store))
      let elsewhere = MemoryDirectory(seed: 9)
      elsewhere.takeOver(fleet.memory.items)
      let manager = try await open(fleet, store, elsewhere)
      try manager.put(store, "1")
      let sent = try #require(try await manager.synchronize().sent.first)
      try await manager.close()
      states.append(
        State(store: store, items: elsewhere.items, hash: HashFragment(sent.hash)))
    }
    states.sort { $0.hash.description < $1.hash.description }
    return (states[0], states[1])
  }

  /// Synchronizes the first device until it has become a new client.
  private func fork(_ fleet: TestFleet) async throws -> SyncReport {
    for _ in 0..<40 {
      let report = try await fleet[0].synchronize()
      if !report.incarnations.isEmpty { return report }
    }
    Issue.record("the store has not become a new client")
    return SyncReport()
  }

  private func join(_ fleet: TestFleet, _ name: String) async throws -> DocumentSyncManager {
    try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store(name), directory: fleet.memory,
      options: .init(client: name, environment: fleet.environment))
  }

  /// The store has dropped the bytes, since all devices have the change sets. It takes them from the
  /// directory, or leaves them to the devices that have them.
  @Test(arguments: ["there", "in a segment", "lost"])
  func branchWhoseBytesTheStoreHasDroppedBecomesThatOfANewClient(how: String) async throws {
    var fleet = try await TestFleet(2, keptChangeSetBytes: 0) { environment in
      guard how == "in a segment" else { return }
      (environment.thresholds.looseCount, environment.thresholds.tailCount) = (1, 0)
    }
    _ = try await fleet[0].uploadWholeStore()
    try await fleet.settle()
    let states = try await split(fleet)
    fleet.memory.takeOver(states.other.items)
    fleet.replace(0, with: try await open(fleet, states.other.store, fleet.memory))
    for number in 2...4 {
      try fleet[0].put("n\(number)", "x")
      try await fleet.settle()
    }
    if how == "in a segment" {
      for _ in 0..<2 {
        _ = try await fleet[0].vacuum()
        try await fleet.settle()
        _ = try await fleet[1].vacuum()
        try await fleet.settle()
      }
      #expect(fleet.changeSets(of: 0).count == 1)
    }
    let sealed = try fleet[0].store.sealedChangeSets()
    #expect(sealed.count == 4 && sealed.allSatisfy { !$0.isKept })
    if how == "lost" { for path in fleet.changeSets(of: 0) { fleet.memory.take(path) } }
    fleet.memory.takeOver(states.counting.items)
    let former = fleet[0].binding.client
    let report = try await fork(fleet)
    #expect(report.incarnations.map(\.reason) == [.forked])
    #expect(report.sent.count == (how == "lost" ? 0 : 4))
    #expect(fleet[0].binding.ancestor == former)
    try fleet[0].put("later", "1")
    // Each device lists all folders by then.
    for _ in 0..<6 { for manager in fleet.managers { try await manager.synchronize() } }
    try await fleet.settle()
    try fleet.expectEqual()
    for manager in fleet.managers {
      let notes = try manager.notes()
      for note in ["one=1", "two=1", "n2=x", "n4=x", "later=1"] {
        #expect(notes.contains(note))
      }
      #expect(try LocalStore.verify(at: manager.store.path).report.findings == [])
    }
    guard how != "lost" else { return }
    let late = try await join(fleet, "late")
    try await late.synchronize()
    #expect(try late.notes() == fleet[0].notes())
    try await late.close()
  }

  /// The copy has processed the command that was removed, and its marker arrives late.
  @Test func storeThatIsOlderThanTheWholeStoreThatClosesAGapBecomesANewClient() async throws {
    var fleet = try await TestFleet(2)
    try await fleet.settle()
    try await fleet[0].close()
    try FileManager.default.copyItem(
      atPath: fleet.scratch.store("0"), toPath: fleet.scratch.store("copy"))
    try await fleet.reopen(0)
    let client = fleet[0].binding.client
    try await fleet[1].sendCommand(name: "removed")
    try await fleet[1].synchronize()
    let before = fleet.memory.items
    let copy = try await open(fleet, "copy", fleet.memory)
    try copy.put("c", "of the copy")
    try await copy.synchronize()
    try await copy.uploadWholeStore()
    try await copy.close()
    // Its marker lists the whole store as well.
    let third = try await join(fleet, "third")
    try await third.synchronize()
    try await fleet[1].synchronize()
    let after = fleet.memory.items
    for path in after.keys
    where before[path] == nil && path.description.contains(client.description)
      && !path.components.contains("WholeStore")
    {
      fleet.memory.take(path)
    }
    fleet.memory.takeOver(before)
    try StoreRecords(fleet[1].store).keep(StoreRecords.Kept(commands: 2))
    try fleet[1].put("m", "1")
    try await fleet[1].synchronize()
    let command = try #require(
      fleet.paths {
        $0.components.contains("SyncCommands")
          && $0.components.contains(fleet[1].binding.client.description)
      }.last)
    try fleet.memory.remove(command)
    try fleet[0].put("o", "of the original")
    let report = try await fleet[0].synchronize()
    #expect(report.rebootstrap?.reason == .gap)
    #expect(fleet[0].binding.ancestor == client)
    fleet.memory.takeOver(after)
    for _ in 0..<6 { for manager in fleet.managers { try await manager.synchronize() } }
    try await third.synchronize()
    try await fleet.settle()
    try fleet.expectEqual()
    let notes = try third.notes()
    #expect(try notes == fleet[0].notes())
    #expect(notes.contains("o=of the original"))
    #expect(notes.contains("c=of the copy"))
  }

  /// The store goes on, and sends more. Returns its directory.
  private func goOn(_ fleet: TestFleet, _ state: State) async throws -> Items {
    let elsewhere = MemoryDirectory(seed: 9)
    elsewhere.takeOver(state.items)
    let manager = try await open(fleet, state.store, elsewhere)
    for number in 1...3 {
      try manager.put("before \(number)", "1")
      try await manager.synchronize()
    }
    try await manager.close()
    return elsewhere.items
  }

  /// Synchronizes until all devices have listed all folders. Checks that all have everything, and
  /// that none waits.
  private func expectAll(_ fleet: TestFleet, _ wanted: [String]) async throws {
    for _ in 0..<16 { for manager in fleet.managers { try await manager.synchronize() } }
    try fleet.expectEqual()
    for manager in fleet.managers {
      let notes = try manager.notes()
      for note in wanted { #expect(notes.contains(note)) }
      #expect(try await manager.synchronize().waiting == [])
      #expect(try LocalStore.verify(at: manager.store.path).report.findings == [])
    }
    let late = try await join(fleet, "late")
    for _ in 0..<6 { try await late.synchronize() }
    #expect(try late.notes() == fleet[0].notes())
    try await late.close()
  }

  /// The machine is put back, with its copy of the directory. What it has sent before, which arrives
  /// later, gives way to what it has sent since.
  @Test(arguments: ["all", "some", "none"])
  func whatAPutBackMachineHadSentComesFromItsNewClient(known: String) async throws {
    var fleet = try await TestFleet(3)
    try await fleet.settle()
    let states = try await split(fleet)
    let before = try await goOn(fleet, states.other)
    if known != "none" {
      fleet.memory.takeOver(before)
      for manager in fleet.managers.dropFirst(known == "all" ? 1 : 2) {
        try await manager.synchronize()
      }
      for (path, _) in before where states.counting.items[path] == nil {
        fleet.memory.take(path)
      }
    }
    fleet.memory.takeOver(states.counting.items)
    fleet.replace(0, with: try await open(fleet, states.counting.store, fleet.memory))
    try fleet[0].put("since", "1")
    for manager in fleet.managers { try await manager.synchronize() }
    fleet.memory.takeOver(before)
    let former = fleet[0].binding.client
    try await expectAll(
      fleet, ["one=1", "two=1", "before 1=1", "before 3=1", "since=1"])
    #expect(fleet[0].binding.ancestor == former)
  }

  /// The machine is a new client already when the file arrives that counts in place of its own.
  @Test func branchThatGivesWayAfterTheForkComesFromTheNewClient() async throws {
    var fleet = try await TestFleet(2)
    try await fleet.settle()
    let states = try await split(fleet)
    let before = try await goOn(fleet, states.counting)
    fleet.memory.takeOver(states.other.items)
    fleet.replace(0, with: try await open(fleet, states.other.store, fleet.memory))
    let first = before.filter { $0.key.name.hasSuffix("\(states.counting.hash).syncchg") }
    #expect(first.count == 1)
    fleet.memory.takeOver(before.filter { first[$0.key] == nil })
    _ = try await fork(fleet)
    fleet.memory.takeOver(first)
    try await expectAll(fleet, ["one=1", "two=1", "before 1=1", "before 3=1"])
  }

  /// Only a segment has the change sets that count, and files of the branch have their numbers.
  @Test func branchHidesNoSegmentOfWhatCounts() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    let states = try await split(fleet)
    fleet.memory.takeOver(states.counting.items)
    try await fleet[1].synchronize()
    func isLater(_ path: RelativePath) -> Bool {
      path.name.hasSuffix(".syncchg") && states.counting.items[path] == nil
    }
    let counting = try await goOn(fleet, states.counting)
    let branch = try await goOn(fleet, states.other)
    func number(_ path: RelativePath) -> UInt64 { ChangeSetName(path.name)?.number ?? 0 }
    let loose = counting.keys.filter(isLater).sorted { number($0) < number($1) }
    let folder = try #require(loose.first?.parent)
    let parts = try loose.map { path in
      guard case .file(let bytes)? = counting[path] else {
        throw MemoryDirectory.Missing(path: path)
      }
      return Segment.Part(hash: ContentHash(of: bytes), bytes: bytes)
    }
    let header = try ChangeSetCodec.decodeHeader(try #require(parts.first).bytes)
    let last = header.number + UInt64(parts.count) - 1
    let content = try SegmentCodec.encode(
      Segment(
        root: header.root, document: header.document, generation: header.generation,
        client: header.client, first: header.number, parts: parts))
    let name = SegmentName(
      numbers: header.number...last, hash: HashFragment(ContentHash(of: content)))
    fleet.memory.put(.file(content), at: folder / "\(name)")
    fleet.memory.takeOver(counting.filter { !isLater($0.key) })
    fleet.memory.takeOver(branch.filter { isLater($0.key) })
    #expect(try await fleet[1].synchronize().waiting == [])
    #expect(try fleet[1].store.appliedVector().number(of: header.client) == last)
    #expect(try fleet[1].notes().contains("before 3=1"))
  }

  /// The file that counts in place of the applied one is damaged.
  @Test func whatContinuesADamagedFileIsWaitedFor() async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    let states = try await split(fleet)
    fleet.memory.takeOver(states.other.items)
    try await fleet[1].synchronize()
    let counting = try await goOn(fleet, states.counting)
    fleet.memory.takeOver(counting)
    let first = try #require(
      counting.first { $0.key.name.hasSuffix("\(states.counting.hash).syncchg") })
    fleet.memory.put(.file([1]), at: first.key)
    #expect(try await fleet[1].synchronize().waiting.map(\.reason) == [.brokenChain])
    fleet.memory.put(first.value, at: first.key)
    #expect(try await fleet[1].synchronize().waiting == [])
    #expect(try fleet[1].notes().contains("before 3=1"))
  }
}
