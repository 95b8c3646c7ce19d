import GRDB
import SyncModel

extension EditLog.Row {
  /// Returns whether a row was in the document before the edits.
  func existed(
    _ identity: @autoclosure () -> RowIdentity, _ state: RowState?, in table: TableSchema,
    _ session: StoreSession
  ) throws -> Bool {
    guard let state else { return first != .insert }
    switch state.existence {
    case .inserted: return true
    case .deleted: return session.isRevived(state, table)
    case .unsaid:
      // Until a remade table is compared, nothing says that a row from before syncing is there.
      guard state.isKept else { return true }
      let kept = try session.keptRows.row(RowKey(table: table.id, identity: identity()))
      return kept?.reason == .overlaid
    }
  }
}

/// The export of the edits of one table, batch by batch.
final class TableExport {
  let session: StoreSession
  let table: TableSchema
  let access: TableAccess
  private let canMove: Bool
  /// Whether tombstones store the cells of deleted rows.
  let keepsDeleted: Bool
  /// The time, in milliseconds since 1970, at which the remake of the table was noticed; `nil` if
  /// the table does not await a comparison.
  let remakeNoticed: Int64?
  /// Whether another store may have the same log (``SharedLog``).
  let isLogShared: Bool
  let cellPositions: [Int]
  /// The indexes of all cells: the shape of an insertion.
  private let allCells: [Int]
  /// For each column its index among the cells; -1 for none.
  private let cellIndexes: [Int]
  private let hasReferences: Bool
  private let dependents: ExportedDependents
  let moves: KeyMoves
  var counters: ExportedCounters
  /// The cells that are plain values although a row has their number, by row and column.
  private let plainCells: [RowKey: [Int: Value]]

  /// The edits that no change set has carried. A row whose insertion is among them is inserted whole
  /// by any edit.
  var held: HeldEdits.OfTable
  let limits: CodecLimits

  var rows: ExportedRows
  /// The cells in which the current row, which was shown as another one, differs from what is
  /// shown.
  private var cellsToKeep: [(column: Int, value: Value)] = []
  /// The formerly unknown rows whose update was exported, if a later batch may contain their
  /// insertion: the action of a foreign key on a row whose key changes is logged first.
  private var updated: Set<RowFingerprint> = []
  /// The positions of the current row's values, by column.
  var cellRows: [Int]

  /// - Parameters:
  ///   - keepsDeleted: Whether tombstones store the cells of deleted rows, and the log has them.
  ///   - plainCells: The cells that are plain values although a row has their number.
  init(
    session: StoreSession, table: TableSchema, keepsDeleted: Bool, limits: CodecLimits,
    plainCells: [RowKey: [Int: Value]]
  ) throws {
    self.session = session
    self.table = table
    access = try session.access(table.id)
    canMove = Self.canMove(table, in: session.schema)
    self.keepsDeleted = keepsDeleted
    self.plainCells = plainCells
    remakeNoticed = try session.remadeTables().first { $0.table.id == table.id }?.noticed
    isLogShared = try SharedLog.isNoted(session.database)
    cellPositions = table.cellPositions
    allCells = Array(cellPositions.indices)
    var indexes = Array(repeating: -1, count: table.columns.count)
    for (index, position) in cellPositions.enumerated() { indexes[position] = index }
    cellIndexes = indexes
    hasReferences = table.columns.contains { $0.domain != .plain }
    dependents = try ExportedDependents(access: access, session: session)
    moves = try KeyMoves(access: access)
    counters = try ExportedCounters(of: access, session)
    held = try session.heldEdits().inTable(table, session)
    self.limits = limits
    rows = ExportedRows(of: table, session: session)
    cellRows = Array(repeating: 0, count: table.columns.count)
  }

  /// Hands over the remaining rows.
  func finish(_ builder: ChangeSetBuilder) throws { try rows.finish(builder) }

