extension ChangeSetCodec {
  /// Checks the rules that every user of a change set relies on, before encoding and after
  /// decoding.
  static func check(_ set: SyncChangeSet, limits: CodecLimits) throws {
    try check(set.header)
    for (client, entry) in set.dependencies.entries {
      guard 1...VersionVector.greatestNumber ~= entry.number else {
        throw CodecError(.malformed, "dependency with number \(entry.number)")
      }
      guard client != set.header.client else {
        throw CodecError(.malformed, "dependency on the author itself")
      }
    }
    guard set.tables.count <= limits.tables else {
      throw CodecError(.lengthOverCap, "\(set.tables.count) tables; at most \(limits.tables)")
    }
    guard set.rowCount <= limits.rows else {
      throw CodecError(.lengthOverCap, "\(set.rowCount) rows; at most \(limits.rows)")
    }
    try checkDistinct(set.tables.map(\.table), what: "tables")
    for table in set.tables { try TableChecker(table: table).check(limits: limits) }
  }

  static func check(_ header: SyncChangeSet.Header) throws {
    guard 1...VersionVector.greatestNumber ~= header.number,
      header.previous != nil || header.number == 1
    else {
      throw CodecError(.malformed, "public header: number and hash of the previous change set")
    }
    guard header.client != Stamp.zero.client else {
      throw CodecError(.malformed, "public header: client")
    }
  }

  fileprivate static func checkDistinct(_ names: [SQLName], what: String) throws {
    var seen: Set<SQLName> = []
    for name in names {
      let bytes = name.text.utf8
      guard bytes.count <= 65_535, !bytes.contains(0) else {
        throw CodecError(.malformed, "names of \(what)")
      }
      guard seen.insert(name).inserted else {
        throw CodecError(.malformed, "\(what): \(name) twice")
      }
    }
  }
}

private struct TableChecker {
  let table: TableChanges

  func check(limits: CodecLimits) throws {
    try checkColumns(limits)
    try checkRows()
    try checkKeys()
    try checkCells()
    try checkReals()
    try checkErasures()
    try checkDistinctRows()
    try checkExceptions()
    try checkMoves()
  }

  private func fail(_ code: CodecError.Code, _ what: String) -> CodecError {
    CodecError(code, "table \(table.table): \(what)")
  }

  private func checkColumns(_ limits: CodecLimits) throws {
    guard table.columns.count <= limits.columns, table.keyColumns.count <= limits.columns else {
      throw fail(.lengthOverCap, "columns; at most \(limits.columns)")
    }
    try ChangeSetCodec.checkDistinct(table.columns, what: "columns of \(table.table)")
    try ChangeSetCodec.checkDistinct(table.keyColumns, what: "key columns of \(table.table)")
    let isSurrogate = table.identity == .surrogate
    guard isSurrogate ? table.keyColumns.count == 1 : !table.keyColumns.isEmpty,
      table.keys.count == (isSurrogate ? 2 : table.keyColumns.count),
      table.cells.count == table.columns.count
    else { throw fail(.wrongCount, "columns of keys and cells") }
  }

  private func checkRows() throws {
    let count = table.count
    guard table.times.count == count, table.rowShapes.count == count else {
      throw fail(.wrongCount, "times and shapes of rows")
    }
    guard table.actions.allSatisfy({ RowAction(rawValue: $0) != nil }) else {
      throw fail(.malformed, "action")
    }
    guard table.times.allSatisfy({ $0 <= .maximum }) else { throw fail(.malformed, "time") }
    var seen: Set<[Int]> = []
    for shape in table.shapes {
      var next = 0
      for column in shape {
        guard column >= next, column < table.columns.count else { throw fail(.malformed, "shape") }
        next = column + 1
      }
      guard seen.insert(shape).inserted else { throw fail(.malformed, "shape twice") }
    }
    guard table.rowShapes.allSatisfy({ $0 < table.shapes.count }) else {
      throw fail(.malformed, "shape of a row")
    }
  }

