extension FleetSQLite {
  /// Runs statements as one program does, several in one transaction. Gives
  /// those that were accepted; the program passes over the others.
  func edit(_ statements: [String], hasForeignKeys: Bool) throws -> [String] {
    try run("PRAGMA foreign_keys = \(hasForeignKeys ? "ON" : "OFF")")
    guard statements.count > 1 else { return accepted(statements) }
    try run("BEGIN")
    let statements = accepted(statements)
    guard isInTransaction else { return [] }
    do {
      try run("COMMIT")
      return statements
    } catch is FleetSQLite.Refusal {
      // A deferred foreign key; the program gives up.
      try run("ROLLBACK")
      return []
    }
  }

  private func accepted(_ statements: [String]) -> [String] {
    statements.filter { statement in
      do {
        try run(statement)
        return true
      } catch {
        // Refused by the schema, as many are.
        return false
      }
    }
  }
}
