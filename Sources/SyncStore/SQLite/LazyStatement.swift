import GRDB

/// A statement that is prepared when it is first called for.
struct LazyStatement {
  private let sql: String
  private let database: Database
  private var prepared: SQLStatement?

  init(_ sql: String, on database: Database) {
    self.sql = sql
    self.database = database
  }

  mutating func callAsFunction() throws -> SQLStatement {
    if let prepared { return prepared }
    let statement = try SQLStatement(sql, on: database)
    prepared = statement
    return statement
  }
}
