import GRDB

extension Database {
  /// Runs `body` in a transaction that ends as `completion` says, and returns its result. If `body`
  /// throws, the transaction is rolled back.
  func transaction<Result>(
    _ kind: TransactionKind, _ completion: TransactionCompletion = .commit,
    _ body: () throws -> Result
  ) throws -> Result {
    var result: Result?
    try inTransaction(kind) {
      result = try body()
      return completion
    }
    guard let result else {
      throw DatabaseError(resultCode: .SQLITE_INTERNAL, message: "no result")
    }
    return result
  }

  /// Runs `body` within a transaction, as a whole or not at all: if it throws, what it has written is
  /// undone. Throws ``TransactionEnded`` if SQLite has rolled back the transaction.
  func atomically<Result>(_ body: () throws -> Result) throws -> Result {
    try execute(sql: "SAVEPOINT docsync")
    do {
      let result = try body()
      try execute(sql: "RELEASE docsync")
      return result
    } catch {
      try TransactionEnded.check(self, after: error)
      try execute(sql: "ROLLBACK TO docsync; RELEASE docsync")
      throw error
    }
  }
}
