/// Conversion between text of UTF-16 databases and the bytes in change sets.
///
/// When SQLite converts text to UTF-8, it replaces half a surrogate pair with other characters.
/// This type converts half a pair to the three bytes that UTF-8 would have for it (“WTF-8”), and
/// back. All other text is UTF-8.
package enum WideText {
  /// Returns the bytes for text that contains half a pair, or U+FFFE or U+FFFF, which SQLite
  /// changes as well; `nil` for all other text, which SQLite converts correctly.
  ///
  /// - Parameter units: The text in UTF-16, in the byte order of this machine.
  package static func bytes(ifBroken units: UnsafeRawBufferPointer) -> [UInt8]? {
    let count = units.count / 2
    func unit(_ index: Int) -> UInt16 {
      units.loadUnaligned(fromByteOffset: 2 * index, as: UInt16.self)
    }
    var index = 0
    while index < count, let step = step(unit(index), index + 1 < count ? unit(index + 1) : 0) {
      index += step
    }
    guard index < count else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(3 * count)
    index = 0
    while index < count {
      let first = unit(index)
      let next = index + 1 < count ? unit(index + 1) : 0
      if step(first, next) == 2 {
        append(0x10000 + UInt32(first & 0x3FF) << 10 + UInt32(next & 0x3FF), to: &bytes)
        index += 2
      } else {
        append(UInt32(first), to: &bytes)
        index += 1
      }
    }
    return bytes
  }

  /// Returns the number of units of a character that SQLite converts correctly; `nil` for half a
  /// pair, U+FFFE and U+FFFF.
  private static func step(_ first: UInt16, _ next: UInt16) -> Int? {
    if first >= 0xFFFE { return nil }
    guard first & 0xF800 == 0xD800 else { return 1 }
    return first < 0xDC00 && next & 0xFC00 == 0xDC00 ? 2 : nil
  }

  private static func append(_ scalar: UInt32, to bytes: inout [UInt8]) {
    func tail(_ shift: UInt32) -> UInt8 { UInt8(0x80 | scalar >> shift & 0x3F) }
    switch scalar {
    case ..<0x80: bytes.append(UInt8(scalar))
    case ..<0x800: bytes += [UInt8(0xC0 | scalar >> 6), tail(0)]
    case ..<0x10000: bytes += [UInt8(0xE0 | scalar >> 12), tail(6), tail(0)]
    default: bytes += [UInt8(0xF0 | scalar >> 18), tail(12), tail(6), tail(0)]
    }
  }

  /// Returns the text in UTF-16, in the byte order of this machine, for bytes that contain half a
  /// pair, or U+FFFE or U+FFFF, which SQLite changes as well; `nil` for all other bytes. Bytes that
  /// form no character become U+FFFD.
  package static func units(ifBroken bytes: UnsafeRawBufferPointer) -> [UInt16]? {
    let isBroken = bytes.indices.dropLast(2).contains { index in
      isHalf(bytes, index)
        || bytes[index] == 0xEF && bytes[index + 1] == 0xBF && bytes[index + 2] >= 0xBE
    }
    guard isBroken else { return nil }
    var units: [UInt16] = []
    units.reserveCapacity(bytes.count)
    var start = 0
    var index = 0
    while index < bytes.count {
      guard isHalf(bytes, index) else {
        index += 1
        continue
      }
      units += String(decoding: bytes[start..<index], as: UTF8.self).utf16
      units.append(0xD000 | UInt16(bytes[index + 1] & 0x3F) << 6 | UInt16(bytes[index + 2] & 0x3F))
      index += 3
      start = index
    }
    return units + String(decoding: bytes[start...], as: UTF8.self).utf16
  }

  /// Returns whether the bytes from an index on encode half a pair.
  private static func isHalf(_ bytes: UnsafeRawBufferPointer, _ index: Int) -> Bool {
    bytes[index] == 0xED && index + 2 < bytes.count && bytes[index + 1] & 0xE0 == 0xA0
      && bytes[index + 2] & 0xC0 == 0x80
  }
}
