import GRDB
import SyncModel

/// A trigger that does nothing and names the columns of its table, so that SQLite keeps the names
/// up to date.
///
/// On `RENAME TO` and `RENAME COLUMN` SQLite rewrites the text of every
/// trigger. The other triggers of ``CaptureTriggers`` show only that something
/// was renamed; this one shows what.
///
/// <https://www.sqlite.org/lang_altertable.html>
struct NamesTrigger {
  let table: TableSchema

  /// Returns the trigger's name for the table with a number.
  static func name(_ id: Int) -> String { "docsync_\(id)_nm" }

  /// The statement that makes it, as SQLite keeps it.
  var creation: String {
    let columns = table.columns.map { "OLD.\(quoted($0.name))" }
    let excluded = table.excludedColumns.sorted().map { "OLD.\(quoted($0))" }
    let terms = ["'columns'"] + columns + ["'excluded'"] + excluded
    return "CREATE TRIGGER \(Self.name(table.id)) AFTER DELETE ON \(table.quotedName) WHEN 0 "
      + "BEGIN SELECT \(terms.joined(separator: ", ")); END"
  }

  /// The names that such a trigger contains now.
  struct Content {
    /// The table's name.
    var table: SQLName
    /// The names of the synchronized columns, by bit.
    var columns: [SQLName] = []
    /// The names of columns that stay on this device.
    var excluded: [SQLName] = []
  }

  /// Reads the triggers of all tables, by the tables' numbers.
  static func contents(_ database: Database) throws -> [Int: Content] {
    var result: [Int: Content] = [:]
    let rows = try Row.fetchAll(
      database,
      sql: "SELECT name, tbl_name, sql FROM main.sqlite_schema "
        + "WHERE type = 'trigger' AND name GLOB 'docsync_[0-9]*_nm'")
    for row in rows {
      guard let id = Int((row["name"] as String).dropFirst(8).dropLast(3)) else { continue }
      var content = Content(table: row["tbl_name"])
      let tokens = SQLTokens(row["sql"]).tokens
      let start = tokens.firstIndex { $0.isWord("BEGIN") } ?? tokens.endIndex
      var isExcluded = false
      for position in tokens.indices[start...].dropLast(2) {
        let token = tokens[position]
        if token.kind == .string, token.text == "excluded" { isExcluded = true }
        guard token.isWord("OLD"), tokens[position + 1].isSymbol(".") else { continue }
        if isExcluded {
          content.excluded.append(tokens[position + 2].name)
        } else {
          content.columns.append(tokens[position + 2].name)
        }
      }
      result[id] = content
    }
    return result
  }
}
