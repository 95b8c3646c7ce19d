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
}
