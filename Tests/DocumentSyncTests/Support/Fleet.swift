import DocumentSync
import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import Testing

/// Several devices that share one document through one directory in memory.
struct TestFleet {
  let scratch: Scratch
  let memory: MemoryDirectory
  let world: World
  let environment: SyncEnvironment
  /// One for each device; device 0 created the document.
  private(set) var managers: [DocumentSyncManager] = []
  /// The directory as each device reaches it.
  private(set) var directories: [FaultyDirectory] = []
  /// Counts what each device asks of the directory.
  private(set) var counters: [CountingDirectory] = []

  /// - Parameter change: Changes the environment that all devices have.
  init(
    _ count: Int, rows: Int = 2, seed: UInt64 = 1, keptChangeSetBytes: Int? = nil,
    configuration: StoreConfiguration = StoreConfiguration(),
    change: (inout SyncEnvironment) -> Void = { _ in }
  ) async throws {
    scratch = try Scratch()
    memory = MemoryDirectory(seed: seed)
    world = World(seed: seed)
    var environment = world.environment
    if let keptChangeSetBytes { environment.keptChangeSetBytes = keptChangeSetBytes }
    change(&environment)
    self.environment = environment
    for index in 0..<count {
      let counter = CountingDirectory(memory.view(seed: seed &+ UInt64(index)))
      let faulty = FaultyDirectory(counter)
      counters.append(counter)
      directories.append(faulty)
      managers.append(
        index == 0
          ? try await DocumentSyncManager.create(
            storeAt: try scratch.makeNotes("0", rows: rows), directory: faulty, document: "main",
            options: .init(
              client: "0", configuration: configuration, environment: environment))
          : try await DocumentSyncManager.join(
            storeAt: scratch.store("\(index)"), directory: faulty,
            options: .init(client: "\(index)", environment: environment)))
    }
  }

  subscript(index: Int) -> DocumentSyncManager { managers[index] }

  /// Goes on with another manager of a device's store.
  mutating func replace(_ index: Int, with manager: DocumentSyncManager) {
    managers[index] = manager
  }

  /// Closes a device's store and opens it again, as a new process would.
  mutating func reopen(_ index: Int) async throws {
    try await managers[index].close()
    directories[index].restart()
    managers[index] = try await DocumentSyncManager.open(
      storeAt: scratch.store("\(index)"), directory: directories[index],
      options: .init(environment: environment))
  }

  /// Synchronizes all devices in turn until no device has anything to do.
  @discardableResult
  func settle(rounds: Int = 12) async throws -> Int {
    for round in 1...rounds {
      var idle = true
      for manager in managers {
        let report = try await manager.synchronize()
        idle = idle && report.isIdle
      }
      if idle { return round }
    }
    Issue.record("not at rest after \(rounds) rounds")
    return rounds
  }

  /// Whether all show the same, checked through SQL and through the digest.
  func expectEqual(sourceLocation: SourceLocation = #_sourceLocation) throws {
    let notes = try managers.map { try $0.notes() }
    let digests = try managers.map { try $0.store.digest().visible }
    #expect(Set(notes).count == 1, sourceLocation: sourceLocation)
    #expect(Set(digests).count == 1, sourceLocation: sourceLocation)
  }

  /// Paths in the directory whose description matches.
  func paths(where matches: (RelativePath) -> Bool) -> [RelativePath] {
    memory.items.compactMap { path, item in
      if case .file = item, matches(path) { path } else { nil }
    }.sorted()
  }

  /// The files of one device's change sets.
  func changeSets(of index: Int) -> [RelativePath] {
    let client = managers[index].binding.client.description
    return paths { $0.components.contains("SyncChanges") && $0.components.contains(client) }
      .sorted { number($0) < number($1) }
  }

  /// The markers of one device.
  func markers(of index: Int) -> [RelativePath] { markers(of: managers[index].binding.client) }

  /// The markers of a client.
  func markers(of client: ClientIdentifier) -> [RelativePath] {
    paths { $0.components.contains("RecentSyncs") && $0.name.hasPrefix(client.description) }
  }

  private func number(_ path: RelativePath) -> Int {
    Int(path.name.split(separator: ".").first ?? "") ?? 0
  }
}

extension Scratch {
  /// Puts the database “0” under sync, and joins it as “1”.
  func share(
    through memory: MemoryDirectory, configuration: StoreConfiguration,
    _ environment: SyncEnvironment = World(seed: 1).environment
  ) async throws -> [DocumentSyncManager] {
    [
      try await .create(
        storeAt: store("0"), directory: memory, document: "main",
        options: .init(client: "0", configuration: configuration, environment: environment)),
      try await .join(
        storeAt: store("1"), directory: memory.view(seed: 2),
        options: .init(client: "1", environment: environment)),
    ]
  }
}

extension MemoryDirectory {
  /// The bytes of a file that has to be there.
  func bytes(at path: RelativePath) throws -> [UInt8] {
    guard case .file(let bytes)? = items[path] else { throw Missing(path: path) }
    return bytes
  }

  struct Missing: Error { var path: RelativePath }

  /// Copies the files that are in another directory and not here.
  func takeOver(_ items: [RelativePath: Item]) {
    let present = self.items
    for (path, item) in items where present[path] == nil {
      if case .file = item { put(item, at: path) }
    }
  }
}
