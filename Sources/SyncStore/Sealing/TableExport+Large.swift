import Foundation
import SyncModel

/// Rows that may be over the caps of a change set.
extension TableExport {
  /// Returns whether no change set has carried the last insertion of a row.
  func isUnknown(_ row: RowIdentity) -> Bool {
    !held.unknown.isEmpty && held.unknown.contains(row)
  }

  /// Seals one row as a change set of its own. What no change set can carry stays on this device:
  /// an insertion as a whole, an update by cells, as far as these do not belong together.
  func handOver(
    _ row: TableChanges, _ identity: RowIdentity, _ known: inout RowState?,
    to builder: ChangeSetBuilder
  ) throws {
    guard try !builder.sealAlone(row), let state = known else { return }
    let action = RowAction(rawValue: row.actions[0])
    if action == .insert {
      hold(row, identity, state, as: .insertion)
    } else if action?.isDeletion == true {
      known = try handOverDeletion(row, identity, state, to: builder)
    } else {
      try handOverCells(of: row, identity, state, to: builder)
    }
  }

  private func handOverCells(
    of row: TableChanges, _ identity: RowIdentity, _ state: RowState, to builder: ChangeSetBuilder
  ) throws {
    var rest = row
    var dropped: [TableChanges] = []
    var isSealed = false
    while !isSealed, let group = largestGroup(of: rest) {
      dropped.append(row.keeping { group.contains($0) })
      rest = rest.keeping { !group.contains($0) }
      if rest.shapes[0].isEmpty { break }
      isSealed = try builder.sealAlone(rest)
    }
    for part in dropped {
      if part.shapes[0].count < row.shapes[0].count, try builder.sealAlone(part) { continue }
      hold(part, identity, state, as: .update)
    }
  }

  /// Its cells are small (``blankCells(of:_:_:)``), so that it is a key that does not fit. Returns
  /// the state of the row; `nil` if no other device knows the row, so that this one forgets it as well.
  private func handOverDeletion(
    _ row: TableChanges, _ identity: RowIdentity, _ state: RowState, to builder: ChangeSetBuilder
  ) throws -> RowState? {
    let key = RowKey(table: table.id, identity: identity)
    var stayed = row
    stayed.moves = []
    guard try !row.moves.isEmpty && builder.sealAlone(stayed) else {
      held.unknown.remove(identity)
      guard held.known.contains(identity) else {
        try session.keptRows.remove(key)
        return nil
      }
      hold(row, identity, state, as: .deletion)
      return state
    }
    // Other devices do not know the row under its new key.
    guard var kept = try session.keptRows.row(key) else { return state }
    kept.movedTo = nil
    guard kept.cells.isEmpty, state.isErased else {
      try session.keptRows.store(kept, of: key)
      return state
    }
    try session.keptRows.remove(key)
    var erased = state
    erased.isKept = false
    return erased
  }

  private func hold(
    _ row: TableChanges, _ identity: RowIdentity, _ state: RowState, as kind: HeldEdits.Edit.Kind
  ) {
    let sizes = row.shapes[0].map { (index: $0, count: row.cells[$0].bytes.count) }
    let greatest = sizes.map(\.count).max() ?? 0
    let replaced = row.exceptions.first { $0.column == nil }?.stamp
    var times: Set<UInt64> = []
    if kind != .deletion {
      times = Set(row.shapes[0].map { state.stamp(of: cellPositions[$0]).time })
    }
    if kind != .update { times.insert(state.existenceStamp.time) }
    if kind == .insertion { held.unknown.insert(identity) }
    if kind != .deletion {
      if let replaced { held.replaced[identity] = replaced }
      for index in row.shapes[0] {
        held.cells[identity, default: ColumnSet()].formUnion(ColumnSet(cellPositions[index]))
      }
    }
    held.times.formUnion(times)
    session.newHeldEdits.append(
      HeldEdits.Edit(
        kind: kind, table: table.wireName, identity: Data(identity.bytes),
        columns: kind == .update ? row.shapes[0].map { row.columns[$0] } : [],
        large: sizes.filter { $0.count > 0 && $0.count * 8 >= greatest }.map {
          row.columns[$0.index]
        }, client: session.ownClient, times: times, replaced: replaced,
        isOfKnownRow: held.known.contains(identity), byteCount: row.byteCount,
        limit: limits.greatestContent))
  }

  /// Returns the cells of a row with the largest value, and those that form one register with it.
  private func largestGroup(of row: TableChanges) -> Set<Int>? {
    let largest = row.shapes[0].max { row.cells[$0].bytes.count < row.cells[$1].bytes.count }
    guard let largest else { return nil }
    guard let register = table.registers[cellPositions[largest]] else { return [largest] }
    return Set(row.shapes[0].filter { register.contains(cellPositions[$0]) } + [largest])
  }

  // MARK: - Deletions

  /// Returns the cells that the tombstone of a row keeps with other values than the row had, since
  /// no change set could carry these.
  ///
  /// - Parameter mayBeEdited: Returns whether a column may have been edited unseen.
  func blankCells(
    of identity: RowIdentity, _ row: Int, _ log: EditLog.Row, _ batch: EditLog.Batch,
    mayBeEdited: (Int) -> Bool
  ) throws -> [Int: Value] {
    var blanks = held.cells[identity] ?? ColumnSet()
    if let old = log.old {
      var count = batch.keys.reduce(0) { $0 + $1.contentCount(at: row) }
      for olds in batch.olds { count += olds.contentCount(at: old) }
      if count > limits.safeContent {
        blanks.formUnion(largeCells(beside: row, old, log, batch, mayBeEdited))
      }
    }
    guard !blanks.isEmpty else { return [:] }
    return try BlankCells(session).cells(of: blanks, in: table, of: identity)
  }

  /// Returns the largest cells of a deleted row, without which its tombstone fits into a change set.
  private func largeCells(
    beside row: Int, _ old: Int, _ log: EditLog.Row, _ batch: EditLog.Batch,
    _ mayBeEdited: (Int) -> Bool
  ) -> ColumnSet {
    var large = ColumnSet()
    var sizes = cellPositions.filter { log.changed.contains($0) || mayBeEdited($0) }
      .map { (column: $0, count: batch.olds[$0].contentCount(at: old)) }
      .sorted { $0.count < $1.count }
    var count = batch.keys.reduce(0) { $0 + $1.contentCount(at: row) }
    count += sizes.reduce(0) { $0 + $1.count }
    while count > limits.safeContent, let largest = sizes.popLast() {
      large.formUnion(ColumnSet(largest.column))
      count -= largest.count
    }
    return large
  }
}

extension ValueColumn {
  /// Returns the bytes of a value that is text or a blob, and otherwise zero.
  func contentCount(at index: Int) -> Int {
    guard index >= 0, index < count else { return 0 }
    switch kind(at: index) {
    case .null, .integer, .real: return 0
    case .text, .blob, .identity: return contentRange(at: index).count
    }
  }
}

extension TableChanges {
  /// The bytes of text and blobs in the key, the cells and the new key of the last row.
  var contentOfLastRow: Int {
    guard let shape = rowShapes.last else { return 0 }
    let move = moves.last.map { $0.row == count - 1 ? $0.destination.bytes.count : 0 } ?? 0
    return (keys + shapes[Int(shape)].map { cells[$0] }).reduce(move) {
      $0 + $1.contentCount(at: $1.count - 1)
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
