import SyncModel

/// The triggers before an edit, which log hints: what REPLACE removes without firing a delete
/// trigger.
extension CaptureTriggers {
  var beforeInsertTrigger: String? {
    // A row of the same key may be among them: NEW has the key -1 until SQLite has chosen one.
    let hints = uniqueHints + [presenceHint, rowidHint].compactMap { $0 }
    guard !hints.isEmpty else { return nil }
    return "CREATE TRIGGER \(name("bi")) BEFORE INSERT ON \(table.quotedName) "
      + "BEGIN \(entries(hints)) END"
  }

  var beforeUpdateTrigger: String? {
    guard !table.uniqueIndexes.isEmpty else { return nil }
    let others = table.keyColumns.map {
      "\(table.quotedName).\(quoted($0)) IS NOT \(ofRow("OLD", quoted($0)))"
    }
    return "CREATE TRIGGER \(name("bu")) BEFORE \(uniqueUpdate) ON \(table.quotedName) "
      + "WHEN \(uniqueDifference) BEGIN \(basesOfGeneratedColumns)"
      + "\(entries(uniqueHints, where: "(\(others.joined(separator: " OR ")))")) END"
  }

  /// A statement that names the columns from which generated columns of unique indexes are computed.
  /// SQLite (3.40.1) computes `NEW` of a generated column from NULL if an update sets another column,
  /// and no trigger before it names these.
  private var basesOfGeneratedColumns: String {
    let texts = table.uniqueIndexes.flatMap { $0.terms + [$0.condition].compactMap { $0 } }
    let generated = Set(named(in: texts, among: table.generatedColumns.map(\.name)))
    guard !generated.isEmpty else { return "" }
    // A generated column can be computed from others.
    let bases = table.generatedColumns.map(\.expression)
    let names = named(in: bases, among: table.allColumns).map { "NEW.\(quoted($0))" }
    return names.isEmpty ? "" : "SELECT \(names.joined(separator: ", ")) WHERE 0; "
  }

  /// The trigger before an update that may take the key of another row.
  var beforeKeyTrigger: String? {
    let hints = [presenceHint, rowidHint].compactMap { $0 }
    guard !hints.isEmpty else { return nil }
    let own = referredKey("OLD") == nil ? "" : " " + oldEntry(.present)
    let keys = rowidHint == nil ? table.keyColumns : table.keyColumns + [table.localKey ?? "rowid"]
    return "CREATE TRIGGER \(name("bk")) BEFORE \(updateOf(keys)) ON \(table.quotedName) "
      + "WHEN \(changed(keys)) BEGIN \(entries(hints))\(own) END"
  }

  // MARK: - Hints

  /// What tells which row a hint is of.
  private struct Hint {
    var kind: Entry
    var conditions: [String]
    /// The SQL of the row's ``rowKeys``, if they are known without reading the table by the
    /// conditions.
    var keys: [String]?
  }

  private var uniqueHints: [Hint] {
    table.uniqueIndexes.map { index in
      guard isDroppable(index) else { return Hint(kind: .replaced, conditions: matches(index)) }
      let claimants = rowKeys.map { claimant(of: index, key: $0) }
      let conditions = zip(rowKeys, claimants).map { "\(table.quotedName).\($0) = \($1)" }
      return Hint(kind: .replaced, conditions: conditions, keys: claimants)
    }
  }

  /// The hint of the row that has the new row's key. Bookkeeping knows that a row was there, unless
  /// the row is older than bookkeeping, but not under which rowid.
  private var presenceHint: Hint? {
    guard table.hasUnstampedRows || referredKey("NEW") != nil else { return nil }
    return Hint(
      kind: .present,
      conditions: table.keyColumns.map {
        "\(table.quotedName).\(quoted($0)) = \(ofRow("NEW", quoted($0)))"
      })
  }

  /// The hint of the row that has the new row's rowid, where other columns identify the rows.
  private var rowidHint: Hint? {
    guard case .columns = table.identity, let key = table.localKey else { return nil }
    return Hint(
      kind: .replaced,
      conditions: ["\(table.quotedName).\(quoted(key)) = \(ofRow("NEW", quoted(key)))"])
  }

  /// Returns the statements that log hints, of rows that also meet a further condition.
  ///
  /// A program that prepares every statement again reads them each time. So, where names can fall back
  /// and make them long, there is only one: it reads the rows by the keys that the hints lead to.
  private func entries(_ hints: [Hint], where further: String? = nil) -> String {
    let further = [further].compactMap { $0 }
    guard hints.count > 1, !table.recordedColumns.isEmpty, rowKeys.count == 1 else {
      return hints.map {
        entry(of: "\($0.kind.rawValue)", from: hintSource, where: $0.conditions + further)
      }.joined(separator: " ")
    }
    // SQLite limits the terms of a compound query to 500, and programs can set a lower limit.
    return stride(from: 0, to: hints.count, by: 50).map {
      entry(ofAll: hints[$0..<min($0 + 50, hints.count)], where: further)
    }.joined(separator: " ")
  }

