import CSQLite
import GRDB
import SyncModel

/// Finds what the schema of another database of the document has and the store's lacks.
///
/// Tables and columns are compared by their names in change sets, since a device may have renamed
/// its own; indexes, triggers and views by their names.
struct MissingDefinitions {
  typealias Definition = StoreStatus.MissingSchema.Definition

  /// An entry of `sqlite_schema`.
  private struct Entry {
    var type: String
    var name: SQLName
    var table: SQLName
    var sql: String
  }

  private let here: StoreSchema
  /// All columns of each synchronized table here, with folded names.
  private let columnsHere: [SQLName: Set<SQLName>]
  /// The names of all tables, indexes, triggers and views here, folded.
  private let namesHere: Set<SQLName>

  /// Reads what the store has.
  init(_ session: StoreSession) throws {
    here = session.schema
    let entries = try Self.entries(session.database)
    namesHere = Set(entries.map { $0.name.folded })
    columnsHere = try Dictionary(
      uniqueKeysWithValues: here.tables.map { table in
        (
          table.name.folded,
          Set(try Self.columns(in: table.name, session.database).map { $0.name.folded })
        )
      })
  }

  /// Returns the definitions that another database has and the store lacks: tables, columns, then
  /// what needs them.
  func definitions(in other: StoreSchema, _ database: Database) throws -> [Definition] {
    let entries = try Self.entries(database)
    let creations = Dictionary(
      entries.filter { $0.type == "table" }.map { ($0.name.folded, $0.sql) },
      uniquingKeysWith: { first, _ in first })
    var tables: [Definition] = []
    var columns: [Definition] = []
    // The tables that have the same name here as there: indexes and triggers fit.
    var namedAlike: Set<SQLName> = []
    for table in other.tables {
      guard let sql = creations[table.name.folded] else { continue }
      if let present = here.table(wireName: table.wireName) {
        if present.name.isSame(as: table.name) { namedAlike.insert(table.name.folded) }
        columns += try self.columns(of: table, missingIn: present, sql, database)
      } else if !namesHere.contains(table.wireName.folded) {
        if table.name.isSame(as: table.wireName) { namedAlike.insert(table.name.folded) }
        tables.append(
          Definition(
            name: table.wireName, kind: .table,
            sql: Self.creation(sql, of: table.name, as: table.wireName), isStatement: true))
      }
    }
    let searched = entries.filter { entry in
      entry.type == "table" && other.leftOut[entry.name] == .virtualTable
        && !namesHere.contains(entry.name.folded)
    }
    tables += searched.map {
      Definition(name: $0.name, kind: .table, sql: $0.sql, isStatement: true)
    }
    namedAlike.formUnion(
      entries.filter { $0.type == "view" || other.leftOut[$0.name] == .virtualTable }
        .map { $0.name.folded })
    var dependents: [Definition] = []
    for kind in [Definition.Kind.index, .view, .trigger] {
      for entry in entries
      where entry.type == kind.rawValue && !namesHere.contains(entry.name.folded)
        && (kind == .view || namedAlike.contains(entry.table.folded))
      {
        dependents.append(
          Definition(name: entry.name, kind: kind, sql: entry.sql, isStatement: true))
      }
    }
    return (tables + columns + dependents).map {
      guard $0.isStatement, !Self.isOneStatement($0.sql) else { return $0 }
      return Definition(name: $0.name, kind: $0.kind, sql: $0.sql, isStatement: false)
    }
  }

  /// Returns whether a text is no more than one statement. SQLite reads only the first statement of a
  /// definition, so a forged database can have others after it.
  static func isOneStatement(_ sql: String) -> Bool {
    let tokens = SQLTokens(sql)
    return !tokens.tokens.contains { token in
      token.isSymbol(";")
        && sqlite3_complete(
          String(decoding: tokens.source[..<token.range.upperBound], as: UTF8.self)) != 0
    }
  }

