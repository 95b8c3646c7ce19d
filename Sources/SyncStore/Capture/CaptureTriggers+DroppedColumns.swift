import SyncModel

/// Triggers remain valid when a program drops a column.
extension CaptureTriggers {
  /// Returns tables without rows that have columns of the names of this table's columns.
  ///
  /// SQLite refuses `DROP COLUMN` if a name in a trigger then means nothing. In a query without
  /// FROM, `OLD.a` is the row's value if the row has the column. Otherwise it is the column of that
  /// name in a table `OLD` of the query around it. `WHERE 0` costs less than a row, and `count(*)`
  /// makes a result of no rows.
  func absent(_ rows: [String], _ positions: [Int]) -> String {
    let columns = positions.map { "NULL AS \(quoted(table.columns[$0].name))" }
    return rows.map { "(SELECT \(columns.joined(separator: ", "))) AS \($0)" }
      .joined(separator: ", ")
  }

  /// Returns a term that has the value of another one, and is valid too if columns of the rows
  /// that the other one names have gone.
  func fallingBack(to rows: [String], _ term: String, _ positions: [Int]) -> String {
    "(SELECT CASE WHEN count(*) THEN NULL ELSE (SELECT \(term)) END "
      + "FROM \(absent(rows, positions)) WHERE 0)"
  }
}
