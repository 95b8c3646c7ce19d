import SyncModel

extension TableExport {
  /// Appends the columns that an update changed. Returns false if there are none.
  func appendUpdate(
    _ row: Int, _ log: EditLog.Row, _ batch: EditLog.Batch, _ identities: Identities,
    _ kept: KeptRow?, _ state: inout RowState?
  ) throws -> Bool {
    let old = state ?? .unstamped
    var new = old
    let floor = table.mergeType == .editWins ? HybridTime.zero.raised(aboveAllOf: old).next : .zero
    if table.identity == .surrogate { new.localKey = Value.key(batch.keys[0][row]) }
    var rowTime: HybridTime?
    var shape: [Int] = []
    let plain = plainValues(row, identities)
    if table.mergeType == .keepBoth, !cellPositions.isEmpty {
      let known = held.replaced[identities.identity(row)]
      let version = old.version(in: table, precedes: session.clients.precedes)
      rows.appendReplaced(known ?? session.clients.stamp(version))
    }
    for (index, position) in cellPositions.enumerated() {
      guard var time = editTime(of: position, log) ?? log.insertTime else { continue }
      if table.columns[position].domain == .counter {
        let edit = counterEdit(
          of: position, row, log, batch, identities, kept, since: old.stamp(of: position), at: time)
        switch counters.export(edit) {
        case .nothing: continue
        case .added(let value, let time):
          rows.appendCell(value.encoded, to: index)
          shape.append(index)
          note(time, of: index, &rowTime)
          continue
        case .set: break
        }
      }
      // If edits win, the stamp is above that of a deletion by a device that knew the same changes.
      time = max(time.raised(above: old.stamp(of: position)), floor)
      if let register = table.registers[position] {
        for other in cellPositions where register.contains(other) {
          time = time.raised(above: old.stamp(of: other))
        }
      }
      if let value = plain[position] {
        rows.appendCell(value, to: index)
      } else {
        try rows.appendCell(
          batch.cells[position], at: cellRows[position], of: position, to: index)
      }
      shape.append(index)
      if let base = log.bases[position], table.policyColumns.contains(position) {
        try session.keepBase(
          batch.olds[position][base], of: position,
          RowKey(table: table.id, identity: identities.identity(row)))
      }
      note(time, of: index, &rowTime)
      new.setStamp(LocalStamp(time: time.rawValue, client: session.own), of: position)
    }
    guard !shape.isEmpty else { return false }
    rows.appendRow(
      row, of: batch, identities, action: .update, time: rowTime ?? log.lastTime, cells: shape)
    if !held.isEmpty {
      held.forget(shape.map { cellPositions[$0] }, of: identities.identity(row))
    }
    state = new
    return true
  }

  /// Notes the time at which a cell of an update was edited. The first time becomes that of the
  /// row; cells with another time become exceptions.
  private func note(_ time: HybridTime, of column: Int, _ rowTime: inout HybridTime?) {
    if let rowTime, rowTime != time {
      rows.appendException(column: column, time: time)
    } else {
      rowTime = time
    }
  }

  private func counterEdit(
    of position: Int, _ row: Int, _ log: EditLog.Row, _ batch: EditLog.Batch,
    _ identities: Identities, _ kept: KeptRow?, since: LocalStamp, at time: HybridTime
  ) -> ExportedCounters.Edit {
    ExportedCounters.Edit(
      row: identities.identity(row), fingerprint: identities.fingerprints[row], column: position,
      base: log.bases[position].map { batch.olds[position][$0] },
      now: batch.cells[position][cellRows[position]],
      known: kept?.cells.first { $0.column == position }?.value,
      since: session.clients.stamp(since), time: time, isLast: batch.isLast)
  }
}
