import GRDB
import SyncModel

/// A unique index: at most one row may have each key.
struct UniqueIndex: Hashable {
  /// The number of the index within its table.
  var ordinal: Int
  var name: SQLName
  /// Positions of plain columns; `nil` where an expression is indexed.
  var columns: [Int?]
  var collations: [String]
  /// The SQL of each term.
  var terms: [String]
  /// The SQL of a partial index's condition.
  var condition: String?

  /// Whether every term is a column and there is no condition.
  var isPlain: Bool { condition == nil && columns.allSatisfy { $0 != nil } }
  /// Whether a constraint of the table made the index, so that nothing can drop it.
  var isConstraint: Bool { name.text.hasPrefix("sqlite_autoindex_") }
  /// The positions of the columns among the terms.
  var positions: [Int] { columns.compactMap { $0 } }
}
