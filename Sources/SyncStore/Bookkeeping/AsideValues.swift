import Foundation
import GRDB
import SyncModel

/// Values of excluded columns, of rows that are hidden, or were gone after the store exchanged its
/// content (`docsync_aside`). If such a row returns, the store puts its values back.
struct AsideValues {
  static let definition = TableDefinition(
    "docsync_aside", .device(.store), version: 2,
    columns: [.text("wire"), .blob("identity"), .text("col"), .any("value")],
    constraint: "PRIMARY KEY (wire, identity, col)", isWithoutRowID: true)

  let statements: StatementCache

  /// Returns the values stored for a row, by column.
  ///
  /// - Parameter wireName: The name of the row's table in change sets.
  func values(
    of identity: RowIdentity, in wireName: SQLName
  ) throws -> [(column: SQLName, value: Value)] {
    let reading = try statements.statement(
      "SELECT col, value FROM docsync_aside WHERE wire = ? AND identity = ?")
    reading.bind(.text(wireName.text), at: 1)
    reading.bind(blob: identity.bytes, at: 2)
    var waiting: [(column: SQLName, value: Value)] = []
    while try reading.step() {
      waiting.append((SQLName(reading.text(at: 0)), reading.value(at: 1)))
    }
    return waiting
  }

  func remove(_ column: SQLName, of identity: RowIdentity, in wireName: SQLName) throws {
    let removal = try statements.statement(
      "DELETE FROM docsync_aside WHERE wire = ? AND identity = ? AND col = ?")
    removal.bind(.text(wireName.text), at: 1)
    removal.bind(blob: identity.bytes, at: 2)
    removal.bind(.text(column.text), at: 3)
    try removal.run()
  }

  func store(
    _ value: Value, in column: SQLName, of identity: RowIdentity, in wireName: SQLName
  ) throws {
    let insertion = try statements.statement(
      "INSERT OR REPLACE INTO docsync_aside (wire, identity, col, value) VALUES (?, ?, ?, ?)")
    insertion.bind(.text(wireName.text), at: 1)
    insertion.bind(blob: identity.bytes, at: 2)
    insertion.bind(.text(column.text), at: 3)
    insertion.bind(value, at: 4)
    try insertion.run()
  }

  /// Removes the values of a row.
  func removeAll(of identity: RowIdentity, in wireName: SQLName) throws {
    let removal = try statements.statement(
      "DELETE FROM docsync_aside WHERE wire = ? AND identity = ?")
    removal.bind(.text(wireName.text), at: 1)
    removal.bind(blob: identity.bytes, at: 2)
    try removal.run()
  }

  /// Gives the values of a row to another identity, and removes those that it had.
  func rename(
    _ former: RowIdentity, to present: RowIdentity, in wireName: SQLName
  ) throws {
    try Self.rename(former, to: present, in: wireName, statements.database)
  }

  /// Stores the values of a column, with the identities of their rows. The caller gives both as SQL
  /// terms over `source`.
  static func store(
    _ column: SQLName, in wireName: SQLName, identity: String, value: String, from source: String,
    _ database: Database
  ) throws {
    try database.execute(
      sql: "INSERT OR REPLACE INTO main.docsync_aside (wire, identity, col, value) "
        + "SELECT ?, \(identity), ?, \(value) FROM \(source)",
      arguments: [wireName, column])
  }

  /// Returns the rows of a table for which values are stored.
  static func identities(in wireName: SQLName, _ database: Database) throws -> [RowIdentity] {
    let statement = try SQLStatement(
      "SELECT DISTINCT identity FROM docsync_aside WHERE wire = ?", on: database)
    statement.bind(.text(wireName.text), at: 1)
    return try statement.identities()
  }

  /// Gives the values of a row to another identity.
  static func rename(
    _ former: RowIdentity, to present: RowIdentity, in wireName: SQLName, _ database: Database
  ) throws {
    try database.execute(
      sql: "UPDATE OR REPLACE docsync_aside SET identity = ? WHERE wire = ? AND identity = ?",
      arguments: [Data(present.bytes), wireName, Data(former.bytes)])
  }

  /// Removes the values in columns that are no longer excluded, or no longer exist.
  static func removeAll(
    in wireName: SQLName, except excluded: [SQLName], _ database: Database
  ) throws {
    try database.execute(
      sql: "DELETE FROM docsync_aside WHERE wire = ? AND col NOT IN "
        + "(\(excluded.map { _ in "?" }.joined(separator: ", ")))",
      arguments: StatementArguments([wireName] + excluded))
  }
}
