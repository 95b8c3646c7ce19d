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
    case "surrogate": "an identity beside the integer key"
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
