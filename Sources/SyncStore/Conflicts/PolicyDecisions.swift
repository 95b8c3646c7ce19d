import GRDB
import SyncModel

/// The decisions of policies on the conflicts that were found while changes were merged in a
/// transaction. They are edits.
struct PolicyDecisions {
  private let session: StoreSession
  private let edits: LocalEdits
  private let shown: ShownRows
  /// The bytes of text and blobs that an edit of one row may have.
  private let greatestContent: Int
  private let checkCancellation: () throws -> Void

  /// - Parameters:
  ///   - limits: The caps of change sets.
  ///   - checkCancellation: Called repeatedly; throws to cancel.
  init(
    session: StoreSession, limits: CodecLimits, checkCancellation: @escaping () throws -> Void
  ) {
    self.session = session
    greatestContent = limits.safeContent
    self.checkCancellation = checkCancellation
    edits = LocalEdits(session: session)
    shown = ShownRows(session: session)
  }

  /// Makes the edits, and inserts the losing versions that live on as rows. Returns whether there
  /// was anything to decide: then the log is to be sealed.
  func make() throws -> Bool {
    let recorder = session.conflicts
    guard
      !recorder.decisions.isEmpty || !recorder.rebirths.isEmpty || !session.losingVersions.isEmpty
    else { return false }
    try recorder.journal.writePending()
    try CopiedVersions(session: session, edits: edits).settle { edit in _ = try refusal(edit) }
    try bringBack(reborn(recorder.rebirths))
    for group in registers(recorder.decisions) {
      try checkCancellation()
      try decide(group)
    }
    recorder.removeDecisions()
    return true
  }

  private typealias Reborn = (row: RowKey, rebirths: [ConflictRecorder.Rebirth])

  /// Inserts rows. A row may refer to one that comes back after it.
  private func bringBack(_ rows: [Reborn]) throws {
    var waiting = rows
    while !waiting.isEmpty {
      var refused: [(row: Reborn, refusal: LocalEdits.Refusal)] = []
      for row in waiting {
        try checkCancellation()
        if let refusal = try bringBack(row) { refused.append((row, refusal)) }
      }
      guard refused.count < waiting.count else {
        for (row, refusal) in refused { try note(row.rebirths, refusal) }
        return
      }
      // A chain of rows then comes back in two rounds, whichever of its ends is first.
      waiting = refused.reversed().map(\.row)
    }
  }

  /// Inserts a row with the newest value of each cell, unless it is shown already. Returns why it cannot.
  private func bringBack(_ reborn: Reborn) throws -> LocalEdits.Refusal? {
    let (row, rebirths) = reborn
    if try shown.contains(row) { return nil }
    var cells: [Int: (value: Value, stamp: LocalStamp)] = [:]
    for cell in rebirths.flatMap(\.cells) {
      if let known = cells[cell.column], !session.clients.precedes(known.stamp, cell.stamp) {
        continue
      }
      cells[cell.column] = (cell.value, cell.stamp)
    }
    let refusal = try refusal {
      try edits.insert(
        cells.sorted { $0.key < $1.key }.map { ($0.key, $0.value.value) }, as: row)
    }
    if refusal == nil {
      try note(rebirths, nil)
      session.conflicts.noteShown(row, isRescued: false)
    }
    return refusal
  }

  private func note(
    _ rebirths: [ConflictRecorder.Rebirth], _ refusal: LocalEdits.Refusal?
  ) throws {
    for rebirth in rebirths {
      try note(rebirth.number, by: rebirth.policy, refusal) { entry in
        entry.outcome = rebirth.policy == .localWins ? .local : .remote
      }
    }
  }

  /// Returns the rows that are to come back, each with the changes that bring it back, in the order in which these
  /// were noted.
  private func reborn(_ rebirths: [RowKey: [ConflictRecorder.Rebirth]]) -> [Reborn] {
    rebirths.map { (row: $0.key, rebirths: $0.value) }
      .sorted { $0.rebirths[0].number < $1.rebirths[0].number }
  }

