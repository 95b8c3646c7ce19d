/// The numbers of the format.
extension [UInt8] {
  /// Appends a number, least significant byte first.
  mutating func append<Number: FixedWidthInteger>(little number: Number) {
    Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
  }

  /// Appends a number with seven bits in each byte, least significant first. The high bit means
  /// that another byte follows.
  mutating func append(varint number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(truncatingIfNeeded: rest))
  }

  /// Appends a count or a length.
  mutating func append(varint number: Int) { append(varint: UInt64(number)) }

  /// Appends a signed number as the varint of its place in 0, -1, 1, -2, 2….
  mutating func append(zigzag number: Int64) {
    append(varint: UInt64(bitPattern: number << 1 ^ number >> 63))
  }
}

extension UnsafeRawBufferPointer {
  /// Reads a number, least significant byte first. The caller has checked that the buffer contains
  /// it.
  func little<Number: FixedWidthInteger>(at offset: Int, as type: Number.Type) -> Number {
    Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: Number.self))
  }
}

/// A reader that goes forward through bytes and never beyond their end.
struct WireReader {
  private let bytes: UnsafeRawBufferPointer
  /// The name of the part that is read, for errors.
  let name: String
  /// The position.
  private(set) var offset = 0

  init(_ bytes: UnsafeRawBufferPointer, name: String) {
    self.bytes = bytes
    self.name = name
  }

  var remaining: Int { bytes.count - offset }

  mutating func byte() throws -> UInt8 {
    guard offset < bytes.count else { throw CodecError(.truncated, name, at: offset) }
    defer { offset += 1 }
    return bytes[offset]
  }

  mutating func take(_ count: Int) throws -> UnsafeRawBufferPointer {
    guard count >= 0, count <= remaining else { throw CodecError(.truncated, name, at: offset) }
    defer { offset += count }
    return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
  }

  mutating func word() throws -> UInt64 { try take(8).little(at: 0, as: UInt64.self) }

  /// Reads a number of at most 64 bits in its shortest form.
  mutating func varint() throws -> UInt64 {
    var result: UInt64 = 0
    var shift: UInt64 = 0
    let start = offset
    while true {
      let byte = try byte()
      if shift == 63, byte > 1 { throw CodecError(.malformed, "\(name): number", at: start) }
      result |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 {
        // Only the shortest form is valid, or equal content could have different bytes.
        if byte == 0, shift > 0 { throw CodecError(.malformed, "\(name): number", at: start) }
        return result
      }
      shift += 7
    }
  }

  mutating func zigzag() throws -> Int64 {
    let word = try varint()
    return Int64(bitPattern: word >> 1) ^ -Int64(bitPattern: word & 1)
  }

  /// Reads a count; throws if it is greater than `cap`.
  mutating func count(_ what: String, cap: Int) throws -> Int {
    let start = offset
    let number = try varint()
    guard number <= UInt64(cap) else {
      throw CodecError(.lengthOverCap, "\(name): \(number) \(what); at most \(cap)", at: start)
    }
    return Int(number)
  }

  func expectEnd() throws {
    guard remaining == 0 else {
      throw CodecError(.malformed, "\(name): bytes left over", at: offset)
    }
  }
}
