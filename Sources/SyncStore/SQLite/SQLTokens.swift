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
      (kind == .word || kind == .quotedName) && self.name.isSame(as: name)
    }
  }

  let source: [UInt8]
  let tokens: [Token]

  init(_ sql: String) {
    source = Array(sql.utf8)
    var tokens: [Token] = []
    var index = 0
    while index < source.count {
      let start = index
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
