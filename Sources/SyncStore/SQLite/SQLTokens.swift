import SyncModel

/// The tokens of SQL that bookkeeping has to recognise: words, quoted names, strings, and single
/// characters, without comments and white space.
///
/// It knows no grammar. Its users find the terms of an index and the conditions of a table in the
/// text that SQLite stores.
struct SQLTokens {
  enum Kind { case word, quotedName, string, symbol }

  struct Token {
    var kind: Kind
    /// The name without quotes, or the text as it is.
    var text: String
    /// Its range in the source, in bytes.
    var range: Range<Int>

    /// The text as a name.
    var name: SQLName { SQLName(text) }

    func isWord(_ word: SQLName) -> Bool { kind == .word && name.isSame(as: word) }
    func isSymbol(_ symbol: String) -> Bool { kind == .symbol && text == symbol }
    /// Returns whether the token can be the name of a column or a table.
    func isName(_ name: SQLName) -> Bool {
      switch kind {
      case .word: isBareName && self.name.isSame(as: name)
      case .quotedName: self.name.isSame(as: name)
      case .string, .symbol: false
      }
    }

    /// Whether a word without quotes can be a name. A number cannot.
    private var isBareName: Bool {
      text.utf8.first.map { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? false
        && !reservedWords.contains(name.folded)
    }
  }

  /// The words that SQLite takes for the name of a column or a table only if they are quoted.
  static let reservedWords: Set<SQLName> = [
    "add", "all", "alter", "and", "as", "autoincrement", "between", "case", "check", "collate",
    "commit", "constraint", "create", "default", "deferrable", "delete", "distinct", "drop", "else",
    "escape", "except", "exists", "foreign", "from", "group", "having", "in", "index", "insert",
    "intersect", "into", "is", "isnull", "join", "limit", "not", "nothing", "notnull", "null", "on",
    "or", "order", "primary", "references", "returning", "select", "set", "table", "then", "to",
    "transaction", "union", "unique", "update", "using", "values", "when", "where",
  ]

  let source: [UInt8]
  let tokens: [Token]

  init(_ sql: String) {
    source = Array(sql.utf8)
    var tokens: [Token] = []
    var index = 0
    // Where a blob begins, whose `x` has been passed.
    var blob: Int?
    while index < source.count {
      let start = blob ?? index
      blob = nil
      let byte = source[index]
      if byte == UInt8(ascii: "-"), Self.byte(source, index + 1) == UInt8(ascii: "-") {
        while index < source.count, source[index] != UInt8(ascii: "\n") { index += 1 }
      } else if byte == UInt8(ascii: "/"), Self.byte(source, index + 1) == UInt8(ascii: "*") {
        index += 2
        while index < source.count,
          !(source[index] == UInt8(ascii: "*") && Self.byte(source, index + 1) == UInt8(ascii: "/"))
        {
          index += 1
        }
        index = min(index + 2, source.count)
      } else if byte <= 32 {
        index += 1
      } else if source[index...].starts(with: Self.byteOrderMark) {
        // SQLite takes it for white space between words, and for a part of a name within one.
        index += Self.byteOrderMark.count
      } else if let closing = Self.closingQuote(byte) {
        var content: [UInt8] = []
        index += 1
        while index < source.count {
          if source[index] == closing {
            if closing != UInt8(ascii: "]"), Self.byte(source, index + 1) == closing {
              index += 1
            } else {
              break
            }
          }
          content.append(source[index])
          index += 1
        }
        index = min(index + 1, source.count)
        tokens.append(
          Token(
            kind: byte == UInt8(ascii: "'") ? .string : .quotedName,
            text: String(decoding: content, as: UTF8.self), range: start..<index))
      } else if Self.isWord(byte) {
        while index < source.count, Self.isWord(source[index]) { index += 1 }
        let isPrefix = index == start + 1 && byte | 0x20 == UInt8(ascii: "x")
        if isPrefix, Self.byte(source, index) == UInt8(ascii: "'") {
          blob = start
          continue
        }
        tokens.append(
          Token(
            kind: .word, text: String(decoding: source[start..<index], as: UTF8.self),
            range: start..<index))
      } else {
        index += 1
        tokens.append(
          Token(
            kind: .symbol, text: String(decoding: [byte], as: UTF8.self), range: start..<index))
      }
    }
    self.tokens = tokens
  }

