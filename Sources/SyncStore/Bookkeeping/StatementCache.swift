import GRDB
import SyncModel

/// Statements of one transaction, each prepared once.
///
/// A statement has one use at a time: a caller reads all its rows before it calls anything else.
final class StatementCache {
  let database: Database
  private var statements: [String: SQLStatement] = [:]

  init(_ database: Database) { self.database = database }

  func statement(_ sql: String) throws -> SQLStatement {
    if let statement = statements[sql] { return statement }
    let statement = try SQLStatement(sql, on: database)
    statements[sql] = statement
    return statement
  }
}

extension SQLStatement {
  /// Binds a row's table number and identity to two parameters, from a position on.
  func bind(_ row: RowKey, at position: Int = 1) {
    bind(Int64(row.table), at: position)
    bind(blob: row.identity.bytes, at: position + 1)
  }

  /// Returns the identities in the first column of all rows.
  func identities() throws -> [RowIdentity] {
    var found: [RowIdentity] = []
    while try step() { found.append(RowIdentity(bytes: bytes(at: 0))) }
    return found
  }
}
