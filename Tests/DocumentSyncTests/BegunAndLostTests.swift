import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import Testing

/// What a device has begun and not completed ends by itself, whatever the others
/// have done meanwhile.
///
/// ```
/// DOCSYNC_EVERY_STEP=1 swift test --filter BegunAndLostTests
/// ```
///
/// strikes at every call with everything that another may do, before the call and
/// after it, and says at how many that was. With 4 in place of 1 it strikes at one
/// call in four. Without it, each of the others is run with one in five of the
/// calls or fewer, before it or after it.
@Suite struct BegunAndLostTests {
  /// What is begun, and struck.
  enum Begun: String, CaseIterable, CustomTestStringConvertible {
    case create, reset, recreate
    var testDescription: String { rawValue }
  }

  /// What another device does before it goes on. While a device creates a
  /// document, the other device first creates the same document, or joins it if
  /// it is there.
  enum Meanwhile: String, CaseIterable, CustomTestStringConvertible {
    case sync, reset, recreate, create, delete, remove, join, leave, upload, vacuum
    /// It retires the other members as absent, by commands.
    case retire
    /// A third device joins with rows of its own.
    case merge
    /// It leaves, and joins again.
    case rejoin
    /// Nothing at all; while a device creates a document there is no other.
    case nothing
    var testDescription: String { rawValue }

    /// What may refuse it, as things are.
    func refusals(_ begun: Begun) -> Set<SyncError.Code> {
      switch (begun, self) {
      case (_, .nothing), (_, .delete): []
      case (_, .create): [.documentExists]
      case (.create, _): []
      // The new generation is there, and its whole store is not.
      case (.reset, _), (.recreate, _): [.wholeStoreMissing]
      }
    }

    /// Whether it is refused wherever the other is struck: a document that is
    /// there is not created once more.
    func isAlwaysRefused(_ begun: Begun) -> Bool { self == .create && begun != .recreate }
  }

  /// Takes part, whatever has become of the document.
  private static let takingPart = Answering { question in
    let wanted: [SyncQuestion.Decision] = [.merge, .rejoin, .create]
    return wanted.first(where: question.possibleDecisions.contains) ?? .stop
  }

  /// Devices of which the first is struck at a call, and the second acts then.
  private struct Pair {
    let scratch: Scratch
    let memory: MemoryDirectory
    let faulty: FaultyDirectory
    let environment: SyncEnvironment
    /// The second device, while it takes part.
    private var other: DocumentSyncManager?
    /// Whether it can neither create the document nor join it as things are.
    private(set) var otherWaits = false
    /// Devices that have joined since.
    private var third: [DocumentSyncManager] = []
    private var wanted: Set<String> = []
    private var path: String { scratch.store("struck") }
    private let begun: Begun

    /// Brings both to where the one begins; says whether it was struck.
    init?(_ begun: Begun, atCall call: Int, _ effect: FaultyDirectory.Effect) async throws {
      self.begun = begun
      scratch = try Scratch()
      memory = MemoryDirectory(seed: UInt64(call))
      faulty = FaultyDirectory(memory.view(seed: 3))
      environment = World(seed: UInt64(call)).environment
      let strike = FaultyDirectory.Fault(effect, occurrence: call)
      wanted = ["typed=1"]
      if begun == .create {
        _ = try scratch.makeNotes("struck", rows: 0)
        try put("typed", "1", at: path)
        faulty.script(strike)
        _ = await failure { try await create(at: path).close() }
      } else {
        let other = try await DocumentSyncManager.create(
          storeAt: scratch.makeNotes("other", rows: 2), directory: memory, document: "main",
          options: .init(
            client: "other", delegate: BegunAndLostTests.takingPart, environment: environment))
        self.other = other
        let struck = try await DocumentSyncManager.join(
          storeAt: path, directory: faulty,
          options: .init(client: "struck", environment: environment))
        try struck.put("shared", "1")
        try await struck.synchronize()
        try await other.synchronize()
        try other.put("of the other", "1")
        try struck.put("typed", "1")
        wanted.formUnion(["shared=1", "of the other=1", "seed-0=body 0", "seed-1=body 1"])
        if begun == .recreate { try await delete() }
        struck.setDelegate(Answering(.create))
        faulty.script(strike)
        _ = await failure {
          if begun == .reset { try await struck.reset() } else { try await struck.synchronize() }
        }
        try await struck.close()
        try put("later", "1", at: path)
        wanted.insert("later=1")
      }
      guard !faulty.firedFaults.isEmpty else { return nil }
      faulty.restart()
    }

