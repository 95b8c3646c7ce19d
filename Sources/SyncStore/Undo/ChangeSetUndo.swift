import SyncModel

/// The undoing of a change set, by ordinary edits: what it has changed becomes what it would be without it. What
/// was changed since stays as it is.
///
/// The change set is compared with what the store shows now, and with another store that lacks it.
struct ChangeSetUndo {
  /// What is to be done with a row. Former values are read again when it is done: all of them may be more than
  /// fits in memory.
  enum Edit {
    case insertion
    /// The columns that get their former values. Counters have their numbers.
    case update([(column: Int, number: Value?)])
    case deletion
  }

  struct Step {
    var row: RowKey
    var edit: Edit
    /// The rows of its table without the change set.
    var before: FormerRows

    var isDeletion: Bool { if case .deletion = edit { true } else { false } }
    var isInsertion: Bool { if case .insertion = edit { true } else { false } }
    var isUpdate: Bool { if case .update = edit { true } else { false } }
  }

  private typealias LeftRow = AppliedChangeSet.Undo.LeftRow
  private typealias Reason = AppliedChangeSet.Undo.Reason

  static let rowsPerCheck = 1_000
  /// How often edits are tried together, each time without those that were refused. Each attempt makes all of them,
  /// so a long chain of rows that are refused only one after the other would take too long.
  static let greatestAttempts = 100

  let session: StoreSession
  /// A store that has applied everything but the change set and those that depend on it.
  private let former: StoreSession
  let checkCancellation: () throws -> Void
  private let present: WorkingSet

  private var insertions: [Step] = []
  private var updates: [Step] = []
  private var deletions: [Step] = []
  /// The rows of which some cells stay, since they were changed since.
  private var changedSince: Set<RowKey> = []
  private var undo = AppliedChangeSet.Undo()
  private var counts: [Int: AppliedChangeSet.Undo.Table] = [:]

  private init(
    _ session: StoreSession, without former: StoreSession,
    _ checkCancellation: @escaping () throws -> Void
  ) {
    self.session = session
    self.former = former
    self.checkCancellation = checkCancellation
    present = WorkingSet(session: session)
  }

  /// Undoes a change set that the store has applied. The log is empty.
  static func run(
    _ changeSet: SyncChangeSet, in session: StoreSession, without former: StoreSession,
    checkCancellation: @escaping () throws -> Void
  ) throws -> AppliedChangeSet.Undo {
    var run = ChangeSetUndo(session, without: former, checkCancellation)
    let author = try session.clients.number(of: changeSet.header.client)
    for changes in changeSet.tables { try run.plan(changes, by: author) }
    try run.carryOut()
    run.undo.tables = run.counts.values.sorted { $0.name < $1.name }
    return run.undo
  }

  // MARK: - Planning

  private mutating func plan(_ changes: TableChanges, by author: Int32) throws {
    guard let table = session.schema.table(wireName: changes.table), table.knowsRows(as: changes)
    else {
      return leave(
        changes, "Its table is not here any more, or its rows are identified in another way.")
    }
    let access = try session.access(table.id)
    guard let before = try FormerRows(of: access, in: former) else {
      return leave(changes, "What was in its table before is not known.")
    }
    let (firstInsertion, firstDeletion) = (insertions.count, deletions.count)
    var moves: [RowKey: RowKey] = [:]
    let incoming = try IncomingChanges(
      changes, table: table, author: author, concurrency: .none, session: session)
    var cursor = IncomingChanges.Cursor(incoming)
    for index in 0..<incoming.changes.count {
      if index.isMultiple(of: Self.rowsPerCheck) {
        try checkCancellation()
        present.removeAll()
      }
      let row = RowKey(table: table.id, identity: incoming.identity(index))
      let change = incoming.change(index, &cursor)
      if let destination = change.movedTo {
        moves[row] = RowKey(table: table.id, identity: destination)
      }
      try plan(change, of: row, access, before)
    }
    guard !moves.isEmpty else { return }
    // A row whose key was changed, and that was edited since, is not doubled under its former key. A row that
    // had the new key before gets its own values back.
    let gone = Set(deletions[firstDeletion...].map(\.row))
    let added = insertions[firstInsertion...]
    insertions.removeSubrange(firstInsertion...)
    for step in added {
      if let moved = moves[step.row], !gone.contains(moved), try present.row(moved).shown != nil,
        try changedSince.contains(moved) || !before.row(moved.identity).exists
      {
        try leave(
          step.row, access, .changedSince, "It has another key by now, and was changed since.")
      } else {
        insertions.append(step)
      }
    }
  }

