import DocumentSync
import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Testing

/// Two devices create one document, and neither sees the other's before both
/// are done.
@Suite struct CreatedTwiceTests {
  /// Two devices, each of which has created the document in a directory of
  /// its own; by now they share one.
  private struct Pair {
    let scratch: Scratch
    let world: World
    let shared = MemoryDirectory(seed: 9)
    /// Of the document that counts.
    let winner: DocumentSyncManager
    let loser: DocumentSyncManager
    /// As the loser reaches it.
    let faulty: FaultyDirectory
    let delegate = Answering(.stop)

    /// - Parameter others: What else is done to the loser's database.
    init(seed: UInt64 = 1, others: String = "") async throws {
      scratch = try Scratch()
      world = World(seed: seed)
      var stores: [String] = []
      var keys: [IntegrityKey] = []
      for name in ["a", "b"] {
        let directory = MemoryDirectory(seed: seed)
        let manager = try await DocumentSyncManager.create(
          storeAt: try scratch.makeNotes(name, rows: 1), directory: directory, document: "main",
          options: .init(application: "notes", client: name, environment: world.environment))
        try manager.put("seed-0", "of \(name)")
        try manager.put("from \(name)", "published")
        try await manager.synchronize()
        stores.append(manager.store.path)
        keys.append(manager.binding.generation)
        try await manager.close()
        shared.takeOver(directory.items)
      }
      if keys[1] < keys[0] { stores.reverse() }
      faulty = FaultyDirectory(shared)
      winner = try await DocumentSyncManager.open(
        storeAt: stores[0], directory: shared, options: .init(environment: world.environment))
      loser = try await DocumentSyncManager.open(
        storeAt: stores[1], directory: faulty,
        options: .init(delegate: delegate, environment: world.environment))
      try loser.put("unpublished", "1")
      if !others.isEmpty { try loser.edit(others) }
    }

