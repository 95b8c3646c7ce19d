import SyncModel

extension StoreSession {
  /// Returns what only bookkeeping holds.
  func removalLoss() throws -> RemovalLoss {
    var loss = RemovalLoss()
    loss.parked = try keptRows.parked()
    for table in try foreign.all() { try foreign.count(table, schema, into: &loss.unknownRows) }
    loss.waitingChangeSets = try inbox.count()
    loss.conflicts = try ConflictTable.count(database)
    loss.openConflicts = try ConflictTable.openCount(database)
    loss.unsealedEdits = try editCount()
    loss.unpublishedChangeSets = try outbox.unpublishedCount()
    return loss
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
