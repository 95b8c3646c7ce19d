import SyncModel

/// The making of a report on the state of a store.
struct StatusReport {
  private let session: StoreSession
  private let configuration: StoreConfiguration

  init(_ session: StoreSession) throws {
    self.session = session
    configuration =
      try MetaTable.value(.configuration, session.database) ?? StoreConfiguration()
  }

  /// - Parameter waiting: The change sets that wait.
  func make(waiting: [StoreStatus.WaitingChangeSet]) throws -> StoreStatus {
    let schema = session.schema
    var status = StoreStatus(
      unsealedEdits: try session.editCount(),
      unpublishedChangeSets: try session.outbox.unpublishedCount(),
      head: try session.ownHead()?.number ?? 0, vector: try session.appliedVector(),
      waiting: waiting, parked: try ParkedRows(session).all(),
      tables: schema.tables.map { $0.status(configuration) }, leftOut: schema.leftOut)
    status.openConflicts = try session.conflicts.journal.openCount
    status.conflictArchiveProblem = try session.conflicts.journal.archiveWarning()?.message
    status.unknownNames = try session.foreign.unknownNames(schema)
    status.unsuitableTables = schema.unsuitableTables
    status.heldEdits = try session.heldEdits().reports(session)
    status.incompleteNames = try LostNames.names(in: schema, session.database)
    for table in schema.tables {
      let count = try session.rowsWithoutKey(table)
      if count > 0 { status.rowsWithoutKey[table.name] = count }
    }
    return status
  }
}
