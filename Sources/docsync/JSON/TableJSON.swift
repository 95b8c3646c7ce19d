import SyncModel
import SyncStore

/// A synchronized table, as shown.
struct TableJSON: Encodable, Sendable {
  var table: SQLName
  /// `primaryKey`, `surrogate` or `columns`.
  var identity: String
  /// The columns that identify rows, if `identity` is `columns`.
  var identityColumns: [SQLName]
  var excludedColumns: [SQLName]

  init(_ table: StoreStatus.TableStatus) {
    self.table = table.name
    excludedColumns = table.excludedColumns
    switch table.identity {
    case .primaryKey: (identity, identityColumns) = ("primaryKey", [])
    case .surrogate: (identity, identityColumns) = ("surrogate", [])
    case .columns(let names): (identity, identityColumns) = ("columns", names)
    }
  }

  /// The identity in words.
  var identityText: String {
    switch identity {
    case "surrogate": "random row identifiers (integer keys may differ between devices)"
    case "columns": "the columns " + identityColumns.joined(separator: ", ")
    default: "the primary key"
    }
  }

  /// The cells of the table's line in a list: name, identity and excluded columns.
  var cells: [String] {
    let excluded =
      excludedColumns.isEmpty ? "" : "; without " + excludedColumns.joined(separator: ", ")
    return [printable(table), printable(identityText + excluded)]
  }
}
