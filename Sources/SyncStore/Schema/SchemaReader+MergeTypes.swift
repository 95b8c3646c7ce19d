import SyncModel

/// Merge types: how concurrent changes merge.
extension SchemaReader {
  /// Reads the merge types of a table and its columns. The configuration has the names that change
  /// sets use, here as everywhere.
  func readMergeTypes(of table: inout TableSchema) throws {
    let wireName = table.wireName
    table.hasStandIns = !configuration.tablesWithoutStandIns.contains { $0.isSame(as: wireName) }
    table.mergeType = lookup(configuration.tableMergeTypes, table.wireName) ?? .latestWins
    switch table.mergeType {
    case .latestWins, .editWins: break
    case .wholeRow: table.join(Array(table.columns.indices))
    case .keepBoth:
      try checkCopies(of: table)
      table.join(Array(table.columns.indices))
    }
    for (name, type) in lookup(configuration.columnMergeTypes, table.wireName) ?? [:]
    where type == .counter {
      guard
        let position = table.columns.firstIndex(where: {
          $0.wireName.folded == name.folded
        })
      else {
        // The application may have dropped the column since; at set-up it is a mistake.
        if isUnderSync { continue }
        throw StoreError(
          .badConfiguration, path: path,
          message: "The table \(quoted(table.name)) has no column \(quoted(name)) to count in.",
          remedy: "Name a synchronized column that is not part of the key.")
      }
      guard table.cellPositions.contains(position), table.registers[position] == nil,
        table.columns[position].affinity != .text
      else {
        throw mismatch(
          table.name,
          message: "\(quoted(table.name)).\(quoted(name)) cannot be a counter.",
          remedy: "A counter is a number, not part of a key, of a composite reference, or of a "
            + "CHECK over several columns.",
          later: "A counter is a number, not part of a key, of a composite reference, or of a "
            + "CHECK over several columns.")
      }
      table.columns[position].domain = .counter
    }
  }

  /// Checks that a copy of a row can have a key of its own.
  private func checkCopies(of table: TableSchema) throws {
    if table.identity == .surrogate { return }
    if case .primaryKey(let positions) = table.identity, positions.count == 1,
      table.columns[positions[0]].affinity == .text
    {
      return
    }
    throw mismatch(
      table.name,
      message: "“keepBoth” is not possible for \(quoted(table.name)).",
      remedy: "It needs an INTEGER PRIMARY KEY or a single TEXT key, so that a copy can "
        + "get a new key.",
      later: "It needs an INTEGER PRIMARY KEY or a single TEXT key, so that a copy can get a new "
        + "key.")
  }
}
