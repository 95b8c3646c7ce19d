/// A value that SQLite can store in a column, or a reference to a row.
///
/// Text is held as bytes: SQLite does not promise valid UTF-8, and no byte may change.
public enum Value: Hashable, Sendable {
  /// The absence of a value.
  case null
  /// A 64-bit integer.
  case integer(Int64)
  /// A double, infinities included. SQLite stores NaN as NULL.
  case real(Double)
  /// Text as the bytes of UTF-8, embedded NULs included.
  case text([UInt8])
  /// Bytes.
  case blob([UInt8])
  /// The identity of a row of the table that the column refers to. It stands
  /// for that row's key, which differs from device to device.
  case identity(RowIdentity)

  /// Returns text with the bytes of a Swift string.
  public static func text(_ string: String) -> Value { .text(Array(string.utf8)) }

  /// The kind of the value.
  package var kind: ValueKind {
    switch self {
    case .null: .null
    case .integer: .integer
    case .real: .real
    case .text: .text
    case .blob: .blob
    case .identity: .identity
    }
  }
}

/// The kind of a value. The raw values are those of the file format.
package enum ValueKind: UInt8, Sendable, CaseIterable {
  /// The absence of a value.
  case null = 0
  /// A 64-bit integer.
  case integer = 1
  /// A double.
  case real = 2
  /// Bytes that SQLite treats as text.
  case text = 3
  /// Bytes.
  case blob = 4
  /// The identity of a row.
  case identity = 5
}

/// The bytes that make a row the same row on every device.
///
/// In a table with surrogate keys these are 16 random bytes. In other tables they encode the values
/// of the identifying columns (see `IdentityEncoding`).
public struct RowIdentity: Hashable, Comparable, Sendable {
  /// The bytes: equal on every device, different for each row of the table.
  public var bytes: [UInt8]

  /// Wraps the bytes.
  public init(bytes: [UInt8]) { self.bytes = bytes }

  /// Orders identities by their bytes.
  public static func < (left: RowIdentity, right: RowIdentity) -> Bool {
    left.bytes.lexicographicallyPrecedes(right.bytes)
  }
}
