import Foundation

/// The name of a table, a column or an index.
///
/// SQLite compares names by their bytes and ignores the case of ASCII letters only: “é” as one and
/// as two code points are two names, and so are “É” and “é”. As `String`s the former two are equal,
/// so code that compares, sorts or hashes names must not use `String`.
public struct SQLName: Sendable {
  /// The name as text, in its own spelling.
  public let text: String

  /// Creates a name with the bytes of a text.
  public init(_ text: some StringProtocol) {
    self.text = String(text)
  }

  /// The name with its ASCII letters in lower case. It is equal for all spellings that SQLite
  /// treats as one name.
  public var folded: SQLName {
    guard text.utf8.contains(where: Self.isUpperCase) else { return self }
    return SQLName(String(decoding: text.utf8.map(Self.folded), as: UTF8.self))
  }

  /// Returns whether SQLite treats both as one name.
  public func isSame(as other: SQLName) -> Bool {
    text.utf8.count == other.text.utf8.count
      && text.utf8.elementsEqual(other.text.utf8) { Self.folded($0) == Self.folded($1) }
  }

  /// Returns whether the name begins with another, apart from the case of ASCII letters.
  public func begins(with prefix: SQLName) -> Bool {
    text.utf8.count >= prefix.text.utf8.count
      && zip(text.utf8, prefix.text.utf8).allSatisfy { Self.folded($0) == Self.folded($1) }
  }

  /// The name between quotation marks, as SQL writes it.
  public var quoted: String {
    // Byte by byte, since a quotation mark and a combining mark after it are one `Character`.
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
  /// Returns whether the bytes are equal.
  public static func == (left: SQLName, right: SQLName) -> Bool {
    let count = left.text.utf8.count
    guard count == right.text.utf8.count else { return false }
    // Much faster than comparing two views byte by byte.
    var (left, right) = (left.text, right.text)
    return left.withUTF8 { left in
      right.withUTF8 { right in
        guard let left = left.baseAddress, let right = right.baseAddress else { return true }
        return memcmp(left, right, count) == 0
      }
    }
  }

  /// Orders names by their bytes.
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
  /// Creates a name from a literal.
  public init(stringLiteral text: String) { self.init(text) }

  /// The name as text.
  public var description: String { text }
}

extension Sequence where Element == SQLName {
  /// Returns the names joined in one text.
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

  /// The prefix of a key that has the bytes of a name as hexadecimal digits.
  private static let escape = "\u{0}utf8:"

  private struct Key: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  /// The name as the key of an object: its text, or its bytes if a coder could confuse the text
  /// with another name.
  ///
  /// Coders hold keys in dictionaries of `String`s. Among names that are equal as `String`s, only
  /// one is in Unicode's composed form.
  public var codingKey: any CodingKey {
    let isComposed = text.precomposedStringWithCanonicalMapping.utf8.elementsEqual(text.utf8)
    guard !isComposed || text.hasPrefix(Self.escape) else { return Key(stringValue: text) }
    let digits = text.utf8.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }
    return Key(stringValue: Self.escape + digits.joined())
  }

  /// Creates the name that ``codingKey`` encodes.
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
