import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import Testing

@testable import DocumentSync

/// The power goes while a device publishes.
@Suite struct PowerLossTests {
  /// What the first device does when the power goes.
  enum Publication: String, CaseIterable, Sendable {
    /// It publishes change sets, a command and a marker.
    case synchronization
    /// It makes a segment of its change sets, which are published.
    case segment
    /// It uploads its whole store; its change sets are published.
    case wholeStore
  }

  /// Two devices on a disk that loses power while the first publishes.
  private struct Struck {
    let scratch: Scratch
    let environment: SyncEnvironment
    let publication: Publication
    let disk: PowerLossDisk
    private let root: String
    /// What the second device shows besides.
    private static let wanted = ["seed-0=body 0", "x=1", "y=2", "z=3"]

    init(seed: UInt64, for publication: Publication = .synchronization) async throws {
      scratch = try Scratch()
      let world = World(seed: seed)
      var environment = world.environment
      if publication == .segment {
        environment.thresholds.looseCount = 2
        environment.thresholds.tailCount = 0
      }
      self.environment = environment
      self.publication = publication
      root = scratch.path + "/shared"
      try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: false)
      disk = PowerLossDisk(root: root)
      var managers: [DocumentSyncManager] = []
      managers.append(
        try await DocumentSyncManager.create(
          storeAt: scratch.makeNotes("0", rows: 1), directory: disk.directory, document: "main",
          options: .init(client: "0", environment: environment)))
      managers.append(
        try await DocumentSyncManager.join(
          storeAt: scratch.store("1"), directory: disk.directory,
          options: .init(client: "1", environment: environment)))
      try managers[1].put("z", "3")
      for manager in [managers[1], managers[0], managers[1]] { try await manager.synchronize() }
      disk.settle()
      try managers[0].put("x", "1")
      _ = try managers[0].store.seal()
      try managers[0].put("y", "2")
      try await managers[0].sendCommand(name: "c", payload: [1])
      if publication != .synchronization {
        for manager in managers + managers { try await manager.synchronize() }
        disk.settle()
      }
      for manager in managers { try await manager.close() }
    }

    func open(
      _ index: Int, _ directory: any SharedDirectory, in folder: String? = nil
    ) async throws -> DocumentSyncManager {
      try await DocumentSyncManager.open(
        storeAt: (folder ?? scratch.path) + "/\(index).db", directory: directory,
        options: .init(environment: environment))
    }

    /// Lets the first device publish.
    func publish(_ manager: DocumentSyncManager) async throws {
      switch publication {
      case .synchronization: try await manager.synchronize()
      case .segment: _ = try await manager.vacuum()
      case .wholeStore: _ = try await manager.uploadWholeStore()
      }
    }

    /// The files that a device has noted as published, and their hashes.
    func noted(_ manager: DocumentSyncManager) throws -> [RelativePath: ContentHash] {
      let (binding, records) = (manager.binding, StoreRecords(manager.store))
      let layout = DirectoryLayout.Document(binding.document).generation(binding.generation)
      var noted: [RelativePath: ContentHash] = [:]
      for sealed in try manager.store.sealedChangeSets() where sealed.isPublished {
        let name = ChangeSetName(number: sealed.number, hash: HashFragment(sealed.hash))
        noted[layout.path(of: name, by: binding.client)] = sealed.hash
      }
      for segment in try records.segments() where segment.client == binding.client {
        noted[layout.path(of: segment.name, by: binding.client)] = segment.hash
      }
      for store in try records.wholeStores() where store.client == binding.client {
        let name = WholeStoreName(number: store.number, hash: HashFragment(store.hash))
        noted[layout.path(of: name, by: binding.client)] = store.hash
      }
      return noted
    }

    /// What was published, whole.
    func published() throws -> [RelativePath: [UInt8]] {
      var found: [RelativePath: [UInt8]] = [:]
      func look(_ folder: RelativePath) throws {
        for entry in try disk.directory.list(folder) {
          guard let path = folder.appending(entry.name) else { continue }
          if entry.kind == .folder {
            try look(path)
          } else if path.components.first != "Temporary" {
            found[path] = try disk.directory.read(path, limit: .max)
          }
        }
      }
      try look(.root)
      return found
    }

