import CSQLite
import SyncModel

/// The result of one statement, as a program sees it.
struct StatementOutcome: Hashable, Sendable {
  var sql: String
  /// SQLite's message when it refuses; `nil` if the statement was accepted.
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
  /// Runs statements as one program does, several in one transaction. The
  /// program skips refused statements.
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
      // A deferred foreign key; the program gives up.
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
    // After an insertion that a foreign key refuses, any trigger makes SQLite
    // give the rowid that it would have had.
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

  /// Whether a statement was refused since triggers called one another too often.
  var hasReachedTriggerDepth: Bool {
    statements.contains { $0.error?.contains("too many levels of trigger recursion") ?? false }
  }

  /// Whether the first statement with another result in another database is refused there, too, and
  /// here by an expression of an index: our triggers evaluate it earlier than SQLite does.
  func isRefusedByAnExpression(whereAlsoRefusedIn expected: EditOutcome) -> Bool {
    zip(statements, expected.statements).first { $0 != $1 }.map { own, other in
      own.error?.contains("integer overflow") ?? false && other.error != nil
    } ?? false
  }

  /// The differences from the results in another database, a line for each statement.
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
