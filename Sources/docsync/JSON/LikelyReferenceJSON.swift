import SyncModel
import SyncStore

/// A column that looks like a reference, as shown.
struct LikelyReferenceJSON: Encodable, Sendable {
  var table: SQLName
  var column: SQLName
  var parent: SQLName
  var valueCount: Int
  var matchCount: Int

  init(_ reference: StorePlan.LikelyReference) {
    table = reference.table
    column = reference.column
    parent = reference.parent
    valueCount = reference.valueCount
    matchCount = reference.matchCount
  }

  /// The cells of a line for people: the column, the table, and the reason.
  var cells: [String] {
    [
      printable("\(table).\(column) → \(parent)"),
      valueCount == 0 ? "by its name" : "\(matchCount) of \(counted(valueCount, "value"))",
    ]
  }
}
