/// A text of JSON, as far as its objects are concerned: everything else is as it was written, without the
/// space between its parts.
indirect enum JSONTree {
  case object([Member], number: Int)
  /// An array, a text, a number or a word.
  case whole([UInt8], number: Int)

  /// A member of an object.
  struct Member {
    /// The name, without escapes.
    var name: [UInt8]
    /// The number of the name: that of the same name in other objects, too.
    var number: Int
    /// The name as it was written, with quotation marks.
    var writtenName: [UInt8]
    var value: JSONTree
  }

  /// Reads a text; `nil` if it is no JSON, if an object has two members of one name, or if values are
  /// nested too deeply.
  init?(_ text: [UInt8], _ numbers: inout JSONNumbers) {
    var reader = JSONReader(text, numbers)
    let tree = reader.document()
    numbers = reader.numbers
    guard let tree else { return nil }
    self = tree
  }

  /// The text, without space between its parts.
  var text: [UInt8] {
    var text: [UInt8] = []
    write(to: &text)
    return text
  }

  private func write(to text: inout [UInt8]) {
    switch self {
    case .whole(let bytes, _): text += bytes
    case .object(let members, _):
      text.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { text.append(UInt8(ascii: ",")) }
        text += member.writtenName
        text.append(UInt8(ascii: ":"))
        member.value.write(to: &text)
      }
      text.append(UInt8(ascii: "}"))
    }
  }

  /// Returns whether two trees, whose numbers come from one ``JSONNumbers``, have the same values. The order of members
  /// does not matter.
  func isSame(as other: JSONTree) -> Bool {
    switch (self, other) {
    case (.whole(_, let left), .whole(_, let right)): left == right
    case (.object(_, let left), .object(_, let right)): left == right
    default: false
    }
  }

  /// Returns the values of members by the numbers of their names.
  static func values(_ members: [Member]) -> [Int: JSONTree] {
    Dictionary(members.map { ($0.number, $0.value) }) { first, _ in first }
  }
}

/// Numbers for values: the same values have one number.
struct JSONNumbers {
  private var names = TokenNames()
  private var objects: [[Int]: Int] = [:]

  /// Returns the number of a name, or of a value that is no object.
  mutating func number(of bytes: [UInt8]) -> Int { names.number(of: bytes[...]) }

  /// Returns an object.
  mutating func object(_ members: [JSONTree.Member]) -> JSONTree {
    let sorted = members.sorted { $0.number < $1.number }
    let key = sorted.flatMap { member -> [Int] in
      switch member.value {
      case .whole(_, let number): [member.number, 0, number]
      case .object(_, let number): [member.number, 1, number]
      }
    }
    let number = objects[key] ?? objects.count
    objects[key] = number
    return .object(members, number: number)
  }
}

/// A reader of JSON as RFC 8259 has it, over any bytes.
private struct JSONReader {
  private let text: [UInt8]
  private var position = 0
  private var depth = 0
  private static let greatestDepth = 200

  private(set) var numbers: JSONNumbers

  init(_ text: [UInt8], _ numbers: JSONNumbers) {
    self.text = text
    self.numbers = numbers
  }

  mutating func document() -> JSONTree? {
    skipSpace()
    guard let tree = value() else { return nil }
    skipSpace()
    return position == text.count ? tree : nil
  }

  private var next: UInt8? { position < text.count ? text[position] : nil }

  private mutating func skipSpace() {
    while let next, next == 0x20 || next == 0x09 || next == 0x0a || next == 0x0d { position += 1 }
  }

