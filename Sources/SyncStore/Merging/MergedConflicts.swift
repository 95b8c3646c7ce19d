import SyncModel

/// The detection of conflicts while changes are merged; ``ConflictRecorder`` records them.
struct MergedConflicts {
  private let session: StoreSession
  private let recorder: ConflictRecorder

  init(_ session: StoreSession) {
    self.session = session
    recorder = session.conflicts
  }

  /// Records the conflicts of a change that is about to be merged into a row.
  func note(_ change: WorkingSet.Change, on row: WorkingRow) throws {
    if try CopiedVersions.isMade(by: change, row, session) { return }
    switch (change.action, row.state.existence) {
    case (.delete, .deleted), (.erase, .deleted):
      forgetRebirths(of: row, before: change)
      try noteCells(change, row)
    case (.delete, .unsaid) where row.shown == nil && !row.wasKept,
      (.erase, .unsaid) where row.shown == nil && !row.wasKept:
      warnMissing(.rowMissingForDelete, row)
    case (.delete, _), (.erase, _):
      try noteDeletion(change, row)
      // Also the cells that its author edited before, in case the row is still shown.
      try noteCells(change, row)
    case (.insert, .deleted), (.update, .deleted):
      // A row that is shown although it is deleted loses nothing, unless another row is shown in
      // its place. A row that was deleted a moment ago is still in its table.
      if row.shown != nil, row.wasDead, !row.wasBorrowed {
        try noteCells(change, row)
      } else {
        try noteEditOfDeleted(change, row)
        let returns =
          change.action == .insert
          && session.clients.precedes(row.state.existenceStamp, change.stamp)
        // Its cells may lose against edits that are newer than the deletion, or win over cells that
        // bookkeeping stores in case the row comes back.
        if returns || !row.state.isErased { try noteCells(change, row) }
      }
    case (.update, .unsaid) where row.shown == nil && !row.wasKept:
      warnMissing(.rowMissingForUpdate, row)
    case (.insert, _), (.update, _): try noteCells(change, row)
    }
  }

  /// Forgets that edits of other devices bring a row back which a device that knew them has deleted since.
  private func forgetRebirths(of row: WorkingRow, before deletion: WorkingSet.Change) {
    guard let known = recorder.rebirths[row.key] else { return }
    let rest = known.filter {
      $0.policy != .remoteWins || deletion.concurrency.isConcurrent($0.stamp)
    }
    recorder.rebirths[row.key] = rest.isEmpty ? nil : rest
  }

  private func noteCells(_ change: WorkingSet.Change, _ row: WorkingRow) throws {
    guard change.concurrency.isPossible else { return }
    for cell in change.cells {
      if isAddition(cell.value, to: cell.column, of: row) { continue }
      let stamp = row.state.stamp(of: cell.column)
      guard let value = row.values[cell.column], value != cell.value,
        change.concurrency.isConcurrent(stamp, of: row.key, column: cell.column)
      else { continue }
      try note(
        CellKey(row: row.key, column: cell.column), in: row, local: (value, stamp),
        remote: (cell.value, cell.stamp),
        isHeld: change.concurrency.isHeld(stamp, of: row.key, column: cell.column))
    }
  }

  /// Records the values that another device gave to columns that did not exist here, and that this device has
  /// given other values since: no change set tells that one side had not seen the other. A default is no edit.
  ///
  /// - Parameter defaults: The defaults of the table's columns, by position.
  func noteArrival(
    _ change: WorkingSet.Change, on row: WorkingRow, defaults: [Value]
  ) throws {
    guard row.shown != nil, !change.action.isDeletion else { return }
    for cell in change.cells {
      if isAddition(cell.value, to: cell.column, of: row) { continue }
      let stamp = row.state.stamp(of: cell.column)
      guard let value = row.values[cell.column], value != cell.value, stamp != .zero,
        recorder.isOwn(stamp.client), !recorder.isOwn(cell.stamp.client),
        value != defaults[cell.column], cell.value != defaults[cell.column]
      else { continue }
      recorder.count += 1
      let entry = cellEntry(
        CellKey(row: row.key, column: cell.column), of: row, local: (value, stamp),
        remote: (cell.value, cell.stamp))
      if try recorder.supersede(entry) { continue }
      try recorder.addSettled(entry)
    }
  }

