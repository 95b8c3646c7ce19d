/// A random 128-bit identifier, written as 26 characters of lower-case base 32 (`a`–`z`, `2`–`7`),
/// the last of which carries three bits.
///
/// The text form is safe in file names everywhere: it is ASCII, has no case and no punctuation.
/// Parsing accepts only the text that ``description`` gives.
package protocol RandomIdentifier: Hashable, Comparable, Sendable, Codable,
  CustomStringConvertible, LosslessStringConvertible
{
  /// The 128 bits.
  var bits: Bits128 { get }
  /// Wraps 128 bits.
  init(bits: Bits128)
}

/// 128 bits as two words, ordered as one big-endian number.
package struct Bits128: Hashable, Comparable, Sendable {
  /// The more significant half.
  package var high: UInt64
  /// The less significant half.
  package var low: UInt64

  /// Creates a value from its two halves.
  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Reads 16 bytes, most significant first; `nil` for any other length.
  package init?(bytes: [UInt8]) { self.init(reading: bytes) }

  /// Reads 16 bytes, most significant first; `nil` for any other length.
  package init?(bytes: ArraySlice<UInt8>) { self.init(reading: bytes) }

  // Other modules could not specialize a generic initializer.
  private init?(reading bytes: some Collection<UInt8>) {
    guard bytes.count == 16 else { return nil }
    high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    low = bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The 16 bytes, most significant first.
  package var bytes: [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(16)
    for word in [high, low] {
      for shift in stride(from: 56, through: 0, by: -8) {
        result.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
      }
    }
    return result
  }

  /// Orders values as numbers.
  package static func < (left: Bits128, right: Bits128) -> Bool {
    (left.high, left.low) < (right.high, right.low)
  }

  /// Draws 128 bits.
  package static func random(using generator: inout some RandomNumberGenerator) -> Bits128 {
    Bits128(high: generator.next(), low: generator.next())
  }
}

extension RandomIdentifier {
  /// Draws a new identifier from the system's generator.
  package static func random() -> Self {
    var generator = SystemRandomNumberGenerator()
    return random(using: &generator)
  }

  /// Draws a new identifier from `generator`.
  package static func random(using generator: inout some RandomNumberGenerator) -> Self {
    Self(bits: .random(using: &generator))
  }

  /// The 26 characters of base 32.
  package var description: String { text }

  /// Parses ``description``; `nil` for anything else.
  package init?(_ description: String) { self.init(text: description) }

  /// Orders identifiers as numbers. Their texts sort differently: in them digits have greater
  /// values than letters.
  package static func < (left: Self, right: Self) -> Bool { left.bits < right.bits }

  /// Reads the text form.
  package init(from decoder: any Decoder) throws { try self.init(decoding: decoder) }

  /// Writes the text form.
  package func encode(to encoder: any Encoder) throws { try encodeText(to: encoder) }
}

extension RandomIdentifier {
  /// The 26 characters of base 32.
  fileprivate var text: String { Base32.encode(bits.bytes) }

  /// Parses ``text``; `nil` for anything else.
  fileprivate init?(text: String) {
    guard text.utf8.count == 26,
      let bytes = Base32.decode(text), let bits = Bits128(bytes: bytes)
    else { return nil }
    self.init(bits: bits)
  }

  fileprivate init(decoding decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard let value = Self(text: text) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "\(text) is not an identifier of 26 base-32 characters")
    }
    self = value
  }

  fileprivate func encodeText(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}

/// One installation of an application on one device, in one incarnation.
///
/// Two states of one store never have the same identifier: a copied or restored store takes a new
/// one and names its ancestor. The text is 26 characters of lower-case base 32 (`a`–`z`, `2`–`7`),
/// the last of which carries three bits.
public struct ClientIdentifier: RandomIdentifier, Hashable, Comparable, Sendable, Codable,
  LosslessStringConvertible
{
  /// The 128 bits.
  package let bits: Bits128
  /// Wraps 128 bits.
  package init(bits: Bits128) { self.bits = bits }

  /// Draws a new identifier from the system's generator.
  public static func random() -> Self {
    var generator = SystemRandomNumberGenerator()
    return random(using: &generator)
  }

  /// The 26 characters of base 32.
  public var description: String { text }

  /// Parses ``description``; `nil` for anything else.
  public init?(_ description: String) { self.init(text: description) }

  /// Orders identifiers as numbers. Their texts sort differently: in them digits have greater
  /// values than letters.
  public static func < (left: Self, right: Self) -> Bool { left.bits < right.bits }

  /// Reads the text form.
  public init(from decoder: any Decoder) throws { try self.init(decoding: decoder) }

  /// Writes the text form.
  public func encode(to encoder: any Encoder) throws { try encodeText(to: encoder) }
}

/// The identifier of a shared directory, drawn when an application is created in it.
package struct RootIdentifier: RandomIdentifier {
  /// The 128 bits.
  package let bits: Bits128
  /// Wraps 128 bits.
  package init(bits: Bits128) { self.bits = bits }
}

/// The opaque name of a document's folder; the identifier that the user
/// chose is inside its generation file.
package struct DocumentName: RandomIdentifier {
  /// The 128 bits.
  package let bits: Bits128
  /// Wraps 128 bits.
  package init(bits: Bits128) { self.bits = bits }
}

/// The random value made when a generation of a document begins. The store and the shared directory
/// must have the same key.
package struct IntegrityKey: RandomIdentifier {
  /// The 128 bits.
  package let bits: Bits128
  /// Wraps 128 bits.
  package init(bits: Bits128) { self.bits = bits }
}