  /// Returns the decisions, those of one register together: only all of its columns together are
  /// sure to satisfy the constraints on them.
  private func registers(
    _ decisions: [ConflictRecorder.CellDecision]
  ) -> [[ConflictRecorder.CellDecision]] {
    struct Register: Hashable {
      var row: RowKey
      var columns: ColumnSet
    }
    var groups: [[ConflictRecorder.CellDecision]] = []
    var positions: [Register: Int] = [:]
    for decision in decisions {
      let cell = decision.cell
      let register = Register(
        row: cell.row,
        columns: session.schema[cell.row.table].registers[cell.column] ?? ColumnSet(cell.column))
      if let position = positions[register] {
        groups[position].append(decision)
      } else {
        positions[register] = groups.count
        groups.append([decision])
      }
    }
    return groups
  }

  private func decide(_ group: [ConflictRecorder.CellDecision]) throws {
    var outcomes: [(outcome: Conflict.Outcome, message: String?)] = []
    var lost: [Lost] = []
    // If the row is not shown, that takes precedence.
    guard let row = group.first?.cell.row, try shown.contains(row) else { return }
    let refusal = try refusal {
      var cells: [LocalEdits.Cell] = []
      var remotes: [Value] = []
      for decision in group {
        guard let current = try shown.cell(decision.cell) else { return }
        let (wanted, message) = try wanted(decision, current)
        cells.append((decision.cell.column, wanted))
        remotes.append(remote(decision, current))
        outcomes.append(
          wanted == decision.local
            ? (.local, message)
            : wanted == decision.remote.value
              ? (.remote, message) : (.other, message ?? "The function chose another value."))
      }
      lost = try others(of: group)
      try checkSize(
        cells.map(\.value), of: row,
        unless: [group.map(\.local), group.map(\.remote.value), remotes])
      try edits.set(cells + lost.map { ($0.column, $0.own) }, of: row)
      for (index, decision) in group.enumerated() {
        guard case .resolve = decision.policy else { continue }
        try check(cells[index].value, for: decision, remotes[index])
      }
    }
    for (index, decision) in group.enumerated() {
      try note(decision.number, by: decision.policy, refusal) { entry in
        guard index < outcomes.count else { return }
        entry.outcome = outcomes[index].outcome
        entry.message = outcomes[index].message
      }
    }
    if refusal == nil, let number = group.first?.number { try note(lost, of: row, like: number) }
  }

  /// A cell of a register that has got a value without a conflict, and gets this device's value again.
  private struct Lost {
    var column: Int
    var own: Value
    var remote: (value: Value, stamp: LocalStamp)
  }

  /// Returns what this device had in the other columns of a register, if it wins: only all of its
  /// values together are a state that it has shown.
  private func others(of group: [ConflictRecorder.CellDecision]) throws -> [Lost] {
    guard let first = group.first, group.allSatisfy({ $0.policy == .localWins }) else { return [] }
    return try first.others.compactMap { column, own in
      guard !group.contains(where: { $0.cell.column == column }),
        let current = try shown.cell(CellKey(row: first.cell.row, column: column)),
        current.value != own
      else { return nil }
      return Lost(column: column, own: own, remote: current)
    }
  }

  private func note(_ lost: [Lost], of row: RowKey, like number: Int64) throws {
    let key = try session.conflicts.journal.entry(number)?.key ?? []
    for cell in lost {
      try session.conflicts.addSettled(
        ConflictJournal.Entry(
          kind: .cell, row: row, column: cell.column, rule: .localWins, outcome: .local,
          localStamp: nil, remoteStamp: cell.remote.stamp, key: key,
          local: [(cell.column, cell.own)], remote: [(cell.column, cell.remote.value)]))
    }
  }

