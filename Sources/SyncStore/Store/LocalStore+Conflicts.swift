import Foundation
import GRDB
import SyncModel

/// The conflict journal, and the decisions on conflicts.
///
/// Each method is one transaction of SQLite. Each may run during a synchronization: another process
/// may give an answer while the synchronization waits for it.
extension LocalStore {
  /// Returns the entries of the journal, the newest first.
  ///
  /// - Parameter onlyOpen: Whether to leave out conflicts that are decided.
  package func conflicts(onlyOpen: Bool = false) throws -> [Conflict] {
    try read { session in
      let names = ConflictNames(session: session)
      return try session.conflicts.journal.entries(onlyOpen ? "WHERE status = 'open'" : "", [])
        .map(names.conflict)
    }
  }

  /// Returns one entry of the journal. Throws `noSuchConflict`.
  package func conflict(_ number: Int64) throws -> Conflict {
    try read { session in
      try ConflictNames(session: session).conflict(entry(number, session))
    }
  }

  /// Returns the number of open questions.
  package func openConflictCount() throws -> Int {
    try read { try $0.conflicts.journal.openCount }
  }

  /// Returns a summary of the conflicts that the journal has dropped to stay within its bound.
  package func droppedConflicts() throws -> Conflict.Dropped {
    try read { try $0.conflicts.journal.summary().dropped }
  }

  // MARK: - Policies

  /// Returns the policies of this store.
  package func policies() throws -> SyncPolicies {
    try read { try SyncPolicies.read($0.database) }
  }

  /// Changes the policies, durably. Throws `badPolicy`, and changes
  /// nothing, if they name tables or columns that are not synchronized.
  package func setPolicies(_ change: (inout SyncPolicies) throws -> Void) throws {
    try write { session in
      // The log does not contain the values that earlier edits replaced.
      try seal(session, comparesRemade: false, checkCancellation: {})
      var policies = try SyncPolicies.read(session.database)
      try change(&policies)
      for (table, columns) in policies.columns {
        for column in columns.keys { try checkName(table, column, session) }
      }
      for table in policies.tables.keys { try checkName(table, nil, session) }
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      try session.records.write(SyncPolicies.record, to: Array(try encoder.encode(policies)))
    }
    forgetSchema()
    // Renews the triggers: policies determine what they log.
    try write { _ in }
  }

  private func checkName(_ table: SQLName, _ column: SQLName?, _ session: StoreSession) throws {
    guard let found = session.schema.table(named: table) else {
      throw StoreError(
        .badPolicy, path: path, message: "There is no synchronized table \(quoted(table)).",
        remedy: Remedy(
          "Name one of: "
            + session.schema.tables.map(\.name).sorted().joined(separator: ", ") + "."))
    }
    guard let column else { return }
    let names = found.cellPositions.map { found.columns[$0].name }
    guard !names.contains(where: { $0.folded == column.folded }) else { return }
    throw StoreError(
      .badPolicy, path: path,
      message: "\(quoted(found.name)) has no synchronized column \(quoted(column)) that could "
        + "be in conflict.",
      remedy: "Name one of: \(names.joined(separator: ", ")).")
  }

  // MARK: - Deciding

  /// Answers an open question by an ordinary edit, unless the chosen value is shown already. If
  /// columns belong together and the answer is one of the two sides, it answers the questions about
  /// the other columns too.
  ///
  /// Throws `noSuchConflict`, `conflictNotOpen` if it was decided before, and `editRefused`, with
  /// nothing changed, if a constraint refuses the edit.
  package func resolveConflict(_ number: Int64, by answer: Conflict.Answer) throws {
    try writeSealingPlain { session in
      let entry = try entry(number, session)
      guard entry.status == .open else {
        throw StoreError(
          .conflictNotOpen, path: path,
          message: "Conflict \(number) is already decided: it is \(entry.status.rawValue).",
          remedy: "Put back what lost with \(.restoreConflict(number)).")
      }
      switch answer {
      case .local: try put(.local, of: entry, as: .answered, session)
      case .remote: try put(.remote, of: entry, as: .answered, session)
      case .value(let value):
        try refusing(number) {
          guard let column = entry.column else {
            throw LocalEdits.Refusal(
              message: "The conflict is about a whole row; a single value cannot decide it.")
          }
          guard let table = session.schema.tables.first(where: { $0.id == entry.row.table }),
            column < table.columns.count
          else { throw LocalEdits.Refusal(message: "Its column does not exist any more.") }
          let logical = try session.meant(value, in: table.columns[column])
          try LocalEdits(session: session).set([(column, logical)], of: entry.row)
        }
        var entry = entry
        entry.outcome = .other
        entry.status = .answered
        try session.conflicts.journal.write(entry)
      }
    }
  }