  private mutating func plan(
    _ change: WorkingSet.Change, of key: RowKey, _ access: TableAccess, _ former: FormerRows
  ) throws {
    let now = try present.row(key)
    let before = try former.row(key.identity)
    let isShown = now.shown != nil && !now.wasBorrowed
    switch (before.exists, isShown) {
    case (true, true): try planUpdate(change, of: now, access, before, former)
    case (true, false):
      if now.isDead, change.action.isDeletion {
        try planInsertion(of: key, access, before, former)
      } else if now.isDead {
        try leave(key, access, .changedSince, "The row was deleted since.")
      } else {
        try leave(key, access, .hidden, "The row is not shown.")
      }
    case (false, true):
      if change.action == .insert, try isUnchanged(now, since: change, access.table) {
        deletions.append(Step(row: key, edit: .deletion, before: former))
      } else {
        try leave(key, access, .changedSince, "The row was changed since.")
      }
    case (false, false):
      // It may be hidden, or shown under another identity.
      if now.isLiving, !change.action.isDeletion {
        try leave(key, access, .hidden, "The row is not shown.")
      }
    }
  }

  /// Returns whether a row has the values that its insertion has given it. Columns that the author did not have
  /// count as unchanged if they have their default.
  private func isUnchanged(
    _ row: WorkingRow, since change: WorkingSet.Change, _ table: TableSchema
  ) throws -> Bool {
    var given: [Value?] = try present.absentValues.values(of: table)
    for cell in change.cells { given[cell.column] = cell.value }
    return table.cellPositions.allSatisfy { row.values[$0] == given[$0] }
  }

  private mutating func planInsertion(
    of key: RowKey, _ access: TableAccess, _ before: FormerRows.Row, _ former: FormerRows
  ) throws {
    // The identity has the values of its columns.
    let unknown = access.table.columns.indices.filter {
      before.values[$0] == nil && !access.table.columns[$0].isIdentity
    }
    guard unknown.isEmpty else {
      return try leave(
        key, access, .unknown, Self.unknownMessage,
        columns: unknown.map { access.table.columns[$0].name })
    }
    insertions.append(Step(row: key, edit: .insertion, before: former))
  }

  private mutating func planUpdate(
    _ change: WorkingSet.Change, of row: WorkingRow, _ access: TableAccess,
    _ before: FormerRows.Row, _ rows: FormerRows
  ) throws {
    var cells: [(column: Int, number: Value?)] = []
    var later: [SQLName] = []
    var unknown: [SQLName] = []
    // The row was inserted again since: all of it counts.
    let changed =
      change.action.isDeletion
      ? access.table.cellPositions.map { (column: $0, value: Value?.none) }
      : change.cells.map { (column: $0.column, value: $0.value) }
    for cell in changed {
      let column = access.table.columns[cell.column]
      guard let former = before.values[cell.column], let value = row.values[cell.column] else {
        unknown.append(column.name)
        continue
      }
      guard value != former else { continue }
      guard let given = cell.value else {
        later.append(column.name)
        continue
      }
      if column.domain == .counter {
        let number = column.number(former)
        if column.number(value) == number { continue }
        if column.number(value) == self.number(given, in: column, after: number) {
          cells.append((cell.column, number))
        } else {
          later.append(column.name)
        }
      } else if value == given {
        cells.append((cell.column, nil))
      } else if given != former {
        later.append(column.name)
      }
    }
    if !cells.isEmpty {
      updates.append(Step(row: row.key, edit: .update(cells), before: rows))
    }
    if !later.isEmpty {
      changedSince.insert(row.key)
      try leave(row.key, access, .changedSince, "It was changed since.", columns: later)
    }
    if !unknown.isEmpty {
      try leave(row.key, access, .unknown, Self.unknownMessage, columns: unknown)
    }
  }

