import SyncModel

/// Rows that have no name on another device: with NULL in their key, or with a reference in it that
/// no row of its table can have. An author does not send them; if a file contains changes of them
/// nevertheless, this store skips them.
extension TableChanges {
  /// Returns the rows without a name, for the table as this store has it.
  func namelessRows(_ access: TableAccess) throws -> Set<Int> {
    guard identity != .surrogate else { return [] }
    var rows: Set<Int> = []
    let null = ValueKind.null.rawValue
    let reference = ValueKind.identity.rawValue
    for (index, key) in keys.enumerated() {
      if key.kinds.contains(null) { rows.formUnion((0..<count).filter { key.kinds[$0] == null }) }
      guard key.kinds.contains(reference),
        let column = access.table.columns.first(where: { $0.wireName == keyColumns[index] })
      else { continue }
      for row in 0..<count {
        guard case .identity(let identity) = key[row] else { continue }
        if try !access.session.canRefer(column, to: identity) { rows.insert(row) }
      }
    }
    return rows
  }

  /// Returns the changes without those of some rows.
  func leavingOut(_ rows: Set<Int>) -> TableChanges {
    var rest = TableChanges(
      table: table, identity: identity, keyColumns: keyColumns, columns: columns)
    rest.shapes = shapes
    var places: [Int: Int] = [:]
    var cursors = [Int](repeating: 0, count: columns.count)
    for row in 0..<count {
      let shape = shapes[Int(rowShapes[row])]
      defer { for column in shape { cursors[column] += 1 } }
      if rows.contains(row) { continue }
      places[row] = rest.count
      rest.actions.append(actions[row])
      rest.times.append(times[row])
      rest.rowShapes.append(rowShapes[row])
      for index in keys.indices { rest.keys[index].append(keys[index], at: row) }
      for column in shape { rest.cells[column].append(cells[column], at: cursors[column]) }
    }
    rest.exceptions = exceptions.compactMap { exception in
      places[exception.row].map {
        StampException(row: $0, column: exception.column, stamp: exception.stamp)
      }
    }
    rest.moves = moves.compactMap { move in
      places[move.row].map { RowMove(row: $0, destination: move.destination) }
    }
    return rest
  }
}