    private func put(_ id: String, _ body: String, at path: String) throws {
      let queue = try DatabaseQueue(path: path)
      try queue.write {
        try $0.execute(sql: "INSERT INTO notes VALUES (?, ?)", arguments: [id, body])
      }
      try queue.close()
    }

    private func create(at path: String) async throws -> DocumentSyncManager {
      try await DocumentSyncManager.create(
        storeAt: path, directory: path.contains("struck") ? faulty : memory, document: "main",
        options: options("creator"))
    }

    private func join(
      _ name: String, existing: ExistingFile = .refuse
    ) async throws -> DocumentSyncManager {
      try await DocumentSyncManager.join(
        storeAt: scratch.store(name), directory: memory, document: "main", existing: existing,
        options: options(name))
    }

    private func options(_ client: String) -> DocumentSyncManager.Options {
      .init(client: client, delegate: BegunAndLostTests.takingPart, environment: environment)
    }

    private func delete() async throws {
      _ = try await ApplicationSyncManager(
        directory: memory, applicationIdentifier: nil, environment: environment
      ).deleteDocument("main", by: .random())
    }

    /// Lets the other device act; returns whether it could.
    mutating func act(_ meanwhile: Meanwhile, _ what: Comment) async throws -> Bool {
      if begun == .create, meanwhile != .nothing { try await takePart() }
      if otherWaits { return false }
      var error = await failure { try await acting(meanwhile) }
      let toSwitch: [SyncError.Code] = [.documentDeleted, .documentReplaced, .generationReplaced]
      if let first = error, toSwitch.contains(first.code) {
        // It synchronizes, is asked what to do, and tries again. All but the list of the
        // clients switch to a new generation by themselves.
        if first.code == .generationReplaced {
          #expect(first.operation == "list the clients", "\(what): \(first)")
        } else {
          #expect(begun == .recreate, "\(what): \(first)")
        }
        error = await failure {
          try await other?.synchronize()
          try await acting(meanwhile)
        }
      }
      guard let error else { return true }
      #expect(meanwhile.refusals(begun).contains(error.code), "\(what): \(error)")
      return false
    }

    /// Lets the other device create the document too, or join it if it is there.
    private mutating func takePart() async throws {
      let path = try scratch.makeNotes("other", rows: 0)
      try put("of the other", "1", at: path)
      wanted.insert("of the other=1")
      do {
        other = try await create(at: path)
      } catch let error as SyncError where error.code == .documentExists {
        do {
          try await joinAsOther()
        } catch let error as SyncError where error.code == .wholeStoreMissing {
          otherWaits = true
        }
      }
    }

    private mutating func joinAsOther() async throws {
      other = try await join("other", existing: .merge(prefer: .document))
      otherWaits = false
    }

    private mutating func acting(_ meanwhile: Meanwhile) async throws {
      switch meanwhile {
      case .nothing: break
      case .sync: try await other?.synchronize()
      case .reset: try await other?.reset()
      case .recreate:
        try await delete()
        try await other?.synchronize()
      case .create:
        third.append(try await create(at: makeThird()))
        wanted.insert("of the third=1")
      case .delete: try await delete()
      case .join:
        third.append(try await join("third"))
        try third[0].put("of the third", "1")
        wanted.insert("of the third=1")
        try await third[0].synchronize()
      case .merge:
        _ = try makeThird()
        third.append(try await join("third", existing: .merge(prefer: .document)))
        wanted.insert("of the third=1")
      case .leave, .rejoin:
        try await other?.leave()
        try await other?.close()
        other = nil
        if meanwhile == .rejoin { third.append(try await join("again")) }
      case .upload: _ = try await other?.uploadWholeStore()
      case .vacuum: _ = try await other?.vacuum()
      case .remove, .retire:
        guard let other else { return }
        let gone = try await other.listClients().filter {
          $0.client != other.binding.client && $0.status == .member
        }
        for client in gone {
          if meanwhile == .remove {
            try await other.removeClient(client.client)
          } else {
            try await other.retire(.client(client.client, .absent))
          }
        }
      }
    }