  /// Returns whether a value is an addition to a counter, which contradicts nothing.
  private func isAddition(_ value: Value, to column: Int, of row: WorkingRow) -> Bool {
    guard case .added = CounterValue(value) else { return false }
    return session.schema[row.key.table].columns[column].domain == .counter
  }

  private func cellEntry(
    _ cell: CellKey, of row: WorkingRow, local: (value: Value, stamp: LocalStamp),
    remote: (value: Value, stamp: LocalStamp)
  ) -> ConflictJournal.Entry {
    ConflictJournal.Entry(
      kind: .cell, row: row.key, column: cell.column, rule: .latestWins,
      outcome: session.clients.precedes(local.stamp, remote.stamp) ? .remote : .local,
      localStamp: local.stamp, remoteStamp: remote.stamp, key: key(of: row),
      local: [(cell.column, local.value)], remote: [(cell.column, remote.value)])
  }

  private func note(
    _ cell: CellKey, in row: WorkingRow, local: (value: Value, stamp: LocalStamp),
    remote: (value: Value, stamp: LocalStamp), isHeld: Bool
  ) throws {
    let isReturning = recorder.isReturning(local.stamp, remote.stamp)
    let (local, remote) = isReturning ? (remote, local) : (local, remote)
    recorder.count += 1
    var entry = cellEntry(cell, of: row, local: local, remote: remote)
    let isUnpublished = try isHeld && !isReturning || session.isUnpublished(local.stamp)
    if try recorder.supersede(entry) { return }
    if let index = recorder.decisionIndex[cell] {
      // An earlier change of this transaction already conflicts with this
      // device's own value.
      if session.clients.precedes(recorder.decisions[index].remote.stamp, remote.stamp) {
        recorder.decisions[index].remote = remote
      }
      try recorder.addSettled(entry)
      return
    }
    guard isUnpublished else { return try recorder.addSettled(entry) }
    let policy = try session.policies(of: row.key.table).columns[cell.column]
    guard policy != .latestWins else { return try recorder.addSettled(entry) }
    entry.base = try session.bases.value(of: cell.column, row.key)
    if policy == .ask {
      entry.rule = .ask
      entry.status = .open
      recorder.questions.insert(try recorder.add(entry))
      return
    }
    recorder.decisionIndex[cell] = recorder.decisions.count
    recorder.decisions.append(
      ConflictRecorder.CellDecision(
        cell: cell, policy: policy, number: try recorder.add(entry), base: entry.base,
        local: local.value, remote: remote,
        others: policy == .localWins && !isReturning ? others(of: cell, in: row) : []))
  }

  private func others(of cell: CellKey, in row: WorkingRow) -> [(column: Int, value: Value)] {
    let table = session.schema[row.key.table]
    guard let register = table.registers[cell.column] else { return [] }
    return table.cellPositions.compactMap { column in
      guard column != cell.column, register.contains(column) else { return nil }
      return row.values[column].map { (column, $0) }
    }
  }

  private func noteDeletion(_ change: WorkingSet.Change, _ row: WorkingRow) throws {
    guard change.concurrency.isPossible else { return }
    let table = session.schema[row.key.table]
    let edited = table.cellPositions.filter {
      row.values[$0] != nil
        && change.concurrency.isConcurrent(row.state.stamp(of: $0), of: row.key, column: $0)
    }
    let isConcurrent = change.concurrency.isConcurrent(row.state.existenceStamp, of: row.key)
    guard !edited.isEmpty || isConcurrent else { return }
    var newest = isConcurrent ? row.state.existenceStamp : .zero
    for column in edited where session.clients.precedes(newest, row.state.stamp(of: column)) {
      newest = row.state.stamp(of: column)
    }
    let isRevived = table.mergeType == .editWins && session.clients.precedes(change.stamp, newest)
    let isDeleted =
      !isRevived && session.clients.precedes(row.state.existenceStamp, change.stamp)
    try noteExistence(
      ConflictJournal.Entry(
        kind: .existence, row: row.key,
        rule: isRevived ? .editWins : isDeleted ? .deleteWins : .latestWins,
        outcome: isDeleted ? .remote : .local, localStamp: newest, remoteStamp: change.stamp,
        key: key(of: row), local: knownCells(row)),
      edit: .local, of: row,
      isHeld: change.concurrency.isHeld(row.state.existenceStamp, of: row.key)
        || edited.contains {
          change.concurrency.isHeld(row.state.stamp(of: $0), of: row.key, column: $0)
        })
    warn(.deletionOfEditedRow, .deletionOfReferringRow, edited, table, row)
  }

