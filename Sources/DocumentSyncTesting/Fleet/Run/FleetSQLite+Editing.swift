import CSQLite
import SyncModel

/// The result of a statement, as a program sees it.
struct StatementOutcome: Hashable, Sendable {
  var sql: String
  /// SQLite's message if it refuses the statement; `nil` if it accepts it.
  var error: String?
  /// The rows of RETURNING, or of a query.
  var rows: [[Value]] = []
  /// `changes()` and `last_insert_rowid()` afterwards.
  var changes: Int64 = 0
  var lastRowid: Int64 = 0
  /// Whether a transaction is open afterwards.
  var isInTransaction = false
}

extension FleetSQLite {
  /// Runs statements as a program does, several of them in one transaction. Skips refused
  /// statements.
  func edit(_ edit: FleetEdit) throws -> EditOutcome {
    try run("PRAGMA foreign_keys = \(edit.hasForeignKeys ? "ON" : "OFF")")
    try run("PRAGMA recursive_triggers = \(edit.hasRecursiveTriggers ? "ON" : "OFF")")
    try forgetCounts()
    var result = EditOutcome()
    if edit.statements.count > 1 { result.add(carryOut("BEGIN")) }
    for statement in edit.statements {
      let outcome = carryOut(statement)
      result.add(outcome)
      if outcome.error == nil { result.accepted.append(statement) }
    }
    guard edit.statements.count > 1 else { return result }
    guard isInTransaction else {
      result.accepted = []
      return result
    }
    let end = carryOut("COMMIT")
    result.add(end)
    if end.error != nil {
      // A deferred foreign key refuses to commit. The program gives up.
      result.add(carryOut("ROLLBACK"))
      result.accepted = []
    }
    return result
  }

  /// Runs one statement, or several, and records the result as a program sees it.
  private func carryOut(_ sql: String) -> StatementOutcome {
    var outcome = StatementOutcome(sql: sql)
    do {
      outcome.rows = try rowsOnce(sql)
    } catch let refusal as Refusal {
      outcome.error = "\(refusal.extendedCode) \(refusal.description)"
    } catch {
      outcome.error = "\(error)"
    }
    // After an insertion that a foreign key refuses, SQLite returns the rowid that the row would
    // have had if the table has any trigger.
    if outcome.error != nil { forgetRowid() }
    (outcome.changes, outcome.lastRowid) = counts
    outcome.isInTransaction = isInTransaction
    return outcome
  }
}

/// The results of a program's statements, in order.
struct EditOutcome: Hashable, Sendable {
  /// The statements that took effect.
  var accepted: [String] = []
  var statements: [StatementOutcome] = []

  fileprivate mutating func add(_ outcome: StatementOutcome) { statements.append(outcome) }

  /// Whether SQLite refused a statement because triggers called one another too often.
  var hasReachedTriggerDepth: Bool {
    statements.contains { $0.error?.contains("too many levels of trigger recursion") ?? false }
  }

  /// Returns whether the first statement whose result differs in another database is refused in
  /// both, here by an expression of an index, which our triggers evaluate earlier than SQLite does.
  func isRefusedByAnExpression(whereAlsoRefusedIn expected: EditOutcome) -> Bool {
    zip(statements, expected.statements).first { $0 != $1 }.map { own, other in
      own.error?.contains("integer overflow") ?? false && other.error != nil
    } ?? false
  }

  /// Returns a line for each statement whose result in another database differs.
  func differences(from expected: EditOutcome) -> [String] {
    zip(statements, expected.statements).compactMap { own, other in
      own == other ? nil : "\(own.sql)\n    gives \(own.text)\n    instead of \(other.text)"
    }
  }
}

extension StatementOutcome {
  fileprivate var text: String {
    if let error { return "“\(error)”" }
    let values = rows.map { "(" + $0.map(\.sqlDescription).joined(separator: ", ") + ")" }
    return "\(changes) changes, rowid \(lastRowid)"
      + (isInTransaction ? ", in a transaction" : "")
      + (values.isEmpty ? "" : ", \(values.joined(separator: " "))")
  }
}
