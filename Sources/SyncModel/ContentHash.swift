import Crypto

/// The SHA-256 of a file's bytes.
public struct ContentHash: Hashable, Sendable, Codable, CustomStringConvertible,
  LosslessStringConvertible
{
  /// The 32 bytes.
  public let bytes: [UInt8]

  /// Hashes `content`.
  public init(of content: some Sequence<UInt8>) {
    if let contiguous = content.withContiguousStorageIfAvailable({ buffer in
      Array(SHA256.hash(data: UnsafeRawBufferPointer(buffer)))
    }) {
      bytes = contiguous
    } else {
      bytes = Array(SHA256.hash(data: Array(content)))
    }
  }

  /// Wraps a digest that was just computed.
  init(digest: [UInt8]) { bytes = digest }

  /// Wraps a digest of exactly 32 bytes; `nil` for any other length.
  public init?(bytes: some Collection<UInt8>) {
    guard bytes.count == 32 else { return nil }
    self.bytes = Array(bytes)
  }

  /// 64 hexadecimal digits in lower case.
  public var description: String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(64)
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Parses ``description``; `nil` for anything else.
  public init?(_ description: String) {
    let digits = Array(description.utf8)
    guard digits.count == 64 else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: 64, by: 2) {
      guard let high = Self.nibble(digits[index]), let low = Self.nibble(digits[index + 1])
      else { return nil }
      bytes.append(high << 4 | low)
    }
    self.bytes = bytes
  }

  private static func nibble(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    default: nil
    }
  }

  /// The part of the hash that file names carry: the first 50 bits in base 32, ten characters. A
  /// name is a hint; the header in the file decides.
  public var nameFragment: String { String(Base32.encode(bytes.prefix(7)).prefix(10)) }

  /// Reads the text form.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard let value = Self(text) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "\(text) is not a SHA-256 of 64 hexadecimal digits")
    }
    self = value
  }

  /// Writes the text form.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
