import GRDB
import SyncModel

/// A check that the values in bookkeeping have the types and ranges that its readers expect: SQLite
/// stores values of any type, and conversions would fail.
struct BookkeepingTypes {
  let database: Database
  /// The version of the layout.
  let format: Int

  /// Returns a sentence for each table that has values of other types or out of range.
  func run() throws -> [(name: SQLName, message: String)] {
    try Bookkeeping.tables.filter { $0.version <= format }.compactMap { table in
      let terms = Self.damage(of: table)
      guard !terms.isEmpty else { return nil }
      let count =
        try Int.fetchOne(
          database,
          sql: "SELECT count(*) FROM main.\(table.name) WHERE \(terms.joined(separator: " OR "))")
        ?? 0
      return count == 0
        ? nil
        : (
          SQLName(table.name),
          "\(count) rows hold values that they should not, by their types or sizes."
        )
    }
  }

  /// Returns SQL terms that are true for a row with a value of another type or out of range.
  private static func damage(of table: TableDefinition) -> [String] {
    guard let damage = table.damage else { return [] }
    return table.columns.flatMap(Self.damage) + damage
  }

  private static func damage(of column: TableDefinition.Column) -> [String] {
    let name = quoted(SQLName(column.name))
    var terms: [String] = []
    // SQLite itself checks the type of an integer primary key.
    if !column.type.isEmpty, column.type != "INTEGER" || column.rule != "PRIMARY KEY" {
      let types = [column.type.lowercased()] + (column.isOptional ? ["null"] : [])
      terms.append("typeof(\(name)) NOT IN (\(types.map(literal).joined(separator: ", ")))")
    }
    switch column.role {
    case .client: terms.append("\(name) NOT BETWEEN 0 AND \(Int32.max)")
    case .number: terms.append("\(name) NOT BETWEEN 0 AND \(Int64.max >> 1)")
    case .column, .position:
      terms.append("\(name) NOT BETWEEN 0 AND \(ConflictTable.localKeyPosition)")
    case .table: terms.append("\(name) NOT IN (SELECT id FROM main.\(TableRegistry.tables.name))")
    case .plain, .row, .parent, .journalTable, .cells: break
    }
    return terms
  }
}
