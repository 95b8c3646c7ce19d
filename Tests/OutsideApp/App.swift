// An app outside of this package: it sees what is public, and imports DocumentSync alone.
// `.ci/outside-app` compiles and runs it.
import DocumentSync
import Foundation

/// Takes the other side's value where it is asked, and joins texts by the policy `resolve:joined`.
struct Delegate: SyncDelegate {
  func decide(_ question: SyncQuestion) async -> SyncQuestion.Decision {
    switch question {
    case .documentDeleted(_, let deletion, _) where deletion.date != nil: .create
    case .databaseInTheWay: .merge
    default: question.usualDecision
    }
  }

  func answer(_ conflict: Conflict) async throws -> Conflict.Answer? {
    guard conflict.kind == .cell, let mine = conflict.local.date, let theirs = conflict.remote.date
    else { return nil }
    return mine > theirs ? .local : .remote
  }

  func resolve(_ values: Conflict.Values, by name: String) throws -> Value? {
    guard name == "joined", case .text(let mine) = values.local,
      case .text(let theirs) = values.remote
    else { return nil }
    return .text(mine + theirs)
  }
}

/// A directory of the app's own, which counts what it publishes.
final class CountingFolder: SharedDirectory, @unchecked Sendable {
  private let base: FolderDirectory
  private let lock = NSLock()
  private var count = 0

  init(_ path: String) { base = FolderDirectory(root: path) }

  var published: Int { lock.withLock { count } }
  var location: String { base.location }

  func check(for access: DirectoryAccess) throws { try base.check(for: access) }

  func list(_ folder: RelativePath) throws -> [DirectoryEntry] {
    try base.list(folder).map { DirectoryEntry(name: $0.name, kind: $0.kind) }
  }

  func read(_ path: RelativePath, limit: Int) throws -> [UInt8] {
    guard path.isPublishable else {
      throw DirectoryError(.invalidPath, .read, path: path.description, detail: "an odd name")
    }
    return try base.read(path, limit: limit)
  }

  func download(
    _ path: RelativePath, to localFile: String, limit: Int, progress: TransferProgress
  ) throws {
    try base.download(path, to: localFile, limit: limit, progress: progress)
  }

  func publish(_ content: [UInt8], at path: RelativePath, by client: ClientIdentifier) throws {
    try base.publish(content, at: path, by: client)
    lock.withLock { count += 1 }
  }

  func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier,
    progress: TransferProgress
  ) throws {
    try base.upload(localFile: localFile, to: path, by: client, progress: progress)
  }

  func remove(_ path: RelativePath) throws { try base.remove(path) }
  func removeLeftovers(of client: ClientIdentifier) throws {
    try base.removeLeftovers(of: client)
  }
}

/// A failure of this check.
struct Unexpected: Error {
  let text: String
  init(_ text: String) { self.text = text }
}

func expect(_ condition: Bool, _ text: String) throws {
  if !condition { throw Unexpected(text) }
}

/// Runs SQL in a database by the shell, as another program.
func edit(_ path: String, _ sql: String) throws {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
  process.arguments = ["sqlite3", path, sql]
  try process.run()
  process.waitUntilExit()
  try expect(process.terminationStatus == 0, "sqlite3 failed: \(sql)")
}

