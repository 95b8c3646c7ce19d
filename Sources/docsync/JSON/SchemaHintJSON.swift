import SyncModel
import SyncStore

/// A hint about a part of the schema that may mean different things on different devices, as printed.
struct SchemaHintJSON: Encodable, Sendable {
  /// `integerIdentity`, `keyCounter`, `keyMissing` or `triggerNeedsFunction`.
  var kind: String
  var table: SQLName
  var column: SQLName?
  var counted: SQLName?
  var rowCount: Int?
  var trigger: SQLName?
  var needed: String?

  init(_ hint: StorePlan.Hint) {
    kind = hint.kind.rawValue
    table = hint.table
    column = hint.column
    counted = hint.counted
    rowCount = hint.rowCount
    trigger = hint.trigger
    needed = hint.needed
  }

  /// The hint as a sentence for people.
  var sentence: String {
    let name = printable(column.map { "\(table).\($0)" } ?? table.text)
    return switch kind {
    case StorePlan.Hint.Kind.triggerNeedsFunction.rawValue:
      "The trigger \(printable(trigger?.text ?? "")) of \(name) needs \(printable(needed ?? "")), "
        + "which only the application defines. It does not run for changes from other devices."
    case StorePlan.Hint.Kind.integerIdentity.rawValue:
      "\(name) identifies the rows by a number. If two devices use the same number for "
        + "different rows, the rows become one."
    case StorePlan.Hint.Kind.keyMissing.rawValue:
      "\(docsync.counted(rowCount ?? 0, "row")) of \(printable(table)) with NULL in the key, as in "
        + "\(name), stay on this device. Give them keys, if other devices are to have them."
    default:
      "\(name) holds the greatest key of \(printable(counted ?? "another table")). Rows from other "
        + "devices do not raise it, so a program that draws keys from it can draw one that is "
        + "taken."
    }
  }
}
