import GRDB

/// A state of a database. Two are equal if no program wrote to the database in between.
struct DatabaseVersion: Equatable {
  /// Changes when another connection has written.
  private let version: Int?
  /// The number of rows that this connection has written.
  private let own: Int?

  init(_ database: Database) throws {
    version = try Int.fetchOne(database, sql: "PRAGMA main.data_version")
    own = try Int.fetchOne(database, sql: "SELECT total_changes()")
  }
}
