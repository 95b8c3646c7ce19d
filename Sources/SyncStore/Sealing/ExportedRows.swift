import SyncModel

/// The changes of a table that are gathered for a change set, row by row: first the cells of a row,
/// then the row.
struct ExportedRows {
  private let table: TableSchema
  private let session: StoreSession
  private var changes: TableChanges
  private var shapes: [[Int]: UInt32] = [:]
  /// The shape of the last row: most rows have the shape of the row before.
  private var lastShape: (columns: [Int], number: UInt32)?
  /// The bytes of content at the last check for a full change set.
  private var checkedContent = 0

  /// The bytes of the new identities of rows that have moved.
  private var moveBytes = 0

  private static let largeContent = 1 << 18

  init(of table: TableSchema, session: StoreSession) {
    self.table = table
    self.session = session
    changes = Self.emptyChanges(table)
  }

  private static func emptyChanges(_ table: TableSchema) -> TableChanges {
    TableChanges(
      table: table.wireName, identity: table.identity.kind, keyColumns: table.wireKeyColumns,
      columns: table.cellPositions.map { table.columns[$0].wireName })
  }

  // MARK: - One row

  /// Appends a cell of the current row.
  mutating func appendCell(_ value: Value, to index: Int) { changes.cells[index].append(value) }

  /// Appends a cell of the current row, from a row of a column's local values.
  mutating func appendCell(
    _ values: ValueColumn, at row: Int, of position: Int, to index: Int
  ) throws {
    let column = table.columns[position]
    if column.domain == .plain {
      changes.cells[index].append(values, at: row)
    } else {
      let value = try session.exported(values[row], column)
      try session.plainKeys.note(value, in: column)
      changes.cells[index].append(value)
    }
  }

  /// Appends all cells of the current row: the values beneath the shown ones where there are any,
  /// and otherwise the local values in rows of the columns.
  mutating func appendCells(
    of positions: [Int], _ values: [ValueColumn], at rows: [Int], beneath: [Int: Value]
  ) throws {
    for (index, position) in positions.enumerated() {
      if let value = beneath[position] {
        appendCell(value, to: index)
      } else {
        try appendCell(values[position], at: rows[position], of: position, to: index)
      }
    }
  }

  /// Records when a cell of the current row was edited, if not with the row.
  mutating func appendException(column: Int, time: HybridTime) {
    changes.exceptions.append(
      StampException(
        row: changes.count, column: column,
        stamp: Stamp(time: time, client: session.clients.client(session.own))))
  }

  /// Records the version that an update, the current row, replaces.
  mutating func appendReplaced(_ stamp: Stamp) {
    changes.exceptions.append(StampException(row: changes.count, column: nil, stamp: stamp))
  }

  /// Records the identity under which the current row lives on.
  mutating func appendMove(to destination: RowIdentity) {
    changes.moves.append(RowMove(row: changes.count, destination: destination))
    moveBytes += destination.bytes.count
  }

  /// Appends the row whose cells were appended, those with the given indexes.
  mutating func appendRow(
    _ row: Int, of batch: EditLog.Batch, _ identities: TableExport.Identities,
    action: RowAction, time: HybridTime, cells: [Int]
  ) {
    if table.identity == .surrogate {
      changes.keys[0].append(.blob(identities.identity(row).bytes))
      changes.keys[1].append(batch.keys[0], at: row)
    } else if let logical = identities.logicalKeys {
      for index in logical.indices { changes.keys[index].append(logical[index], at: row) }
    } else {
      for index in batch.keys.indices { changes.keys[index].append(batch.keys[index], at: row) }
    }
    changes.actions.append(action.rawValue)
    changes.times.append(time)
    changes.rowShapes.append(shape(cells))
  }

  /// Appends the row whose cells were appended, by its logical key.
  mutating func appendRow(
    _ key: [Value], _ action: RowAction, _ time: HybridTime, cells: [Int]
  ) {
    for (index, value) in key.enumerated() { changes.keys[index].append(value) }
    changes.actions.append(action.rawValue)
    changes.times.append(time)
    changes.rowShapes.append(shape(cells))
  }

  private mutating func shape(_ columns: [Int]) -> UInt32 {
    if let lastShape, lastShape.columns == columns { return lastShape.number }
    let number = shapes[columns] ?? addShape(columns)
    lastShape = (columns, number)
    return number
  }

  private mutating func addShape(_ columns: [Int]) -> UInt32 {
    let number = UInt32(changes.shapes.count)
    changes.shapes.append(columns)
    shapes[columns] = number
    return number
  }

  // MARK: - Handing over

  /// Hands over the changes if they are enough for a change set, after the row at a position: checks
  /// only after every ``ChangeSetBuilder/rowsPerCheck`` rows, when there are enough rows, or after large values.
  ///
  /// Returns the last row instead of handing it over if it may be over the caps of a change set.
  mutating func finishIfFull(
    _ builder: ChangeSetBuilder, afterRow count: Int
  ) throws -> TableChanges? {
    let content = contentCount
    let growth = content - checkedContent
    let isLarge = growth > min(Self.largeContent, builder.largeByteCount)
    let isDue = count % builder.rowsPerCheck == builder.rowsPerCheck - 1
    guard isDue || changes.count >= builder.remainingRows || isLarge else { return nil }
    checkedContent = content
    if growth > builder.largeByteCount, changes.contentOfLastRow > builder.largeByteCount {
      let row = changes.removeLastRow()
      try finish(builder)
      return row
    }
    try finishIfFull(builder)
    return nil
  }

  /// Hands over the changes if they are enough for a change set.
  mutating func finishIfFull(_ builder: ChangeSetBuilder) throws {
    if builder.isFull(with: changes) { try finish(builder) }
  }

  /// The bytes of text and blobs gathered so far.
  private var contentCount: Int {
    var count = moveBytes
    for index in changes.keys.indices { count += changes.keys[index].bytes.count }
    for index in changes.cells.indices { count += changes.cells[index].bytes.count }
    return count
  }

  /// Hands over the remaining changes.
  mutating func finish(_ builder: ChangeSetBuilder) throws {
    try builder.add(changes)
    changes = Self.emptyChanges(table)
    shapes = [:]
    lastShape = nil
    checkedContent = 0
    moveBytes = 0
  }
}
