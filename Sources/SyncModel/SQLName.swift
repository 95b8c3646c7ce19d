import Foundation

/// The name of a table, a column or an index.
///
/// SQLite knows names by their bytes and folds the case of ASCII letters
/// alone: “é” in one and in two code points are two names, and so are “É” and
/// “é”. Two `String`s are equal in the former case, so a `String` must not stand for
/// a name where names are compared, sorted or used as keys.
public struct SQLName: Sendable {
  /// The name as text, in the spelling that it has.
  public let text: String

  /// The name that a text spells, byte by byte.
  public init(_ text: some StringProtocol) {
    self.text = String(text)
  }

  /// The name with its ASCII letters in lower case: equal for the spellings
  /// that SQLite takes for one name.
  public var folded: SQLName {
    guard text.utf8.contains(where: Self.isUpperCase) else { return self }
    return SQLName(String(decoding: text.utf8.map(Self.folded), as: UTF8.self))
  }

  /// Whether SQLite takes both for one name.
  public func isSame(as other: SQLName) -> Bool {
    text.utf8.count == other.text.utf8.count
      && text.utf8.elementsEqual(other.text.utf8) { Self.folded($0) == Self.folded($1) }
  }

  /// Whether it begins with the bytes of another, apart from the case of ASCII
  /// letters.
  public func begins(with prefix: SQLName) -> Bool {
    text.utf8.count >= prefix.text.utf8.count
      && zip(text.utf8, prefix.text.utf8).allSatisfy { Self.folded($0) == Self.folded($1) }
  }

  /// The name between quotation marks, as SQL writes it.
  public var quoted: String {
    // Byte by byte: a combining mark makes another character of a quotation
    // mark before it.
    var bytes: [UInt8] = [UInt8(ascii: "\"")]
    for byte in text.utf8 {
      if byte == UInt8(ascii: "\"") { bytes.append(byte) }
      bytes.append(byte)
    }
    bytes.append(UInt8(ascii: "\""))
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func isUpperCase(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
  }

  private static func folded(_ byte: UInt8) -> UInt8 { isUpperCase(byte) ? byte | 0x20 : byte }
}

extension SQLName: Hashable, Comparable {
  /// Whether the bytes are equal.
  public static func == (left: SQLName, right: SQLName) -> Bool {
    left.text.utf8.elementsEqual(right.text.utf8)
  }

  /// Bytewise order.
  public static func < (left: SQLName, right: SQLName) -> Bool {
    left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
  }

  /// Hashes the bytes.
  public func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    hasher.combine(0xFF as UInt8)
  }
}

extension SQLName: ExpressibleByStringInterpolation, LosslessStringConvertible {
  /// The name that is written.
  public init(stringLiteral text: String) { self.init(text) }

  /// The name as text.
  public var description: String { text }
}

extension Sequence where Element == SQLName {
  /// The names in one text.
  package func joined(separator: String) -> String { map(\.text).joined(separator: separator) }
}

extension SQLName: Codable, CodingKeyRepresentable {
  /// Reads the text.
  public init(from decoder: any Decoder) throws {
    self.init(try decoder.singleValueContainer().decode(String.self))
  }

  /// Writes the text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }

  /// Before the bytes of a name, as hexadecimal digits.
  private static let escape = "\u{0}utf8:"

  private struct Key: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  /// The name as the key of an object: the text, or, if a coder could confuse it
  /// with another name, its bytes.
  ///
  /// Coders hold keys in dictionaries of strings. Only one of the names that are equal
  /// there is in Unicode's composed form.
  public var codingKey: any CodingKey {
    let isComposed = text.precomposedStringWithCanonicalMapping.utf8.elementsEqual(text.utf8)
    guard !isComposed || text.hasPrefix(Self.escape) else { return Key(stringValue: text) }
    let digits = text.utf8.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }
    return Key(stringValue: Self.escape + digits.joined())
  }

  /// The name that a key stands for.
  public init?(codingKey: some CodingKey) {
    let key = codingKey.stringValue
    guard key.hasPrefix(Self.escape) else {
      self.init(key)
      return
    }
    let digits = Array(key.utf8.dropFirst(Self.escape.utf8.count))
    guard digits.count % 2 == 0 else { return nil }
    var bytes: [UInt8] = []
    for position in stride(from: 0, to: digits.count, by: 2) {
      guard
        let byte = UInt8(
          String(decoding: digits[position..<position + 2], as: UTF8.self), radix: 16)
      else { return nil }
      bytes.append(byte)
    }
    let text = String(decoding: bytes, as: UTF8.self)
    guard text.utf8.elementsEqual(bytes) else { return nil }
    self.init(text)
  }
}