  private func noteEditOfDeleted(_ change: WorkingSet.Change, _ row: WorkingRow) throws {
    let table = session.schema[row.key.table]
    let isConcurrent = change.concurrency.isConcurrent(row.state.existenceStamp, of: row.key)
    let returns =
      change.action == .insert
      && session.clients.precedes(row.state.existenceStamp, change.stamp)
    // An author who knows of the deletion and inserts the row again contradicts nothing.
    if returns, !isConcurrent { return }
    var newest = change.action == .insert ? change.stamp : .zero
    var cells = row.values
    for cell in change.cells {
      cells[cell.column] = cell.value
      if session.clients.precedes(newest, cell.stamp) { newest = cell.stamp }
    }
    let isRevived =
      !returns && table.mergeType == .editWins
      && session.clients.precedes(row.state.existenceStamp, newest)
    try noteExistence(
      ConflictJournal.Entry(
        kind: .existence, row: row.key,
        rule: isRevived ? .editWins : returns ? .latestWins : .deleteWins,
        outcome: returns || isRevived ? .remote : .local, localStamp: row.state.existenceStamp,
        remoteStamp: newest, key: key(of: row), remote: Self.cells(cells)),
      edit: .remote, of: row,
      isHeld: change.concurrency.isHeld(row.state.existenceStamp, of: row.key),
      changing: change.cells)
    if !returns {
      warn(.editOfDeletedRow, .referenceOfDeletedRow, change.cells.map(\.column), table, row)
    }
  }

  /// Records a conflict about a row's existence. `edit` is the side that did not delete the row,
  /// and `changes` are that side's changes to the row as it is here.
  private func noteExistence(
    _ entry: ConflictJournal.Entry, edit: Conflict.Outcome, of row: WorkingRow,
    isHeld: Bool,
    changing changes: [(column: Int, value: Value, stamp: LocalStamp)] = []
  ) throws {
    var entry = entry
    var edit = edit
    let isReturning = recorder.isReturning(entry.localStamp, entry.remoteStamp)
    if isReturning {
      (entry.local, entry.remote) = (entry.remote, entry.local)
      (entry.localStamp, entry.remoteStamp) = (entry.remoteStamp, entry.localStamp)
      entry.outcome = entry.outcome == .local ? .remote : .local
      edit = edit == .local ? .remote : .local
    }
    let isUnpublished =
      try isHeld && !isReturning || entry.localStamp.map(session.isUnpublished) ?? false
    if try recorder.supersede(entry) {
      recorder.count += 1
      return
    }
    let policy = try session.policies(of: entry.row.table).existence
    guard isUnpublished else {
      recorder.countDeletion(of: row.key)
      _ = try recorder.add(entry)
      return
    }
    if policy == .ask {
      recorder.count += 1
      entry.rule = .ask
      entry.status = .open
      recorder.questions.insert(try recorder.add(entry))
      return
    }
    recorder.countDeletion(of: row.key)
    let number = try recorder.add(entry)
    let wanted: Conflict.Outcome? =
      policy == .localWins ? .local : policy == .remoteWins ? .remote : nil
    // A deletion has won already; an edit has to bring the row back.
    if wanted == edit, entry.outcome != edit {
      let known = knownCells(row).map { ($0, $1, row.state.stamp(of: $0)) }
      recorder.rebirths[entry.row, default: []].append(
        ConflictRecorder.Rebirth(
          policy: policy, number: number, stamp: entry.remoteStamp ?? .zero, cells: known + changes)
      )
    }
  }

  // MARK: - Rows that are not shown

