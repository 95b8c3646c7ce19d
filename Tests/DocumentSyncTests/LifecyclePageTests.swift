import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// The diagram of states in the documentation.
struct LifecyclePageTests {
  /// One state to another, by their names.
  private struct Arrow: Hashable, CustomStringConvertible {
    var from: String
    var to: String
    var description: String { "\(from) → \(to)" }
  }

  /// The name of a state's case. Not to be written in terms of its text: one
  /// that is new has to come in here, and into ``all``.
  private static func name(_ state: DocumentSyncState) -> String {
    switch state {
    case .unregistered: "unregistered"
    case .registering: "registering"
    case .registered: "registered"
    case .waitingForDecision: "waitingForDecision"
    case .deleted: "deleted"
    case .replaced: "replaced"
    case .removed: "removed"
    case .left: "left"
    }
  }

  private static let all: [DocumentSyncState] = [
    .unregistered, .registering, .registered,
    .waitingForDecision(.clientRemoved(identifier: "main")),
    .deleted(DocumentDescription.Deletion(client: .random())), .replaced, .removed, .left,
  ]

  /// The arrows of the diagram, apart from those at the ends and from one
  /// state to itself.
  private func diagram() throws -> Set<Arrow> {
    let page = try String(
      contentsOf: URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Documentation/Lifecycle.md"), encoding: .utf8)
    let start = try #require(page.range(of: "```mermaid\nstateDiagram-v2\n"))
    let end = try #require(page.range(of: "```", range: start.upperBound..<page.endIndex))
    var arrows: Set<Arrow> = []
    for line in page[start.upperBound..<end.lowerBound].split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 4).map(String.init)
      guard !words.isEmpty else { continue }
      try #require(
        words.count == 3 || (words.count == 5 && words[3] == ":"), "no arrow: \(line)")
      try #require(words[1] == "-->", "no arrow: \(line)")
      arrows.insert(Arrow(from: words[0], to: words[2]))
    }
    return arrows.filter { $0.from != $0.to && $0.from != "[*]" && $0.to != "[*]" }
  }

  @Test func diagramHasEveryStateAndNoOther() throws {
    let names = try diagram().flatMap { [$0.from, $0.to] }
    #expect(Set(names) == Set(Self.all.map(Self.name)))
    // As they are called in code.
    for state in Self.all {
      #expect("\(state)".hasPrefix(Self.name(state)) || "\(state)".contains(".\(Self.name(state))"))
    }
  }

  @Test func documentsGoTheWaysThatItShowsAndNoOthers() async throws {
    var gone: Set<Arrow> = []
    for states in try await lives() {
      for (from, to) in zip(states, states.dropFirst()) where from != to {
        gone.insert(Arrow(from: from, to: to))
      }
    }
    let shown = try diagram()
    #expect(gone.subtracting(shown) == [])
    #expect(shown.subtracting(gone) == [])
  }

  // MARK: - Lives

  private func states(_ stream: AsyncStream<DocumentSyncState>) async -> [String] {
    var names: [String] = []
    for await state in stream { names.append(Self.name(state)) }
    return names
  }

  /// Synchronizes with a delegate that decides. It fails if that stops or leaves.
  private func synchronize(
    _ manager: DocumentSyncManager, _ decision: SyncQuestion.Decision
  ) async throws {
    manager.setDelegate(Answering(decision))
    let isOver = [.stop, .leave].contains(decision)
    do {
      try await manager.synchronize()
      #expect(!isOver)
    } catch let error as SyncError {
      #expect(isOver, "\(error)")
    }
  }

  private func delete(_ fleet: TestFleet) async throws {
    try await ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
      .deleteDocument("main", by: .random())
  }

  /// Deletes the document, and has device 0 create it again.
  private func replace(_ fleet: TestFleet) async throws {
    try await delete(fleet)
    try await synchronize(fleet[0], .create)
  }

  /// What happens to device 1, and what it then decides.
  private func life(
    _ body: (TestFleet, DocumentSyncManager) async throws -> Void
  ) async throws -> [String] {
    let fleet = try await TestFleet(2)
    try await fleet.settle()
    let stream = fleet[1].states
    try await body(fleet, fleet[1])
    try await fleet[1].close()
    return await states(stream)
  }

  private func lives() async throws -> [[String]] {
    var lives = try await registrations()
    for decision in [SyncQuestion.Decision.create, .leave] {
      lives.append(
        try await life { fleet, manager in
          try await delete(fleet)
          try await synchronize(manager, .stop)
          try await synchronize(manager, decision)
        })
    }
    for decision in [SyncQuestion.Decision.merge, .leave] {
      lives.append(
        try await life { fleet, manager in
          try await replace(fleet)
          try await synchronize(manager, .stop)
          try await synchronize(manager, decision)
        })
    }
    for decision in [SyncQuestion.Decision.rejoin, .leave] {
      lives.append(
        try await life { fleet, manager in
          try await fleet[0].removeClient(manager.binding.client)
          try await synchronize(manager, .stop)
          try await synchronize(manager, decision)
        })
    }
    lives.append(try await life { _, manager in try await manager.leave() })
    lives.append(
      try await life { fleet, manager in
        try await fleet[0].removeClient(manager.binding.client)
        try await synchronize(manager, .stop)
        try await delete(fleet)
        try await synchronize(manager, .stop)
        try await synchronize(fleet[0], .create)
        try await synchronize(manager, .stop)
        try await delete(fleet)
        try await synchronize(manager, .stop)
      })
    lives.append(
      try await life { fleet, manager in
        try await fleet[0].removeClient(manager.binding.client)
        try await synchronize(manager, .stop)
        try await replace(fleet)
        try await synchronize(manager, .stop)
      })
    return lives
  }

  private func registrations() async throws -> [[String]] {
    let (scratch, world) = (try Scratch(), World(seed: 1))
    let directory = MemoryDirectory(seed: 1)
    let path = try scratch.makeNotes("a", rows: 1)
    var lives: [[String]] = []
    for decision in [SyncQuestion.Decision.stop, .create] {
      let events = SyncEvents()
      let stream = events.states()
      do {
        try await DocumentSyncManager.register(
          storeAt: path, directory: directory, document: "main",
          options: .init(
            delegate: Answering(decision), events: events, environment: world.environment)
        ).close()
      } catch {
        #expect(decision == .stop)
        events.finish()
      }
      lives.append(await states(stream))
    }
    let events = SyncEvents()
    let stream = events.states()
    try await DocumentSyncManager.open(
      storeAt: path, directory: directory,
      options: .init(events: events, environment: world.environment)
    ).close()
    lives.append(await states(stream))
    return lives
  }
}
