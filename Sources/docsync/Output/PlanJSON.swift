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

/// A hint to a column whose values may differ in meaning between devices, as shown.
struct SchemaHintJSON: Encodable, Sendable {
  var kind: StorePlan.Hint.Kind
  var table: SQLName
  var column: SQLName
  var counted: SQLName?

  init(_ hint: StorePlan.Hint) {
    kind = hint.kind
    table = hint.table
    column = hint.column
    counted = hint.counted
  }

  /// The hint as a sentence for people.
  var sentence: String {
    let name = printable("\(table).\(column)")
    return switch kind {
    case .integerIdentity:
      "\(name) identifies the rows by a number. If two devices use one number for different "
        + "rows, these become one row."
    case .keyCounter:
      "\(name) holds the greatest key of \(printable(counted ?? "another table")). Rows from other "
        + "devices do not raise it, so a program that draws keys from it can draw one that is "
        + "taken."
    }
  }
}
