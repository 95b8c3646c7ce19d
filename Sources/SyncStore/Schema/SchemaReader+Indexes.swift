import GRDB
import SyncModel

/// Unique indexes, and the parts of a schema that depend on keys.
extension SchemaReader {
  func uniqueIndexes(of table: TableSchema) throws -> [UniqueIndex] {
    var result: [UniqueIndex] = []
    let rows = try Row.fetchAll(database, sql: "PRAGMA main.index_list(\(quoted(table.name)))")
    let identity = Set(table.identityPositions.map { table.columns[$0].name.folded })
    for row in rows.sorted(by: { ($0["seq"] as Int) > ($1["seq"] as Int) })
    where (row["unique"] as Int) != 0 {
      let name: SQLName = row["name"]
      let terms = try Row.fetchAll(database, sql: "PRAGMA main.index_xinfo(\(quoted(name)))")
        .filter { ($0["key"] as Int) != 0 }
      let names = terms.map { $0["name"] as SQLName? }
      let isPartial = (row["partial"] as Int) != 0
      // The primary key's own index, and any other over exactly the identity, adds nothing to the
      // identity. But a key may ignore the case where its column does not.
      let collations = terms.map { ($0["coll"] as String?)?.uppercased() ?? "BINARY" }
      let isIdentity =
        !isPartial && !names.contains(nil)
        && Set(names.compactMap { $0?.folded }) == identity
        && zip(names, collations).allSatisfy { $0.map(table.collation(of:)) == $1 }
      let isBinaryKey =
        (row["origin"] as String) == "pk" && collations.allSatisfy { $0 == "BINARY" }
      if isBinaryKey || isIdentity { continue }
      let sql = try String.fetchOne(
        database, sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'index' AND name = ?",
        arguments: [name])
      let parsed = sql.map(Self.terms)
      try checkExcluded(table, index: name, terms: terms, sql: sql)
      // An index over the local key is unique whenever the key is.
      if names.contains(where: { $0 != nil && $0?.folded == table.localKey?.folded }) {
        continue
      }
      result.append(
        UniqueIndex(
          ordinal: result.count, name: name,
          columns: names.map { name in
            name.flatMap { name in
              table.columns.firstIndex { $0.name.folded == name.folded }
            }
          },
          collations: collations,
          terms: names.enumerated().map { position, name in
            name.map(quoted) ?? parsed?.terms[position] ?? "NULL"
          },
          condition: isPartial ? parsed?.condition : nil))
    }
    return result
  }

  /// Refuses an excluded column in a unique index: rows from other devices come without its value,
  /// so all of them would claim the same one.
  func checkExcluded(
    _ table: TableSchema, index: SQLName, terms: [Row], sql: String?
  ) throws {
    let named = terms.compactMap { ($0["name"] as SQLName?)?.folded }
    let parsed = sql.map(Self.terms)
    let texts = (parsed?.terms ?? []) + [parsed?.condition ?? ""]
    let words = texts.flatMap { SQLTokens($0).tokens }
    for column in table.excludedColumns.sorted()
    where named.contains(column) || words.contains(where: { $0.isName(column) }) {
      throw mismatch(
        table.name,
        message: "\(quoted(table.name)).\(quoted(column)) is part of the unique index "
          + "\(quoted(index)) and cannot be excluded.",
        remedy: "Keep the column, exclude the whole table, or drop the index.",
        later: "To synchronize the table, drop the index.")
    }
  }

  /// Returns the terms and the condition in the text of a CREATE INDEX statement.
  static func terms(of sql: String) -> (terms: [String], condition: String?) {
    let tokens = SQLTokens(sql)
    guard let on = tokens.tokens.firstIndex(where: { $0.isWord("ON") }),
      let open = tokens.tokens[on...].firstIndex(where: { $0.isSymbol("(") }),
      let close = tokens.closing(open)
    else { return ([], nil) }
    let terms = tokens.parts(in: open).map { part in
      var end = part.upperBound
      if end > part.lowerBound,
        tokens.tokens[end - 1].isWord("ASC") || tokens.tokens[end - 1].isWord("DESC")
      {
        end -= 1
      }
      return tokens.text(part.lowerBound..<end)
    }
    guard close + 1 < tokens.tokens.count, tokens.tokens[close + 1].isWord("WHERE") else {
      return (terms, nil)
    }
    return (terms, tokens.text((close + 2)..<tokens.tokens.count))
  }

  /// Refuses a CHECK, a generated column or an index expression that reads a local key: local keys
  /// differ from device to device.
  func checkSurrogate(_ table: TableSchema) throws {
    let referring = table.rowidAlias.flatMap { alias in
      table.columns.first { $0.name == alias && $0.domain != .plain }?.name
    }
    guard let key = table.localKey ?? referring else { return }
    let definitions = try String.fetchAll(
      database,
      sql: "SELECT sql FROM main.sqlite_schema WHERE tbl_name = ? AND type IN ('table', 'index') "
        + "AND sql IS NOT NULL",
      arguments: [table.name])
    for definition in definitions where Self.reads(key, in: definition) {
      throw TableProblem(
        table.name, .keyRead,
        message: "The key \(quoted(table.name)).\(quoted(key)) is read by a CHECK, a generated "
          + "column or an index expression, but the key is another number on every device.",
        remedy: referring == nil
          ? "Use \(.identifyByPrimaryKey(table.name)) if the keys are unique across devices, "
            + "or leave the table out with \(.exclude(table.name))."
          : "Leave the table out with \(.exclude(table.name)).",
        later: "To synchronize the table, have the expression read another column.")
    }
  }

  /// Returns whether a definition uses a column in a CHECK, in a generated column, in an expression
  /// of an index or in an index's condition.
  static func reads(_ column: SQLName, in definition: String) -> Bool {
    let tokens = SQLTokens(definition)
    func contains(_ range: Range<Int>) -> Bool {
      tokens.tokens[range].contains { $0.isName(column) }
    }
    if tokens.tokens.contains(where: { $0.isWord("INDEX") }) && !tokens.tokens.isEmpty
      && !tokens.tokens[1].isWord("TABLE")
    {
      let (terms, condition) = terms(of: definition)
      let expressions = terms.filter { SQLTokens($0).tokens.count > 1 } + [condition ?? ""]
      return expressions.contains { SQLTokens($0).tokens.contains { $0.isName(column) } }
    }
    for position in tokens.tokens.indices.dropLast()
    where tokens.tokens[position].isWord("CHECK") || tokens.tokens[position].isWord("AS") {
      guard tokens.tokens[position + 1].isSymbol("("), let close = tokens.closing(position + 1)
      else { continue }
      if contains((position + 1)..<close) { return true }
    }
    return false
  }
}
