import SyncModel

/// Rows that are shown as referring to a stand-in, where the row that they refer to is deleted
/// unseen.
extension ChangeExport {
  /// Logs the references to the stand-in of a hidden row as they are shown, since the hidden row is
  /// deleted together with another row, or was deleted before. Otherwise the referring rows would
  /// hold it and bring back the other row, or go with it.
  ///
  /// A row that has the hidden row in its key, and is therefore shown under another identity, moves
  /// to that identity.
  ///
  /// - Parameter time: When the other row was deleted, as a Julian day.
  func logStandIn(for row: RowKey, at time: Double) throws {
    let table = session.schema[row.table]
    guard table.hasStandIns else { return }
    let kept = try session.keptRows.row(row)
    let livesOn = kept?.reason == .tombstone && kept?.movedTo != nil
    for reference in session.schema.inbound(to: table) where table.identifies(reference) {
      let child = session.schema[reference.child]
      let isInKey = child.hasInKey(reference)
      // Other references lead to the row as which a deleted one lives on.
      if livesOn, !isInKey { continue }
      let key = ReferenceKey(
        parent: table.id, columns: reference.columnsName,
        key: table.referenceKey(
          table.referredValues(of: row.identity, by: reference), reference))
      for referring in try session.keptRows.rows(referringBy: key) where referring.table == child.id
      {
        guard let kept = try session.keptRows.row(referring) else { continue }
        if isInKey {
          guard kept.reason == .elsewhere, let shown = kept.movedTo,
            let standIn = try shownParent(
              of: RowKey(table: child.id, identity: shown), by: reference)?.parent
          else { continue }
          try hidden?.addMove(of: referring, by: reference, from: row, to: standIn, at: time)
        } else if kept.reason == .overlaid || kept.reason == .rescued && reference.holds,
          try leads(kept, referring, by: reference, to: row)
        {
          try logShownReference(reference, of: referring, at: time)
        }
      }
    }
  }

  /// Logs a reference as its table shows it, if the table shows the row that it leads to.
  private func logShownReference(
    _ reference: ForeignKey, of row: RowKey, at time: Double
  ) throws {
    let access = try session.access(row.table)
    guard let (shown, _) = try shownParent(of: row, by: reference) else { return }
    var columns = ColumnSet()
    for column in reference.columns { columns.formUnion(ColumnSet(column)) }
    let edits = LocalEdits(session: session)
    try edits.log(
      .update, key: edits.localKey(of: shown, access.table), mask: columns.mask, access.table,
      at: HybridTime(julianDay: time).milliseconds,
      further: access.table.baseColumns.map { (CaptureTriggers.Column.old($0), shown.values[$0]) })
  }

  /// Returns a row as its table shows it, and the shown row to which one of its references leads;
  /// `nil` if one of them is not shown.
  private func shownParent(
    of row: RowKey, by reference: ForeignKey
  ) throws -> (row: (values: [Value], localKey: Int64?), parent: RowIdentity)? {
    let access = try session.access(row.table)
    guard let key = try access.namingKey(of: row.identity), let shown = try access.row(key) else {
      return nil
    }
    let values = try reference.columns.map {
      try session.exported(shown.values[$0], access.table.columns[$0])
    }
    let parent = session.schema[reference.parent]
    guard !values.contains(.null), let found = parent.identity(for: values, of: reference),
      try session.access(parent.id).shown(found) != nil
    else { return nil }
    return (shown, found)
  }
}
