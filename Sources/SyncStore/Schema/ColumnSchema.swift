import GRDB
import SyncModel

/// A synchronized column.
struct ColumnSchema: Hashable {
  enum Affinity: String { case integer, text, blob, real, numeric }
  /// What the values stand for.
  enum Domain: Hashable {
    /// Themselves.
    case plain
    /// The key of a row in the table with this id; it differs from device to device.
    case key(of: Int)
    /// Numbers to which all edits add up (``CounterValue``).
    case counter
  }

  var name: SQLName
  /// The name in change sets: the one that the column had when it was registered, even if it was
  /// renamed since.
  var wireName: SQLName
  var affinity: Affinity
  var collation: String
  var domain: Domain
  var isIdentity: Bool
  var isNotNull: Bool
  /// The SQL of the value that the column takes when it is left out.
  var defaultExpression: String?

  /// Whether the values are keys of rows.
  var isKeyed: Bool { if case .key = domain { true } else { false } }

  /// Whether two values can be equal to SQLite and still differ.
  var isLoose: Bool { domain == .plain && (collation != "BINARY" || affinity == .blob) }

  var keyCollation: KeyCollation {
    switch collation.uppercased() {
    case "NOCASE": .nocase
    case "RTRIM": .rtrim
    default: .binary
    }
  }
}

/// A column that SQLite computes from others.
struct GeneratedColumn: Hashable {
  var name: SQLName
  var affinity: ColumnSchema.Affinity
  var collation: String
  /// The SQL by which it is computed.
  var expression: String
}
