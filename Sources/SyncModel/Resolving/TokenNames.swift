/// The parts of texts, each with a number: equal parts have one number.
struct TokenNames {
  private(set) var parts: [ArraySlice<UInt8>] = []
  private var numbers: [Part: Int] = [:]

  private struct Part: Hashable {
    var bytes: ArraySlice<UInt8>

    func hash(into hasher: inout Hasher) {
      bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }
  }

  mutating func number(of part: ArraySlice<UInt8>) -> Int {
    let key = Part(bytes: part)
    if let known = numbers[key] { return known }
    numbers[key] = parts.count
    parts.append(part)
    return parts.count - 1
  }

  /// Returns the numbers of the lines of a text. A text that ends with a line feed has an empty last line.
  mutating func lines(_ text: [UInt8]) -> [Int] {
    var lines: [Int] = []
    var begin = 0
    for (position, byte) in text.enumerated() where byte == UInt8(ascii: "\n") {
      lines.append(number(of: text[begin..<position]))
      begin = position + 1
    }
    lines.append(number(of: text[begin...]))
    return lines
  }

  /// Returns the text of lines.
  func text(ofLines lines: [Int]) -> [UInt8] {
    Array(lines.map { parts[$0] }.joined(separator: [UInt8(ascii: "\n")]))
  }

  /// Returns the numbers of the words of a text, each with the space before it.
  mutating func words(_ text: [UInt8]) -> [Int] {
    var words: [Int] = []
    var begin = 0
    while begin < text.count {
      var end = begin
      while end < text.count, Self.kind(text[end]) == .space { end += 1 }
      switch end < text.count ? Self.kind(text[end]) : .space {
      case .word: while end < text.count, Self.kind(text[end]) == .word { end += 1 }
      case .ideograph: end = min(end + 3, text.count)
      case .mark: end += 1
      case .space: break
      }
      words.append(number(of: text[begin..<end]))
      begin = end
    }
    return words
  }

  /// Returns the text of words.
  func text(ofWords words: [Int]) -> [UInt8] { Array(words.map { parts[$0] }.joined()) }

  /// Returns whether the parts of one sequence come before those of another.
  func precedes(_ left: some Sequence<Int>, _ right: some Sequence<Int>) -> Bool {
    left.lexicographicallyPrecedes(right) {
      parts[$0].lexicographicallyPrecedes(parts[$1])
    }
  }

  /// Returns whether a part contains a letter or a digit.
  static func hasWord(_ part: ArraySlice<UInt8>) -> Bool {
    part.contains { kind($0) == .word || kind($0) == .ideograph }
  }

  /// What a byte of UTF-8 belongs to.
  private enum Kind { case word, space, mark, ideograph }

  private static func kind(_ byte: UInt8) -> Kind {
    switch byte {
    case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"): .space
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      .word
    // U+3000 to U+9FFF: scripts without spaces, of which each character is a word.
    case 0xe3...0xe9: .ideograph
    case 0x80...: .word
    default: .mark
    }
  }
}
