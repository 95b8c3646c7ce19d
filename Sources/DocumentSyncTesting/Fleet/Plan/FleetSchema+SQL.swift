import SyncModel

extension FleetTable {
  /// The statements that create the table and its indexes.
  var sql: [String] { [createStatement(scratch: false)] + uniques.map(createIndex) }

  /// The statement that creates the table without constraints on other rows. The oracle inserts one
  /// row at a time into it.
  var scratchSQL: String { createStatement(scratch: true) }

  private func createStatement(scratch: Bool) -> String {
    var parts = columns.enumerated().map { position, column in
      declaration(column, isKey: integerKey == position)
    }
    if localKey != nil {
      parts.append("UNIQUE (\(names(key)))")
    } else if !hasSurrogateKey {
      parts.append("PRIMARY KEY (\(names(key)))")
    }
    parts += checks.map { "CHECK (\($0.condition))" }
    if !scratch { parts += references.filter(\.isEnforced).map(clause) }
    let options = [isStrict ? "STRICT" : nil, isWithoutRowid ? "WITHOUT ROWID" : nil]
      .compactMap { $0 }
    return "CREATE TABLE \(name.sql) (\(parts.joined(separator: ", ")))"
      + (options.isEmpty ? "" : " " + options.joined(separator: ", "))
  }

  private func declaration(_ column: FleetColumn, isKey: Bool) -> String {
    var words = [column.name.sql]
    // Outside of STRICT tables, `ANY` means something else.
    if let type = column.declaredType {
      words.append(type)
    } else if column.type != .any || isStrict {
      words.append(column.type.rawValue)
    }
    if isKey { words.append("PRIMARY KEY" + (isAutoincrement ? " AUTOINCREMENT" : "")) }
    if column.collation != .binary { words.append("COLLATE \(column.collation.sqlName)") }
    if column.isNotNull { words.append("NOT NULL") }
    if let value = column.defaultValue { words.append("DEFAULT \(value)") }
    if let generated = column.generated {
      words.append("AS (\(generated))" + (column.isStored ? " STORED" : ""))
    }
    return words.joined(separator: " ")
  }

  /// Returns the declaration of a column outside of the key.
  func declaration(of column: FleetColumn) -> String { declaration(column, isKey: false) }

  /// Returns the REFERENCES clause for the declaration of a column that refers to a table.
  func clause(_ reference: FleetReference, to parent: FleetTable) -> String {
    actions(
      of: reference, "REFERENCES \(parent.name.sql) (\(parent.names(reference.parentColumns)))")
  }

  private func clause(_ reference: FleetReference) -> String {
    actions(
      of: reference,
      "FOREIGN KEY (\(names(reference.columns))) REFERENCES \(reference.parent.sql)"
        + " (\(reference.parentNames.map(\.sql).joined(separator: ", ")))")
  }

  private func actions(of reference: FleetReference, _ words: String) -> String {
    var words = words
    if reference.onDelete != .noAction { words += " ON DELETE \(reference.onDelete.rawValue)" }
    if reference.onUpdate != .noAction { words += " ON UPDATE \(reference.onUpdate.rawValue)" }
    return words + (reference.isDeferred ? " DEFERRABLE INITIALLY DEFERRED" : "")
  }

  private func createIndex(_ unique: FleetUnique) -> String {
    let terms = unique.terms.map(sql)
    return
      "CREATE UNIQUE INDEX \(unique.name.sql) ON \(name.sql) (\(terms.joined(separator: ", ")))"
      + (unique.condition.map { " WHERE \($0)" } ?? "")
  }

  /// Returns a term of an index as SQL.
  func sql(_ term: FleetUnique.Term) -> String {
    switch term {
    case .column(let column, let collation):
      columns[column].name.sql
        + (collation == columns[column].collation ? "" : " COLLATE \(collation.sqlName)")
    case .expression(let expression): expression
    }
  }

  func names(_ positions: [Int]) -> String {
    positions.map { columns[$0].name.sql }.joined(separator: ", ")
  }
}

extension KeyCollation {
  var sqlName: String {
    switch self {
    case .binary: "BINARY"
    case .nocase: "NOCASE"
    case .rtrim: "RTRIM"
    }
  }
}
