import DocumentSync
import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Testing

/// A synchronization that is interrupted at any call on the directory is
/// continued by the next one.
struct FaultTests {
  /// How a call goes wrong.
  enum Blow: CaseIterable, CustomTestStringConvertible {
    case fails, failsAfterwards, stops, stopsBeforeRename, stopsAfterwards

    var effect: FaultyDirectory.Effect {
      switch self {
      case .fails: .fail(.io)
      case .failsAfterwards: .failAfterwards(.io)
      case .stops: .stop
      case .stopsBeforeRename: .stopBeforeRename
      case .stopsAfterwards: .stopAfterwards
      }
    }

    var testDescription: String { "\(self)" }
  }

  /// Edits that both send and receive something, in more than one file.
  private func prepare(_ fleet: TestFleet) async throws {
    try fleet[0].put("x", "from 0")
    try await fleet[0].synchronize()
    try fleet[0].put("y", "from 0")
    try await fleet[0].synchronize()
    try fleet[1].put("z", "from 1")
    _ = try fleet[1].store.seal()
    try fleet[1].put("x", "from 1")
  }

  @Test(arguments: Blow.allCases)
  func syncStruckAtAnyCallIsContinuedByTheNext(blow: Blow) async throws {
    var call = 0
    while true {
      call += 1
      var fleet = try await TestFleet(3, seed: UInt64(call))
      try await prepare(fleet)
      fleet.directories[1].script(
        FaultyDirectory.Fault(blow.effect, occurrence: call))
      var struck = false
      do {
        try await fleet[1].synchronize()
      } catch {
        struck = true
      }
      guard !fleet.directories[1].firedFaults.isEmpty else { break }
      #expect(struck)
      let published = fleet.paths { $0.components.first != "Temporary" }
      let before = fleet.memory.items
      try await fleet.reopen(1)
      try await fleet.settle()
      try fleet.expectEqual()
      #expect(try fleet[0].notes().contains("z=from 1"))
      // Two sealed sets, each published once and never changed.
      #expect(fleet.changeSets(of: 1).count == 2)
      for path in published where !path.components.contains("RecentSyncs") {
        #expect(fleet.memory.items[path] == before[path])
      }
    }
    // Three listings, at least; two files read, two and a marker published.
    #expect(call > 8)
  }

  /// Not when the turn of the own folder comes, which may be long after.
  @Test(arguments: [Blow.fails, .stops], [1, 2])
  func changeSetThatCouldNotBePublishedIsSentByTheVeryNextSync(
    blow: Blow, occurrence: Int
  ) async throws {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    for number in 1...2 {
      try fleet[0].put("x", "\(number)")
      _ = try fleet[0].store.seal()
    }
    fleet.directories[0].script(
      FaultyDirectory.Fault(
        blow.effect, on: .publish, pathPart: "SyncChanges", occurrence: occurrence))
    _ = await syncError { try await fleet[0].synchronize() }
    fleet.directories[0].restart()
    #expect(fleet.changeSets(of: 0).count == occurrence - 1)
    let report = try await fleet[0].synchronize()
    #expect(report.sent.map(\.number) == Array(UInt64(occurrence)...2))
    #expect(report.restored == [])
    #expect(try await fleet[1].synchronize().waiting == [])
    try fleet.expectEqual()
  }

  @Test func syncCancelledAtAnyCallIsContinuedByTheNext() async throws {
    var call = 0
    var completed: [Int] = []
    while true {
      call += 1
      let fleet = try await TestFleet(3, seed: UInt64(call))
      try await prepare(fleet)
      let cancelled = Cancellation()
      let hooked = HookedDirectory(fleet.memory, beforeCall: call) { cancelled.run() }
      let operation = SynchronizeOperation(
        store: fleet[1].store, directory: hooked,
        turns: SyncTurns(environment: fleet.environment), environment: fleet.environment)
      cancelled.set { operation.cancel() }
      let completions = Completions()
      await withCheckedContinuation { continuation in
        operation.whenFinished { _ in
          completions.add()
          continuation.resume()
        }
        operation.start()
      }
      #expect(completions.count == 1)
      guard hooked.wasCalled else { break }
      if let error = operation.error {
        #expect(error.code == .cancelled)
      } else {
        // Everything was done when it was cancelled.
        completed.append(call)
        #expect(fleet.changeSets(of: 1).count == 2)
      }
      try await fleet.settle()
      try fleet.expectEqual()
      #expect(fleet.changeSets(of: 1).count == 2)
    }
    // The last calls may be over before the operation looks.
    #expect(completed.count < call / 2, "\(completed) of \(call)")
    #expect(call > 8)
  }