  func export(
    _ batch: EditLog.Batch, to builder: ChangeSetBuilder, suspects: inout ChangeExport.Suspects
  ) throws {
    let batch = canMove ? try addingFormerRows(to: batch) : batch
    let identities = try Identities(batch, table: table, access: access, session: session)
    var states = try access.stamps.states(
      of: identities.fingerprints, inOrder: identities.order)
    if try access.hadOtherKeyForms() {
      try access.adoptFormerStates(of: states.indices.map(identities.identity), &states)
    }
    var isChanged = [Bool](repeating: false, count: batch.rows.count)
    var gone: Set<RowIdentity> = []

    // In order of key, in which keys compress better and the receiver's
    // b-trees grow at one end.
    for (count, row) in batch.keys.order().enumerated() {
      if canMove, !batch.rows[row].isPresent {
        // The row may be shown under another key, or may have had several keys.
        let identity = identities.identity(row)
        if try isShown(identity) || gone.contains(identity) { continue }
        if states[row] != nil || batch.rows[row].first != .insert { gone.insert(identity) }
      }
      let old = states[row]
      let kept =
        old?.isKept == true
        ? try session.keptRows.row(RowKey(table: table.id, identity: identities.identity(row)))
        : nil
      if kept?.reason == .borrowed {
        try session.noteBorrower(
          of: RowKey(table: table.id, identity: identities.identity(row)))
      }
      let wasUnknown = isUnknown(identities.identity(row))
      let outcome = try export(
        row, of: batch, identities: identities, kept: kept, state: &states[row])
      isChanged[row] = outcome != nil
      if !table.excludedColumns.isEmpty, outcome == .insert || outcome == .delete {
        // The program's row has values of its own. If docsync has inserted the row, values may wait.
        try session.aside.removeIfNotWaiting(of: identities.identity(row), in: table.wireName)
        if outcome == .delete || old?.existence == .inserted {
          try session.aside.removeAll(of: identities.identity(row), in: table.wireName)
        }
      }
      if case .update = outcome, old == nil, !batch.isLast, table.mergeType == .keepBoth {
        updated.insert(identities.fingerprints[row])
      }
      if outcome == .insert, !batch.isLast, !table.counters.isEmpty {
        counters.noteInsertion(of: identities.fingerprints[row])
      }
      if outcome == nil, batch.rows[row].first == .insert {
        try forgetKey(row, batch, identities, &suspects)
      }
      if kept != nil || !counters.toKeep.isEmpty, outcome == .insert || outcome == .update {
        let key = RowKey(table: table.id, identity: identities.identity(row))
        try keepRest(of: kept, key, beside: batch.rows[row], outcome, &states[row])
        suspects.changed.append((key.table, key.identity))
      }
      if outcome == .delete, batch.rows[row].first == .insert { try access.readKeysInLog() }
      if hasReferences, outcome == .insert || outcome == .update {
        try session.noteReferencesToUncompared(
          from: RowKey(table: table.id, identity: identities.identity(row)),
          key: batch.keys.map { $0[row] })
      }
      if let outcome {
        try dependents.note(outcome, row, after: old, batch, identities, &suspects)
        if let kept { try dependents.noteHeld(by: kept, &suspects) }
        if let large = try rows.finishIfFull(builder, afterRow: count) {
          let identity = identities.identity(row)
          let isKnown = try !wasUnknown && existed(batch.rows[row], old, identities.identity(row))
          if isKnown { held.known.insert(identity) }
          try handOver(large, identity, &states[row], to: builder)
        }
      }
    }
    try rows.finishIfFull(builder)
    try access.stamps.store(
      states, of: identities.fingerprints, inOrder: identities.order.filter { isChanged[$0] })
  }