  /// Records in the journal that a row is shown, or is shown no longer. `kept` is its new
  /// bookkeeping entry.
  func settled(_ row: WorkingRow, _ kept: KeptRow?) throws {
    if row.isVisible || row.isElsewhere {
      recorder.noteShown(row.key, isRescued: row.isDead && row.borrower == nil)
      guard row.wasKept || recorder.noted.contains(row.key) else { return }
      let isRescued = row.isDead && row.borrower == nil
      try recorder.journal.settleShown(
        row.key, isRescued: isRescued, enteredAfter: recorder.lastBefore)
      return
    }
    if row.isDead, row.wasDead, row.shown != nil || row.wasElsewhere {
      // Nothing holds the row any more: its values are lost only now.
      _ = try recorder.add(hidden(row, .existence, .deleteWins, nil))
    }
    guard case .parked(let reason) = kept?.reason, row.isLiving,
      row.shown != nil || row.wasElsewhere || !row.wasLiving
    else { return }
    let table = session.schema[row.key.table]
    var warning = SyncWarning(
      .parked, table: table.name, message: "rows of \(table.name) are hidden")
    warning.reason = reason.rawValue
    recorder.warn(warning)
    switch reason {
    case .uniqueValueTaken:
      _ = try recorder.add(hidden(row, .uniqueValue, .uniqueValue, reason))
    case .check, .notNull: _ = try recorder.add(hidden(row, .condition, .condition, reason))
    default: _ = try recorder.add(hidden(row, .reference, .reference, reason))
    }
  }

  /// Returns an entry for a row that is not shown from now on.
  private func hidden(
    _ row: WorkingRow, _ kind: Conflict.Kind, _ rule: Conflict.Rule, _ reason: ParkedRow.Reason?
  ) -> ConflictJournal.Entry {
    let isLocal = row.shown != nil || row.isDead
    var newest = row.state.existenceStamp
    for column in session.schema[row.key.table].cellPositions
    where session.clients.precedes(newest, row.state.stamp(of: column)) {
      newest = row.state.stamp(of: column)
    }
    let cells = knownCells(row)
    return ConflictJournal.Entry(
      kind: kind, row: row.key, rule: rule, outcome: isLocal ? .remote : .local,
      localStamp: isLocal ? newest : nil, remoteStamp: isLocal ? nil : newest,
      message: reason?.rawValue, key: key(of: row), local: isLocal ? cells : nil,
      remote: isLocal ? nil : cells)
  }

  // MARK: - Contents of entries

  private func knownCells(_ row: WorkingRow) -> [ConflictJournal.Entry.Cell] {
    Self.cells(row.values)
  }

  private static func cells(_ values: [Value?]) -> [ConflictJournal.Entry.Cell] {
    values.enumerated().compactMap { position, value in value.map { (position, $0) } }
  }

  private func key(of row: WorkingRow) -> [ConflictJournal.Entry.Cell] {
    let table = session.schema[row.key.table]
    guard table.identity == .surrogate else {
      return table.identityPositions.compactMap { position in
        row.values[position].map { (position, $0) }
      }
    }
    let key = row.localKey ?? row.state.localKey ?? row.keyHint
    return key.map { [(ConflictTable.localKeyPosition, .integer($0))] } ?? []
  }

  // MARK: - Warnings

  private func warnMissing(_ code: SyncWarning.Code, _ row: WorkingRow) {
    let name = session.schema[row.key.table].name
    let what = code == .rowMissingForDelete ? "a deletion" : "an edit"
    recorder.warn(
      SyncWarning(
        code, table: name,
        message: "\(what) arrived for rows of \(name) whose insertion is not here"))
  }

  /// Warns of columns and of references with separate warnings.
  private func warn(
    _ code: SyncWarning.Code, _ referenceCode: SyncWarning.Code, _ columns: [Int],
    _ table: TableSchema, _ row: WorkingRow
  ) {
    let references = Set(table.foreignKeys.flatMap(\.columns))
    for (code, positions) in [
      (code, columns.filter { !references.contains($0) }),
      (referenceCode, columns.filter(references.contains)),
    ] where !positions.isEmpty || (columns.isEmpty && code != referenceCode) {
      let isEdit = [.editOfDeletedRow, .referenceOfDeletedRow].contains(code)
      var warning = SyncWarning(
        code, table: table.name,
        message: isEdit
          ? "deleted rows of \(table.name) were edited on another device and stay deleted"
          : "rows of \(table.name) were deleted on another device while they were edited here")
      warning.names = positions.map { table.columns[$0].name }.sorted()
      recorder.warn(warning, ofDeleted: row.key)
    }
  }
}