  /// Returns the source of a range of tokens.
  func text(_ range: Range<Int>) -> String {
    guard let first = tokens[range].first, let last = tokens[range].last else { return "" }
    return String(
      decoding: source[first.range.lowerBound..<last.range.upperBound], as: UTF8.self)
  }

  /// Returns the position of the parenthesis that closes the one at `open`, or `nil` if it is
  /// missing.
  func closing(_ open: Int) -> Int? {
    var depth = 0
    for position in open..<tokens.count {
      if tokens[position].isSymbol("(") { depth += 1 }
      if tokens[position].isSymbol(")") {
        depth -= 1
        if depth == 0 { return position }
      }
    }
    return nil
  }

  /// Returns the ranges of tokens between commas at the top level of the parenthesis at `open`.
  func parts(in open: Int) -> [Range<Int>] {
    guard let close = closing(open) else { return [] }
    var parts: [Range<Int>] = []
    var depth = 0
    var start = open + 1
    for position in (open + 1)..<close {
      if tokens[position].isSymbol("(") { depth += 1 }
      if tokens[position].isSymbol(")") { depth -= 1 }
      if depth == 0, tokens[position].isSymbol(",") {
        parts.append(start..<position)
        start = position + 1
      }
    }
    parts.append(start..<close)
    return parts
  }

  private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

  private static func byte(_ source: [UInt8], _ index: Int) -> UInt8? {
    index < source.count ? source[index] : nil
  }

  private static func closingQuote(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: "`"): byte
    case UInt8(ascii: "["): UInt8(ascii: "]")
    default: nil
    }
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), 128...:
      true
    default: false
    }
  }
}

extension SQLTokens {
  /// The CHECK conditions of a CREATE TABLE statement.
  var conditions: [(tokens: ArraySlice<Token>, text: String)] {
    tokens.indices.dropLast().compactMap { position in
      guard tokens[position].isWord("CHECK"), tokens[position + 1].isSymbol("("),
        let close = closing(position + 1)
      else { return nil }
      return (tokens[(position + 2)..<close], text((position + 2)..<close))
    }
  }

  /// Returns whether the text of a trigger or a view names a table or view where SQL expects one:
  /// after FROM, INTO and the like, and not as a column.
  func namesTable(_ name: SQLName) -> Bool {
    tokens.indices.contains { tokens[$0].isName(name) && isTable($0) }
  }

  private func isTable(_ position: Int) -> Bool {
    var before = position - 1
    if before >= 1, tokens[before].isSymbol("."), tokens[before - 1].isName("main") { before -= 2 }
    guard before >= 0 else { return false }
    if Self.tableWords.contains(where: tokens[before].isWord) {
      // As in “IS DISTINCT FROM”, before a value.
      return before == 0 || !tokens[before].isWord("FROM") || !tokens[before - 1].isWord("DISTINCT")
    }
    guard tokens[before].isSymbol(",") || tokens[before].isSymbol("(") else { return false }
    // A list of tables begins after FROM; other lists begin after other words.
    while before >= 0 {
      let token = tokens[before]
      if token.isSymbol(")") {
        var depth = 0
        repeat {
          if tokens[before].isSymbol(")") { depth += 1 }
          if tokens[before].isSymbol("(") { depth -= 1 }
          before -= 1
        } while depth > 0 && before >= 0
        continue
      }
      if token.isSymbol("(") {
        // Tables in parentheses: an opening one follows FROM, JOIN or another parenthesis.
        guard before > 0 else { return false }
        let outer = tokens[before - 1]
        guard outer.isSymbol("(") || outer.isWord("FROM") || outer.isWord("JOIN") else {
          return false
        }
      }
      if token.isWord("FROM") || token.isWord("JOIN") { return true }
      if Self.otherLists.contains(where: token.isWord) || token.isSymbol(";") { return false }
      before -= 1
    }
    return false
  }

  /// The words after which the name of a table stands, also after the action of a statement with OR.
  private static let tableWords: [SQLName] = [
    "FROM", "INTO", "JOIN", "UPDATE", "IN", "ROLLBACK", "ABORT", "REPLACE", "FAIL", "IGNORE",
  ]

  /// The words after which a list of something else than tables stands.
  private static let otherLists: [SQLName] = [
    "SELECT", "DISTINCT", "ALL", "SET", "VALUES", "BY", "WHERE", "HAVING", "RETURNING", "OF",
    "CASE",
    "PARTITION", "WITH",
  ]
}