    func expectOneDocument(sourceLocation: SourceLocation = #_sourceLocation) async throws {
      for _ in 0..<3 {
        try await winner.synchronize()
        try await loser.synchronize()
      }
      #expect(loser.binding.generation == winner.binding.generation, sourceLocation: sourceLocation)
      #expect(loser.binding.root == winner.binding.root, sourceLocation: sourceLocation)
      let ours = winner.binding.clientDescription
      #expect(
        try winner.notes() == [
          "from a=published", "from b=published", "seed-0=of \(ours)", "unpublished=1",
        ], sourceLocation: sourceLocation)
      #expect(try winner.store.digest() == loser.store.digest(), sourceLocation: sourceLocation)
      for manager in [winner, loser] {
        let report = try await manager.synchronize()
        #expect(report.isIdle && report.waiting == [], sourceLocation: sourceLocation)
      }
    }
  }

  /// No device goes over to a generation that may belong to another directory.
  @Test func waitsForTheRootOfTheOther() async throws {
    let pair = try await Pair()
    let path = DirectoryLayout.path(of: ApplicationName(root: pair.winner.binding.root))
    let content = try pair.shared.read(path, limit: .max)
    pair.shared.take(path)
    let (items, binding) = (pair.shared.items, pair.loser.binding)
    let error = await syncError { try await pair.loser.synchronize() }
    #expect(error?.code == .generationReplaced)
    #expect(pair.loser.binding == binding)
    #expect(pair.shared.items == items)
    pair.shared.put(.file(content), at: path)
    try await pair.expectOneDocument()
  }

  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func bothEndWithOneDocumentAndAllRows(seed: UInt64) async throws {
    let pair = try await Pair(seed: seed)
    let (before, events) = (pair.loser.binding, pair.loser.events.stream())
    #expect(try await pair.loser.findStanding() != .current)
    let report = try await pair.loser.synchronize()
    let rebootstrap = try #require(report.rebootstrap)
    #expect(rebootstrap.reason == .createdTwice)
    let merged = try #require(rebootstrap.merged)
    #expect(merged.insertedRows == 2 && merged.differingCells == 1 && merged.refusedRows == 0)
    #expect(report.sent.count == 1 && report.incarnations.map(\.reason) == [.begunAgain])
    #expect(FileManager.default.fileExists(atPath: rebootstrap.backup))
    #expect(pair.loser.binding.client != before.client)
    #expect(pair.loser.binding.ancestor == before.client)
    #expect(pair.loser.state == .registered && pair.delegate.questions == [])
    try await pair.expectOneDocument()
    // What did not stand is not lost.
    let lost = try #require(try pair.loser.store.conflicts().first)
    #expect(lost.rule == .join && lost.column == "body")
    try await pair.loser.restoreConflict(lost.number)
    try await pair.loser.synchronize()
    try await pair.winner.synchronize()
    #expect(try pair.winner.notes().contains("seed-0=of \(before.clientDescription)"))
    // Who joins sees one document.
    let joined = try await DocumentSyncManager.join(
      storeAt: pair.scratch.store("c"), directory: pair.shared,
      options: .init(application: "notes", environment: pair.world.environment))
    #expect(try joined.notes() == pair.winner.notes())
    let clients = try await joined.listClients().filter { $0.status == .member }
    #expect(clients.count == 3)
    try await pair.loser.close()
    let heard = await names(of: events)
    #expect(heard.filter { $0 == "rebootstrapped" }.count == 1)
    #expect(heard.filter { $0 == "incarnation" }.count == 1)
    #expect(!heard.contains { $0.hasPrefix("state waiting") })
  }

  @Test func commandsSinceTheWholeStoreReachWhoComesOver() async throws {
    let pair = try await Pair()
    let events = pair.loser.events.stream()
    try await pair.winner.sendCommand(name: "since", payload: [7])
    try pair.winner.put("since", "the whole store")
    try await pair.winner.synchronize()
    let heard = HeardProgress()
    try await pair.loser.synchronize(onProgress: heard.handler)
    _ = heard.parts()
    try await pair.loser.synchronize()
    #expect(try await pair.loser.pendingCommands().map(\.name) == ["since"])
    try await pair.loser.close()
    #expect(await names(of: events).filter { $0 == "command" }.count == 1)
  }

  @Test func whoJoinedTheOtherOneComesOverAsWell() async throws {
    let pair = try await Pair()
    // It has not heard that there is another.
    let apart = MemoryDirectory(seed: 3)
    apart.takeOver(pair.shared.items)
    let rival = DirectoryLayout.Document(pair.winner.binding.document)
    let counting = GenerationName(ordinal: 1, key: pair.winner.binding.generation)
    apart.take(rival.path(of: counting))
    let member = try await DocumentSyncManager.join(
      storeAt: pair.scratch.store("m"), directory: apart,
      options: .init(application: "notes", client: "m", environment: pair.world.environment))
    try member.put("from m", "edited")
    try await member.synchronize()
    try await member.close()
    pair.shared.takeOver(apart.items)
    try await pair.loser.synchronize()
    let again = try await DocumentSyncManager.open(
      storeAt: pair.scratch.store("m"), directory: pair.shared,
      options: .init(environment: pair.world.environment))
    #expect(try await again.synchronize().rebootstrap?.reason == .createdTwice)
    for manager in [pair.winner, pair.loser, again] { try await manager.synchronize() }
    try await pair.loser.synchronize()
    try await pair.winner.synchronize()
    #expect(try pair.winner.notes().count == 5)
    for manager in [pair.loser, again] {
      #expect(try manager.store.digest().visible == pair.winner.store.digest().visible)
    }
  }

  @Test func rowsThatCannotBeMergedAreRefusedAndTheStoreIsAsItWas() async throws {
    let pair = try await Pair(others: "ALTER TABLE notes ADD COLUMN color TEXT")
    let (before, notes) = (pair.loser.binding, try pair.loser.notes())
    for _ in 0..<2 {
      let error = await syncError { try await pair.loser.synchronize() }
      #expect(error?.code == .generationReplaced && error?.classification == .refused)
      #expect(error?.message.contains("notes.color exists only in the database") == true)
      #expect(error?.remedy.contains("same version of the application") == true)
    }
    #expect(pair.loser.binding == before)
    #expect(try pair.loser.notes() == notes)
    #expect(try pair.scratch.names().filter { $0.contains(".before-") } == [])
    // Once the application is the same on both, they go on by themselves.
    try pair.winner.edit("ALTER TABLE notes ADD COLUMN color TEXT")
    try await pair.winner.synchronize()
    try await pair.winner.uploadWholeStore()
    try await pair.expectOneDocument()
  }

  @Test func nothingIsDoneBeforeTheOtherOneHasArrived() async throws {
    let pair = try await Pair()
    let (before, items) = (pair.loser.binding, pair.shared.items)
    let layout = DirectoryLayout.Document(pair.winner.binding.document)
    pair.shared.take(layout.generation(pair.winner.binding.generation).folder)
    #expect(await syncError { try await pair.loser.synchronize() }?.code == .wholeStoreMissing)
    let path = layout.path(
      of: GenerationName(ordinal: 1, key: pair.winner.binding.generation))
    pair.shared.put(.file([]), at: path)
    #expect(await syncError { try await pair.loser.synchronize() }?.code == .generationReplaced)
    #expect(pair.loser.binding == before)
    pair.shared.take(path)
    pair.shared.takeOver(items)
    try await pair.expectOneDocument()
  }

  /// It may have been reset since; then it is the last one that counts.
  @Test func theOtherOneWasResetSince() async throws {
    let pair = try await Pair()
    let first = GenerationName(ordinal: 1, key: pair.winner.binding.generation)
    try await pair.winner.reset()
    let path = DirectoryLayout.Document(pair.winner.binding.document).path(of: first)
    let file = try #require(pair.shared.items[path])
    pair.shared.take(path)
    // What it stems from cannot be told: it might be this one.
    #expect(await syncError { try await pair.loser.synchronize() }?.code == .generationReplaced)
    pair.shared.put(file, at: path)
    let report = try await pair.loser.synchronize()
    #expect(report.rebootstrap?.reason == .createdTwice)
    try await pair.expectOneDocument()
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func twoThatResetItAtOneMomentEndWithOneGeneration(seed: UInt64) async throws {
    let fleet = try await TestFleet(3, seed: seed)
    try await fleet.settle()
    let before = fleet.memory.items
    var reset: [MemoryDirectory] = []
    for index in [0, 1] {
      try fleet[index].put("of \(index)", "published")
      try await fleet[index].reset()
      let apart = MemoryDirectory(seed: seed)
      apart.takeOver(fleet.memory.items)
      reset.append(apart)
      for path in fleet.memory.items.keys where before[path] == nil { fleet.memory.take(path) }
      fleet.memory.takeOver(before)
    }
    for apart in reset { fleet.memory.takeOver(apart.items) }
    #expect(fleet[0].binding.generation != fleet[1].binding.generation)
    try fleet[2].put("of 2", "not sent")
    for index in [0, 1] { try fleet[index].put("later of \(index)", "1") }
    fleet.world.advance(1_000)
    try fleet[0].put("seed-0", "of 0")
    fleet.world.advance(1_000)
    try fleet[1].put("seed-0", "of 1")
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(Set(fleet.managers.map(\.binding.generation)).count == 1)
    let notes = try fleet[0].notes()
    let wanted = [
      "later of 0=1", "later of 1=1", "of 0=published", "of 1=published", "of 2=not sent",
    ]
    for note in wanted { #expect(notes.contains(note), "\(note)") }
  }

  @Test func goingOverThatIsStruckAtAnyCallIsCompletedByTheNextSync() async throws {
    var call = 0
    while true {
      call += 1
      let pair = try await Pair()
      pair.faulty.script(
        FaultyDirectory.Fault(call % 2 == 0 ? .stop : .stopAfterwards, occurrence: call))
      do {
        try await pair.loser.synchronize()
      } catch {
        pair.faulty.restart()
      }
      guard !pair.faulty.firedFaults.isEmpty else { break }
      try await pair.expectOneDocument()
    }
    #expect(call > 15)
  }
}
