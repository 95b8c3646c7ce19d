import GRDB
import SyncModel

/// The evaluation of the terms and conditions of a table's indexes, and of the table's own
/// conditions, on rows that are not in the table.
///
/// It puts the row into a temporary table with the same columns, since an expression means
/// something else without the affinities and collations of its columns, and may read generated
/// ones.
final class RowEvaluation {
  private let table: TableSchema
  private let database: Database
  private let clearing: SQLStatement
  private let inserting: SQLStatement
  private var reading: [Int: SQLStatement] = [:]
  private var checking: SQLStatement?
  private var name: String { "temp.\"docsync_row_\(table.id)\"" }

  init(table: TableSchema, database: Database) throws {
    self.table = table
    self.database = database
    let name = "temp.\"docsync_row_\(table.id)\""
    let columns = table.columns.map {
      Self.declaration($0.name, $0.affinity, $0.collation)
    }
    let generated = table.generatedColumns.map {
      Self.declaration($0.name, $0.affinity, $0.collation) + " AS (\($0.expression))"
    }
    // Excluded columns are never read here, but generated ones may name them.
    let excluded = table.allColumns.filter { name in
      table.excludedColumns.contains(name.folded)
        || name.folded == table.localKey?.folded
    }.map(quoted)
    try database.execute(sql: "DROP TABLE IF EXISTS \(name)")
    try database.execute(
      sql: "CREATE TABLE \(name) (\((columns + generated + excluded).joined(separator: ", ")))")
    clearing = try SQLStatement("DELETE FROM \(name)", on: database)
    inserting = try SQLStatement(
      "INSERT INTO \(name) (\(table.columns.map { quoted($0.name) }.joined(separator: ", "))) "
        + "VALUES (\(table.columns.map { _ in "?" }.joined(separator: ", ")))", on: database)
  }

  private static func declaration(
    _ name: SQLName, _ affinity: ColumnSchema.Affinity, _ collation: String
  ) -> String {
    "\(quoted(name)) \(affinity.rawValue) COLLATE \(collation)"
  }

  private func set(_ values: [Value]) throws {
    try clearing.run()
    for (position, value) in values.enumerated() { inserting.bind(value, at: position + 1) }
    try inserting.run()
  }

  /// Returns why the table would refuse a row with these local values, in order of column; `nil` if
  /// no NOT NULL and no CHECK refuses it.
  func refusal(of values: [Value]) throws -> ParkedRow.Reason? {
    for (column, value) in zip(table.columns, values) where column.isNotNull && value == .null {
      return .notNull
    }
    guard !table.checks.isEmpty else { return nil }
    try set(values)
    if checking == nil {
      checking = try SQLStatement(
        "SELECT \(table.brokenChecks.balanced(by: "OR")) FROM \(name) AS \(table.quotedName)",
        on: database)
    }
    guard let checking, try checking.step() else { return nil }
    defer { checking.reset() }
    return checking.integer(at: 0) != 0 ? .check : nil
  }

  /// Returns the terms of an index for a row with these local values, in order of column; `nil` if
  /// the index's condition leaves the row out.
  func terms(of index: UniqueIndex, values: [Value]) throws -> [Value]? {
    try set(values)
    let statement = try statement(index)
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    return index.terms.indices.map { statement.value(at: $0) }
  }

  private func statement(_ index: UniqueIndex) throws -> SQLStatement {
    if let statement = reading[index.ordinal] { return statement }
    let statement = try SQLStatement(
      "SELECT \(index.terms.joined(separator: ", ")) FROM \(name) AS \(table.quotedName)"
        + (index.condition.map { " WHERE \($0)" } ?? ""), on: database)
    reading[index.ordinal] = statement
    return statement
  }
}
