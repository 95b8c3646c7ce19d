/// A column of values, stored in three arrays so that a million values do not
/// cost a million allocations.
///
/// `words[i]` is the integer, the bit pattern of the double, or, for text,
/// blobs and identities, the offset in ``bytes`` in the upper 32 bits and the
/// length in the lower 32.
package struct ValueColumn: Hashable, Sendable {
  /// The raw values of `ValueKind`, one for each value.
  package private(set) var kinds: [UInt8] = []
  /// One word for each value.
  package private(set) var words: [UInt64] = []
  /// The contents of all text, blobs and identities, one after the other.
  package private(set) var bytes: [UInt8] = []

  /// Creates an empty column.
  package init() {}

  /// The number of values.
  package var count: Int { kinds.count }

  /// About how much memory the values take.
  package var byteCount: Int { bytes.count + 9 * kinds.count }

  /// Makes room for `count` more values with `byteCount` bytes of content.
  package mutating func reserve(_ count: Int, byteCount: Int = 0) {
    kinds.reserveCapacity(kinds.count + count)
    words.reserveCapacity(words.count + count)
    if byteCount > 0 { bytes.reserveCapacity(bytes.count + byteCount) }
  }

  /// Appends the absence of a value.
  package mutating func appendNull() {
    kinds.append(ValueKind.null.rawValue)
    words.append(0)
  }

  /// Appends an integer.
  package mutating func append(integer: Int64) {
    kinds.append(ValueKind.integer.rawValue)
    words.append(UInt64(bitPattern: integer))
  }

  /// Appends a double.
  package mutating func append(real: Double) {
    kinds.append(ValueKind.real.rawValue)
    words.append(real.bitPattern)
  }

  /// Appends text, a blob or an identity with the given content.
  ///
  /// The content of a column must stay below 4 GiB. Change sets end long before that.
  package mutating func append(_ kind: ValueKind, content: UnsafeRawBufferPointer) {
    precondition(bytes.count + content.count <= UInt32.max, "column content exceeds 4 GiB")
    kinds.append(kind.rawValue)
    words.append(UInt64(bytes.count) << 32 | UInt64(content.count))
    bytes.append(contentsOf: content)
  }

  /// Appends any value.
  package mutating func append(_ value: Value) {
    switch value {
    case .null: appendNull()
    case .integer(let integer): append(integer: integer)
    case .real(let real): append(real: real)
    case .text(let content): content.withUnsafeBytes { append(.text, content: $0) }
    case .blob(let content): content.withUnsafeBytes { append(.blob, content: $0) }
    case .identity(let row): row.bytes.withUnsafeBytes { append(.identity, content: $0) }
    }
  }

  /// Appends the value of another column at `index`.
  @inline(__always)
  package mutating func append(_ other: ValueColumn, at index: Int) {
    switch other.kind(at: index) {
    case .null, .integer, .real:
      kinds.append(other.kinds[index])
      words.append(other.words[index])
    case .text, .blob, .identity:
      let range = other.contentRange(at: index)
      kinds.append(other.kinds[index])
      words.append(UInt64(bytes.count) << 32 | UInt64(range.count))
      bytes.append(contentsOf: other.bytes[range])
    }
  }

  /// Removes the last value, which was appended, and returns it.
  package mutating func removeLast() -> Value {
    let index = count - 1
    let value = self[index]
    switch kind(at: index) {
    case .null, .integer, .real: break
    case .text, .blob, .identity:
      bytes.removeLast(bytes.count - contentRange(at: index).lowerBound)
    }
    kinds.removeLast()
    words.removeLast()
    return value
  }

  /// Returns the kind of a value.
  package func kind(at index: Int) -> ValueKind { ValueKind(rawValue: kinds[index]) ?? .null }

  /// Returns where in ``bytes`` the content of a text, blob or identity is.
  package func contentRange(at index: Int) -> Range<Int> {
    let start = Int(words[index] >> 32)
    return start..<(start + Int(words[index] & 0xFFFF_FFFF))
  }

  /// A value, with its content copied.
  package subscript(index: Int) -> Value {
    switch kind(at: index) {
    case .null: .null
    case .integer: .integer(Int64(bitPattern: words[index]))
    case .real: .real(Double(bitPattern: words[index]))
    case .text: .text(Array(bytes[contentRange(at: index)]))
    case .blob: .blob(Array(bytes[contentRange(at: index)]))
    case .identity: .identity(RowIdentity(bytes: Array(bytes[contentRange(at: index)])))
    }
  }

  /// Creates a column from arrays; throws ``Malformed`` if they do not fit together as the type
  /// describes.
  package init(kinds: [UInt8], words: [UInt64], bytes: [UInt8]) throws {
    guard kinds.count == words.count else { throw Malformed() }
    for index in kinds.indices {
      guard let kind = ValueKind(rawValue: kinds[index]) else { throw Malformed() }
      switch kind {
      case .null, .integer, .real: continue
      case .text, .blob, .identity:
        guard (words[index] >> 32) + (words[index] & 0xFFFF_FFFF) <= UInt64(bytes.count)
        else { throw Malformed() }
      }
    }
    self.kinds = kinds
    self.words = words
    self.bytes = bytes
  }

  /// Takes arrays of the decoder, which has made sure that they fit together.
  init(decodedKinds kinds: [UInt8], words: [UInt64], bytes: [UInt8]) {
    self.kinds = kinds
    self.words = words
    self.bytes = bytes
  }

  /// The error that arrays do not fit together.
  package struct Malformed: Error {
    /// Creates the error.
    package init() {}
  }
}
