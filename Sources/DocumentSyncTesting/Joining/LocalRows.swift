import SyncModel

/// The rows of the excluded tables of a database.
struct LocalRows {
  private struct Mark {
    var value: Value
    /// The token of the row to which it refers.
    var token: String?
  }

  private let schema: FleetSchema
  /// The rows of tables that refer to no other table, as text.
  private var rows: [SQLName: [String]] = [:]
  private var marks: [SQLName: [Value: Mark]] = [:]

  init(of database: FleetSQLite, _ schema: FleetSchema) throws {
    self.schema = schema
    for table in schema.tables where table.isLocal {
      rows[table.name] = try database.rows(
        "SELECT \(table.names(table.settable)) FROM \(table.name.sql)"
      ).map { $0.map(\.sqlDescription).joined(separator: ", ") }.sorted()
    }
    for table in schema.markTables {
      let parent = table.parent.sql
      let hasToken = schema.table(table.parent) != nil
      for row in try database.rows(
        "SELECT m.id, m.p, \(hasToken ? "p.token" : "NULL") FROM \(table.name.sql) AS m "
          + "LEFT JOIN \(parent) AS p ON p.\(table.parentKey.sql) = m.p")
      {
        marks[table.name, default: [:]][row[0]] = Mark(value: row[1], token: row[2].string)
      }
    }
  }

  /// Throws if the rows are not those that the database had before, or do not refer to the same rows.
  /// Returns the number of references that it has followed.
  ///
  /// - Parameter place: Returns the token of the row that a row of the database has become, by its
  ///   table and token; `nil` if the document refused it.
  func check(since former: LocalRows, _ place: (SQLName, String) -> String?) throws -> Int {
    guard rows == former.rows else {
      throw FleetFailure(.merged, "an excluded table has other rows: \(rows), \(former.rows)")
    }
    var followed = 0
    for table in schema.markTables {
      let (old, new) = (former.marks[table.name] ?? [:], marks[table.name] ?? [:])
      guard Set(new.keys).isSubset(of: old.keys) else {
        throw FleetFailure(.merged, "\(table.name) has more rows")
      }
      for (id, mark) in old {
        if new[id] == nil, table.isUnique {
          // The row to which another one refers by now, or may refer.
          let row = mark.token.flatMap { place(table.parent, $0) }
          if row.map({ token in new.values.contains { $0.token == token } }) ?? true { continue }
        }
        if let token = mark.token {
          guard let expected = place(table.parent, token) else { continue }
          followed += 1
          if new[id]?.token == expected { continue }
        } else if new[id]?.value == mark.value {
          continue
        }
        throw FleetFailure(
          .merged,
          "\(table.name) \(id.sqlDescription) referred to \(mark.token ?? mark.value.sqlDescription)"
            + ", and refers to \(new[id]?.token ?? new[id]?.value.sqlDescription ?? "nothing")")
      }
    }
    return followed
  }
}
