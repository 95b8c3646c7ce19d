import Foundation
import GRDB
import SyncModel

/// The default value of a column, as its table is declared with it.
struct ColumnDefault {
  /// The SQL; `nil` for NULL.
  let sql: String?

  init(_ sql: String?) { self.sql = sql }

  /// Whether each row may get another value: by the time, or by a function that is not known to give
  /// the same value always.
  var isChanging: Bool {
    let tokens = SQLTokens(sql ?? "").tokens
    return tokens.indices.contains { position in
      let token = tokens[position]
      guard token.kind == .word || token.kind == .quotedName else { return false }
      if Self.times.contains(token.name.folded) { return true }
      let isCall = position + 1 < tokens.count && tokens[position + 1].isSymbol("(")
      return isCall && !Self.constants.contains(token.name.folded)
    }
  }

  private static let times: Set<SQLName> = ["current_time", "current_date", "current_timestamp"]
  private static let constants: Set<SQLName> = [
    "abs", "cast", "char", "coalesce", "format", "hex", "ifnull", "json", "json_array",
    "json_object", "length", "lower", "nullif", "printf", "replace", "round", "trim", "upper",
    "zeroblob",
  ]

  /// Returns the value without the affinity of its column. A word alone, or between double quotes, is
  /// a text there; a function of its program gives NULL here.
  func value(_ database: Database) throws -> Value {
    do {
      let reading = try SQLStatement("SELECT (\(sql ?? "NULL"))", on: database)
      defer { reading.reset() }
      return try reading.step() ? reading.value(at: 0) : .null
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      return word.map { .text(Array($0.utf8)) } ?? .null
    }
  }

  /// The text that a bare word stands for, or one between double quotes; `nil` for other defaults. Only in
  /// a DEFAULT clause such a word is no column.
  var text: String? {
    let tokens = SQLTokens(sql ?? "").tokens
    guard tokens.count == 1, tokens[0].kind == .quotedName || Self.isName(tokens[0]) else {
      return nil
    }
    return tokens[0].text
  }

  /// SQL that gives the value in the statement of any program.
  var expression: String { text.map(literal) ?? "(\(sql ?? "NULL"))" }

  private static func isName(_ token: SQLTokens.Token) -> Bool {
    let reserved = ["NULL", "TRUE", "FALSE", "CURRENT_TIME", "CURRENT_DATE", "CURRENT_TIMESTAMP"]
    return token.kind == .word && !reserved.contains(token.text.uppercased())
      && token.text.first?.isNumber == false
  }

  /// Returns SQL that gives the value in a statement.
  func term(_ database: Database) throws -> String {
    guard let sql else { return "NULL" }
    do {
      _ = try SQLStatement("SELECT (\(sql))", on: database)
      return "(\(sql))"
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      return word.map { "'\($0.replacingOccurrences(of: "'", with: "''"))'" } ?? "NULL"
    }
  }

  private var word: String? {
    let tokens = SQLTokens(sql ?? "").tokens
    return tokens.count == 1 ? tokens[0].text : nil
  }
}