    /// Lets both devices go on with what the power cut has left, and expects
    /// that plain synchronizations mend everything.
    func expectMended(
      _ remains: [RelativePath: [UInt8]], isApplied: Bool = false, _ what: Comment,
      sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
      let folder = scratch.path + "/copy"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
      for name in try scratch.names() where name.contains(".db") {
        try FileManager.default.copyItem(
          atPath: scratch.path + "/" + name, toPath: folder + "/" + name)
      }
      let published = try published()
      let memory = MemoryDirectory(seed: 1)
      for (path, bytes) in remains { memory.put(.file(bytes), at: path) }
      var managers: [DocumentSyncManager] = []
      for index in [0, 1] { managers.append(try await open(index, memory, in: folder)) }
      let noted = try noted(managers[0])
      var waiting: [SyncReport.Wait] = []
      // If no device waits for its files, a device checks its own folder in one of
      // five synchronizations.
      let least = isApplied ? 5 : 0
      for round in 1...12 {
        var idle = true
        waiting = []
        for manager in managers {
          let report = try await manager.synchronize()
          idle = idle && report.isIdle
          waiting += report.waiting
        }
        if round >= least, idle, waiting.isEmpty, try managers[1].notes() == Self.wanted { break }
      }
      #expect(waiting == [], what, sourceLocation: sourceLocation)
      for manager in managers {
        #expect(try manager.notes() == Self.wanted, what, sourceLocation: sourceLocation)
      }
      #expect(
        try managers[0].store.digest() == managers[1].store.digest(), what,
        sourceLocation: sourceLocation)
      #expect(
        try await managers[1].pendingCommands().map(\.name) == ["c"], what,
        sourceLocation: sourceLocation)
      for manager in managers {
        #expect(manager.binding.ancestor == nil, what, sourceLocation: sourceLocation)
      }
      for case (let path, .file(let bytes)) in memory.items {
        guard let before = published[path] else { continue }
        // No device misses such a file until its folder is checked in turn.
        guard path.components.contains("SyncChanges") || path.components.contains("SyncCommands")
        else { continue }
        // A segment that no marker names is made again when the next one is due.
        if path.name.hasSuffix(".segment"), noted[path] == nil { continue }
        // No device waits for files that the other has applied: only lengths are compared.
        let isMended = isApplied ? bytes.count == before.count : bytes == before
        #expect(isMended, "\(what), \(path)", sourceLocation: sourceLocation)
      }
      if publication != .synchronization {
        let joined = try await DocumentSyncManager.join(
          storeAt: folder + "/2.db", directory: memory,
          options: .init(client: "2", environment: environment))
        #expect(try joined.notes() == Self.wanted, what, sourceLocation: sourceLocation)
        managers.append(joined)
      }
      for manager in managers { try await manager.close() }
      try FileManager.default.removeItem(atPath: folder)
    }
  }

  /// Nothing that was noted as published is lost, wherever the power goes.
  @Test(arguments: PowerLossDisk.Medium.allCases, Publication.allCases)
  func whatWasPublishedSurvives(
    on medium: PowerLossDisk.Medium, _ publication: Publication
  ) async throws {
    var step = 0
    var notedCount = 0
    while true {
      step += 1
      let struck = try await Struck(seed: UInt64(step), for: publication)
      struck.disk.cutPower(beforeStep: step)
      let first = try await struck.open(0, struck.disk.directory)
      var isOver = false
      let before = try struck.noted(first).count
      do {
        try await struck.publish(first)
        isOver = true
      } catch {
        #expect(error is SyncError)
      }
      let noted = try struck.noted(first)
      notedCount = noted.count - before
      try await first.close()
      for (rate, seed) in [(0.0, 1), (0.5, 2), (0.5, 3)] as [(Double, UInt64)] {
        let remains = struck.disk.remains(on: medium, rate: rate, seed: seed)
        for (path, hash) in noted {
          #expect(
            remains[path].map { ContentHash(of: $0) } == hash, "\(medium), step \(step): \(path)")
        }
        // At each step with nothing that was not flushed, and with one part of it.
        if rate == 0 || seed == 2 + UInt64(step % 2) {
          try await struck.expectMended(
            remains, isApplied: publication != .synchronization,
            "\(medium), \(publication), step \(step), \(rate)/\(seed)")
        }
      }
      if isOver { break }
    }
    #expect(step > (publication == .synchronization ? 30 : 15))
    #expect(notedCount > 0)
  }

  /// What a device does when the power goes, and has to do once more.
  enum Beginning: String, CaseIterable, Sendable {
    case creation, joining
  }

  /// A creation that is cut is completed by repeating it, and so is joining; what
  /// the directory has lost then is written again. Only a file of the application
  /// that is torn has to be removed by hand: it may be one that is still arriving.
  @Test(arguments: PowerLossDisk.Medium.allCases, Beginning.allCases)
  func whatIsBegunIsCompletedByRepeatingIt(
    on medium: PowerLossDisk.Medium, _ beginning: Beginning
  ) async throws {
    var step = 0
    var isOver = false
    var tornCount = 0
    while !isOver {
      step += 1
      let scratch = try Scratch()
      let environment = World(seed: UInt64(step)).environment
      let root = scratch.path + "/shared"
      try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: false)
      let disk = PowerLossDisk(root: root)
      func create(_ path: String, _ directory: any SharedDirectory) async throws
        -> DocumentSyncManager
      {
        try await DocumentSyncManager.create(
          storeAt: path, directory: directory, document: "main",
          options: .init(client: "0", environment: environment))
      }
      func join(_ path: String, _ directory: any SharedDirectory) async throws
        -> DocumentSyncManager
      {
        try await DocumentSyncManager.join(
          storeAt: path, directory: directory, document: "main",
          options: .init(client: "1", environment: environment))
      }
      func open(_ path: String, _ directory: any SharedDirectory) async throws
        -> DocumentSyncManager
      {
        try await DocumentSyncManager.open(
          storeAt: path, directory: directory, options: .init(environment: environment))
      }
      _ = try scratch.makeNotes("0", rows: 1)
      if beginning == .joining {
        let first = try await create(scratch.store("0"), disk.directory)
        try first.put("x", "1")
        try await first.synchronize()
        try await first.close()
        disk.settle()
      }
      disk.cutPower(beforeStep: step)
      do {
        let begun =
          beginning == .creation
          ? try await create(scratch.store("0"), disk.directory)
          : try await join(scratch.store("1"), disk.directory)
        try await begun.close()
        isOver = true
      } catch {
        #expect(error is SyncError)
      }
      // Each step on one medium with nothing that was not flushed, and on the other with a part.
      let rate = (step % 2 == 0) == (medium == .vfat) ? 0 : 0.5
      let what: Comment = "\(medium), \(beginning), step \(step), rate \(rate)"
      let folder = scratch.path + "/copy"
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: false)
      for name in try scratch.names() where name.contains(".db") {
        try FileManager.default.copyItem(
          atPath: scratch.path + "/" + name, toPath: folder + "/" + name)
      }
      let memory = MemoryDirectory(seed: 1)
      var torn: RelativePath?
      for (path, bytes) in disk.remains(on: medium, rate: rate, seed: UInt64(step)) {
        memory.put(.file(bytes), at: path)
        if path.name.hasPrefix("application."),
          try disk.directory.read(path, limit: .max) != bytes
        {
          torn = path
        }
      }
      var managers: [DocumentSyncManager] = []
      do {
        managers.append(try await open(folder + "/0.db", memory))
      } catch let error as SyncError
        where [.notUnderSync, .setUpUnfinished].contains(error.code)
      {
        if let torn {
          tornCount += 1
          let error = await syncError { _ = try await create(folder + "/0.db", memory) }
          #expect(error?.code == .malformedFile, what)
          try memory.remove(torn)
        }
        managers.append(try await create(folder + "/0.db", memory))
      }
      try await managers[0].synchronize()
      do {
        managers.append(try await open(folder + "/1.db", memory))
      } catch let error as SyncError where error.code == .storeMissing {
        managers.append(try await join(folder + "/1.db", memory))
      }
      try managers[1].put("y", "2")
      for _ in 0..<6 { for manager in managers { try await manager.synchronize() } }
      let wanted = ["seed-0=body 0"] + (beginning == .joining ? ["x=1"] : []) + ["y=2"]
      for manager in managers { #expect(try manager.notes() == wanted, what) }
      #expect(try managers[0].store.digest() == managers[1].store.digest(), what)
      for manager in managers { try await manager.close() }
      try FileManager.default.removeItem(atPath: folder)
    }
    #expect(step > (beginning == .creation ? 50 : 12))
    // Between the renaming of that file and its last flush.
    #expect(tornCount == (medium == .vfat && beginning == .creation ? 1 : 0))
  }

  /// A disk that says it has flushed and has not: both devices believe that
  /// everything is there.
  @Test(arguments: PowerLossDisk.Medium.allCases, [1, 2, 3, 4] as [UInt64])
  func whatADiskHasLostThatLiesIsMended(
    on medium: PowerLossDisk.Medium, seed: UInt64
  ) async throws {
    let struck = try await Struck(seed: seed)
    for index in seed % 2 == 0 ? [0] : [0, 1, 0] {
      let manager = try await struck.open(index, struck.disk.directory)
      try await manager.synchronize()
      try await manager.close()
    }
    for (turn, rate) in [0.0, 0.3, 0.7, 0.9].enumerated() {
      let remains = struck.disk.remains(
        on: medium, keepsFlushes: false, rate: rate, seed: seed * 10 + UInt64(turn))
      try await struck.expectMended(
        remains, isApplied: seed % 2 == 1, "\(medium), rate \(rate), seed \(seed)")
    }
  }

  /// The journal of a transaction that was committed comes back: on a disk that
  /// lies, since the folder is flushed before anything is published.
  @Test func aStoreWhoseJournalComesBackLosesNothing() async throws {
    var call = 0
    while true {
      call += 1
      let fleet = try await TestFleet(2, seed: UInt64(call))
      try fleet[1].put("of 1", "1")
      try await fleet.settle()
      try fleet[1].put("new of 1", "1")
      try await fleet[1].synchronize()
      try fleet[0].put("x", "1")
      try await fleet[0].close()
      let (path, copy) = (fleet.scratch.store("0"), fleet.scratch.path + "/before")
      let hooked = HookedDirectory(fleet.memory, beforeCall: call) {
        do {
          try FileManager.default.copyItem(atPath: path, toPath: copy)
        } catch {
          Issue.record(error)
        }
      }
      var manager = try await DocumentSyncManager.open(
        storeAt: path, directory: hooked, options: .init(environment: fleet.environment))
      try await manager.synchronize()
      try await manager.close()
      guard hooked.wasCalled else { break }
      try FileManager.default.removeItem(atPath: path)
      try FileManager.default.moveItem(atPath: copy, toPath: path)
      manager = try await DocumentSyncManager.open(
        storeAt: path, directory: fleet.memory, options: .init(environment: fleet.environment))
      try manager.put("later", "1")
      for _ in 0..<4 { for device in [manager, fleet[1]] { try await device.synchronize() } }
      #expect(try manager.store.digest().visible == fleet[1].store.digest().visible)
      for note in ["of 1=1", "new of 1=1", "x=1", "later=1"] {
        #expect(try fleet[1].notes().contains(note), "call \(call): \(note)")
      }
      try await manager.close()
    }
    #expect(call > 8)
  }
}
