import SyncModel

extension WorkingSet {
  /// Fills the cells of an existing row that were never set with their defaults.
  func fillAbsent(_ values: inout [Value?], _ table: TableSchema) throws {
    guard values.contains(where: { $0 == nil }) else { return }
    let absent = try absentValues.values(of: table)
    for position in values.indices where values[position] == nil {
      values[position] = absent[position]
    }
  }

  /// Brings the cells of a deleted row into a canonical form, the same whether or not the row was
  /// shown before its deletion, and whether its table got a column before the deletion or after it:
  /// cells that were never set get their defaults. If a deletion has erased cells of the row, they
  /// get them only if another cell is known, and otherwise no value.
  func settleAbsent(
    _ values: inout [Value?], _ state: RowState, _ key: RowKey, _ table: TableSchema
  ) throws {
    var isKnown = false
    var keyValues: [Value?]?
    for position in table.cellPositions where values[position] != nil {
      guard isAbsent(position, values, state, table) else {
        isKnown = true
        continue
      }
      keyValues = try keyValues ?? self.keyValues(of: key, table)
      values[position] = keyValues?[position]
    }
    if isKnown || state.erasureStamp == .zero, !state.isErased { try fillAbsent(&values, table) }
  }

  /// Returns whether a cell was never set.
  private func isAbsent(
    _ column: Int, _ values: [Value?], _ state: RowState, _ table: TableSchema
  ) -> Bool {
    // An addition to a default makes the cell known.
    if case .counter = values[column].flatMap(CounterValue.init),
      table.columns[column].domain == .counter
    {
      return false
    }
    let stamp = state.stamp(of: column)
    guard state.erasureStamp == .zero else { return stamp == state.erasureStamp }
    // In rows that were there before syncing began, all cells are known.
    return stamp == .zero && !table.hasUnstampedRows
  }

  /// Applies a deletion that erases the cells: all older cells count as never set, even if the row
  /// lives on. A change after the deletion brings its own cells, apart from columns that its author
  /// does not have.
  func erase(_ row: WorkingRow, before stamp: LocalStamp) throws {
    let precedes = session.clients.precedes
    guard precedes(row.state.erasureStamp, stamp) else { return }
    row.state.erasureStamp = stamp
    let table = session.schema[row.key.table]
    let key = try keyValues(of: row.key, table)
    // Also erases cells with the same stamp, which no honest author makes, so that it does not
    // matter which of the two came first.
    for position in table.cellPositions where !precedes(stamp, row.state.stamp(of: position)) {
      row.state.setStamp(stamp, of: position)
      row.values[position] = key[position]
    }
  }
}
