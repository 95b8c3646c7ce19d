import CSQLite
import GRDB

/// SQLite has rolled back the transaction by itself.
///
/// It does so when there is no space left, when the file cannot be read or
/// written, when memory runs out, and where a trigger or a condition says
/// ROLLBACK. What was written before is gone, and what is written afterwards
/// would stand alone. So this is no ``DatabaseError``: who passes over one of
/// those and goes on does not pass over this.
struct TransactionEnded: Error {
  /// What failed.
  var cause: DatabaseError

  /// Throws what explains it if the transaction is over that `body` has begun
  /// in.
  static func check(_ database: Database, after error: (any Error)? = nil) throws {
    guard sqlite3_get_autocommit(database.sqliteConnection) != 0 else { return }
    if let ended = error as? TransactionEnded { throw ended }
    throw TransactionEnded(
      cause: error as? DatabaseError
        ?? DatabaseError(
          resultCode: .SQLITE_ABORT_ROLLBACK, message: "the transaction is over already"))
  }
}
