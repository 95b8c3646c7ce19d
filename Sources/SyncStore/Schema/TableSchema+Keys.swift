import SyncModel

extension TableSchema {
  /// Whether rows can have NULL in their key.
  var canLoseKeys: Bool {
    guard !isWithoutRowid, identity != .surrogate else { return false }
    return identityPositions.contains {
      !columns[$0].isNotNull && columns[$0].name != rowidAlias
    }
  }

  /// Returns the SQL condition that a row has NULL in its key.
  func isWithoutKey(_ row: String) -> String {
    keyColumns.map { "\(row).\(quoted($0)) IS NULL" }.joined(separator: " OR ")
  }

  /// A name of the rowid that no column has; `nil` if there is none.
  var rowidName: String? {
    let taken = Set(allColumns.map(\.folded))
    return rowidAlias.map(quoted)
      ?? ["rowid", "_rowid_", "oid"].first { !taken.contains(SQLName($0)) }
  }

  /// The kind of identity and its key columns in change sets. It must stay the same as long as the
  /// table has the same rows.
  var identityDescription: SQLText {
    let keys = identityPositions.map { quoted(columns[$0].wireName) }
    return SQLText("\(identity.kind) \(keys.joined(separator: " "))")
  }
}

extension TableSchema {
  /// Positions of the cells that stand for keys.
  var keyedPositions: [Int] {
    columns.indices.filter { columns[$0].isKeyed && !columns[$0].isIdentity }
  }
}
