import SyncModel
import SyncStore

extension ParkedRow {
  /// The reason in words.
  var text: String { hasStandIn ? "\(reason.text), and stands for it" : reason.text }

  /// Whether the user may want to act. If another row stands for the row, there is nothing to decide. If the row, or a
  /// row that it belongs to, was deleted, the deletion has won.
  var isOpen: Bool { !hasStandIn && reason != .deleted && reason != .parentDeleted }
}

extension ParkedRow.Reason {
  /// The reason in words.
  var text: String {
    switch self {
    case .parentMissing: "the row that it refers to is not there"
    case .parentDeleted: "the row that it belongs to was deleted"
    case .uniqueValueTaken: "another row has the same unique value"
    case .check: "a CHECK constraint refuses it"
    case .notNull: "a NOT NULL constraint refuses it"
    case .deleted: "it was deleted, and another device edited it"
    case .rowMissing: "another device edited it, and its insertion is not here"
    }
  }
}

/// Returns a line with the number of parked rows for each table and reason.
func parkedLines(_ rows: [ParkedRow], indent: Int) -> [String] {
  let groups = Dictionary(grouping: rows) { [$0.table, SQLName($0.text)] }
  return alignedLines(
    groups.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { key, rows in
      [counted(rows.count, "row"), printable(key[0]), key[1].text]
    }, indent: indent)
}
