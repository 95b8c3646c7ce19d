import SyncModel

/// The numbers and lists of the format.
extension [UInt8] {
  /// Appends a number, least significant byte first.
  mutating func append<Number: FixedWidthInteger>(little number: Number) {
    Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
  }

  /// Appends bytes after their number in four bytes.
  mutating func append(counted bytes: [UInt8]) {
    append(little: UInt32(bytes.count))
    append(contentsOf: bytes)
  }

  /// Appends an optional value of a fixed length, after a byte that is 1 if the value exists.
  mutating func append(optional bytes: [UInt8]?) {
    append(bytes == nil ? 0 : 1)
    append(contentsOf: bytes ?? [])
  }
}

/// A reader of the format, which goes forward and refuses everything that no writer makes.
struct CanonicalReader {
  private let bytes: ArraySlice<UInt8>
  /// The name of the part that is read, for errors.
  let name: String
  /// The number of bytes that were read.
  private(set) var offset = 0

  init(_ bytes: some Sequence<UInt8>, name: String) {
    self.bytes = ArraySlice(bytes)
    self.name = name
  }

  var remaining: Int { bytes.count - offset }

  mutating func take(_ count: Int) throws -> [UInt8] {
    guard count >= 0, count <= remaining else { throw CodecError(.truncated, name, at: offset) }
    let start = bytes.startIndex + offset
    offset += count
    return Array(bytes[start..<start + count])
  }

  mutating func byte() throws -> UInt8 { try take(1)[0] }

  mutating func number<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
    let part = try take(MemoryLayout<Number>.size)
    return part.reversed().reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
  }

  /// Reads a count of at most `cap`.
  mutating func count(_ what: String, cap: Int) throws -> Int {
    let start = offset
    let number = try number(UInt32.self)
    guard Int(number) <= cap else {
      throw CodecError(.lengthOverCap, "\(name): \(number) \(what); at most \(cap)", at: start)
    }
    return Int(number)
  }

  /// Reads bytes after their number, at most `cap`.
  mutating func counted(_ what: String, cap: Int) throws -> [UInt8] {
    try take(try count("bytes of \(what)", cap: cap))
  }

  /// Reads an optional value of `count` bytes.
  mutating func optional(_ count: Int) throws -> [UInt8]? {
    let start = offset
    switch try byte() {
    case 0: return nil
    case 1: return try take(count)
    default: throw CodecError(.malformed, "\(name): optional value", at: start)
    }
  }

  mutating func bits() throws -> Bits128 {
    let start = offset
    guard let bits = Bits128(bytes: try take(16)) else {
      throw CodecError(.malformed, "\(name): identifier", at: start)
    }
    return bits
  }

  mutating func hash() throws -> ContentHash {
    let start = offset
    guard let hash = ContentHash(bytes: try take(32)) else {
      throw CodecError(.malformed, "\(name): hash", at: start)
    }
    return hash
  }

  func expectEnd() throws {
    guard remaining == 0 else {
      throw CodecError(.malformed, "\(name): bytes left over", at: offset)
    }
  }
}
