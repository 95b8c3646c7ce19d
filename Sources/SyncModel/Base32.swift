/// Base 32 of RFC 4648 in lower case and without padding.
package enum Base32 {
  private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

  /// Encodes bytes; the result has `⌈8n/5⌉` characters.
  package static func encode(_ bytes: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    var accumulator: UInt32 = 0
    var bits: UInt32 = 0
    for byte in bytes {
      accumulator = accumulator << 8 | UInt32(byte)
      bits += 8
      while bits >= 5 {
        bits -= 5
        text.append(alphabet[Int(accumulator >> bits & 31)])
      }
    }
    if bits > 0 { text.append(alphabet[Int(accumulator << (5 - bits) & 31)]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Decodes text that ``encode(_:)`` made. Returns `nil` for other characters, impossible lengths
  /// and padding bits that are not zero.
  package static func decode(_ text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    var accumulator: UInt32 = 0
    var bits: UInt32 = 0
    for character in text.utf8 {
      let digit: UInt8
      switch character {
      case UInt8(ascii: "a")...UInt8(ascii: "z"): digit = character - UInt8(ascii: "a")
      case UInt8(ascii: "2")...UInt8(ascii: "7"): digit = character - UInt8(ascii: "2") + 26
      default: return nil
      }
      accumulator = accumulator << 5 | UInt32(digit)
      bits += 5
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: accumulator >> bits))
      }
    }
    guard bits < 5, accumulator & ((1 << bits) - 1) == 0 else { return nil }
    return bytes
  }
}