  private mutating func skip(_ character: Unicode.Scalar) -> Bool {
    guard next == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  private mutating func value() -> JSONTree? {
    guard next == UInt8(ascii: "{") else {
      var written: [UInt8] = []
      guard writeValue(to: &written) else { return nil }
      return .whole(written, number: numbers.number(of: written))
    }
    var members: [JSONTree.Member] = []
    var names: Set<[UInt8]> = []
    let isWhole = list(from: "{", to: "}") { reader in
      guard let member = reader.member(), names.insert(member.name).inserted else { return false }
      members.append(member)
      return true
    }
    return isWhole ? numbers.object(members) : nil
  }

  private mutating func member() -> JSONTree.Member? {
    guard let (written, name) = string(), skipColon(), let value = value() else { return nil }
    return JSONTree.Member(
      name: name, number: numbers.number(of: name), writtenName: written, value: value)
  }

  private mutating func skipColon() -> Bool {
    skipSpace()
    defer { skipSpace() }
    return skip(":")
  }

  /// Reads the parts of an object or of an array.
  private mutating func list(
    from first: Unicode.Scalar, to last: Unicode.Scalar,
    _ part: (inout JSONReader) -> Bool
  ) -> Bool {
    guard skip(first), depth < Self.greatestDepth else { return false }
    depth += 1
    defer { depth -= 1 }
    skipSpace()
    if skip(last) { return true }
    while true {
      skipSpace()
      guard part(&self) else { return false }
      skipSpace()
      if skip(last) { return true }
      guard skip(",") else { return false }
    }
  }

  /// Writes a value within an array, or a value that is no object, without space between its parts.
  private mutating func writeValue(to written: inout [UInt8]) -> Bool {
    switch next {
    case UInt8(ascii: "{"):
      return writeList(from: "{", to: "}", &written) { reader, written in
        guard let (name, _) = reader.string(), reader.skipColon() else { return false }
        written += name
        written.append(UInt8(ascii: ":"))
        return reader.writeValue(to: &written)
      }
    case UInt8(ascii: "["):
      return writeList(from: "[", to: "]", &written) { $0.writeValue(to: &$1) }
    case UInt8(ascii: "\""):
      guard let (text, _) = string() else { return false }
      written += text
      return true
    default: return writeWord(to: &written)
    }
  }

  private mutating func writeList(
    from first: Unicode.Scalar, to last: Unicode.Scalar, _ written: inout [UInt8],
    _ part: (inout JSONReader, inout [UInt8]) -> Bool
  ) -> Bool {
    var inner: [UInt8] = [UInt8(ascii: first)]
    let isWhole = list(from: first, to: last) { reader in
      if inner.count > 1 { inner.append(UInt8(ascii: ",")) }
      return part(&reader, &inner)
    }
    written += inner
    written.append(UInt8(ascii: last))
    return isWhole
  }

  /// Writes a number, `true`, `false` or `null`.
  private mutating func writeWord(to written: inout [UInt8]) -> Bool {
    let begin = position
    while let next, isInWord(next) { position += 1 }
    let word = text[begin..<position]
    written += word
    return ["true", "false", "null"].contains { word.elementsEqual($0.utf8) } || isNumber(word)
  }

  private func isInWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "E"):
      true
    default: false
    }
  }

  private func isNumber(_ word: ArraySlice<UInt8>) -> Bool {
    var rest = word
    func digits() -> Int {
      let count = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }.count
      rest = rest.dropFirst(count)
      return count
    }
    func take(_ characters: String) -> Bool {
      guard let next = rest.first, characters.utf8.contains(next) else { return false }
      rest = rest.dropFirst()
      return true
    }
    _ = take("-")
    if !take("0"), digits() == 0 { return false }
    if take("."), digits() == 0 { return false }
    if take("eE") {
      _ = take("+-")
      if digits() == 0 { return false }
    }
    return rest.isEmpty
  }

  /// Reads a text: as it is written, and without escapes.
  private mutating func string() -> (written: [UInt8], plain: [UInt8])? {
    let begin = position
    guard skip("\"") else { return nil }
    var plain: [UInt8] = []
    while let byte = next, byte >= 0x20 {
      position += 1
      switch byte {
      case UInt8(ascii: "\""): return (Array(text[begin..<position]), plain)
      case UInt8(ascii: "\\"):
        guard let escaped = escape() else { return nil }
        plain += escaped
      default: plain.append(byte)
      }
    }
    return nil
  }

  private mutating func escape() -> [UInt8]? {
    guard let byte = next else { return nil }
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
    case UInt8(ascii: "b"): return [0x08]
    case UInt8(ascii: "f"): return [0x0c]
    case UInt8(ascii: "n"): return [0x0a]
    case UInt8(ascii: "r"): return [0x0d]
    case UInt8(ascii: "t"): return [0x09]
    case UInt8(ascii: "u"): return unicodeEscape()
    default: return nil
    }
  }

  private mutating func unicodeEscape() -> [UInt8]? {
    guard let first = codeUnit() else { return nil }
    if UTF16.isLeadSurrogate(first), next == UInt8(ascii: "\\"), position + 1 < text.count,
      text[position + 1] == UInt8(ascii: "u")
    {
      let begin = position
      position += 2
      guard let second = codeUnit() else { return nil }
      if UTF16.isTrailSurrogate(second) {
        return Array(String(decoding: [first, second], as: UTF16.self).utf8)
      }
      position = begin
    }
    if let scalar = Unicode.Scalar(first) { return Array(String(scalar).utf8) }
    // Half a surrogate pair, as its three bytes.
    return [0xe0 | UInt8(first >> 12), 0x80 | UInt8(first >> 6 & 0x3f), 0x80 | UInt8(first & 0x3f)]
  }

  private mutating func codeUnit() -> UInt16? {
    guard position + 4 <= text.count else { return nil }
    let digits = text[position..<position + 4]
    guard digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit && $0 < 0x80 }) else {
      return nil
    }
    position += 4
    return UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
  }
}