  /// Frees the key of a row that was inserted and deleted since the last sealing.
  private func forgetKey(
    _ row: Int, _ batch: EditLog.Batch, _ identities: Identities,
    _ suspects: inout ChangeExport.Suspects
  ) throws {
    guard table.identity == .surrogate, let key = Value.key(batch.keys[0][row]),
      try access.row([.integer(key)]) == nil
    else { return }
    suspects.freedKeys.append(
      KeysOfGoneRows.Freed(table: table.id, key: key, identity: identities.identity(row)))
    access.rememberUnseen(key, of: identities.identity(row))
  }

  /// Stores the cells that an edit does not replace, if bookkeeping has an entry for the row.
  private func keepRest(
    of kept: KeptRow?, _ key: RowKey, beside log: EditLog.Row, _ action: RowAction?,
    _ state: inout RowState?
  ) throws {
    try session.keptRows.remove(key)
    let isBorrowed = kept?.reason == .borrowed
    var rest = (isBorrowed ? cellsToKeep : kept?.cells ?? []).filter { cell in
      // An insertion sets the counters.
      if action == .insert, table.columns[cell.column].domain == .counter { return false }
      return editTime(of: cell.column, log) == nil
    }
    rest += counters.toKeep
    rest.sort { $0.column < $1.column }
    // An insertion by the application contains the whole row. A plain number in the key stays one.
    if log.insertTime != nil {
      rest.removeAll { !table.columns[$0.column].isIdentity || !table.columns[$0.column].isKeyed }
    }
    state?.isKept = !rest.isEmpty
    if state?.isKept == true {
      try session.keptRows.store(KeptRow(reason: .overlaid, cells: rest), of: key)
    }
  }

  // MARK: - One row

  /// Appends a row's edits, as the log and the table contain them, and updates its state. Returns
  /// `nil` if there is nothing to send.
  private func export(
    _ row: Int, of batch: EditLog.Batch, identities: Identities, kept: KeptRow?,
    state: inout RowState?
  ) throws -> RowAction? {
    let log = batch.rows[row]
    let existed =
      try existed(log, state, identities.identity(row))
      && !(log.isPresent && !held.unknown.isEmpty && isUnknown(identities.identity(row)))
      && !(log.first == .insert && updated.contains(identities.fingerprints[row]))
    counters.beginRow()
    cellsToKeep.removeAll()
    guard log.isPresent else {
      // The comparison finds out what the row was when it went unseen.
      if !log.mayBeGone, remakeNoticed != nil || log.first == .renamed { return nil }
      if try state == nil && isLeftToComparison(row, batch, identities) { return nil }
      // A later entry will record its deletion.
      let isUndead = kept?.reason == .rescued || kept?.reason == .borrowed
      let isUnknown = isLogShared && log.first == .insert
      guard existed || isUndead || isUnknown, log.mayBeGone || batch.isLast
      else { return nil }
      try appendDeletion(row, log, batch, identities, kept, &state)
      return .delete
    }
    // Edits of a row that came unseen may be sealed before the comparison finds it.
    let isFound = log.first == .insert && state?.existence == .unsaid
    if log.insertTime != nil, !(table.mergeType == .keepBoth && existed && !isFound) {
      for cell in log.cells { cellRows[cell.column] = cell.index }
      try appendInsertion(
        row, log, batch, identities, &state, batch.cells, beneath: plainValues(row, identities))
      return .insert
    }
    if !existed {
      guard log.isReborn || !log.updates.isEmpty else { return nil }
      // The row is shown although it counted as gone: a rebirth.
      guard let (values, _) = try access.row(batch.keys.map { $0[row] }) else { return nil }
      let key = RowKey(table: table.id, identity: identities.identity(row))
      var beneath = plainValues(row, identities)
      for cell in try cellsBeneath(kept, key)
      where editTime(of: cell.column, log) == nil && table.columns[cell.column].domain != .counter
        && !table.columns[cell.column].isIdentity
      {
        beneath[cell.column] = cell.value
        guard kept?.reason == .borrowed else { continue }
        let shown = try session.exported(values[cell.column], table.columns[cell.column])
        if shown != cell.value { cellsToKeep.append(cell) }
      }
      let cells = values.map { value in
        var column = ValueColumn()
        column.append(value)
        return column
      }
      for position in cellPositions { cellRows[position] = 0 }
      try appendInsertion(row, log, batch, identities, &state, cells, beneath: beneath)
      return .insert
    }
    guard !log.updates.isEmpty || log.insertTime != nil else { return nil }
    for cell in log.cells { cellRows[cell.column] = cell.index }
    return try appendUpdate(row, log, batch, identities, kept, &state) ? .update : nil
  }

