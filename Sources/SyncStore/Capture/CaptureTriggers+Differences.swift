import SyncModel

/// What an update changed, as SQL.
extension CaptureTriggers {
  /// Returns an SQL term that is true if the column's value changed in any visible way. `IS NOT`
  /// alone would take 1 for 1.0 and, under a collation, `a` for `A`. Columns of integers store every
  /// real that equals an integer as that integer, but for the least one.
  func difference(_ column: ColumnSchema) -> String {
    let name = quoted(column.name)
    let collated = column.collation == "BINARY" ? "" : " COLLATE BINARY"
    let values =
      column.affinity == .text && canConvert([column.name])
      ? "\(text("OLD.\(name)")) IS NOT \(text("NEW.\(name)"))"
      : "OLD.\(name)\(collated) IS NOT NEW.\(name)"
    let types = "typeof(OLD.\(name)) <> typeof(NEW.\(name))"
    return switch column.affinity {
    case .blob, .numeric: "\(values) OR \(types)"
    // A comparison takes less time than the types, of which every update would ask.
    case .integer: "\(values) OR OLD.\(name) IS \(Int64.min) AND \(types)"
    case .text, .real: values
    }
  }

  /// Returns the SQL of a value of a column of texts, where SQLite may have converted it.
  private func text(_ value: String) -> String {
    "CASE WHEN typeof(\(value)) IN ('integer', 'real') THEN CAST(\(value) AS TEXT) "
      + "ELSE \(value) END"
  }

  /// An integer with a bit for each changed column, or, where 62 bits do not
  /// suffice, several integers with commas between them.
  var mask: String {
    let positions = table.cellPositions
    let last = positions.last ?? 0
    let groups = (0...(last / ColumnSet.bitsPerMask)).map { group in
      let terms = positions.filter { $0 / ColumnSet.bitsPerMask == group }.map {
        "((\(difference(table.columns[$0]))) << \($0 % ColumnSet.bitsPerMask))"
      }
      return terms.isEmpty ? "0" : "(\(terms.balanced(by: "|")))"
    }
    return groups.joined(separator: " || ',' || ")
  }
}
