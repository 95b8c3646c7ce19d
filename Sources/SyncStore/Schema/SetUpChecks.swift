import GRDB
import SyncModel

/// The checks of a table before its database is put under sync.
struct SetUpChecks {
  let table: TableSchema
  let path: String

  func run(_ database: Database) throws {
    if case .columns = table.identity { try checkUniqueness(database) }
  }

  private func checkUniqueness(_ database: Database) throws {
    let columns = table.keyColumns
    let names = columns.joined(separator: ",")
    var isIndexed = false
    for index in try Row.fetchAll(
      database, sql: "PRAGMA main.index_list(\(quoted(table.name)))")
    where (index["unique"] as Int) != 0 && (index["partial"] as Int) == 0 {
      let terms = try Row.fetchAll(
        database, sql: "PRAGMA main.index_info(\(quoted(index["name"])))")
      let indexed = terms.map { ($0["name"] as SQLName?)?.folded }
      if Set(indexed) == Set(columns.map { Optional($0.folded) }) { isIndexed = true }
    }
    guard !isIndexed else { return }
    throw StoreError(
      .badConfiguration, path: path,
      message: "The columns \(names) of \(quoted(table.name)) are not declared unique, and so "
        + "cannot identify its rows.",
      remedy: "Create a unique index on exactly these columns first.")
  }

  /// Refuses excluded columns of the key, and those that do not exist: with a misspelt name, a
  /// column that is to stay here would be shared. The application may drop a column later, so this is not checked again.
  static func checkExclusions(
    _ configuration: StoreConfiguration, _ database: Database, path: String
  ) throws {
    for (table, columns) in configuration.excludedColumns.sorted(by: { $0.key < $1.key }) {
      let rows = try Row.fetchAll(database, sql: "PRAGMA main.table_xinfo(\(quoted(table)))")
      let present = rows.map { $0["name"] as SQLName }
      let known = Set(present.map { $0.folded })
      let key = Set(rows.filter { ($0["pk"] as Int) > 0 }.map { ($0["name"] as SQLName).folded })
      for column in columns.sorted() {
        guard known.contains(column.folded) else {
          throw StoreError(
            .badConfiguration, path: path,
            message: "There is no column \(quoted(column)) in \(quoted(table)).",
            remedy: "Name one of: \(present.joined(separator: ", ")).")
        }
        guard !key.contains(column.folded) else {
          throw StoreError(
            .badConfiguration, path: path,
            message: "\(quoted(table)).\(quoted(column)) identifies the rows and cannot be "
              + "excluded.",
            remedy: "Exclude the whole table with \(.exclude(table)), or keep the column.")
        }
      }
    }
  }

  /// Refuses references to rows with NULL in their key: no other device has these rows, so that the
  /// rows that refer to them would be hidden, here too.
  static func checkReferencesToRowsWithoutKey(
    _ schema: StoreSchema, _ database: Database, path: String
  ) throws {
    for child in schema.tables {
      for reference in child.foreignKeys {
        let parent = schema[reference.parent]
        guard parent.canLoseKeys else { continue }
        let match = zip(reference.parentColumns, reference.columns).map {
          "p.\(quoted($0)) = c.\(quoted(child.columns[$1].name))"
        }
        let named = child.canLoseKeys ? " AND NOT (\(child.isWithoutKey("c")))" : ""
        let count =
          try Int.fetchOne(
            database,
            sql: "SELECT count(*) FROM \(child.quotedName) AS c WHERE EXISTS (SELECT 1 FROM "
              + "\(parent.quotedName) AS p WHERE \(match.joined(separator: " AND ")) "
              + "AND (\(parent.isWithoutKey("p"))))\(named)") ?? 0
        guard count > 0 else { continue }
        throw StoreError(
          .unsupportedSchema, path: path,
          message: "\(count) \(count == 1 ? "row" : "rows") of \(quoted(child.name)) "
            + "\(count == 1 ? "refers" : "refer") to rows of \(quoted(parent.name)) whose key is "
            + "NULL, so that no other device can have these.",
          remedy: "Give them keys, or leave the table out with \(.exclude(child.name)).")
      }
    }
  }

  /// Refuses references that lead nowhere: they would hide their rows on other devices.
  static func checkForeignKeys(
    _ schema: StoreSchema, _ database: Database, path: String
  ) throws {
    var broken: [String] = []
    var count = 0
    for table in schema.tables {
      let rows = try Row.fetchAll(
        database, sql: "PRAGMA main.foreign_key_check(\(quoted(table.name)))")
      count += rows.count
      let parents = Dictionary(grouping: rows) { row in row["parent"] as SQLName }
      for (parent, rows) in parents.sorted(by: { $0.key < $1.key }) {
        broken.append("\(rows.count) from \(quoted(table.name)) to \(quoted(parent))")
      }
    }
    guard count > 0 else { return }
    throw StoreError(
      .foreignKeysBroken, path: path,
      message: "\(count) \(count == 1 ? "reference leads" : "references lead") to missing rows: "
        + broken.joined(separator: ", ") + ".",
      remedy: "List them with “PRAGMA foreign_key_check”, then mend or delete them.")
  }
}
