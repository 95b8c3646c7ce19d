import SyncModel
import SyncStore

/// A synchronized table, as shown.
struct TableJSON: Encodable, Sendable {
  var name: SQLName
  /// `primaryKey`, `surrogate` or `columns`.
  var identity: String
  /// The columns that identify rows, if `identity` is `columns`.
  var columns: [SQLName]
  var excludedColumns: [SQLName]

  init(_ table: StoreStatus.TableStatus) {
    name = table.name
    excludedColumns = table.excludedColumns
    switch table.identity {
    case .primaryKey: (identity, columns) = ("primaryKey", [])
    case .surrogate: (identity, columns) = ("surrogate", [])
    case .columns(let names): (identity, columns) = ("columns", names)
    }
  }

  /// The identity in words.
  var identityText: String {
    switch identity {
    case "surrogate": "random row identifiers (integer keys may differ between devices)"
    case "columns": "the columns " + columns.joined(separator: ", ")
    default: "the primary key"
    }
  }

  /// Name, identity and excluded columns, as the cells of a line.
  var cells: [String] {
    let excluded =
      excludedColumns.isEmpty ? "" : "; without " + excludedColumns.joined(separator: ", ")
    return [printable(name), printable(identityText + excluded)]
  }
}

/// A parked row, as shown.
struct ParkedJSON: Encodable, Sendable {
  var table: SQLName
  /// The identity in hexadecimal digits.
  var identity: String
  var reason: String

  init(_ row: ParkedRow) {
    table = row.table
    identity = hexadecimal(row.identity.bytes)
    reason = row.reason.rawValue
  }
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

  /// Whether the user may want to act. An edit of a row that was deleted, or was
  /// deleted with another row, lost against the deletion: that is decided.
  var isOpen: Bool { self != .deleted && self != .parentDeleted }
}

/// The numbers of parked rows by table and reason, a line each.
func parkedLines(_ rows: [ParkedRow], indent: Int) -> [String] {
  let groups = Dictionary(grouping: rows) { [$0.table, SQLName($0.reason.text)] }
  return alignedLines(
    groups.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { key, rows in
      [counted(rows.count, "row"), printable(key[0]), key[1].text]
    }, indent: indent)
}

/// Bytes as hexadecimal digits.
func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
  bytes.map { byte in
    let digits = String(byte, radix: 16)
    return byte < 16 ? "0" + digits : digits
  }.joined()
}
