/// The text of a UUID in lower case, 8-4-4-4-12, and its 16 bytes.
enum UUIDText {
  static let length = 36
  /// The bytes that `IdentityEncoding` puts before a text of this length.
  static let identityPrefix: [UInt8] = [ValueKind.text.rawValue, 36]

  /// The value of each lower-case hexadecimal digit; 255 for other bytes.
  private static let nibbles: [UInt8] = (0..<256).map { code -> UInt8 in
    switch UInt8(code) {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt8(code) - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt8(code) - UInt8(ascii: "a") + 10
    default: 255
    }
  }
  /// The two digits of each byte.
  private static let digits: [(UInt8, UInt8)] = (0..<256).map { byte in
    let digits = Array("0123456789abcdef".utf8)
    return (digits[byte >> 4], digits[byte & 15])
  }
  /// The positions of the 16 bytes in the text.
  private static let positions = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]
  private static let hyphens = [8, 13, 18, 23]

  /// Returns 16 bytes for each string; `nil` unless every string is `prefix` and the text of a
  /// UUID.
  static func pack(_ contents: ContentSpans, prefix: [UInt8]) -> [UInt8]? {
    guard contents.commonLength == length + prefix.count else { return nil }
    var complete = true
    let packed = [UInt8](unsafeUninitializedCapacity: 16 * contents.count) { output, count in
      nibbles.withUnsafeBufferPointer { nibbles in
        positions.withUnsafeBufferPointer { positions in
          for index in 0..<contents.count {
            let string = contents[index]
            guard string.prefix(prefix.count).elementsEqual(prefix) else {
              complete = false
              return
            }
            let text = UnsafeRawBufferPointer(rebasing: string[prefix.count...])
            var seen: UInt8 = 0
            for (number, position) in positions.enumerated() {
              let high = nibbles[Int(text[position])]
              let low = nibbles[Int(text[position + 1])]
              seen |= high | low
              output[index &* 16 &+ number] = high << 4 | low & 15
            }
            let hyphen = UInt8(ascii: "-")
            guard seen < 16, text[8] == hyphen, text[13] == hyphen, text[18] == hyphen,
              text[23] == hyphen
            else {
              complete = false
              return
            }
          }
        }
      }
      count = complete ? 16 * contents.count : 0
    }
    return complete ? packed : nil
  }

  /// Writes to `output`, for each 16 bytes of `rows`, `prefix` and the text of the UUID.
  static func unpack(
    _ rows: UnsafeRawBufferPointer, prefix: [UInt8], into output: UnsafeMutableRawBufferPointer
  ) {
    digits.withUnsafeBufferPointer { digits in
      positions.withUnsafeBufferPointer { positions in
        var start = 0
        for row in stride(from: 0, to: rows.count, by: 16) {
          for byte in prefix {
            output[start] = byte
            start += 1
          }
          for (number, position) in positions.enumerated() {
            let pair = digits[Int(rows[row &+ number])]
            output[start &+ position] = pair.0
            output[start &+ position &+ 1] = pair.1
          }
          for hyphen in hyphens { output[start + hyphen] = UInt8(ascii: "-") }
          start += length
        }
      }
    }
  }
}