    /// A database with one row.
    private func makeThird() throws -> String {
      guard try !scratch.names().contains("third.db") else { return scratch.store("third") }
      let path = try scratch.makeNotes("third", rows: 0)
      try put("of the third", "1", at: path)
      return path
    }

    /// The error, if there is one.
    private func failure(_ body: () async throws -> Void) async -> SyncError? {
      do {
        try await body()
        return nil
      } catch {
        return SyncError.wrapping(error, operation: "test")
      }
    }

    /// Goes on until all rest in one generation with all that was typed.
    mutating func settle(
      _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
      var struck: DocumentSyncManager?
      var last: [String] = []
      for _ in 0..<8 {
        last = []
        var idle = true
        if struck == nil {
          do {
            struck = try await DocumentSyncManager.open(
              storeAt: path, directory: faulty,
              options: .init(delegate: BegunAndLostTests.takingPart, environment: environment))
          } catch let error as SyncError
            where [.notUnderSync, .setUpUnfinished].contains(error.code)
          {
            // It was struck before the store knew of it.
            do {
              struck = try await create(at: path)
            } catch let error as SyncError where error.code == .documentDeleted {
              // The database is as it was: the next call creates it once more.
              struck = try await create(at: path)
            } catch let error as SyncError where error.code == .documentExists {
              struck = try await DocumentSyncManager.join(
                storeAt: path, directory: faulty, existing: .merge(prefer: .document),
                options: .init(delegate: BegunAndLostTests.takingPart, environment: environment))
            }
          }
        }
        if otherWaits { try await joinAsOther() }
        for manager in [struck, other].compactMap(\.self) + third {
          do {
            let report = try await manager.synchronize()
            idle = idle && report.isIdle
            if !report.waiting.isEmpty { last.append("\(report.waiting)") }
          } catch let error as SyncError {
            last.append("\(error)")
          }
        }
        if last.isEmpty, idle { break }
      }
      #expect(last == [], what, sourceLocation: sourceLocation)
      let managers = [struck, other].compactMap(\.self) + third
      #expect(
        Set(managers.map(\.binding.generation)).count == 1, what, sourceLocation: sourceLocation)
      var digests: Set<StoreDigest> = []
      for manager in managers { digests.insert(try await manager.digest()) }
      #expect(digests.count == 1, what, sourceLocation: sourceLocation)
      for manager in managers {
        let lacks = wanted.subtracting(try manager.notes())
        #expect(lacks == [], what, sourceLocation: sourceLocation)
        try await manager.close()
      }
    }
  }

  /// One in how many of the calls everything is run with, if with so many.
  private static let everyStep = ProcessInfo.processInfo.environment["DOCSYNC_EVERY_STEP"].map {
    Int($0) ?? 1
  }

  @Test(arguments: Begun.allCases, Meanwhile.allCases)
  func endsByItself(_ begun: Begun, _ meanwhile: Meanwhile) async throws {
    // Each of the others strikes at calls of its own.
    let position = Meanwhile.allCases.firstIndex(of: meanwhile) ?? 0
    // More rarely those that came later, for the time that it takes.
    let usual = position < 6 ? (1 + position % 5, 5) : (1 + position, 15)
    let (first, step) = Self.everyStep.map { (1 + position % $0, $0) } ?? usual
    var (calls, acts) = (0, 0)
    sweep: for call in stride(from: first, to: 400, by: step) {
      let single: FaultyDirectory.Effect = call % 2 == 0 ? .stop : .stopAfterwards
      let all: [FaultyDirectory.Effect] = [.stop, .stopBeforeRename, .stopAfterwards]
      for effect in Self.everyStep != nil ? all : [single] {
        guard var pair = try await Pair(begun, atCall: call, effect) else { break sweep }
        let what: Comment = "\(begun) struck at call \(call), \(effect), \(meanwhile) meanwhile"
        do {
          if try await pair.act(meanwhile, what) { acts += 1 }
          try await pair.settle(what)
        } catch {
          Issue.record(error, what)
        }
      }
      calls += 1
    }
    #expect(calls > (Self.everyStep.map { 30 / $0 } ?? 1))
    #expect((acts == 0) == meanwhile.isAlwaysRefused(begun), "\(acts) of \(calls)")
    if Self.everyStep != nil {
      print("\(begun), \(meanwhile) meanwhile: struck at \(calls) calls, acted at \(acts)")
    }
  }
}
