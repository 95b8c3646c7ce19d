import GRDB
import SyncModel
import Synchronization

/// A runner of statements together with the application's triggers that follow changes from other
/// devices. It skips the triggers that fail: a trigger of one device must not hold up a change that
/// all devices make.
///
/// The copy of a trigger calls `docsync_runs(n)` before everything else. The call records which
/// trigger began last, and tells whether the trigger is skipped.
final class AppTriggerRuns: Sendable {
  /// A trigger of the application that writes to tables of this device.
  struct Trigger: Hashable, Sendable {
    var name: SQLName
    var table: SQLName
  }

  /// A trigger that failed, with the message of SQLite.
  struct Failure {
    var trigger: Trigger
    var message: String
  }

  private struct State {
    var triggers: [Trigger] = []
    var unusable: [Failure] = []
    /// The numbers of the triggers that are skipped.
    var passedOver: Set<Int> = []
    /// The number of the trigger that began last.
    var started: Int?
    /// The triggers during which SQLite ended the transaction: they stay when
    /// the others are read again.
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

  // MARK: - The triggers

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

  // MARK: - Triggers that end the transaction

  /// The number of triggers that have ended a transaction.
  var endedCount: Int { state.withLock { $0.ended.count } }

  /// Lets all of these triggers run again: the cause may be gone.
  func forgetEnded() { state.withLock { $0.ended = [] } }

  /// Returns how a trigger ended a transaction; `nil` if it did not.
  func ending(of trigger: Trigger) -> Failure? {
    state.withLock { $0.ended }.first { $0.trigger == trigger }
  }

  /// Notes the trigger that ran when SQLite ended the transaction, if it can be
  /// the cause.
  func noteEnd(_ cause: DatabaseError) {
    guard Self.canBeOfTrigger(cause) || cause.resultCode == .SQLITE_CORRUPT else { return }
    state.withLock { state in
      guard let number = state.started, number < state.triggers.count else { return }
      state.ended.append(
        Failure(trigger: state.triggers[number], message: cause.message ?? "\(cause)"))
    }
  }

  /// Returns a table's triggers that do not compile here, or have ended a transaction.
  func unusable(of table: SQLName) -> [Failure] {
    state.withLock { $0.unusable }.filter { $0.trigger.table.folded == table.folded }
  }

  // MARK: - Running

  /// Runs a statement that writes one row. Returns the triggers that were
  /// skipped; throws the error of the statement itself.
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
        // The trigger that began last has failed or, if that trigger runs
        // before the row is written, the statement itself. The statement then
        // fails again, until no trigger is left to blame.
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

  /// Returns whether a trigger may have made a statement that writes many rows fail.
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
  /// Runs a statement that writes one row for a change from another device, with the application's
  /// triggers except those that fail.
  func write(_ statement: SQLStatement) throws {
    for failure in try appTriggers.run(statement) { warn(of: failure) }
  }

  /// Warns of a table's triggers that cannot run, where changes for the table
  /// have arrived.
  func warnOfUnusableTriggers(of table: TableSchema) {
    for failure in appTriggers.unusable(of: table.name) { warn(of: failure) }
  }

  private func warn(of failure: AppTriggerRuns.Failure) {
    let trigger = failure.trigger
    var warning = SyncWarning(
      .triggerFailed, table: trigger.table,
      message: "the trigger \(trigger.name) of \(trigger.table) failed while changes of other "
        + "devices were applied. They were applied without it: \(failure.message)")
    warning.names = [trigger.name]
    conflicts.warn(warning)
  }
}
