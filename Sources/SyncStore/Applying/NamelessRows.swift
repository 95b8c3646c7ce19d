import SyncModel

/// Rows with NULL in their key, which have no name on another device. An author does not send them;
/// if a file contains changes of them nevertheless, this store skips them.
extension TableChanges {
  /// The rows that have NULL in their key.
  var namelessRows: Set<Int> {
    guard identity != .surrogate else { return [] }
    let null = ValueKind.null.rawValue
    guard keys.contains(where: { $0.kinds.contains(null) }) else { return [] }
    return Set((0..<count).filter { row in keys.contains { $0.kinds[row] == null } })
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
