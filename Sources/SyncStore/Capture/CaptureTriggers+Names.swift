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
  ///
  /// The names fall back to a table without rows, so that columns can be dropped. Statements that
  /// change a key are rare: SQLite compiles the trigger into each statement of its event.
  var creation: String {
    let names = table.columns.map(\.name) + table.excludedColumns.sorted()
    let bits = Dictionary(
      zip(table.columns.map(\.name), table.columns.indices), uniquingKeysWith: min)
    let order = table.allColumns.compactMap { bits[$0].map(String.init) }.joined(separator: ",")
    let absent =
      names.isEmpty ? "1" : names.map { "NULL AS \(quoted($0))" }.joined(separator: ", ")
    return "CREATE TRIGGER \(Self.name(table.id)) AFTER UPDATE OF \(quoted(table.keyColumns[0])) "
      + "ON \(table.quotedName) WHEN 0 "
      + "BEGIN SELECT '\(definitions)', '\(order)', "
      + "(SELECT CASE WHEN count(*) THEN 0 ELSE \(queries) END "
      + "FROM (SELECT \(absent)) AS OLD WHERE 0); END"
  }

  /// An SQL term that names the columns. SQLite limits the terms of a query to the number of columns
  /// that a table may have.
  private var queries: String {
    let terms =
      ["'columns'"] + table.columns.map { "OLD.\(quoted($0.name))" } + ["'excluded'"]
      + table.excludedColumns.sorted().map { "OLD.\(quoted($0))" }
    return stride(from: 0, to: terms.count, by: 1_000).map {
      let group = terms[$0..<min($0 + 1_000, terms.count)].joined(separator: ", ")
      return "EXISTS (SELECT \(group))"
    }.joined(separator: " + ")
  }

  private var definitions: String {
    table.columns.map { column in
      Self.definition(
        affinity: column.affinity, isNotNull: column.isNotNull, default: column.defaultExpression,
        collation: column.collation)
    }.joined(separator: ",")
  }

  /// Returns a short text that differs for columns of different definitions.
  static func definition(
    affinity: ColumnSchema.Affinity, isNotNull: Bool, default expression: String?,
    collation: String?
  ) -> String {
    let collation = collation?.uppercased() ?? "BINARY"
    let text = "\(affinity.rawValue) \(isNotNull) \(collation) \(expression ?? "")"
    return String(ContentHash(of: Array(text.utf8)).description.prefix(8))
  }

  /// The names that such a trigger contains now.
  struct Content {
    /// The table's name.
    var table: SQLName
    /// The names of the synchronized columns, by bit.
    var columns: [SQLName] = []
    /// The names of columns that stay on this device.
    var excluded: [SQLName] = []
    /// The bits of the columns in the order in which the table had them.
    var order: [Int] = []
    /// The definitions of the columns, by bit: see
    /// ``NamesTrigger/definition(affinity:isNotNull:default:collation:)``.
    var definitions: [String] = []
    /// Whether an earlier build made the trigger, which did not let columns be dropped.
    var isOfEarlierBuild = true

    /// Reads the names, each as `OLD.a`, and before them, unless an earlier build made the trigger,
    /// the definitions and the order of the columns.
    fileprivate mutating func read(_ tokens: ArraySlice<SQLTokens.Token>) {
      var isExcluded = false
      for position in tokens.indices.dropLast(2) {
        let token = tokens[position]
        if token.kind == .string, token.text == "excluded" { isExcluded = true }
        guard token.isWord("OLD"), tokens[position + 1].isSymbol(".") else { continue }
        if isExcluded {
          excluded.append(tokens[position + 2].name)
        } else {
          columns.append(tokens[position + 2].name)
        }
      }
      let texts = tokens.lazy.filter { $0.kind == .string }.prefix(2).map(\.text)
      guard let first = texts.first, let second = texts.last, first != "columns" else { return }
      isOfEarlierBuild = false
      definitions = first.split(separator: ",").map(String.init)
      order = second.split(separator: ",").compactMap { Int($0) }
    }
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
      content.read(tokens[(tokens.firstIndex { $0.isWord("BEGIN") } ?? tokens.endIndex)...])
      result[id] = content
    }
    return result
  }
}
