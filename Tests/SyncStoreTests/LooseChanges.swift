import SyncModel

@testable import SyncStore

/// The changes of one table row by row, so that a test can say with them what
/// no author says.
struct LooseChanges {
  struct Row {
    var action: UInt8
    var keys: [Value]
    var time: HybridTime
    /// In order of column.
    var cells: [(column: Int, value: Value)]
    var stamps: [Int?: Stamp] = [:]
    var destination: RowIdentity?
  }

  var table: SQLName
  var identity: IdentityKind
  var keyColumns: [SQLName]
  var columns: [SQLName]
  var rows: [Row]

  init(_ changes: TableChanges) {
    table = changes.table
    identity = changes.identity
    keyColumns = changes.keyColumns
    columns = changes.columns
    var cursors = [Int](repeating: 0, count: changes.columns.count)
    rows = (0..<changes.count).map { row in
      Row(
        action: changes.actions[row], keys: changes.keys.map { $0[row] },
        time: changes.times[row],
        cells: changes.shapes[Int(changes.rowShapes[row])].map { column in
          defer { cursors[column] += 1 }
          return (column, changes.cells[column][cursors[column]])
        })
    }
    for exception in changes.exceptions {
      rows[exception.row].stamps[exception.column] = exception.stamp
    }
    for move in changes.moves { rows[move.row].destination = move.destination }
  }

  /// The changes as a change set has them.
  var changes: TableChanges {
    var changes = TableChanges(
      table: table, identity: identity, keyColumns: keyColumns, columns: columns)
    for (index, row) in rows.enumerated() {
      changes.actions.append(row.action)
      changes.times.append(row.time)
      for (key, value) in row.keys.enumerated() where key < changes.keys.count {
        changes.keys[key].append(value)
      }
      let shape = row.cells.map(\.column)
      if !changes.shapes.contains(shape) { changes.shapes.append(shape) }
      changes.rowShapes.append(UInt32(changes.shapes.firstIndex(of: shape) ?? 0))
      for cell in row.cells { changes.cells[cell.column].append(cell.value) }
      for (column, stamp) in row.stamps.sorted(by: { $0.key ?? -1 < $1.key ?? -1 }) {
        changes.exceptions.append(StampException(row: index, column: column, stamp: stamp))
      }
      if let destination = row.destination {
        changes.moves.append(RowMove(row: index, destination: destination))
      }
    }
    return changes
  }
}
