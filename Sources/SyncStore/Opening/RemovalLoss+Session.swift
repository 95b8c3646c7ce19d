import SyncModel

extension RemovalLoss {
  /// Finds out what only bookkeeping holds.
  init(_ session: StoreSession) throws {
    self.init()
    parked = try ParkedRows(session).all(areAll: true)
    for table in try session.foreign.all() {
      try session.foreign.count(table, session.schema, into: &unknownRows)
    }
    waitingChangeSets = try session.inbox.count()
    conflicts =
      try ConflictTable.count(session.database)
      + session.conflicts.journal.archivedCount()
    openConflicts = try ConflictTable.openCount(session.database)
    unsealedEdits = try session.editCount()
    unpublishedChangeSets = try session.outbox.unpublishedCount()
    heldEdits = try session.heldEdits().reports(session).count
  }
}

extension ForeignRows {
  /// Adds the numbers of stored rows of tables, or cells of columns, that exist on other devices
  /// and that a schema does not have, by name.
  fileprivate func count(
    _ table: Table, _ schema: StoreSchema, into counts: inout [SQLName: Int]
  ) throws {
    let here = table.table(in: schema)
    var last: RowIdentity?
    while true {
      let batch = try rows(of: table, after: last, limit: 1_000)
      guard let end = batch.last else { return }
      for (_, row) in batch {
        guard let here else {
          if row.existence != .deleted { counts[table.wireName, default: 0] += 1 }
          continue
        }
        for cell in row.cells {
          let column = table.columns[cell.column]
          guard !here.columns.contains(where: { $0.wireName == column }) else { continue }
          counts["\(table.wireName).\(column)", default: 0] += 1
        }
      }
      last = end.identity
    }
  }
}
