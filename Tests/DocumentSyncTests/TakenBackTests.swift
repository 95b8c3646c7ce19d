import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import Testing

/// What a set-up that fails leaves behind, and how to go on.
@Suite struct TakenBackTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A database that is put under sync, and a directory that fails.
  private struct Device {
    let path: String
    let memory: MemoryDirectory
    let faulty: FaultyDirectory
    let before: [String]
    var environment: SyncEnvironment

    init(_ scratch: Scratch, _ name: String, seed: Int) throws {
      path = try scratch.makeNotes(name, rows: 2)
      before = try Scratch.contents(of: path)
      memory = MemoryDirectory(seed: UInt64(seed))
      let faulty = FaultyDirectory(memory.view(seed: 3))
      self.faulty = faulty
      environment = World(seed: UInt64(seed)).environment
      environment.openDirectory = { _ in faulty }
    }

    func create(
      in directory: (any SharedDirectory)? = nil, document: String = "main",
      excluding column: SQLName? = nil
    ) async throws -> DocumentSyncManager {
      var configuration = StoreConfiguration()
      if let column { configuration.excludedColumns["notes"] = [column] }
      return try await DocumentSyncManager.create(
        storeAt: path, directory: directory ?? faulty, document: document,
        options: .init(
          application: "notes", client: "a", configuration: configuration,
          environment: environment))
    }

    var isClean: Bool { get throws { try Scratch.contents(of: path) == before } }
  }

  /// Expects that another device can join.
  private func expectShared(
    _ manager: DocumentSyncManager, in directory: any SharedDirectory, _ name: String,
    _ what: Comment
  ) async throws {
    let joined = try await DocumentSyncManager.join(
      storeAt: scratch.store(name), directory: directory,
      document: manager.binding.documentIdentifier,
      options: .init(client: "b", environment: World(seed: 77).environment))
    #expect(try joined.notes() == ["seed-0=body 0", "seed-1=body 1"], what)
    try await joined.close()
    try await manager.synchronize()
    try await manager.close()
  }

  @Test(arguments: [FaultyDirectory.Effect.fail(.notWritable), .failAfterwards(.noSpace)])
  func aSetUpThatFailsOnceIsTakenBack(effect: FaultyDirectory.Effect) async throws {
    var (clean, left, call) = (0, 0, 0)
    while true {
      call += 1
      let device = try Device(scratch, "\(call)", seed: call)
      device.faulty.script(FaultyDirectory.Fault(effect, occurrence: call))
      let what: Comment = "\(effect) at call \(call)"
      var failure: SyncError?
      do {
        try await device.create().close()
      } catch let error as SyncError {
        failure = error
      }
      guard !device.faulty.firedFaults.isEmpty else { break }
      if let failure, try device.isClean {
        #expect(device.memory.items.isEmpty, what)
        #expect(!failure.remedy.actions.contains(.leaveAbandoning), what)
        clean += 1
      } else if let failure {
        // Other devices can join by now.
        #expect(failure.remedy.actions == [.create, .leaveAbandoning], what)
        #expect(device.memory.items.keys.contains { $0.name.hasSuffix(".store") }, what)
        left += 1
      }
      if failure == nil { continue }
      try await expectShared(
        try await device.create(), in: device.memory, "joined-\(call)", what)
    }
    #expect(clean > 15 && left > 2, "\(clean) taken back, \(left) left, \(call) calls")
  }

  /// How to go on after a set-up that was interrupted.
  enum Next: CaseIterable {
    case same, otherOptions, otherDocument, otherDirectory, abandon
  }

  @Test(arguments: Next.allCases)
  func aSetUpThatIsInterruptedIsCompletedReplacedOrEnded(next: Next) async throws {
    var (completed, replaced, refused, call) = (0, 0, 0, 0)
    while true {
      call += 1
      let device = try Device(scratch, "\(call)", seed: call)
      device.faulty.script(
        FaultyDirectory.Fault(call % 2 == 0 ? .stop : .stopAfterwards, occurrence: call))
      do {
        try await device.create().close()
      } catch is SyncError {
        // The process was killed.
      }
      guard !device.faulty.firedFaults.isEmpty else { break }
      device.faulty.restart()
      let what: Comment = "\(next) after a stop at call \(call)"
      let isUnderSync = try DocumentSyncManager.isUnderSync(storeAt: device.path)
      if isUnderSync, try await isComplete(device) { continue }
      let elsewhere = FolderDirectory(root: scratch.path + "/elsewhere-\(call)")
      try FileManager.default.createDirectory(
        atPath: elsewhere.root, withIntermediateDirectories: false)
      let manager: DocumentSyncManager
      let isJoinable = device.memory.items.keys.contains { $0.name.hasSuffix(".store") }
      if isUnderSync, isJoinable, next != .same, next != .abandon {
        // Other devices can join: nothing is replaced.
        let before = device.memory.items.keys
        let error = await syncError {
          switch next {
          case .otherOptions: _ = try await device.create(excluding: "body")
          case .otherDocument: _ = try await device.create(document: "another")
          default: _ = try await device.create(in: elsewhere)
          }
        }
        #expect(error?.code == .setUpUnfinished, what)
        #expect(error?.remedy.actions == [.create, .leaveAbandoning, .deleteDocument], what)
        #expect(device.memory.items.keys == before, what)
        try await expectShared(
          try await device.create(), in: device.memory, "joined-\(call)", what)
        refused += 1
        continue
      }
      switch next {
      case .same: manager = try await device.create()
      case .otherOptions: manager = try await device.create(excluding: "body")
      case .otherDocument: manager = try await device.create(document: "another")
      case .otherDirectory: manager = try await device.create(in: elsewhere)
      case .abandon:
        guard isUnderSync else { continue }
        let isRemoved = try await DocumentSyncManager.abandon(
          storeAt: device.path, options: .init(environment: device.environment))
        #expect(try device.isClean, what)
        #expect(isRemoved != isJoinable, what)
        // Another device may use the application.
        let isEmpty = device.memory.items.keys.allSatisfy { path in
          path.components.count == 1
            && (path.name.hasPrefix("application.") || path.name == "README.txt")
        }
        #expect(isRemoved == isEmpty, what)
        replaced += 1
        continue
      }
      switch manager.resumption {
      case .completed: completed += 1
      case .replaced: replaced += 1
      case nil: #expect(!isUnderSync, what)
      }
      let directory: any SharedDirectory = next == .otherDirectory ? elsewhere : device.memory
      if next == .otherOptions {
        #expect(manager.store.configuration.excludedColumns == ["notes": ["body"]], what)
        try await manager.synchronize()
        try await manager.close()
      } else {
        try await expectShared(manager, in: directory, "joined-\(call)", what)
      }
    }
    #expect(next == .same ? completed > 10 : replaced > 10, "\(completed), \(replaced), \(call)")
    #expect(next == .same || completed == 0)
    #expect((refused > 0) == (next != .same && next != .abandon), "\(refused)")
  }

  /// Whether the store was set up before it was stopped.
  private func isComplete(_ device: Device) async throws -> Bool {
    do {
      try await DocumentSyncManager.open(
        storeAt: device.path, directory: device.faulty,
        options: .init(environment: device.environment)
      ).close()
      return true
    } catch let error as SyncError where error.code == .setUpUnfinished {
      #expect(error.remedy.actions == [.create, .leaveAbandoning])
      return false
    }
  }

  /// Leaves a set-up behind that was interrupted when others could join.
  private func interrupted(_ name: String) async throws -> Device {
    let device = try Device(scratch, name, seed: 5)
    device.faulty.script(
      FaultyDirectory.Fault(.stopAfterwards, on: .upload, pathPart: ".store"))
    _ = await syncError { _ = try await device.create() }
    device.faulty.restart()
    return device
  }

  @Test func aSetUpWhoseDocumentOthersHaveJoinedIsNotReplaced() async throws {
    let device = try await interrupted("a")
    let joined = try await DocumentSyncManager.join(
      storeAt: scratch.store("b"), directory: device.memory,
      options: .init(client: "b", environment: World(seed: 8).environment))
    let error = await syncError { _ = try await device.create(document: "another") }
    #expect(error?.code == .setUpUnfinished)
    #expect(error?.message.contains("other devices have joined") == true)
    let manager = try await device.create()
    try await manager.synchronize()
    try joined.put("of b", "1")
    try await joined.synchronize()
    try await manager.synchronize()
    #expect(try manager.notes() == joined.notes())
  }

  @Test func aSetUpWhoseDocumentWasDeletedMeanwhileBeginsItAgain() async throws {
    let device = try await interrupted("a")
    _ = try await ApplicationSyncManager(directory: device.memory).deleteDocument(
      "main", by: .random())
    try await expectShared(try await device.create(), in: device.memory, "b", "begun again")
  }

  /// Whichever of the two generations would count by its key.
  @Test(arguments: 1...6)
  func aSetUpBesideADocumentThatWasCreatedAndDeletedMeanwhileBeginsAgain(seed: Int) async throws {
    let device = try Device(scratch, "a", seed: seed)
    device.faulty.script(FaultyDirectory.Fault(.stop, on: .publish, pathPart: "generation."))
    _ = await syncError { _ = try await device.create() }
    device.faulty.restart()
    try await DocumentSyncManager.create(
      storeAt: scratch.makeNotes("other"), directory: device.memory, document: "main",
      options: .init(
        application: "notes", client: "other",
        environment: World(seed: UInt64(100 + seed)).environment)
    ).close()
    _ = try await ApplicationSyncManager(directory: device.memory).deleteDocument(
      "main", by: .random())
    try await expectShared(try await device.create(), in: device.memory, "b", "seed \(seed)")
  }

  @Test func aDirectoryThatIsEmptyWhereASetUpWasBegunIsNotTakenForAnother() async throws {
    let device = try await interrupted("a")
    let files = device.memory.items
    for path in files.keys.sorted(by: { $0.components.count > $1.components.count }) {
      device.memory.take(path)
    }
    for (document, column) in [("main", nil), ("main", "body"), ("another", nil)]
      as [(String, SQLName?)]
    {
      let error = await syncError {
        _ = try await device.create(document: document, excluding: column)
      }
      #expect(error?.code == .rootMissing)
      #expect(error?.remedy.actions == [.create, .leaveAbandoning])
      #expect(device.memory.items.isEmpty)
    }
    // The files may be somewhere else.
    #expect(
      try await !DocumentSyncManager.abandon(
        storeAt: device.path, options: .init(environment: device.environment)))
    try await expectShared(try await device.create(), in: device.memory, "b", "after abandoning")
  }

  @Test func aStoreWhoseBookkeepingIsDamagedIsAbandoned() async throws {
    for (number, damage) in [
      "DELETE FROM docsync_meta", "DROP TABLE docsync_meta",
      "UPDATE docsync_meta SET value = x'7b' WHERE key = 'binding'", "DROP TABLE docsync_record",
    ].enumerated() {
      let device = try Device(scratch, "\(number)", seed: number)
      try await device.create().close()
      let queue = try DatabaseQueue(path: device.path)
      try await queue.write { try $0.execute(sql: damage) }
      try queue.close()
      try await DocumentSyncManager.abandon(
        storeAt: device.path, options: .init(environment: device.environment))
      #expect(try device.isClean, "\(damage)")
    }
  }

  @Test func filesOfOthersAreFoundInADirectoryThatIsNotOurs() async throws {
    let device = try Device(scratch, "a", seed: 1)
    let manager = ApplicationSyncManager(directory: device.memory)
    for name in [".stfolder", "desktop.ini", ".DS_Store", "lost+found", ".dropbox.cache"] {
      device.memory.put(.file([1]), at: try #require(RelativePath.root.appending(name)))
    }
    #expect(try await manager.findOtherFiles() == [])
    try await device.create().close()
    let thesis = try #require(RelativePath.root.appending("thesis.txt"))
    device.memory.put(.file([1]), at: thesis)
    #expect(try await manager.findOtherFiles() == [])
    device.memory.take(thesis)
    // What the removal of everything leaves is ours.
    _ = try await manager.removeAll(by: .random())
    #expect(!device.memory.items.keys.allSatisfy { $0.components.count == 1 })
    #expect(try await manager.findOtherFiles() == [])
    device.memory.put(.file([1]), at: thesis)
    let taxes = try #require(DirectoryLayout.documents.appending("Taxes.pdf"))
    device.memory.put(.file([1]), at: taxes)
    device.memory.put(.file([1]), at: DirectoryLayout.readme)
    #expect(try await manager.findOtherFiles() == ["Documents", "README.txt", "thesis.txt"])
  }

  @Test func aStoreInTheSharedDirectoryIsRefused() async throws {
    let folder = scratch.path + "/folder"
    try FileManager.default.createDirectory(
      atPath: folder + "/shared/below", withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: scratch.path + "/link.db", withDestinationPath: folder + "/shared/below/inside.db")
    let directory = FolderDirectory(root: folder + "/shared")
    let inside = folder + "/shared/below/inside.db"
    let outside = try scratch.makeNotes("outside")
    try FileManager.default.copyItem(atPath: outside, toPath: inside)
    for path in [inside, folder + "/shared/../shared/below/inside.db", scratch.path + "/link.db"] {
      let error = await syncError {
        _ = try await DocumentSyncManager.create(
          storeAt: path, directory: directory, document: "main")
      }
      #expect(error?.code == .storeInDirectory)
      #expect(error?.classification == .refused)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder + "/shared") == ["below"])
    #expect(try !DocumentSyncManager.isUnderSync(storeAt: inside))
    // A folder whose name only begins in the same way is another one.
    let sibling = folder + "/shared-not.db"
    try FileManager.default.copyItem(atPath: outside, toPath: sibling)
    try await DocumentSyncManager.create(
      storeAt: sibling, directory: directory, document: "main"
    ).close()
    let error = await syncError {
      _ = try await DocumentSyncManager.join(
        storeAt: folder + "/shared/below/joined.db", directory: directory)
    }
    #expect(error?.code == .storeInDirectory)
  }
}