@main
struct App {
  static func main() async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
      "outside-app-\(UUID().uuidString)")
    let shared = folder.appendingPathComponent("Shared").path
    try FileManager.default.createDirectory(atPath: shared, withIntermediateDirectories: true)
    defer {
      do {
        try FileManager.default.removeItem(at: folder)
      } catch {
        print("The folder stays: \(error)")
      }
    }
    let paths = ["laptop.db", "phone.db"].map { folder.appendingPathComponent($0).path }
    try edit(paths[0], "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
    try edit(paths[0], "INSERT INTO notes VALUES (1, 'Buy milk')")
    try await use(paths, shared)
    try await runTutorial(in: folder.appendingPathComponent("Tutorial"))
    try await Pages(folder: folder.appendingPathComponent("Pages")).run()
    print("The app could do all that it wanted.")
  }

  /// The tutorial of the DocC catalogue says what its devices show at the end.
  static func runTutorial(in folder: URL) async throws {
    let shown = try await tryNotes(in: folder)
    let notes = shown.map { $0.sorted() }
    try expect(notes == [["Buy milk", "Call Ada"], ["Buy milk", "Call Ada"]], "\(shown)")
  }

  static func use(_ paths: [String], _ shared: String) async throws {
    let directory = CountingFolder(shared)
    // What would be synchronized.
    let plan = try DocumentSyncManager.plan(storeAt: paths[0])
    try expect(plan.tables.map(\.name) == ["notes"] && plan.likelyReferences.isEmpty, "plan")
    try expect(try !DocumentSyncManager.isUnderSync(storeAt: paths[0]), "under sync")

    // Registering creates the document here, and joins it there.
    var configuration = StoreConfiguration()
    configuration.columnMergeTypes["notes"] = ["text": .latestWins]
    var environment = SyncEnvironment()
    environment.decisionTimeLimit = .seconds(10)
    environment.retireAfter = .seconds(90 * 24 * 60 * 60)
    let options = DocumentSyncManager.Options(
      application: "notes", descriptions: SyncDescriptions(client: "laptop", clientInfo: ["os": 1]),
      configuration: configuration, delegate: Delegate(), environment: environment)
    let laptop = try await DocumentSyncManager.register(
      storeAt: paths[0], directory: directory, document: "notes", options: options)
    let phone = try await DocumentSyncManager.join(
      storeAt: paths[1], directory: directory, document: "notes",
      options: .init(application: "notes", client: "phone", delegate: Delegate()))
    try expect(directory.published > 0, "published")
    try expect(laptop.state == .registered && laptop.path == paths[0], "state")

    // Both edit the same cell, and the phone asks.
    try await phone.setPolicies { $0.document = .ask }
    try edit(paths[0], "UPDATE notes SET text = 'Buy oat milk'")
    try edit(paths[1], "UPDATE notes SET text = 'Buy rye bread'")
    try await laptop.synchronize()
    let report = try await phone.synchronize { progress in
      if let fraction = progress.fraction, fraction > 1 { print("impossible") }
    }
    try expect(report.conflicts == 1 && report.openConflicts == 0, "\(report)")
    let conflicts = try await phone.conflicts()
    try expect(conflicts.count == 1 && conflicts[0].status == .answered, "\(conflicts)")
    try expect(abs(conflicts[0].date.timeIntervalSinceNow) < 600, "\(conflicts[0].date)")
    try expect(try await phone.openConflictCount() == 0, "open conflicts")
    try await phone.restoreConflict(conflicts[0].number)

    // An operation on the app's own queue, with one that depends on it.
    let queue = OperationQueue()
    let synchronize = phone.makeSynchronizeOperation()
    let follow = laptop.makeSynchronizeOperation()
    follow.addDependency(synchronize)
    await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
      follow.completionBlock = { done.resume() }
      queue.addOperations([follow, synchronize], waitUntilFinished: false)
    }
    try expect(try synchronize.result?.get().sent.isEmpty == false, "the first operation")
    try expect(try follow.result?.get().applied.isEmpty == false, "the second operation")

    // What is there.
    let digests = [try await laptop.digest(), try await phone.digest()]
    try expect(digests[0].visible == digests[1].visible, "\(digests)")
    let status = try await phone.status()
    try expect(status.unsealedEdits == 0 && status.waiting.isEmpty, "\(status)")
    let history = try await phone.history(limit: 10)
    try expect(history.contains { $0.client == phone.binding.client }, "\(history)")
    try expect(try await phone.parkedRows().isEmpty, "parked rows")
    try expect(try await !phone.removalLoss().needsConfirmation, "loss")
    let clients = try await laptop.listClients()
    try expect(clients.map(\.description).sorted() == ["laptop", "phone"], "\(clients)")
    try expect(clients.allSatisfy { $0.registrationDate != nil && $0.status == .member }, "clients")
    let application = ApplicationSyncManager(directory: directory, applicationIdentifier: "notes")
    let documents = try await application.listDocuments(measuring: true)
    try expect(documents.first?.contents?.lastSyncDate != nil, "\(documents)")
    try expect(try await laptop.verify().severity == nil, "verify")

    // Errors have codes.
    do {
      _ = try await DocumentSyncManager.create(
        storeAt: paths[0], directory: directory, document: "other")
      throw Unexpected("created twice")
    } catch let error as SyncError {
      try expect(error.code == .alreadyUnderSync, "\(error)")
    }

    // Commands, events, and the end.
    try await laptop.sendCommand(name: "refresh")
    let events = phone.events.stream()
    try await laptop.synchronize()
    try await phone.synchronize()
    let commands = try await phone.pendingCommands()
    try expect(commands.map(\.name) == ["refresh"], "\(commands)")
    try await phone.acknowledgeCommand(commands[0])
    let left = try await phone.leave()
    try expect(left.hasToldOthers, "\(left)")
    try await phone.close()
    var names: [String] = []
    for await event in events {
      if case .commandReceived(let command) = event { names.append(command.name) }
    }
    try expect(names == ["refresh"], "\(names)")
    try await application.deleteDocument("notes", by: .random(), described: "the app")
    try await laptop.close()
  }
}
