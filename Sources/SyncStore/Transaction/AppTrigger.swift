import GRDB
import SyncModel

/// A trigger of the application. While changes from other devices are applied,
/// it runs only those statements that write to tables which are not
/// synchronized, such as a full-text index.
///
/// Its other statements do not run, since their effect arrives as a change.
/// Statements that can refuse a row do not run either, since the device that
/// made the edit has run them already.
struct AppTrigger {
  private let tokens: SQLTokens
  /// The positions of the trigger's name, its table, and the BEGIN and END of
  /// its body.
  private let name: Int
  private let on: Int
  private let table: Int
  private let begin: Int
  private let end: Int

  /// Reads a CREATE TRIGGER statement as SQLite stores it; `nil` for anything else.
  init?(_ sql: String) {
    tokens = SQLTokens(sql)
    let words = tokens.tokens
    guard var position = words.firstIndex(where: { $0.isWord("TRIGGER") }) else { return nil }
    position += 1
    if position + 3 < words.count, words[position].isWord("IF") { position += 3 }
    guard position < words.count else { return nil }
    name = position
    guard let begin = words[position...].firstIndex(where: { $0.isWord("BEGIN") }),
      let on = words[position..<begin].firstIndex(where: { $0.isWord("ON") }), on + 1 < begin,
      let end = words.lastIndex(where: { $0.isWord("END") }), end > begin
    else { return nil }
    self.on = on
    // SQLite keeps the schema if the statement names it.
    let isQualified = on + 3 < begin && words[on + 2].isSymbol(".")
    table = isQualified ? on + 3 : on + 1
    self.begin = begin
    self.end = end
  }

  /// The table whose rows fire it.
  var tableName: SQLName { tokens.tokens[table].name }

  var triggerName: SQLName { tokens.tokens[name].name }

  /// Whether the deletion of a row fires it.
  var firesOnDeletion: Bool {
    tokens.tokens[(name + 1)..<table].contains { $0.isWord("DELETE") }
  }

  /// Returns a statement that fires the trigger, with which the caller tries whether the trigger
  /// compiles.
  func firingStatement(_ database: Database) throws -> String {
    let table = "main.\(quoted(tableName))"
    let events = (name + 1)..<self.table
    func has(_ word: SQLName) -> Bool { tokens.tokens[events].contains { $0.isWord(word) } }
    if has("INSERT") { return "INSERT INTO \(table) DEFAULT VALUES" }
    if has("DELETE") { return "DELETE FROM \(table)" }
    var columns = try SQLName.fetchAll(
      database, sql: "SELECT name FROM pragma_table_info(?, 'main')", arguments: [tableName])
    if let of = tokens.tokens[events].firstIndex(where: { $0.isWord("OF") }) {
      let named = tokens.tokens[of..<self.table]
      columns = columns.filter { column in named.contains { $0.isName(column) } }
    }
    let terms = columns.map { "\(quoted($0)) = \(quoted($0))" }
    return "UPDATE \(table) SET \(terms.joined(separator: ", "))"
  }

  /// Returns the statement that creates a temporary trigger with another name and only those
  /// statements that write to tables for which `mayWrite` is true; `nil` if there are none.
  ///
  /// - Parameters:
  ///   - condition: The condition under which it runs, checked before its own condition.
  ///   - endsTransaction: Whether a constraint of a table may contain ROLLBACK or FAIL.
  func temporary(
    named newName: SQLName, condition: String, endsTransaction: (SQLName) -> Bool = { _ in false },
    mayWrite: (SQLName) -> Bool
  ) -> String? {
    guard !tokens.tokens[name..<begin].contains(where: { $0.isWord("RAISE") }) else { return nil }
    let kept = statements.filter { statement in
      guard !tokens.tokens[statement].contains(where: { $0.isWord("RAISE") }) else { return false }
      return target(of: statement).map(mayWrite) ?? false
    }
    guard !kept.isEmpty else { return nil }
    let when = tokens.tokens[(table + 1)..<begin].firstIndex { $0.isWord("WHEN") }
    let own = when.map { " AND (\(tokens.text(($0 + 1)..<begin)))" } ?? ""
    return """
      CREATE TEMP TRIGGER \(quoted(newName)) \(tokens.text((name + 1)..<(on + 1))) \
      main.\(quoted(tableName)) \(tokens.text((table + 1)..<(when ?? begin))) \
      WHEN \(condition)\(own) BEGIN \
      \(kept.map { text(of: $0, endsTransaction) + ";" }.joined(separator: " ")) END
      """
  }

  /// Returns the text of a statement of the body, changed so that its failure neither ends the
  /// transaction nor leaves half of its effect behind.
  private func text(of statement: Range<Int>, _ endsTransaction: (SQLName) -> Bool) -> String {
    let words = tokens.tokens[statement]
    let conflict = statement.lowerBound + 2
    guard statement.count > 3 else { return tokens.text(statement) }
    guard words[statement.lowerBound + 1].isWord("OR") else {
      let first = words[statement.lowerBound]
      // The conflict clause of a statement overrides that of the table.
      guard first.isWord("INSERT") || first.isWord("UPDATE"),
        target(of: statement).map(endsTransaction) ?? false
      else { return tokens.text(statement) }
      return first.text + " OR ABORT "
        + tokens.text((statement.lowerBound + 1)..<statement.upperBound)
    }
    guard words[conflict].isWord("ROLLBACK") || words[conflict].isWord("FAIL") else {
      return tokens.text(statement)
    }
    return tokens.text(statement.lowerBound..<conflict) + " ABORT "
      + tokens.text((conflict + 1)..<statement.upperBound)
  }

  /// Returns the statements of the body that write to a table.
  func statements(writingTo table: SQLName) -> [[SQLTokens.Token]] {
    statements.filter { target(of: $0)?.isSame(as: table) ?? false }.map {
      Array(tokens.tokens[$0])
    }
  }

  /// The statements of the body. It cannot contain any other semicolons.
  private var statements: [Range<Int>] {
    var result: [Range<Int>] = []
    var start = begin + 1
    for position in start..<end where tokens.tokens[position].isSymbol(";") {
      if start < position { result.append(start..<position) }
      start = position + 1
    }
    return result
  }

  /// Returns the table that a statement writes to: the name after INTO, UPDATE [OR …], or DELETE
  /// FROM. `nil` for SELECT.
  private func target(of statement: Range<Int>) -> SQLName? {
    let words = tokens.tokens[statement]
    guard let first = words.first else { return nil }
    var position: Int?
    if first.isWord("INSERT") || first.isWord("REPLACE") {
      position = words.firstIndex { $0.isWord("INTO") }.map { $0 + 1 }
    } else if first.isWord("DELETE") {
      position = statement.lowerBound + 2
    } else if first.isWord("UPDATE") {
      position = statement.lowerBound + 1
      if statement.count > 3, words[statement.lowerBound + 1].isWord("OR") {
        position = statement.lowerBound + 3
      }
    }
    guard let position, statement.contains(position) else { return nil }
    return tokens.tokens[position].name
  }
}
