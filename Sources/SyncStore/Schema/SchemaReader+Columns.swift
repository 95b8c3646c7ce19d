import GRDB
import SyncModel

extension SchemaReader {
  func columnSchema(_ row: Row, of table: SQLName, identity: Set<SQLName>) throws
    -> ColumnSchema
  {
    let name: SQLName = row["name"]
    let declared: String = row["type"]
    return ColumnSchema(
      name: name, wireName: name, affinity: Self.affinity(of: declared),
      collation: try collation(of: name, in: table), domain: .plain,
      isIdentity: identity.contains(name.folded), isNotNull: (row["notnull"] as Int) != 0,
      defaultExpression: row["dflt_value"])
  }

  /// Returns the affinity of a declared type, by the rules of “Determination Of Column Affinity” in
  /// SQLite's documentation on datatypes, in their order.
  static func affinity(of declared: String) -> ColumnSchema.Affinity {
    let type = declared.uppercased()
    if type.contains("INT") { return .integer }
    if type.contains("CHAR") || type.contains("CLOB") || type.contains("TEXT") { return .text }
    if type.isEmpty || type.contains("BLOB") || type == "ANY" { return .blob }
    if type.contains("REAL") || type.contains("FLOA") || type.contains("DOUB") { return .real }
    return .numeric
  }

  func generatedColumns(
    _ information: [Row], of table: SQLName, sql: String
  ) throws -> [GeneratedColumn] {
    try information.filter { ($0["hidden"] as Int) > 1 }.map { row in
      let name: SQLName = row["name"]
      guard let expression = Self.expression(ofGenerated: name, in: sql) else {
        throw TableProblem(
          table, .unreadable,
          message:
            "The expression of the generated column \(quoted(table)).\(quoted(name)) cannot be read.",
          remedy: "Leave the table out with \(.exclude(table)).",
          later: "To synchronize it, declare the column in another way.")
      }
      return GeneratedColumn(
        name: name, affinity: Self.affinity(of: row["type"]),
        collation: try collation(of: name, in: table), expression: expression)
    }
  }

  /// Returns the expression of a generated column in the text of a CREATE TABLE statement.
  static func expression(ofGenerated column: SQLName, in sql: String) -> String? {
    let tokens = SQLTokens(sql)
    guard let open = tokens.tokens.firstIndex(where: { $0.isSymbol("(") }) else { return nil }
    for part in tokens.parts(in: open) where tokens.tokens[part].first?.isName(column) == true {
      var position = part.lowerBound
      while position + 1 < part.upperBound {
        if tokens.tokens[position + 1].isSymbol("("),
          let close = tokens.closing(position + 1)
        {
          if position > part.lowerBound, tokens.tokens[position].isWord("AS") {
            return tokens.text((position + 2)..<close)
          }
          position = close
        } else {
          position += 1
        }
      }
    }
    return nil
  }

  func collation(of column: SQLName, in table: SQLName) throws -> String {
    guard let name = try ProgramDefinitions.collation(of: column, in: table, database) else {
      throw TableProblem(
        table, .unreadable,
        message: "The column \(quoted(table)).\(quoted(column)) cannot be described.",
        remedy: "Check the database with PRAGMA integrity_check.",
        later: "Check the database with PRAGMA integrity_check.")
    }
    return name.uppercased()
  }

  func checkExcludable(_ row: Row, of table: SQLName, isIdentity: Bool) throws {
    let name: SQLName = row["name"]
    if isIdentity || (row["pk"] as Int) > 0 {
      throw mismatch(
        table,
        message: "\(quoted(table)).\(quoted(name)) identifies the rows and cannot be excluded.",
        remedy: "Exclude the whole table with \(.exclude(table)), or keep the column.",
        later: "To synchronize the table, give it another key.")
    }
    if (row["notnull"] as Int) != 0, row["dflt_value"] as String? == nil {
      throw mismatch(
        table,
        message: "\(quoted(table)).\(quoted(name)) is NOT NULL without a default and cannot be "
          + "excluded, since rows from other devices would not have it.",
        remedy: "Give the column a default, or keep it.",
        later: "To synchronize the table, give the column a default.")
    }
  }

  /// Returns the columns in the order of bookkeeping: registered columns keep their order and their
  /// names in change sets; new ones follow. The position is the bit once ``SchemaRenewal`` has
  /// updated bookkeeping.
  func ordered(_ columns: [ColumnSchema], registered: Registered?) -> [ColumnSchema] {
    guard let registered else { return columns }
    var rest = columns
    var result: [ColumnSchema] = []
    for (name, wireName) in zip(registered.columns, registered.wireColumns) {
      guard
        let position = rest.firstIndex(where: { $0.name.folded == name.folded })
      else { continue }
      var column = rest.remove(at: position)
      column.wireName = wireName
      result.append(column)
    }
    for var column in rest {
      column.wireName = Self.free(column.name, among: result.map(\.wireName))
      result.append(column)
    }
    return result
  }
}