  /// Returns the value that a policy wants, and what there is to say about it. Throws
  /// ``LocalEdits/Refusal``.
  private func wanted(
    _ decision: ConflictRecorder.CellDecision, _ current: (value: Value, stamp: LocalStamp)
  ) throws -> (value: Value, message: String?) {
    switch decision.policy {
    case .localWins: return (decision.local, nil)
    case .resolve(let name):
      guard let entry = try session.conflicts.journal.entry(decision.number) else {
        return (current.value, nil)
      }
      let conflict = try ConflictNames(session: session).conflict(entry)
      let remote = remote(decision, current)
      let values = Conflict.Values(
        table: conflict.table, column: conflict.column ?? "", key: conflict.key,
        base: decision.base, local: decision.local, remote: remote)
      let resolution: PolicyCache.Resolution?
      do {
        resolution = try session.policyCache.resolve(
          values, by: name, checkCancellation: checkCancellation)
      } catch let failure as PolicyCache.FailedFunction {
        throw LocalEdits.Refusal(message: "The function “\(name)” failed: \(failure.error)")
      }
      guard let resolution else {
        throw LocalEdits.Refusal(
          message: "No function “\(name)” is registered in the program that synchronized.")
      }
      guard case .value(let resolved) = resolution else {
        return (
          current.value, "The function “\(name)” cannot merge these values; the later one stays."
        )
      }
      // A number that neither side wrote names a row of this device.
      let column = session.schema[decision.cell.row.table].columns[decision.cell.column]
      let sides = [decision.base, decision.local, decision.remote.value, remote]
      return (sides.contains(resolved) ? resolved : try session.meant(resolved, in: column), nil)
    default:
      return (remote(decision, current), nil)
    }
  }

  /// Returns the newest value that has arrived: the cell's value unless this device's own is later. A change that
  /// knows the one in conflict may have arrived in the same transaction; it is in no conflict.
  private func remote(
    _ decision: ConflictRecorder.CellDecision, _ current: (value: Value, stamp: LocalStamp)
  ) -> Value {
    current.stamp.client == session.own ? decision.remote.value : current.value
  }

  /// Refuses values that no change set can carry, unless they are those of one side: other devices would not have
  /// them.
  private func checkSize(
    _ values: [Value], of row: RowKey, unless sides: [[Value]]
  ) throws {
    guard !sides.contains(values) else { return }
    let count = values.reduce(row.identity.bytes.count) { $0 + $1.contentCount }
    guard count > greatestContent else { return }
    throw LocalEdits.Refusal(
      message: "The decision has \(count) bytes. \(greatestContent) can be sent to other devices.")
  }

  /// Refuses a function's value if the column would not store it unchanged, or if a numeric column
  /// would get text or a blob although neither side is of that kind.
  private func check(
    _ value: Value, for decision: ConflictRecorder.CellDecision, _ remote: Value
  ) throws {
    let column = session.schema[decision.cell.row.table].columns[decision.cell.column]
    guard let stored = try shown.cell(decision.cell)?.value else { return }
    let sides = [decision.base, decision.local, decision.remote.value, remote]
      .compactMap { $0?.kind }
    let isNumeric = [.integer, .real, .numeric].contains(column.affinity)
    let isForeign =
      isNumeric && [.text, .blob].contains(stored.kind) && !sides.contains(stored.kind)
    let isAltered = stored != value && !(stored.isNumber && value.isNumber)
    if isForeign || isAltered {
      throw LocalEdits.Refusal(
        message: "The function returned a value of the wrong type for \(quoted(column.name)).")
    }
  }

  /// Runs `body` as a whole or not at all. Returns the refusal in the second case.
  private func refusal(_ body: () throws -> Void) throws -> LocalEdits.Refusal? {
    let plain = (cells: session.writtenPlainCells, rows: session.writtenPlainRows)
    let noted = session.changes.mark()
    do {
      try session.database.atomically(body)
      return nil
    } catch let refusal as LocalEdits.Refusal {
      (session.writtenPlainCells, session.writtenPlainRows) = plain
      session.changes.restore(noted)
      session.forgetKeyMemory()
      return refusal
    }
  }

  /// Records a decision in the journal. If it was refused, the conflict stays open.
  private func note(
    _ number: Int64, by policy: ConflictPolicy, _ refusal: LocalEdits.Refusal?,
    _ change: (inout ConflictJournal.Entry) -> Void
  ) throws {
    let journal = session.conflicts.journal
    guard var entry = try journal.entry(number) else { return }
    entry.rule = policy.rule
    if let refusal {
      entry.status = .open
      entry.message = refusal.message
      var warning = SyncWarning(
        .policyFailed, table: session.schema[entry.row.table].name, message: refusal.message)
      warning.conflict = number
      session.conflicts.warn(warning)
    } else {
      change(&entry)
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