  private func checkKeys() throws {
    for key in table.keys where key.count != table.count { throw fail(.wrongCount, "keys") }
    guard table.identity == .surrogate else { return }
    let identities = table.keys[0]
    guard identities.kinds.allSatisfy({ $0 == ValueKind.blob.rawValue }),
      identities.words.allSatisfy({ $0 & 0xFFFF_FFFF == 16 })
    else { throw fail(.malformed, "surrogate identity that is not 16 bytes") }
    guard
      table.keys[1].kinds.allSatisfy({
        $0 == ValueKind.integer.rawValue || $0 == ValueKind.null.rawValue
      })
    else { throw fail(.malformed, "local key that is not an integer") }
  }

  private func checkCells() throws {
    for (column, count) in zip(table.cells, table.cellCounts()) where column.count != count {
      throw fail(.wrongCount, "cells")
    }
  }

  private func checkExceptions() throws {
    var previous: (row: Int, column: Int) = (-1, -1)
    for exception in table.exceptions {
      let place = (row: exception.row, column: exception.column ?? -1)
      guard previous.row < 0 || previous < place, place.row >= 0, place.row < table.count,
        exception.stamp.time <= .maximum
      else { throw fail(.malformed, "exception") }
      if exception.column == nil, exception.stamp == .zero,
        table.actions[place.row] != RowAction.update.rawValue
      {
        // The zero stamp means that no edit is known.
        throw fail(.malformed, "existence with a stamp from before syncing began")
      }
      if let column = exception.column {
        let shape = table.shapes[Int(table.rowShapes[place.row])]
        guard shape.containsSorted(column) else {
          throw fail(.malformed, "exception for a missing cell")
        }
      }
      previous = place
    }
  }

  private func checkMoves() throws {
    var previous = -1
    for move in table.moves {
      guard move.row > previous, move.row < table.count,
        RowAction(rawValue: table.actions[move.row])?.isDeletion == true,
        !move.destination.bytes.isEmpty
      else { throw fail(.malformed, "move") }
      guard try identity(move.row) != canonical(move.destination) else {
        throw fail(.malformed, "move of a row to itself")
      }
      previous = move.row
    }
  }

  /// Returns `identity`; throws unless it has the canonical form for this table.
  private func canonical(_ identity: RowIdentity) throws -> RowIdentity {
    guard table.identity != .surrogate else {
      guard identity.bytes.count == 16 else {
        throw fail(.malformed, "move to an identity that is not 16 bytes")
      }
      return identity
    }
    let values: [Value]
    do {
      values = try IdentityEncoding.decode(identity, count: table.keyColumns.count)
    } catch {
      // The file is complete, so waiting for more bytes cannot help.
      throw fail(.malformed, "move to an identity that cannot be read: \(error)")
    }
    guard IdentityEncoding.encode(values) == identity else {
      throw fail(.malformed, "move to an identity that is not canonical")
    }
    return identity
  }

  private func identity(_ row: Int) -> RowIdentity {
    if table.identity == .surrogate, case .blob(let bytes) = table.keys[0][row] {
      return RowIdentity(bytes: bytes)
    }
    return IdentityEncoding.encode(table.keys.map { $0[row] })
  }

  /// Refuses NaN. SQLite has none: in a table it would be NULL, everywhere else NaN.
  private func checkReals() throws {
    for column in table.keys + table.cells where column.hasRealThatIsNoNumber {
      throw fail(.malformed, "a real that is not a number")
    }
  }

  private func checkErasures() throws {
    let erase = RowAction.erase.rawValue
    guard table.actions.contains(erase), table.shapes.contains(where: { !$0.isEmpty }) else {
      return
    }
    for (action, shape) in zip(table.actions, table.rowShapes)
    where action == erase && !table.shapes[Int(shape)].isEmpty {
      throw fail(.malformed, "cells of an erased row")
    }
  }

  private func checkDistinctRows() throws {
    let identities = table.identity == .surrogate ? [table.keys[0]] : table.keys
    if identities.hasRepeatedTuple {
      throw fail(.malformed, "a row twice")
    }
  }
}

extension [Int] {
  fileprivate func containsSorted(_ element: Int) -> Bool {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if self[middle] < element { low = middle + 1 } else { high = middle }
    }
    return low < count && self[low] == element
  }
}