  /// Returns the columns of a table that its counterpart here lacks.
  private func columns(
    of table: TableSchema, missingIn present: TableSchema, _ sql: String, _ database: Database
  ) throws -> [Definition] {
    let known = Set(present.columns.map { $0.wireName.folded })
      .union(columnsHere[present.name.folded] ?? [])
    let wireNames = Dictionary(
      table.columns.map { ($0.name.folded, $0.wireName) }, uniquingKeysWith: { first, _ in first })
    return try Self.columns(in: table.name, database).compactMap { name, isKey in
      let wireName = wireNames[name.folded] ?? name
      guard !isKey, !known.contains(wireName.folded),
        let text = Self.definition(of: name, in: sql, as: wireName)
      else { return nil }
      return Definition(
        name: "\(table.wireName).\(wireName)", kind: .column,
        sql: text.isAddable
          ? "ALTER TABLE \(present.quotedName) ADD COLUMN \(text.sql)" : text.sql,
        isStatement: text.isAddable)
    }
  }

  /// Returns the statement that creates a table, with another name in it.
  private static func creation(_ sql: String, of name: SQLName, as wireName: SQLName) -> String {
    guard !name.isSame(as: wireName) else { return sql }
    let tokens = SQLTokens(sql)
    guard let open = tokens.tokens.firstIndex(where: { $0.isSymbol("(") }), open > 0,
      tokens.tokens[open - 1].isName(name)
    else { return sql }
    return String(
      decoding: tokens.source[..<tokens.tokens[open - 1].range.lowerBound], as: UTF8.self)
      + quoted(wireName)
      + String(decoding: tokens.source[tokens.tokens[open - 1].range.upperBound...], as: UTF8.self)
  }

  /// Returns the definition of a column in the statement that creates its table, and whether ALTER
  /// TABLE can add it.
  private static func definition(
    of name: SQLName, in sql: String, as wireName: SQLName
  ) -> (sql: String, isAddable: Bool)? {
    let tokens = SQLTokens(sql)
    guard let open = tokens.tokens.firstIndex(where: { $0.isSymbol("(") }),
      let part = tokens.parts(in: open).first(where: { part in
        part.first.map { tokens.tokens[$0].isName(name) } ?? false
      })
    else { return nil }
    let rest = (part.lowerBound + 1)..<part.upperBound
    let text =
      name.isSame(as: wireName)
      ? tokens.text(part)
      : rest.isEmpty ? quoted(wireName) : "\(quoted(wireName)) \(tokens.text(rest))"
    return (text, isAddable(tokens.tokens[rest]))
  }

  /// Returns whether ALTER TABLE can add a column, by the words after its name, even if the table
  /// has rows.
  ///
  /// <https://www.sqlite.org/lang_altertable.html#alter_table_add_column>
  private static func isAddable(_ words: ArraySlice<SQLTokens.Token>) -> Bool {
    var depth = 0
    var isRequired = false
    var hasDefault = false
    for position in words.indices {
      let word = words[position]
      if word.isSymbol("(") { depth += 1 }
      if word.isSymbol(")") { depth -= 1 }
      guard depth == 0, word.kind == .word else { continue }
      let next = words.dropFirst(position + 1 - words.startIndex).first
      if ["PRIMARY", "UNIQUE", "STORED"].contains(where: word.isWord) { return false }
      if word.isWord("NOT"), next?.isWord("NULL") == true { isRequired = true }
      if word.isWord("DEFAULT"), let next {
        hasDefault = !next.isWord("NULL")
        let isComputed =
          next.isSymbol("(")
          || ["CURRENT_TIME", "CURRENT_DATE", "CURRENT_TIMESTAMP"].contains(where: next.isWord)
        if isComputed { return false }
      }
    }
    // SQLite wants NULL as the default of a reference.
    let refers = words.contains { $0.isWord("REFERENCES") }
    return !(isRequired && !hasDefault) && !(refers && hasDefault)
  }

  /// Returns the columns of a table, generated ones as well, and whether they are part of its key.
  private static func columns(
    in table: SQLName, _ database: Database
  ) throws -> [(name: SQLName, isKey: Bool)] {
    try Row.fetchAll(database, sql: "PRAGMA main.table_xinfo(\(quoted(table)))").map {
      ($0["name"], ($0["pk"] as Int) > 0)
    }
  }

  private static func entries(_ database: Database) throws -> [Entry] {
    try Row.fetchAll(
      database,
      sql: """
        SELECT type, name, tbl_name, sql FROM main.sqlite_schema
        WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!'
          AND name NOT LIKE 'docsync!_%' ESCAPE '!' ORDER BY rowid
        """
    ).map { Entry(type: $0["type"], name: $0["name"], table: $0["tbl_name"], sql: $0["sql"]) }
  }
}
