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
/// after it, and says at how many that was. Without it, each of the others is run
/// with one in five of the calls or fewer, before it or after it.
@Suite struct BegunAndLostTests {
  /// What is begun, and struck.
  enum Begun: String, CaseIterable, CustomTestStringConvertible {
    case create, reset, recreate
    var testDescription: String { rawValue }
  }

  /// What another device does before it goes on.
  enum Meanwhile: String, CaseIterable, CustomTestStringConvertible {
    case sync, reset, recreate, create, delete, remove, join, leave, upload, vacuum
    var testDescription: String { rawValue }
  }

  /// Takes part, whatever has become of the document.
  private static let takingPart = Answering { question in
    let wanted: [SyncQuestion.Decision] = [.merge, .rejoin, .create]
    return wanted.first(where: question.possibleDecisions.contains) ?? .stop
  }

  /// Two devices; the one is struck at a call, and the other acts then.
  private struct Pair {
    let scratch: Scratch
    let memory: MemoryDirectory
    let faulty: FaultyDirectory
    let environment: SyncEnvironment
    var other: DocumentSyncManager?
    var wanted: Set<String> = []
    private var path: String { scratch.store("struck") }

    /// Brings both to where the one begins; says whether it was struck.
    init?(_ begun: Begun, atCall call: Int, _ effect: FaultyDirectory.Effect) async throws {
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
        options: .init(
          client: "creator", delegate: BegunAndLostTests.takingPart, environment: environment))
    }

    func delete() async throws {
      _ = try await ApplicationSyncManager(
        directory: memory, applicationIdentifier: nil, environment: environment
      ).deleteDocument("main", by: .random())
    }

    /// What the other one does; what cannot be done as things are is left out.
    mutating func act(_ meanwhile: Meanwhile) async throws {
      let error = await failure { try await acting(meanwhile) }
      #expect(error?.code != .internalFault, "\(String(describing: error))")
    }

    private mutating func acting(_ meanwhile: Meanwhile) async throws {
      switch meanwhile {
      case .sync: try await other?.synchronize()
      case .reset: try await other?.reset()
      case .recreate:
        try await delete()
        try await other?.synchronize()
      case .create:
        _ = try scratch.makeNotes("third", rows: 0)
        try put("of the third", "1", at: scratch.store("third"))
        let third = try await create(at: scratch.store("third"))
        wanted.insert("of the third=1")
        if other == nil { other = third } else { try await third.close() }
      case .delete: try await delete()
      case .join:
        let third = try await DocumentSyncManager.join(
          storeAt: scratch.store("third"), directory: memory, document: "main",
          options: .init(
            client: "third", delegate: BegunAndLostTests.takingPart, environment: environment))
        try third.put("of the third", "1")
        try await third.synchronize()
        wanted.insert("of the third=1")
        try await third.close()
      case .leave:
        guard let leaving = other else { return }
        try await leaving.leave()
        try await leaving.close()
        other = nil
      case .upload: _ = try await other?.uploadWholeStore()
      case .vacuum: _ = try await other?.vacuum()
      case .remove:
        guard let other else { return }
        let gone = try await other.listClients().filter {
          $0.client != other.binding.client && $0.status == .member
        }
        for client in gone { try await other.removeClient(client.client) }
      }
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

    /// Goes on until both rest in one generation with all that was typed.
    func settle(_ what: Comment, sourceLocation: SourceLocation = #_sourceLocation) async throws {
      var struck: DocumentSyncManager?
      var last: [String] = []
      for _ in 0..<6 {
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
        for manager in [struck, other].compactMap(\.self) {
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
      let managers = [struck, other].compactMap(\.self)
      #expect(
        Set(managers.map(\.binding.generation)).count == 1, what, sourceLocation: sourceLocation)
      for manager in managers {
        let lacks = wanted.subtracting(try manager.notes())
        #expect(lacks == [], what, sourceLocation: sourceLocation)
        try await manager.close()
      }
    }
  }

  /// Whether everything is run with every call.
  private static let isEveryStep =
    ProcessInfo.processInfo.environment["DOCSYNC_EVERY_STEP"] != nil

  @Test(arguments: Begun.allCases, Meanwhile.allCases)
  func endsByItself(_ begun: Begun, _ meanwhile: Meanwhile) async throws {
    // Each of the others strikes at calls of its own.
    let position = Meanwhile.allCases.firstIndex(of: meanwhile) ?? 0
    // More rarely those that came later, for the time that it takes.
    let usual = position < 6 ? (1 + position % 5, 5) : (1 + position, 15)
    let (first, step) = Self.isEveryStep ? (1, 1) : usual
    var calls = 0
    sweep: for call in stride(from: first, to: 400, by: step) {
      let single: FaultyDirectory.Effect = call % 2 == 0 ? .stop : .stopAfterwards
      let all: [FaultyDirectory.Effect] = [.stop, .stopBeforeRename, .stopAfterwards]
      for effect in Self.isEveryStep ? all : [single] {
        guard var pair = try await Pair(begun, atCall: call, effect) else { break sweep }
        try await pair.act(meanwhile)
        try await pair.settle("\(begun) struck at call \(call), \(effect), \(meanwhile) meanwhile")
      }
      calls += 1
    }
    #expect(calls > (Self.isEveryStep ? 30 : 1))
    if Self.isEveryStep { print("\(begun), \(meanwhile) meanwhile: struck at \(calls) calls") }
  }
}
