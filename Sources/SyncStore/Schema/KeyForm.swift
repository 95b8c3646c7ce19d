import SyncModel

/// The form in which a column of a key has its values: its affinity and its collation. Two tables
/// with other forms can have other identities for the same rows.
struct KeyForm: Codable, Hashable {
  /// `nil` if the column stands for keys of rows: then it has no form of its own.
  var affinity: ColumnSchema.Affinity?
  var collation: KeyCollation

  /// Returns the forms of the columns of a table's identity; none if its rows have random ones.
  static func ofKey(of table: TableSchema) -> [KeyForm] {
    guard table.identity != .surrogate else { return [] }
    return table.identityPositions.map { position in
      let column = table.columns[position]
      if column.isKeyed { return KeyForm(affinity: nil, collation: .binary) }
      // Both store the same values.
      let affinity = column.affinity == .numeric ? .integer : column.affinity
      return KeyForm(affinity: affinity, collation: column.keyCollation)
    }
  }

  /// Returns a column of a key with this form.
  func applied(to column: ColumnSchema) -> ColumnSchema {
    guard let affinity else { return column }
    var column = column
    column.affinity = affinity
    column.collation =
      switch collation {
      case .binary: "BINARY"
      case .nocase: "NOCASE"
      case .rtrim: "RTRIM"
      }
    return column
  }
}

extension ColumnSchema.Affinity: Codable {}
