import SyncModel

/// References to rows of remade tables that are sealed before these rows.
///
/// A row that was inserted unseen is sealed when its table is compared. A number in a column that
/// stands for keys, sealed before that, refers to the row; if the same number is a plain value
/// elsewhere, nothing else tells the two apart when the row gets its key in the document.
extension StoreSession {
  /// Notes the references of a row that is being sealed, as far as they may be mistaken for plain
  /// values.
  ///
  /// - Parameter key: The local values of its key columns.
  func noteReferencesToUncompared(from row: RowKey, key: [Value]) throws {
    let tables = try tablesToCompare()
    guard !tables.isEmpty else { return }
    let access = try access(row.table)
    let table = access.table
    var found: Set<RemadeTables.Reference> = []
    var shown: [Value]?
    for position in table.keyedPositions {
      guard case .key(let parent) = table.columns[position].domain, tables.contains(parent) else {
        continue
      }
      let plain = try plainKeys.keys(of: parent)
      guard !plain.isEmpty else { continue }
      if shown == nil { shown = try access.row(key)?.values }
      let column = table.columns[position]
      guard let value = shown?[position], let number = column.key(value), plain.contains(number),
        case .identity(let identity) = try exported(value, column)
      else { continue }
      found.insert(reference(from: row, column, to: identity))
    }
    guard !found.isEmpty else { return }
    var remade = try RemadeTables.read(database)
    remade.references = (remade.references ?? []).union(found)
    try write(remade)
  }

  /// Returns the cells that were not sealed as references to the rows whose keys they hold.
  func withoutNotedReferences(_ cells: [PlainCell]) throws -> [PlainCell] {
    guard !cells.isEmpty, let noted = try RemadeTables.read(database).references else {
      return cells
    }
    return try cells.filter { cell in
      let column = schema[cell.table].columns[cell.column]
      guard case .identity(let parent) = try exported(cell.value, column) else { return true }
      return try !noted.contains(reference(from: cellKey(cell).row, column, to: parent))
    }
  }

  /// Whether a cell was sealed as a reference to a row that awaits the comparison.
  func isNoted(from row: RowKey, _ column: ColumnSchema, to parent: RowIdentity) throws -> Bool {
    try RemadeTables.read(database).references?.contains(reference(from: row, column, to: parent))
      == true
  }

  /// Returns whether cells hold a key that is a plain value nowhere, and the edits in the log have
  /// not written them: they were sealed as references to the row with that key.
  func isReferredToBySealedCells(_ key: Int64, of table: Int) throws -> Bool {
    guard try !plainKeys.keys(of: table).contains(key) else { return false }
    return try schema.tables.contains { child in
      try child.keyedPositions.contains { column in
        try child.columns[column].domain == .key(of: table)
          && !plainCells(child, column, holding: key).isEmpty
      }
    }
  }

  private func reference(
    from row: RowKey, _ column: ColumnSchema, to parent: RowIdentity
  ) -> RemadeTables.Reference {
    RemadeTables.Reference(
      table: row.table, identity: row.identity.bytes, column: column.wireName,
      parent: parent.bytes)
  }
}
