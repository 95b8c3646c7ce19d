/// The rule by which a text column compares keys.
package enum KeyCollation: UInt8, Sendable, CaseIterable, Codable {
  /// Byte for byte.
  case binary = 0
  /// `NOCASE`: A to Z equal a to z. After a NUL only the number of bytes counts.
  case nocase = 1
  /// `RTRIM`: spaces at the end do not count.
  case rtrim = 2
}

/// Canonical bytes for the values that identify a row.
///
/// Two tuples have the same bytes exactly if SQLite treats them as the same key under the given
/// collations: text is folded, and a real that equals a 64-bit integer is written as that integer,
/// since 1 and 1.0 are one key.
///
/// Each value begins with one byte, the raw value of its `ValueKind`. An integer follows as eight
/// bytes, big-endian, with the sign bit flipped; a real as eight bytes, big-endian, with the sign
/// bit flipped if it is positive and all bits if it is negative; text, a blob or an identity as its
/// length, a varint, and its bytes.
package enum IdentityEncoding {
  /// Encodes a tuple. Values without an entry in `collations` are compared as `binary`.
  package static func encode(
    _ values: [Value], collations: [KeyCollation] = []
  ) -> RowIdentity {
    var bytes: [UInt8] = []
    for (index, value) in values.enumerated() {
      let collation = index < collations.count ? collations[index] : .binary
      switch value {
      case .null: appendNull(to: &bytes)
      case .integer(let integer): append(integer: integer, to: &bytes)
      case .real(let real): append(real: real, to: &bytes)
      case .text(let text):
        text.withUnsafeBytes { append(text: $0, collation: collation, to: &bytes) }
      case .blob(let blob): blob.withUnsafeBytes { append(blob: $0, to: &bytes) }
      case .identity(let row): row.bytes.withUnsafeBytes { append(identity: $0, to: &bytes) }
      }
    }
    return RowIdentity(bytes: bytes)
  }

  /// Decodes the `count` values of an identity that ``encode(_:collations:)`` made. Text stays
  /// folded. Throws ``CodecError``.
  package static func decode(_ identity: RowIdentity, count: Int) throws -> [Value] {
    try identity.bytes.withUnsafeBytes { bytes in
      var reader = WireReader(bytes, name: "identity")
      var values: [Value] = []
      for _ in 0..<count { values.append(try reader.identifyingValue()) }
      try reader.expectEnd()
      return values
    }
  }

  /// Decodes as ``decode(_:count:)`` does; `nil` if the bytes are not an identity of `count`
  /// values.
  package static func values(of identity: RowIdentity, count: Int) -> [Value]? {
    do {
      return try decode(identity, count: count)
    } catch {
      return nil
    }
  }

  /// Appends NULL, which SQLite permits in some keys.
  @inline(__always)
  package static func appendNull(to bytes: inout [UInt8]) { bytes.append(ValueKind.null.rawValue) }

  /// Appends an integer.
  @inline(__always)
  package static func append(integer: Int64, to bytes: inout [UInt8]) {
    append(.integer, word: UInt64(bitPattern: integer) ^ signBit, to: &bytes)
  }

  /// Appends a real, as an integer if it equals one.
  package static func append(real: Double, to bytes: inout [UInt8]) {
    if let integer = Int64(exactly: real) {
      append(integer: integer, to: &bytes)
    } else {
      let pattern = real.bitPattern
      append(.real, word: pattern & signBit == 0 ? pattern | signBit : ~pattern, to: &bytes)
    }
  }

  /// Appends text, folded.
  package static func append(
    text: UnsafeRawBufferPointer, collation: KeyCollation = .binary, to bytes: inout [UInt8]
  ) {
    switch collation {
    case .binary:
      append(.text, content: text, to: &bytes)
    case .nocase:
      let start = bytes.count + 1 + varintLength(text.count)
      append(.text, content: text, to: &bytes)
      var isPastNUL = false
      for index in start..<bytes.count {
        // SQLite compares the bytes up to a NUL, then the lengths.
        if isPastNUL { bytes[index] = 0 }
        if bytes[index] == 0 { isPastNUL = true }
        if bytes[index] >= UInt8(ascii: "A") && bytes[index] <= UInt8(ascii: "Z") {
          bytes[index] |= 0x20
        }
      }
    case .rtrim:
      var end = text.count
      while end > 0, text[end - 1] == UInt8(ascii: " ") { end -= 1 }
      append(.text, content: UnsafeRawBufferPointer(rebasing: text[..<end]), to: &bytes)
    }
  }

  /// Appends a blob.
  @inline(__always)
  package static func append(blob: UnsafeRawBufferPointer, to bytes: inout [UInt8]) {
    append(.blob, content: blob, to: &bytes)
  }

  /// Appends the identity of the row that a key column refers to.
  @inline(__always)
  package static func append(identity: UnsafeRawBufferPointer, to bytes: inout [UInt8]) {
    append(.identity, content: identity, to: &bytes)
  }

  @usableFromInline static let signBit: UInt64 = 1 << 63

  @usableFromInline
  static func append(_ kind: ValueKind, word: UInt64, to bytes: inout [UInt8]) {
    bytes.append(kind.rawValue)
    withUnsafeBytes(of: word.bigEndian) { bytes.append(contentsOf: $0) }
  }

  @usableFromInline
  static func append(
    _ kind: ValueKind, content: UnsafeRawBufferPointer, to bytes: inout [UInt8]
  ) {
    bytes.append(kind.rawValue)
    bytes.append(varint: content.count)
    bytes.append(contentsOf: content)
  }

  private static func varintLength(_ count: Int) -> Int {
    max(1, (Int.bitWidth - count.leadingZeroBitCount + 6) / 7)
  }
}

extension WireReader {
  fileprivate mutating func identifyingValue() throws -> Value {
    let start = offset
    switch ValueKind(rawValue: try byte()) {
    case .null: return .null
    case .integer: return .integer(Int64(bitPattern: try bigWord() ^ IdentityEncoding.signBit))
    case .real:
      let word = try bigWord()
      let sign = IdentityEncoding.signBit
      let real = Double(bitPattern: word & sign == 0 ? ~word : word ^ sign)
      guard Int64(exactly: real) == nil else {
        throw CodecError(.malformed, "identity: real that is an integer", at: start)
      }
      return .real(real)
    case .text: return .text(try content())
    case .blob: return .blob(try content())
    case .identity: return .identity(RowIdentity(bytes: try content()))
    case nil: throw CodecError(.malformed, "identity: kind of value", at: start)
    }
  }

  private mutating func bigWord() throws -> UInt64 {
    UInt64(bigEndian: try take(8).loadUnaligned(as: UInt64.self))
  }

  private mutating func content() throws -> [UInt8] {
    Array(try take(try count("bytes of content", cap: remaining)))
  }
}