  /// Returns the statement that logs several hints, in a table of which one column finds a row.
  private func entry(ofAll hints: ArraySlice<Hint>, where further: [String]) -> String {
    let kind = unused("docsync_kind")
    let key = unused("docsync_key")
    let own = "\(table.quotedName).\(rowKeys[0])"
    let found = hints.map { hint in
      let conditions = hint.conditions.joined(separator: " AND ")
      return "SELECT \(hint.kind.rawValue) AS \(kind), "
        + (hint.keys.map { "\($0[0]) AS \(key)" }
          ?? "\(own) AS \(key) FROM \(table.quotedName) WHERE \(conditions)")
    }.joined(separator: " UNION ALL ")
    // SQLite leaves the order of a CROSS JOIN as it is.
    return entry(
      of: "docsync_hint.\(kind)", from: "(\(found)) AS docsync_hint CROSS JOIN \(hintSource)",
      where: ["\(own) = docsync_hint.\(key)"] + further)
  }

  /// Returns a name that no column has: a natural join takes equal names for one column.
  private func unused(_ name: SQLName) -> SQLName {
    table.allColumns.contains(where: name.isSame) ? unused("\(name)_") : name
  }

  private func entry(of kind: String, from source: String, where conditions: [String]) -> String {
    let reference = referredKey(table.quotedName).map { [("identity", $0)] } ?? []
    let terms =
      zip(keyNames, table.keyColumns).map { ($0, "\(table.quotedName).\(quoted($1))") } + reference
      + table.recordedColumns.map { position in
        let name = quoted(table.columns[position].name)
        return (
          Column.old(position), hintsCanFallBack ? name : "\(table.quotedName).\(name)"
        )
      }
    return """
      INSERT INTO \(table.logName) (op, at, \(terms.map(\.0).joined(separator: ", "))) \
      SELECT \(kind), julianday('now'), \(terms.map(\.1).joined(separator: ", ")) \
      FROM \(source) WHERE \(conditions.joined(separator: " AND "));
      """
  }

  /// Returns the tables of a hint: this one and, for names of columns that a program has dropped, one
  /// without rows. A natural join takes a column that both have from the first.
  private var hintSource: String {
    guard hintsCanFallBack else { return table.quotedName }
    let columns = table.recordedColumns.map { "NULL AS \(quoted(table.columns[$0].name))" }
    return
      "\(table.quotedName) NATURAL LEFT JOIN (SELECT \(columns.joined(separator: ", ")) WHERE 0)"
  }

  /// Whether columns in hints fall back to a table without rows. A natural join has a condition for
  /// each column: SQLite limits their number, and takes the longer to prepare a statement.
  private var hintsCanFallBack: Bool { (1...100).contains(table.recordedColumns.count) }

  /// The event of an update that may change a unique value. `UPDATE OF` may name columns that have
  /// gone.
  private var uniqueUpdate: String {
    guard table.uniqueIndexes.allSatisfy(\.isPlain) else { return "UPDATE" }
    let positions = Set(table.uniqueIndexes.flatMap(\.positions)).sorted()
    return updateOf(positions.map { table.columns[$0].name })
  }

  /// An SQL term that is true if an update may change a unique value. Expressions and conditions
  /// can read any column.
  private var uniqueDifference: String {
    guard table.uniqueIndexes.allSatisfy(\.isPlain) else { return "1" }
    let positions = Set(table.uniqueIndexes.flatMap(\.positions)).sorted()
    let term = positions.map { difference(table.columns[$0]) }.balanced(by: "OR")
    guard table.uniqueIndexes.contains(where: isDroppable) else { return term }
    return fallingBack(to: ["OLD", "NEW"], term, positions)
  }

  /// Returns the conditions under which another row has the new row's values in a unique index.
  /// They may hold too often: whether the new row meets the condition of a partial index is mostly
  /// not checked, see ``mayMeet(_:of:)``.
  private func matches(_ index: UniqueIndex) -> [String] {
    guard !index.isPlain else { return plainMatches(index, of: table.quotedName) }
    let source = newRow(for: index) { newValue($0) }
    let isEvaluated =
      index.columns.contains(nil) ? index.condition.map { mayMeet($0, of: index) } : nil
    let terms = zip(index.terms, index.collations).map { term, collation in
      let value = "(SELECT \(term) FROM \(source))"
      let guarded = isEvaluated.map { "CASE WHEN \($0) THEN \(value) END" } ?? value
      return "(\(term)) = \(guarded) COLLATE \(quoted(SQLName(collation)))"
    }
    // The condition comes first: existing rows, too, have values for the terms only if they meet
    // it.
    return (index.condition.map { ["(\($0))"] } ?? []) + terms
  }