  /// Returns the number that a counter shows after a change of it; `nil` if it is none.
  private func number(_ given: Value, in column: ColumnSchema, after former: Value) -> Value? {
    guard case .added(let sum, let before, _) = CounterValue(given) else {
      return column.number(given)
    }
    // Adding is subtracting what leads from the later sum to the earlier one.
    return Counter.difference(from: sum, to: before?.value ?? .integer(0))
      .flatMap { Counter.difference(from: $0, to: former) }?.stored(with: column.affinity)
  }

  private static let unknownMessage =
    "What it had before is not known: the column, or what it refers to, is another now."

  // MARK: - Editing

  /// Makes the edits.
  private mutating func carryOut() throws {
    var edits = LocalEdits(session: session)
    edits.refusesLosingReferrers = true
    var (done, refused) = try carryOut(insertions + updates + deletions.reversed(), edits)
    let exchanged = try exchange(refused, edits)
    (done, refused) = (done + exchanged.done, exchanged.refused)
    if !exchanged.done.isEmpty {
      let outcome = try carryOut(refused.map(\.step), edits)
      (done, refused) = (done + outcome.done, outcome.refused)
    }
    if !refused.isEmpty {
      let outcome = try carryOutTogether(refused, edits)
      (done, refused) = (done + outcome.done, outcome.refused)
    }
    for step in done { note(step) }
    for (step, refusal) in refused {
      let access = try session.access(step.row.table)
      var columns: [SQLName] = []
      if case .update(let cells) = step.edit {
        columns = cells.map { access.table.columns[$0.column].name }
      }
      try leave(step.row, access, .refused, refusal.message, columns: columns)
    }
  }

  private mutating func note(_ step: Step) {
    var table =
      counts[step.row.table]
      ?? AppliedChangeSet.Undo.Table(name: session.schema[step.row.table].name)
    switch step.edit {
    case .insertion: table.insertedRows += 1
    case .update: table.updatedRows += 1
    case .deletion: table.deletedRows += 1
    }
    counts[step.row.table] = table
  }

  // MARK: - Rows that stay

  private mutating func leave(
    _ row: RowKey, _ access: TableAccess, _ reason: Reason, _ message: String,
    columns: [SQLName] = []
  ) throws {
    undo.leftCount += 1
    guard undo.leftRows.count < AppliedChangeSet.Undo.bound else { return }
    try undo.leftRows.append(
      LeftRow(
        table: access.table.name, keyColumns: access.table.keyColumns,
        key: key(of: row.identity, access), columns: columns,
        reason: reason, message: message))
  }

  /// Returns the values that name a row here, or that did so last.
  private func key(of row: RowIdentity, _ access: TableAccess) throws -> [Value]? {
    let table = access.table
    if let shown = try access.shown(row) {
      return table.identity == .surrogate
        ? shown.key : table.identityPositions.map { shown.values[$0] }
    }
    guard table.identity != .surrogate else {
      let former = try access.stamps.state(of: access.fingerprint(row))?.localKey
      return former.map { [.integer($0)] }
    }
    guard let values = HeldEdits.key(of: row, table) else { return nil }
    let local = try zip(values, table.identityPositions).compactMap {
      try session.imported($0, table.columns[$1])
    }
    return local.count == values.count ? local : nil
  }

  private mutating func leave(_ changes: TableChanges, _ message: String) {
    undo.leftCount += changes.count
    guard undo.leftRows.count < AppliedChangeSet.Undo.bound else { return }
    undo.leftRows.append(
      LeftRow(
        table: changes.table, keyColumns: changes.keyColumns, key: nil, columns: [],
        reason: .unknown, message: message))
  }
}