  /// Returns whether the identity of an unknown row that is gone is uncertain: its key contains the
  /// number of a row with declared columns, and a program has remade that row's table.
  ///
  /// The comparison finds out which known row is gone.
  private func isLeftToComparison(
    _ row: Int, _ batch: EditLog.Batch, _ identities: Identities
  ) throws -> Bool {
    guard canMove, remakeNoticed != nil else { return false }
    let remade = try session.tablesToCompare()
    return table.identityPositions.enumerated().contains { index, position in
      guard case .key(let parent) = table.columns[position].domain, remade.contains(parent),
        case .columns = session.schema[parent].identity
      else { return false }
      // A row of an empty beginning that exists has a state.
      return identities.logicalKeys?[index][row].kind == .integer || !table.hasUnstampedRows
    }
  }

  /// The values of a row that are plain although a row has their number, by column.
  func plainValues(_ row: Int, _ identities: Identities) -> [Int: Value] {
    guard !plainCells.isEmpty else { return [:] }
    return plainCells[RowKey(table: table.id, identity: identities.identity(row))] ?? [:]
  }

  /// Returns the cells in which a row differs from what is shown under its identity.
  private func cellsBeneath(
    _ kept: KeptRow?, _ row: RowKey
  ) throws -> [(column: Int, value: Value)] {
    guard kept?.reason == .borrowed else { return kept?.cells ?? [] }
    return try session.borrower(of: row).flatMap(session.keptRows.row)?.cells ?? []
  }

  private func existed(
    _ log: EditLog.Row, _ state: RowState?, _ identity: @autoclosure () -> RowIdentity
  ) throws -> Bool {
    try log.existed(identity(), state, in: table, session)
  }

  /// Appends a row with all its cells: the local values of its columns, or the logical values
  /// beneath what is shown.
  private func appendInsertion(
    _ row: Int, _ log: EditLog.Row, _ batch: EditLog.Batch, _ identities: Identities,
    _ state: inout RowState?, _ cells: [ValueColumn], beneath: [Int: Value] = [:]
  ) throws {
    let time = (log.insertTime ?? log.lastTime).raised(aboveAllOf: state ?? .unstamped)
    let stamp = LocalStamp(time: time.rawValue, client: session.own)
    var new = RowState(
      existence: .inserted, existenceStamp: stamp, cellStamp: stamp,
      erasureStamp: state?.erasureStamp ?? .zero)
    new.localKey = table.identity == .surrogate ? Value.key(batch.keys[0][row]) : nil
    try rows.appendCells(of: cellPositions, cells, at: cellRows, beneath: beneath)
    for (index, position) in cellPositions.enumerated() where !log.updates.isEmpty {
      guard let edited = editTime(of: position, log), edited > time else { continue }
      new.setStamp(LocalStamp(time: edited.rawValue, client: session.own), of: position)
      rows.appendException(column: index, time: edited)
    }
    rows.appendRow(
      row, of: batch, identities, action: .insert, time: time, cells: allCells)
    if !held.isEmpty {
      held.unknown.remove(identities.identity(row))
      held.forget(cellPositions, of: identities.identity(row))
    }
    state = new
  }

  /// Returns the time at which a column was last updated, according to the log; `nil` if it was
  /// not.
  func editTime(
    of position: Int, _ log: EditLog.Row
  ) -> HybridTime? {
    for update in log.updates.reversed() where update.columns.contains(position) {
      return update.time
    }
    return nil
  }
}
