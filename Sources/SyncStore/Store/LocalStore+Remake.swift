import GRDB
import SyncModel

extension LocalStore {
  /// Returns the tables that a program has remade, and whose rows have to be compared with their
  /// former state before anything is applied.
  package func remadeTables() throws -> [RemadeTable] {
    try read { session in
      try session.remadeTables().map {
        RemadeTable(name: $0.table.name, vector: try session.vector(beforeRemakeOf: $0.table.id))
      }
    }
  }

  /// Logs all rows of ``remadeTables()`` with a time in 1970, since their former state is unknown.
  package func logRemadeTables() throws {
    try write { try UnseenRows(session: $0).logRemadeTables() }
  }

  /// Compares the rows of remade tables with those of another store of the document, and logs the
  /// differences, as edits at the time when the remake was noticed. The next sealing seals them.
  ///
  /// - Parameters:
  ///   - tables: Tables of ``remadeTables()`` that have the same vector.
  ///   - base: A store of the document that has applied the change sets of that vector, and no
  ///     others, as far as such a store can be made. Changes of other devices that are not here yet
  ///     take precedence over differences; where `base` has less, that is left as it is.
  package func compare(
    _ tables: [RemadeTable], with base: LocalStore,
    checkCancellation: @escaping () throws -> Void = {}
  ) throws {
    let names = Set(tables.map(\.name))
    try base.read { former in
      let vector = try former.clients.vector()
      try write { session in
        try session.goneKeys.freeThoseOfHiddenRows(onlyTaken: true)
        let remade = try session.remadeTables().filter { names.contains($0.table.name) }
        try session.giveLoggedRowsTheirKeys()
        for (table, noticed) in remade {
          try checkCancellation()
          let isExact = try vector.matches(session.vector(beforeRemakeOf: table.id))
          guard
            let comparison = try RemakeComparison(
              table, session: session, former: former, noticed: noticed, isExact: isExact,
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
    }
  }
}

extension StoreSession {
  /// Makes the keys of rows stand for these rows as they will when the log is sealed: keys of new
  /// rows, and keys that rows had until an edit in the log.
  fileprivate func giveLoggedRowsTheirKeys() throws {
    for table in schema.tables {
      switch table.identity {
      case .surrogate: try assignLoggedIdentities(table)
      case .columns: try access(table.id).rememberEarlierKeys()
      case .primaryKey: continue
      }
    }
  }
}

extension VersionVector {
  /// Returns whether both contain the same change sets.
  fileprivate func matches(_ other: VersionVector) -> Bool {
    contains(other) && other.contains(self)
  }
}
