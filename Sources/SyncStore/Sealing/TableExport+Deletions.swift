import SyncModel

extension TableExport {
  /// Appends the deletion of a row, with the cells that its tombstone stores.
  func appendDeletion(
    _ row: Int, _ log: EditLog.Row, _ batch: EditLog.Batch, _ identities: Identities,
    _ kept: KeptRow?, _ state: inout RowState?
  ) throws {
    let old = state ?? .unstamped
    // If edits win, the stamp of a deletion is just above the stamps that its author knew.
    var time = (table.mergeType == .editWins ? .zero : log.lastTime).raised(aboveAllOf: old)
    if isLogShared, log.earlierTime > .zero {
      // The other store may seal the entries before this one: with their times, or just above the
      // stamps that it knew.
      let others = max(log.earlierTime, HybridTime.zero.raised(aboveAllOf: old).next)
      time = max(time, others.next)
    }
    let stamp = LocalStamp(time: time.rawValue, client: session.own)
    let blanks =
      try keepsDeleted
      ? blankCells(of: identities.identity(row), row, log, batch) {
        mayBeEdited($0, log, kept, state)
      } : [:]
    var new = RowState(
      existence: .deleted, existenceStamp: stamp, cellStamp: stamp,
      erasureStamp: keepsDeleted ? old.erasureStamp : stamp)
    var shape: [Int] = []
    var cells: [(column: Int, value: Value)] = []
    if keepsDeleted {
      new.cellStamp = old.cellStamp
      new.exceptions = old.exceptions
      cells = try lastCells(
        RowKey(table: table.id, identity: identities.identity(row)), log, batch, kept)
      if let kept, kept.reason == .borrowed {
        // The values that were shown are another row's: other devices have the values of this
        // row's author.
        cells.removeAll { cell in
          !log.changed.contains(cell.column) && !kept.cells.contains { $0.column == cell.column }
        }
      }
      if !blanks.isEmpty {
        cells.removeAll { blanks[$0.column] != nil }
        cells = (cells + blanks.map { (column: $0.key, value: $0.value) }).sorted {
          $0.column < $1.column
        }
      }
      for (index, position) in cellPositions.enumerated()
      where log.changed.contains(position) || blanks[position] != nil
        || mayBeEdited(position, log, kept, state)
      {
        guard log.old != nil || blanks[position] != nil,
          let cell = cells.first(where: { $0.column == position })
        else { continue }
        new.setStamp(stamp, of: position)
        rows.appendCell(cell.value, to: index)
        shape.append(index)
      }
      new.normalize(of: table, precedes: session.clients.precedes)
    }
    let former = batch.keys.map { $0[row] }
    let destination =
      log.isFormer && !moves.hasMoved(from: former)
      ? try formerDestination(of: former) : try moves.destination(of: former)
    if let destination {
      rows.appendMove(to: destination)
      if !table.excludedColumns.isEmpty {
        try session.aside.moveWaiting(
          from: identities.identity(row), to: destination, in: table.wireName)
      }
    }
    rows.appendRow(
      row, of: batch, identities, action: keepsDeleted ? .delete : .erase, time: time,
      cells: shape)
    let key = RowKey(table: table.id, identity: identities.identity(row))
    if kept != nil { try session.keptRows.remove(key) }
    if keepsDeleted || destination != nil {
      new.isKept = true
      try session.keptRows.store(
        KeptRow(reason: .tombstone, movedTo: destination, cells: cells), of: key)
    }
    // Sealing finds the rows that still refer to it by its key, and frees the key when it is done
    // with them.
    if table.identity == .surrogate { new.localKey = Value.key(batch.keys[0][row]) }
    state = new
  }

  /// Returns whether a column of a row that was deleted may have been edited unseen: a program has
  /// remade the table, and the schema was changed once more before the comparison.
  private func mayBeEdited(
    _ position: Int, _ log: EditLog.Row, _ kept: KeptRow?, _ state: RowState?
  ) -> Bool {
    guard let remakeNoticed, log.lastTime.milliseconds > remakeNoticed else { return false }
    if table.columns[position].domain == .counter, state != nil { return false }
    return kept?.cells.contains { $0.column == position } != true
  }

  /// Returns the logical cells that a row had when it was deleted.
  private func lastCells(
    _ row: RowKey, _ log: EditLog.Row, _ batch: EditLog.Batch, _ kept: KeptRow?
  ) throws -> [(column: Int, value: Value)] {
    try cellPositions.compactMap { position in
      if let cell = kept?.cells.first(where: { $0.column == position }),
        !log.changed.contains(position) || log.isHidden
      {
        return cell
      }
      guard let old = log.old, !log.isHidden else { return nil }
      let value = batch.olds[position][old]
      return (
        position,
        try session.lastExported(
          value, table.columns[position], of: row, isEdited: log.changed.contains(position))
      )
    }
  }
}
