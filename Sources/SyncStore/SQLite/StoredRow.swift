import Foundation
import GRDB
import SyncModel

/// A row that was read from the store. It checks its values when they are read: any program may
/// have written to the tables of bookkeeping.
///
/// A value of another type than asked for throws ``StoreError/Code/damaged``, with the name of the
/// table, whereas GRDB's own rows end the process.
struct StoredRow {
  private let row: Row
  private let sql: String

  /// Returns the value of a column, by its name in the query.
  subscript<Value: DatabaseValueConvertible>(_ column: String) -> Value {
    get throws {
      guard row.hasColumn(column) else { throw StoreError(damagedIn: sql, "no column \(column)") }
      return try converted(row[column], column)
    }
  }

  /// Returns the value of a column, by its position in the query.
  subscript<Value: DatabaseValueConvertible>(_ column: Int) -> Value {
    get throws {
      guard column < row.count else { throw StoreError(damagedIn: sql, "no column \(column)") }
      return try converted(row[column], "\(column)")
    }
  }

  private func converted<Value: DatabaseValueConvertible>(
    _ stored: DatabaseValue, _ column: String
  ) throws -> Value {
    guard let value = Value.fromDatabaseValue(stored) else {
      throw StoreError(damagedIn: sql, "\(column) holds \(stored), which is not a \(Value.self)")
    }
    return value
  }

  /// The values of all columns, by name.
  var values: [String: DatabaseValue] {
    Dictionary(row.map { ($0.0, $0.1) }) { first, _ in first }
  }

  /// Returns all rows of a query, whose statement the connection keeps for the next time.
  static func fetchAll(
    _ database: Database, sql: String, arguments: StatementArguments = StatementArguments()
  ) throws -> [StoredRow] {
    try Row.fetchAll(database.cachedStatement(sql: sql), arguments: arguments).map {
      StoredRow(row: $0, sql: sql)
    }
  }

  /// Returns the first row of a query, or `nil` if there is none. The connection keeps the statement
  /// for the next time.
  static func fetchOne(
    _ database: Database, sql: String, arguments: StatementArguments = StatementArguments()
  ) throws -> StoredRow? {
    try Row.fetchOne(database.cachedStatement(sql: sql), arguments: arguments).map {
      StoredRow(row: $0, sql: sql)
    }
  }
}

extension StoreError {
  /// Creates the error for invalid data in a bookkeeping table.
  package init(damagedTable table: String, path: String = "", _ detail: String) {
    self.init(
      .damaged, path: path,
      message: "The store's bookkeeping is damaged: the table “\(table)” holds an invalid value.",
      remedy: "See what is wrong with \(.verify). Restore the file from a backup, or fetch "
        + "the document again with \(.joinReplacing), which keeps this file beside it, and "
        + "copy over what was edited here.", detail: detail)
  }

  /// Creates the error for the table that a text names first: a query, or an error that contains
  /// one.
  init(damagedIn text: String, path: String = "", _ detail: String) {
    let name = text.range(of: "docsync_").map { start in
      text[start.lowerBound...].prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
    }
    self.init(damagedTable: name.map(String.init) ?? "sqlite_schema", path: path, detail)
  }
}
