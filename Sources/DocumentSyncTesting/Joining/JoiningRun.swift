import DocumentSync
import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// One joining, from the filling of both databases to its checks.
struct JoiningRun {
  private let plan: JoiningPlan
  private let folder: String
  private let memory: MemoryDirectory
  private let clock: FleetClock

  static func carryOut(_ plan: JoiningPlan) async throws -> Joining.Report {
    let inMemory = "/dev/shm"
    let parent =
      FileManager.default.isWritableFile(atPath: inMemory) ? inMemory : NSTemporaryDirectory()
    let folder =
      parent + "/docsync-joining-\(ProcessInfo.processInfo.processIdentifier)-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    var report = Joining.Report(seed: plan.seed)
    do {
      let run = JoiningRun(
        plan: plan, folder: folder, memory: MemoryDirectory(seed: plan.seed),
        clock: FleetClock(seed: plan.seed, time: 1_700_000_000_000))
      try await run.run(&report)
    } catch let failure as FleetFailure {
      report.failure = failure
    } catch {
      report.failure = FleetFailure(throwing: error)
    }
    try FileManager.default.removeItem(atPath: folder)
    return report
  }

  private func run(_ report: inout Joining.Report) async throws {
    let paths = (document: folder + "/document.db", former: folder + "/former.db")
    try fill(paths.document, paths.former)
    let document = try await create(paths.document, in: memory)
    try edit(paths.document, by: plan.edits, "e")
    _ = try await document.synchronize()
    if plan.isCreatedTwice {
      let managers = try await createTwice(document, paths.former)
      let before = try before(managers.standing.store.path, managers.joining.store.path)
      _ = try await managers.joining.synchronize()
      try await check(managers.joining, managers.standing, before, &report)
    } else {
      try edit(paths.former, by: plan.formerEdits, "f", plan.careless)
      let before = try before(paths.document, paths.former)
      let joined = try await DocumentSyncManager.join(
        storeAt: paths.former, directory: memory.view(seed: ~plan.seed),
        existing: .merge(prefer: plan.prefersDocument ? .document : .local),
        options: .init(client: "joined", environment: environment))
      try await check(joined, document, before, &report)
    }
  }

  private func create(
    _ path: String, in directory: MemoryDirectory
  ) async throws -> DocumentSyncManager {
    try await DocumentSyncManager.create(
      storeAt: path, directory: directory.view(seed: plan.seed), document: "joining",
      options: .init(configuration: plan.schema.configuration, environment: environment))
  }

  /// Creates the document a second time in a directory of its own, whose files then arrive in the
  /// shared one. Returns the device whose document stands, and the other one.
  private func createTwice(
    _ document: DocumentSyncManager, _ path: String
  ) async throws -> (standing: DocumentSyncManager, joining: DocumentSyncManager) {
    let other = MemoryDirectory(seed: ~plan.seed)
    let second = try await create(path, in: other)
    try edit(path, by: plan.formerEdits, "f")
    _ = try await second.synchronize()
    try await second.close()
    for (item, content) in other.items where memory.items[item] == nil {
      memory.put(content, at: item)
    }
    let moved = try await DocumentSyncManager.open(
      storeAt: path, directory: memory.view(seed: ~plan.seed),
      options: .init(environment: environment))
    return moved.binding.generation < document.binding.generation
      ? (moved, document) : (document, moved)
  }

  private func before(_ document: String, _ former: String) throws -> JoiningCheck.Before {
    try JoiningCheck.Before(
      document: FleetSQLite(document), former: FleetSQLite(former), plan.schema)
  }

  /// Checks the store that joined, and both devices when they have synchronized.
  private func check(
    _ joined: DocumentSyncManager, _ document: DocumentSyncManager, _ before: JoiningCheck.Before,
    _ report: inout Joining.Report
  ) async throws {
    report.rows = before.former.rows.count
    let check = try JoiningCheck(
      before, FleetSQLite(joined.store.path), try await joined.conflicts())
    report.matchedRows = check.matchedRows
    report.refusedRows = check.refused.count
    report.references = try check.run()

    for manager in [joined, document, joined] { _ = try await manager.synchronize() }
    if try joined.store.digest() != document.store.digest() {
      throw FleetFailure(.visible, "the device that joined differs from the other one")
    }
    for manager in [joined, document] {
      let findings = try await manager.verify().findings.filter { $0.severity != .note }
      guard findings.isEmpty else {
        throw FleetFailure(
          .bookkeeping, findings.map(\.description).joined(separator: "\n  "))
      }
      try await manager.close()
    }
  }

  private var environment: SyncEnvironment {
    var environment = SyncEnvironment()
    environment.store.schemaPause = .zero
    environment.now = { [clock] in
      clock.time += 1
      return clock.time
    }
    environment.store.ignoreRealTime()
    environment.random = { [clock] in clock.word() }
    environment.retries = .none
    environment.parallelReads = 1
    environment.store.places = nil
    return environment
  }

  /// Fills the document's database, and makes the other one.
  private func fill(_ document: String, _ former: String) throws {
    let program = try FleetSQLite(document)
    try plan.schema.make(in: program, filledBy: plan.start)
    try TokenRows.give("d", in: program, plan.schema)
    program.close()
    if plan.isCopy {
      try FileManager.default.copyItem(atPath: document, toPath: former)
    } else {
      try plan.schema.make(in: FleetSQLite(former), filledBy: [])
    }
  }

  /// Runs the edits of programs, and gives new tokens to the rows that they have changed.
  private func edit(
    _ path: String, by statements: [String], _ letter: String, _ careless: [String] = []
  ) throws {
    let program = try FleetSQLite(path)
    try program.run("PRAGMA foreign_keys = ON")
    let before = try TokenRows(of: program, plan.schema)
    for statement in statements { try plan.schema.fill(program, by: statement) }
    try program.run("PRAGMA foreign_keys = OFF")
    for statement in careless { try program.run(statement) }
    try TokenRows.give(letter, in: program, plan.schema, since: before)
  }
}
