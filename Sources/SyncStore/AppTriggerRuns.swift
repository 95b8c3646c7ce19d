import GRDB
import SyncModel
import Synchronization

/// Runs statements together with the application's triggers that follow
/// changes of others, and passes over those of them that fail: a change that
/// everybody has made must not be held up by what one device does beside it.
///
/// A trigger's copy asks `docsync_runs(n)` before everything else, so that it
/// is known which was the last to begin, and one can be left out.
final class AppTriggerRuns: Sendable {
  /// A trigger of the application that writes to tables of this device.
  struct Trigger: Hashable, Sendable {
    var name: SQLName
    var table: SQLName
  }

  /// A trigger that failed, and what SQLite said.
  struct Failure {
    var trigger: Trigger
    var message: String
  }

  private struct State {
    var triggers: [Trigger] = []
    var unusable: [Failure] = []
    /// Those that are left out.
    var passedOver: Set<Int> = []
    /// The last one that began.
    var started: Int?
    /// Those during which SQLite has ended the transaction: they stay when the
    /// others are read again.
    var ended: [Failure] = []
  }

  private let state = Mutex(State())

  static let function = "docsync_runs"

  func addFunction(to database: Database) {
    database.add(
      function: DatabaseFunction(Self.function, argumentCount: 1) { [self] values in
        guard let number = Int.fromDatabaseValue(values[0]) else { return false }
        return state.withLock { state in
          if state.passedOver.contains(number) { return false }
          state.started = number
          return true
        }
      })
  }

  // MARK: - Which there are

  func removeAll() {
    state.withLock { state in
      let ended = state.ended
      state = State()
      state.ended = ended
    }
  }

  /// The number for the next trigger.
  var nextNumber: Int { state.withLock { $0.triggers.count } }

  func add(_ trigger: Trigger) { state.withLock { $0.triggers.append(trigger) } }

  /// Notes a trigger that does not even compile here, for instance since it
  /// calls a function that only the application has.
  func addUnusable(_ failure: Failure) { state.withLock { $0.unusable.append(failure) } }

  // MARK: - Those that end the transaction

  /// How many have ended a transaction.
  var endedCount: Int { state.withLock { $0.ended.count } }

  /// Has all of them run again: what was wrong may be mended.
  func forgetEnded() { state.withLock { $0.ended = [] } }

  /// Whether a trigger has ended a transaction, and how.
  func ending(of trigger: Trigger) -> Failure? {
    state.withLock { $0.ended }.first { $0.trigger == trigger }
  }

  /// Notes the trigger that ran when SQLite ended the transaction, if that can
  /// be its doing.
  func noteEnd(_ cause: DatabaseError) {
    guard Self.canBeOfTrigger(cause) || cause.resultCode == .SQLITE_CORRUPT else { return }
    state.withLock { state in
      guard let number = state.started, number < state.triggers.count else { return }
      state.ended.append(
        Failure(trigger: state.triggers[number], message: cause.message ?? "\(cause)"))
    }
  }

  /// Those of a table that do not compile here, or have ended a transaction.
  func unusable(of table: SQLName) -> [Failure] {
    state.withLock { $0.unusable }.filter { $0.trigger.table.folded == table.folded }
  }

  // MARK: - Running

  /// Runs a statement that writes one row. Gives the triggers that were
  /// passed over; throws what the statement itself fails with.
  func run(_ statement: SQLStatement) throws -> [Failure] {
    guard state.withLock({ !$0.triggers.isEmpty }) else {
      try statement.run()
      return []
    }
    defer { state.withLock { $0.passedOver = [] } }
    var failures: [Failure] = []
    while true {
      state.withLock { $0.started = nil }
      do {
        try statement.run()
        return failures
      } catch let error as DatabaseError where Self.canBeOfTrigger(error) {
        // What failed can only be the last that began or, if that came before
        // the row, the statement itself: then nobody is left to blame.
        let blamed = state.withLock { state in
          state.started.map { number in
            state.passedOver.insert(number)
            return state.triggers[number]
          }
        }
        guard let blamed else { throw error }
        failures.append(Failure(trigger: blamed, message: error.message ?? "\(error)"))
      } catch let ended as TransactionEnded {
        noteEnd(ended.cause)
        throw ended
      }
    }
  }

  /// Whether a statement that writes many rows may have failed for a trigger.
  func canBeBlamed(for error: DatabaseError) -> Bool {
    state.withLock { !$0.triggers.isEmpty } && Self.canBeOfTrigger(error)
  }

  private static func canBeOfTrigger(_ error: DatabaseError) -> Bool {
    switch error.resultCode {
    case .SQLITE_CONSTRAINT, .SQLITE_ERROR, .SQLITE_MISMATCH, .SQLITE_TOOBIG: true
    // A full-text index that does not fit its table.
    default: error.extendedResultCode == .SQLITE_CORRUPT_VTAB
    }
  }
}

extension StoreSession {
  /// Runs a statement that writes one row as changes of others want it, and
  /// with it the application's triggers, as far as they do not fail.
  func write(_ statement: SQLStatement) throws {
    for failure in try appTriggers.run(statement) { warn(of: failure) }
  }

  /// Warns of triggers of a table that changes come for and that cannot be
  /// run.
  func warnOfUnusableTriggers(of table: TableSchema) {
    for failure in appTriggers.unusable(of: table.name) { warn(of: failure) }
  }

  private func warn(of failure: AppTriggerRuns.Failure) {
    let trigger = failure.trigger
    var warning = SyncWarning(
      .triggerFailed, table: trigger.table,
      message: "the trigger \(trigger.name) of \(trigger.table) failed for changes that came, "
        + "which were made without it: \(failure.message)")
    warning.names = [trigger.name]
    conflicts.warn(warning)
  }
}
