import SyncModel

/// Rows that may be over the caps of a change set.
extension TableExport {
  /// Seals one row as a change set of its own. What no change set can carry stays on this device:
  /// an insertion as a whole, an update by cells, as far as these do not belong together.
  func handOver(
    _ row: TableChanges, _ identity: RowIdentity, _ state: RowState, to builder: ChangeSetBuilder
  ) throws {
    let isWhole = row.actions[0] == RowAction.insert.rawValue
    if try builder.sealAlone(row) {
      if isWhole { heldRows.remove(identity) }
      return
    }
    let isDeletion = RowAction(rawValue: row.actions[0])?.isDeletion == true
    guard !isWhole else { return hold(row, identity, state, isInsertion: true) }
    guard isDeletion || table.mergeType != .keepBoth else { throw refusal(row, identity) }
    var rest = row
    var dropped: [TableChanges] = []
    var isSealed = false
    while !isSealed, let group = largestGroup(of: rest) {
      dropped.append(row.keeping { group.contains($0) })
      rest = rest.keeping { !group.contains($0) }
      if rest.shapes[0].isEmpty, !isDeletion { break }
      isSealed = try builder.sealAlone(rest)
    }
    // Not even the key fits.
    guard isSealed || !isDeletion else { throw refusal(row, identity) }
    for part in dropped {
      if !isDeletion, part.shapes[0].count < row.shapes[0].count, try builder.sealAlone(part) {
        continue
      }
      hold(part, identity, state, isInsertion: false)
    }
  }

  private func hold(
    _ row: TableChanges, _ identity: RowIdentity, _ state: RowState, isInsertion: Bool
  ) {
    let sizes = row.shapes[0].map { (index: $0, count: row.cells[$0].bytes.count) }
    let greatest = sizes.map(\.count).max() ?? 0
    var times = Set(row.shapes[0].map { state.stamp(of: cellPositions[$0]).time })
    if isInsertion {
      times.insert(state.existenceStamp.time)
      heldRows.insert(identity)
    }
    session.newHeldEdits.append(
      HeldEdits.Edit(
        table: table.wireName.text, identity: identity.bytes,
        columns: isInsertion ? nil : row.shapes[0].map { row.columns[$0].text },
        large: sizes.filter { $0.count > 0 && $0.count * 8 >= greatest }.map {
          row.columns[$0.index].text
        }, times: times, byteCount: row.byteCount))
  }

  /// Returns the cells of a row with the largest value, and those that form one register with it.
  private func largestGroup(of row: TableChanges) -> Set<Int>? {
    let largest = row.shapes[0].max { row.cells[$0].bytes.count < row.cells[$1].bytes.count }
    guard let largest else { return nil }
    guard let register = table.registers[cellPositions[largest]] else { return [largest] }
    return Set(row.shapes[0].filter { register.contains(cellPositions[$0]) } + [largest])
  }

  private func refusal(_ row: TableChanges, _ identity: RowIdentity) -> StoreError {
    StoreError(
      .editRefused, path: "",
      message: "A row of the table \(quoted(table.name)) is too large to be synchronized.",
      remedy: "Shorten its values to less than 60 MB in all, then sync again.",
      detail: "row \(identity.hexadecimal), \(row.byteCount) bytes")
  }
}

extension TableChanges {
  /// The bytes of text and blobs in the cells of the last row.
  var contentOfLastRow: Int {
    guard let shape = rowShapes.last else { return 0 }
    return shapes[Int(shape)].reduce(0) { sum, index in
      let column = cells[index]
      let last = column.count - 1
      switch column.kind(at: last) {
      case .null, .integer, .real: return sum
      case .text, .blob, .identity: return sum + column.contentRange(at: last).count
      }
    }
  }

  /// Removes the last row and returns it.
  mutating func removeLastRow() -> TableChanges {
    var row = TableChanges(
      table: table, identity: identity, keyColumns: keyColumns, columns: columns)
    let last = count - 1
    row.actions = [actions.removeLast()]
    row.times = [times.removeLast()]
    let number = rowShapes.removeLast()
    row.shapes = [shapes[Int(number)]]
    row.rowShapes = [0]
    for index in keys.indices { row.keys[index].append(keys[index].removeLast()) }
    for index in row.shapes[0] { row.cells[index].append(cells[index].removeLast()) }
    while let exception = exceptions.last, exception.row == last {
      exceptions.removeLast()
      row.exceptions.insert(
        StampException(row: 0, column: exception.column, stamp: exception.stamp), at: 0)
    }
    if let move = moves.last, move.row == last {
      moves.removeLast()
      row.moves = [RowMove(row: 0, destination: move.destination)]
    }
    if Int(number) == shapes.count - 1, !rowShapes.contains(number) { shapes.removeLast() }
    return row
  }

  /// Returns a single row with some of its cells.
  func keeping(_ isWanted: (Int) -> Bool) -> TableChanges {
    var row = self
    row.shapes = [shapes[0].filter(isWanted)]
    for index in shapes[0] where !isWanted(index) { row.cells[index] = ValueColumn() }
    row.exceptions.removeAll { exception in
      exception.column.map { !isWanted($0) } ?? false
    }
    return row
  }
}