  /// Restores the side that lost, by an ordinary edit: the value of a cell, with those of the
  /// columns that belong to it, or a row with all cells that are known.
  ///
  /// - Parameter side: The side to restore; `nil` for the one that lost. Required if neither is
  ///   shown.
  ///
  /// Throws `noSuchConflict`, `conflictNotOpen` if it is an open question or was restored, and
  /// `editRefused`, with nothing changed, if a constraint refuses the edit or nothing can be
  /// restored.
  package func restoreConflict(_ number: Int64, side: Conflict.Outcome? = nil) throws {
    try writeSealingPlain { session in
      let entry = try entry(number, session)
      switch entry.status {
      case .settled, .answered, .superseded: break
      case .open:
        throw StoreError(
          .conflictNotOpen, path: path, message: "Conflict \(number) is an open question.",
          remedy: "Answer it with \(.answerConflict(number)).")
      case .restored:
        throw StoreError(
          .conflictNotOpen, path: path, message: "Conflict \(number) has been restored already.",
          remedy: "Edit the row itself if it should be different.")
      }
      if side == nil, entry.outcome == .other {
        throw refused(
          number,
          LocalEdits.Refusal(message: "Neither side is shown now: name the side to restore."))
      }
      try put(
        side ?? (entry.outcome == .local ? .remote : .local), of: entry, as: .restored, session)
    }
  }

  /// Writes, and seals what was written if it contains plain values that are keys of rows here:
  /// later, nothing would distinguish these from references.
  private func writeSealingPlain(_ body: (StoreSession) throws -> Void) throws {
    try passingOverTriggers {
      try write { session in
        try body(session)
        guard !session.writtenPlainCells.isEmpty else { return }
        try seal(session, comparesRemade: false, checkCancellation: {})
      }
    }
  }

  private func entry(_ number: Int64, _ session: StoreSession) throws -> ConflictJournal.Entry {
    if let entry = try session.conflicts.journal.entry(number) { return entry }
    throw StoreError(
      .noSuchConflict, path: path, message: "There is no conflict \(number) in the journal.",
      remedy: "See which there are with \(.listConflicts).")
  }

  /// Edits the row or its cells to have what one side wrote, and records that in the journal.
  private func put(
    _ side: Conflict.Outcome, of entry: ConflictJournal.Entry, as status: Conflict.Status,
    _ session: StoreSession
  ) throws {
    let entries = try register(of: entry, session)
    try refusing(entry.number) {
      guard let table = session.schema.tables.first(where: { $0.id == entry.row.table }) else {
        throw LocalEdits.Refusal(message: "Its table does not exist any more.")
      }
      guard entries.allSatisfy({ ($0.column ?? 0) < table.columns.count }) else {
        throw LocalEdits.Refusal(message: "Its column does not exist any more.")
      }
      let edits = LocalEdits(session: session)
      let cells = entries.map { side == .local ? $0.local : $0.remote }
      guard entry.column == nil else {
        return try edits.set(cells.flatMap { $0 ?? [] }, of: entry.row)
      }
      let isShown = try session.isShown(entry.row)
      if let cells = cells[0] {
        // The answer to an open question may be what is shown already.
        if status == .answered, isShown { return }
        try edits.insert(cells, as: entry.row)
      } else if isShown || status == .restored {
        throw LocalEdits.Refusal(
          message: "That side deleted the row: delete the row itself.")
      }
    }
    for var entry in entries {
      entry.status = status
      entry.outcome = side
      try session.conflicts.journal.write(entry)
    }
  }

  /// Returns an entry, and the entries of the same two edits to columns that belong to its column.
  private func register(
    of entry: ConflictJournal.Entry, _ session: StoreSession
  ) throws -> [ConflictJournal.Entry] {
    guard let column = entry.column,
      let table = session.schema.tables.first(where: { $0.id == entry.row.table }),
      let register = table.registers[column]
    else { return [entry] }
    let others = try session.conflicts.journal.entries(
      "WHERE tbl = ? AND identity = ? AND number <> ?",
      [entry.row.table, Data(entry.row.identity.bytes), entry.number])
    return [entry]
      + others.filter { other in
        other.kind == .cell && other.status == entry.status
          && other.localStamp == entry.localStamp && other.remoteStamp == entry.remoteStamp
          && (other.column.map(register.contains) ?? false)
      }
  }

  private func refusing(_ number: Int64, _ body: () throws -> Void) throws {
    do {
      try body()
    } catch let refusal as LocalEdits.Refusal {
      throw refused(number, refusal)
    }
  }

  private func refused(_ number: Int64, _ refusal: LocalEdits.Refusal) -> StoreError {
    StoreError(
      .editRefused, path: path,
      message: "Conflict \(number) cannot be decided that way. \(refusal.message)",
      remedy: "Change what is in the way, or choose another value.", detail: refusal.detail)
  }
}
