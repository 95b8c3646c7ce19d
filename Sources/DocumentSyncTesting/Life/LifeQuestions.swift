import DocumentSync
import Foundation
import SyncModel
import SyncStore
import Synchronization

/// Questions to a manager in the middle of the transactions of its synchronizations. They must be
/// answered at once, from the last committed state.
final class LifeQuestions: Sendable {
  private struct State {
    /// The manager that synchronizes; `nil` for none.
    var manager: DocumentSyncManager?
    /// How often it is still asked during this synchronization.
    var left = 0
    /// The schema version of SQLite at the end of the last synchronization: bookkeeping is in line with
    /// that schema. Otherwise a question would wait until it is.
    var schemaVersion: [Value]?
    var failure: FleetFailure?
  }

  private let state = Mutex(State())

  /// Runs a synchronization. Throws a failure if a question was not answered as it should be.
  func during<Output>(
    _ manager: DocumentSyncManager, _ synchronize: () async throws -> Output
  ) async throws -> Output {
    state.withLock { ($0.manager, $0.left) = (manager, 2) }
    defer { state.withLock { $0.manager = nil } }
    let output: Output
    do {
      output = try await synchronize()
    } catch {
      try end(nil)
      throw error
    }
    try end(Self.schemaVersion(try FleetSQLite(manager.path)))
    return output
  }

  private func end(_ schemaVersion: [Value]?) throws {
    let failure = state.withLock { state in
      state.schemaVersion = schemaVersion
      return state.failure
    }
    if let failure { throw failure }
  }

  private static func schemaVersion(_ program: FleetSQLite) throws -> [Value] {
    try program.rows("PRAGMA schema_version").flatMap(\.self)
  }

  /// Asks if the store is about to record a change set. Call it with every statement on the store.
  func pass(_ statement: String) {
    guard statement.hasPrefix("INSERT INTO docsync_history") else { return }
    let manager = state.withLock { state in
      state.left -= 1
      return state.left < 0 || state.schemaVersion == nil ? nil : state.manager
    }
    guard let manager else { return }
    let isDone = DispatchSemaphore(value: 0)
    Task.detached { [self] in
      do {
        try await ask(manager)
      } catch {
        note(error as? FleetFailure ?? FleetFailure(throwing: error, "a question: "))
      }
      isDone.signal()
    }
    if isDone.wait(timeout: .now() + 60) == .timedOut {
      note(FleetFailure(.unexplained, "a question waits for the synchronization"))
    }
  }

  private func note(_ failure: FleetFailure) {
    state.withLock { $0.failure = $0.failure ?? failure }
  }

  private func ask(_ manager: DocumentSyncManager) async throws {
    // It sees the last committed state, as any program does.
    let program = try FleetSQLite(manager.path)
    guard try Self.schemaVersion(program) == state.withLock({ $0.schemaVersion }) else { return }
    let history = try program.rows("SELECT number, hash FROM docsync_history ORDER BY seq DESC")
    let told = try await manager.history(limit: 10_000).map {
      [Value.integer(Int64($0.number)), .blob($0.hash.bytes)]
    }
    try check(told == history, "the history", told.count, history.count)
    let conflicts = try program.rows("SELECT number FROM docsync_conflict ORDER BY number DESC")
    let known = try await manager.conflicts().map { [Value.integer($0.number)] }
    try check(known == conflicts, "the conflicts", known.count, conflicts.count)
    let open = try program.rows("SELECT 1 FROM docsync_conflict WHERE status = 'open'").count
    let status = try await manager.status()
    try check(status.openConflicts == open, "the open questions", status.openConflicts, open)
    let places = try await manager.conflictPlaces()
    try check(places.inTable == conflicts.count, "places", places.inTable, conflicts.count)
    _ = try await manager.conflicts(before: nil, limit: 5)
    _ = try await (manager.policies(), manager.parkedRows(), manager.waits())
    _ = try await manager.pendingCommands()
  }

  private func check(
    _ isRight: Bool, _ what: String, _ told: some Any, _ committed: some Any
  ) throws {
    guard !isRight else { return }
    throw FleetFailure(
      .unexplained, "\(what) during a synchronization: \(told) instead of \(committed)")
  }
}
