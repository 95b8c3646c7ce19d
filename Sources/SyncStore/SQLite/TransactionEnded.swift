import CSQLite
import GRDB

/// The error that SQLite has rolled back the transaction by itself.
///
/// It does so when there is no space left, when the file cannot be read or written, when memory
/// runs out, and when a trigger or a condition contains ROLLBACK. Earlier writes of the
/// transaction are lost, and later ones would stand alone. So this is no ``DatabaseError``: code
/// that ignores a `DatabaseError` and goes on does not ignore this.
struct TransactionEnded: Error {
  /// What failed.
  var cause: DatabaseError

  /// Throws ``TransactionEnded`` if the transaction is over.
  static func check(_ database: Database, after error: (any Error)? = nil) throws {
    guard sqlite3_get_autocommit(database.sqliteConnection) != 0 else { return }
    if let ended = error as? TransactionEnded { throw ended }
    throw TransactionEnded(
      cause: error as? DatabaseError
        ?? DatabaseError(
          resultCode: .SQLITE_ABORT_ROLLBACK, message: "the transaction is over already"))
  }
}
