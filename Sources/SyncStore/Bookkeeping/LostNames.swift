import GRDB
import SyncModel

/// The names of tables and columns that this store has lost together with their values
/// (`docsync_lost`).
enum LostNames {
  static let definition = TableDefinition(
    "docsync_lost", .document, columns: [.text("wire"), .text("col")],
    constraint: "PRIMARY KEY (wire, col)", isWithoutRowID: true)

  /// Records a column of a table, by their names in change sets; `nil` stands for the table's rows.
  static func note(_ column: SQLName?, of table: SQLName, _ database: Database) throws {
    try database.execute(
      sql: "INSERT OR IGNORE INTO docsync_lost (wire, col) VALUES (?, ?)",
      arguments: [table, column ?? ""])
  }

  /// Returns the recorded names; a column is `nil` for the table's rows.
  static func all(_ database: Database) throws -> [(table: SQLName, column: SQLName?)] {
    try StoredRow.fetchAll(database, sql: "SELECT wire, col FROM docsync_lost").map { row in
      let column: SQLName = try row["col"]
      return (try row["wire"], column == "" ? nil : column)
    }
  }

  static func forget(_ table: SQLName, _ database: Database) throws {
    try database.execute(sql: "DELETE FROM docsync_lost WHERE wire = ?", arguments: [table])
  }

  /// Returns the recorded names of what a schema has, as the schema spells them.
  static func names(in schema: StoreSchema, _ database: Database) throws -> [SQLName] {
    try all(database).compactMap { name, column -> SQLName? in
      guard let table = schema.table(wireName: name) else { return nil }
      guard let column else { return table.name }
      return table.columns.first { $0.wireName == column }.map {
        "\(table.name).\($0.name)" as SQLName
      }
    }
  }
}
