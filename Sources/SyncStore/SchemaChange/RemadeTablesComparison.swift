import SyncModel

/// A comparison of remade tables with another store of the document: see
/// ``LocalStore/compare(_:with:checkCancellation:)``.
struct RemadeTablesComparison {
  let session: StoreSession
  let former: StoreSession
  let checkCancellation: () throws -> Void

  /// Logs the differences of the remade tables with these names.
  func run(_ names: Set<SQLName>) throws {
    let vector = try former.clients.vector()
    try session.goneKeys.freeThoseOfHiddenRows(onlyTaken: true)
    let remade = try session.remadeTables().filter { names.contains($0.table.name) }
    try giveLoggedRowsTheirKeys()
    for (table, noticed) in remade {
      try checkCancellation()
      let known = try session.vector(beforeRemakeOf: table.id)
      guard
        let comparison = try RemakeComparison(
          table, session: session, former: former, noticed: noticed,
          isExact: vector.contains(known) && known.contains(vector),
          checkCancellation: checkCancellation)
      else {
        try SchemaArrival(session: session).logRows(of: table.id, noticed: noticed)
        continue
      }
      try comparison.run()
    }
    try session.forgetRemadeTables(remade.map(\.table.id))
    try session.forgetEarlierKeys()
  }

  /// Makes the keys of rows stand for these rows as they will when the log is sealed: keys of new
  /// rows, and keys that rows had until an edit in the log.
  private func giveLoggedRowsTheirKeys() throws {
    for table in session.schema.tables {
      switch table.identity {
      case .surrogate: try session.assignLoggedIdentities(table)
      case .columns: try session.access(table.id).rememberEarlierKeys()
      case .primaryKey: continue
      }
    }
  }
}