  @Test(arguments: [Blow.fails, .stops, .stopsBeforeRename, .stopsAfterwards])
  func creationStruckAtAnyCallIsCompletedByRepeatingIt(blow: Blow) async throws {
    var call = 0
    while true {
      call += 1
      let scratch = try Scratch()
      let memory = MemoryDirectory(seed: UInt64(call))
      let world = World(seed: UInt64(call))
      let faulty = FaultyDirectory(memory)
      faulty.script(FaultyDirectory.Fault(blow.effect, occurrence: call))
      let path = try scratch.makeNotes("a", rows: 3)
      func create() async throws -> DocumentSyncManager {
        try await DocumentSyncManager.create(
          storeAt: path, directory: faulty, document: "main",
          options: .init(client: "a", environment: world.environment))
      }
      do {
        try await create().close()
      } catch {
        faulty.restart()
        try await create().close()
      }
      guard !faulty.firedFaults.isEmpty else { break }
      let documents = try await ApplicationSyncManager(
        directory: memory, environment: world.environment
      ).listDocuments()
      #expect(documents.map(\.identifier) == ["main"])
      let joined = try await DocumentSyncManager.join(
        storeAt: scratch.store("b"), directory: memory,
        options: .init(client: "b", environment: world.environment))
      #expect(try joined.notes().count == 3)
      #expect(try scratch.names().filter { $0.contains("-docsync-tmp") }.isEmpty)
    }
    #expect(call > 10)
  }

  @Test(arguments: [Blow.fails, .stops])
  func joiningStruckAtAnyCallLeavesNothingAndCanBeRepeated(blow: Blow) async throws {
    var call = 0
    while true {
      call += 1
      let fleet = try await TestFleet(1, rows: 3, seed: UInt64(call))
      let faulty = FaultyDirectory(fleet.memory)
      faulty.script(FaultyDirectory.Fault(blow.effect, occurrence: call))
      let path = fleet.scratch.store("b")
      func join() async throws -> DocumentSyncManager {
        try await DocumentSyncManager.join(
          storeAt: path, directory: faulty,
          options: .init(client: "b", environment: fleet.world.environment))
      }
      let manager: DocumentSyncManager
      do {
        manager = try await join()
      } catch {
        faulty.restart()
        let names = try fleet.scratch.names().filter { $0.hasPrefix("b") }
        if FileManager.default.fileExists(atPath: path) {
          // It has its place; only the first synchronization failed.
          manager = try await DocumentSyncManager.open(
            storeAt: path, directory: faulty, options: .init(environment: fleet.world.environment))
          try await manager.synchronize()
        } else {
          #expect(names.allSatisfy { $0 == "b.db-docsync-lock" })
          manager = try await join()
        }
      }
      guard !faulty.firedFaults.isEmpty else { break }
      #expect(try manager.notes() == fleet[0].notes())
      #expect(try await manager.synchronize().isIdle)
      #expect(
        try fleet.scratch.names().filter { $0.contains("-docsync-tmp") }.isEmpty)
    }
    #expect(call > 8)
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func randomFaultsAndLateFilesEndInEqualStores(seed: UInt64) async throws {
    var fleet = try await TestFleet(3, seed: seed)
    var random = SeededRandom(seed: seed)
    for index in 0..<3 {
      fleet.directories[index].failAtRandom(
        rate: 0.1, codes: [.io, .transient, .notFound, .noSpace], seed: seed &+ UInt64(index))
      fleet.directories[index].lag = FaultyDirectory.Lag(
        listings: Int(random.next() % 3), missingReads: Int(random.next() % 2),
        halfReads: Int(random.next() % 2))
    }
    for step in 0..<60 {
      let index = Int(random.next() % 3)
      try fleet[index].put("n\(random.next() % 5)", "step \(step) by \(index)")
      do {
        try await fleet[index].synchronize()
      } catch let error as SyncError {
        #expect(error.code != .internalFault && error.code != .forkedClient)
      }
    }
    for index in 0..<3 {
      fleet.directories[index].failAtRandom(rate: 0, codes: [], seed: 0)
      fleet.directories[index].lag = FaultyDirectory.Lag()
      try await fleet.reopen(index)
    }
    try await fleet.settle()
    try fleet.expectEqual()
  }
}

private final class Cancellation: @unchecked Sendable {
  private let lock = NSLock()
  private var action: (@Sendable () -> Void)?

  func set(_ action: @escaping @Sendable () -> Void) { lock.withLock { self.action = action } }
  func run() { lock.withLock { action }?() }
}

private final class Completions: @unchecked Sendable {
  private let lock = NSLock()
  private var number = 0

  func add() { lock.withLock { number += 1 } }
  var count: Int { lock.withLock { number } }
}