  /// Returns the SQL of a key of the row that has the new row's values in an index, also if the
  /// index and its columns have gone. At most one row has the values.
  private func claimant(of index: UniqueIndex, key: String) -> String {
    let other = "docsync_other"
    let conditions = plainMatches(index, of: other).joined(separator: " AND ")
    let found = "\(other).\(key) FROM \(table.quotedName) AS \(other) WHERE \(conditions)"
    return fallingBack(to: [other, "NEW"], found, index.positions)
  }

  private func plainMatches(_ index: UniqueIndex, of row: String) -> [String] {
    zip(index.terms, zip(index.columns, index.collations)).map { term, column in
      let value = column.0.map { newValue(table.columns[$0].name) } ?? ofRow("NEW", term)
      return "\(row).\(term) = \(value) COLLATE \(quoted(SQLName(column.1)))"
    }
  }

  /// Returns whether a program may drop the index and then its columns.
  private func isDroppable(_ index: UniqueIndex) -> Bool { index.isPlain && !index.isConstraint }

  /// The names of the columns that find a row. They are declared: a later column can take a name of
  /// the rowid, and in a table named new or old `rowid` is that of the trigger's row.
  private var rowKeys: [String] {
    table.rowidAlias.map { [quoted($0)] } ?? table.keyColumns.map(quoted)
  }

  /// Returns the SQL of a table that contains only the new row, under the same column names, so
  /// that the index's own text can be evaluated on it unchanged. It has the columns that the text
  /// names: another column can be dropped.
  private func newRow(for index: UniqueIndex, _ value: (SQLName) -> String) -> String {
    let texts = index.terms + [index.condition].compactMap { $0 }
    var columns = named(in: texts, among: table.allColumns).map { "\(value($0)) AS \(quoted($0))" }
    if columns.isEmpty { columns = ["1"] }
    return "(SELECT \(columns.joined(separator: ", "))) AS \(table.quotedName)"
  }

  /// Returns the columns that SQL may name. A word can also be a function, a type or a collation.
  private func named(in texts: [String], among columns: [SQLName]) -> [SQLName] {
    let names = texts.flatMap { text in
      let tokens = SQLTokens(text).tokens
      return tokens.indices.filter { place in
        let isCall = place + 1 < tokens.count && tokens[place + 1].isSymbol("(")
        let isType =
          place > 0 && (tokens[place - 1].isWord("AS") || tokens[place - 1].isWord("COLLATE"))
        return tokens[place].kind != .word || !(isCall || isType)
      }.map { tokens[$0] }
    }
    return columns.filter { column in names.contains { $0.isName(column) } }
  }

  /// Returns an SQL term that is true if the new row may meet a partial index's condition.
  /// Expressions of such an index are not evaluated otherwise: they may fail
  /// (`json_extract(data, '$.id')`, `abs(n)`), where the condition (`json_valid(data)`) keeps
  /// SQLite from evaluating them.
  ///
  /// NEW's columns have lost their affinities and collations, by which a condition compares. A cast
  /// has an affinity, but changes values of other types. So the term checks the condition both
  /// ways.
  private func mayMeet(_ condition: String, of index: UniqueIndex) -> String {
    let cast = newRow(for: index) { name in
      guard let column = table.columns.first(where: { $0.name == name }) else {
        return newValue(name)
      }
      let value =
        column.affinity == .blob
        ? newValue(name) : "CAST(\(newValue(name)) AS \(column.affinity.rawValue))"
      return "\(value) COLLATE \(quoted(SQLName(column.collation)))"
    }
    let sources = [newRow(for: index) { newValue($0) }, cast]
    // Of a value, SQLite evaluates both sides of AND and OR; one may guard the other.
    return sources.map { "(SELECT CASE WHEN \(condition) THEN 1 END FROM \($0))" }
      .joined(separator: " OR ")
  }

  /// Returns the SQL of a column of `OLD` or `NEW`, for a statement that reads the table: if the table
  /// has that name, or gets it, the bare term would be a column of the table.
  private func ofRow(_ row: String, _ column: String) -> String { "(SELECT \(row).\(column))" }

  /// Returns the SQL of the value that a column of the new row will have. REPLACE puts the default
  /// into a column that must not be NULL, and generated columns follow, but only after these
  /// triggers.
  private func newValue(_ name: SQLName) -> String {
    let replaced = table.columns.filter { $0.isNotNull && $0.defaultExpression != nil }
    if let column = replaced.first(where: { $0.name == name }) {
      let value = ColumnDefault(column.defaultExpression).expression
      return "coalesce(\(ofRow("NEW", quoted(name))), \(value))"
    }
    guard !replaced.isEmpty,
      let generated = table.generatedColumns.first(where: { $0.name == name })
    else { return ofRow("NEW", quoted(name)) }
    let columns = named(in: [generated.expression], among: table.columns.map(\.name)).map {
      "\(newValue($0)) AS \(quoted($0))"
    }
    return
      "(SELECT (\(generated.expression)) FROM (SELECT \((columns + ["1"]).joined(separator: ", "))) "
      + "AS \(table.quotedName))"
  }
}
