import GRDB
import SyncModel

extension LocalStore {
  /// Decides by policy what the changes that were merged in this transaction
  /// contradict, and seals the decisions: ordinary changes, later than both
  /// sides.
  func decide(_ session: StoreSession, checkCancellation: @escaping () throws -> Void) throws {
    let recorder = session.conflicts
    guard !recorder.decisions.isEmpty || !recorder.rebirths.isEmpty else { return }
    let edits = LocalEdits(session: session)
    for rebirth in recorder.rebirths {
      // Others may have held it.
      if try session.isShown(rebirth.row) { continue }
      try settle(rebirth.number, by: rebirth.policy, session) { entry in
        try edits.insert(rebirth.cells, as: rebirth.row)
        entry.outcome = rebirth.policy == .localWins ? .local : .remote
      }
    }
    for decision in recorder.decisions {
      // Where the row is not shown, that counts for more.
      guard let current = try session.shownCell(decision.cell) else { continue }
      try settle(decision.number, by: decision.policy, session) { entry in
        let wanted = try self.wanted(decision, current: current.stamp, entry, session)
        try edits.set([(decision.cell.column, wanted)], of: decision.cell.row)
        if case .resolve = decision.policy { try check(wanted, for: decision, session) }
        entry.outcome =
          wanted == decision.local ? .local : wanted == decision.remote.value ? .remote : .other
        if entry.outcome == .other { entry.message = "The function made a value of its own." }
      }
    }
    recorder.removeDecisions()
    _ = try seal(session, checkCancellation: checkCancellation)
    session.forgetUnpublished()
  }

  /// The value that a policy wants; throws ``LocalEdits/Refusal``.
  private func wanted(
    _ decision: ConflictRecorder.CellDecision, current: LocalStamp,
    _ entry: ConflictJournal.Entry, _ session: StoreSession
  ) throws -> Value {
    switch decision.policy {
    case .localWins: return decision.local
    case .resolve(let name):
      guard let resolver = session.policyCache.resolvers[name] else {
        throw LocalEdits.Refusal(
          message: "No function “\(name)” is registered in the program that synchronized.")
      }
      let conflict = try ConflictNames(session: session).conflict(entry)
      do {
        return try resolver(
          ConflictingValues(
            table: conflict.table, column: conflict.column ?? "", key: conflict.key,
            base: decision.base, local: decision.local, remote: decision.remote.value))
      } catch {
        throw LocalEdits.Refusal(message: "The function “\(name)” failed: \(error)")
      }
    default:
      // A change that came has won already; which, the stamps have said.
      guard current.client == session.own else {
        return try session.shownCell(decision.cell)?.value ?? decision.remote.value
      }
      return decision.remote.value
    }
  }

  /// A function's value has to be one that the column keeps as it is, unless
  /// one side is of that kind as well.
  private func check(
    _ value: Value, for decision: ConflictRecorder.CellDecision, _ session: StoreSession
  ) throws {
    let column = session.schema[decision.cell.row.table].columns[decision.cell.column]
    guard let stored = try session.shownCell(decision.cell)?.value else { return }
    let sides = [decision.base, decision.local, decision.remote.value].compactMap { $0?.kind }
    let isNumeric = [.integer, .real, .numeric].contains(column.affinity)
    let isForeign =
      isNumeric && [.text, .blob].contains(stored.kind) && !sides.contains(stored.kind)
    let isAltered = stored != value && !(stored.isNumber && value.isNumber)
    if isForeign || isAltered {
      throw LocalEdits.Refusal(
        message: "The function gave a value of the wrong type for \(quoted(column.name)).")
    }
  }

  /// Makes a decision and notes it; if it is refused, the conflict stays open.
  private func settle(
    _ number: Int64, by policy: ConflictPolicy, _ session: StoreSession,
    _ body: (inout ConflictJournal.Entry) throws -> Void
  ) throws {
    let journal = session.conflicts.journal
    guard var entry = try journal.entry(number) else { return }
    entry.rule = policy.rule
    try session.database.execute(sql: "SAVEPOINT docsync_decision")
    do {
      try body(&entry)
      try session.database.execute(sql: "RELEASE docsync_decision")
    } catch let refusal as LocalEdits.Refusal {
      try session.database.execute(sql: "ROLLBACK TO docsync_decision; RELEASE docsync_decision")
      session.forgetKeyMemory()
      entry.status = .open
      entry.message = refusal.message
      var warning = SyncWarning(
        .policyFailed, table: session.schema[entry.row.table].name, message: refusal.message)
      warning.conflict = number
      session.conflicts.warn(warning)
    }
    try journal.write(entry)
  }
}

extension ConflictPolicy {
  fileprivate var rule: Conflict.Rule {
    switch self {
    case .latestWins: .latestWins
    case .localWins: .localWins
    case .remoteWins: .remoteWins
    case .ask: .ask
    case .resolve: .resolve
    }
  }
}

extension Value {
  fileprivate var isNumber: Bool { kind == .integer || kind == .real }
}

extension StoreSession {
  /// Whether a row is in its table.
  func isShown(_ row: RowKey) throws -> Bool {
    let access = try access(row.table)
    return try access.key(of: row.identity).flatMap(access.row) != nil
  }

  /// The logical value and the stamp of a cell of a row that is shown.
  func shownCell(
    _ cell: ConflictRecorder.CellKey
  ) throws -> (value: Value, stamp: LocalStamp)? {
    let access = try access(cell.row.table)
    guard let key = try access.key(of: cell.row.identity), let row = try access.row(key) else {
      return nil
    }
    let state = try access.stamps.state(of: access.fingerprint(cell.row.identity))
    // A reference may be shown otherwise than it is.
    let kept = state?.isKept == true ? try kept(cell.row) : nil
    return (
      try kept?.cells.first { $0.column == cell.column }?.value
        ?? exported(row.values[cell.column], access.table.columns[cell.column]),
      state?.stamp(of: cell.column) ?? .zero
    )
  }
}
