import SyncModel

extension ChangeExport {
  /// Returns the cells that refer to no row and hold a key that an edit in the log gives to a row.
  func cellsBecomingKeys() throws -> [StoreSession.PlainCell] {
    var found: [StoreSession.PlainCell] = []
    for parent in session.schema.tables where parent.localKey != nil {
      let access = try session.access(parent.id)
      if parent.identity == .surrogate { try access.rewrittenKeys() }
      for key in try access.givenPlainKeys(evenForAWhile: false).sorted() {
        for child in session.schema.tables {
          for column in child.keyedPositions
          where child.columns[column].domain == .key(of: parent.id) {
            found += try session.plainCells(child, column, holding: key)
          }
        }
      }
    }
    return try session.withoutNotedReferences(found)
  }

  /// Returns the values of cells that stay plain, by row and column. An insertion that an edit does
  /// not write by itself, such as that of a deleted row that is shown, contains them as they are.
  func stayingPlain(_ cells: [StoreSession.PlainCell]) throws -> [RowKey: [Int: Value]] {
    var found: [RowKey: [Int: Value]] = [:]
    for cell in cells {
      let key = try session.cellKey(cell)
      if followed.references.contains(key) { continue }
      found[key.row, default: [:]][cell.column] = cell.value
    }
    for cell in followed.plain {
      let key = try session.cellKey(cell)
      found[key.row, default: [:]][cell.column] = cell.value
    }
    return found
  }

  /// Notes the foreign keys that the edits in the log have written and that refer to a row with a
  /// plain number in its key: their columns contain the plain number, too, also those of the
  /// referring row's own key.
  func noteReferencesToPlainKeys() throws {
    for child in session.schema.inDependencyOrder(session.schema.tables) {
      for reference in child.foreignKeys where reference.isEnforced {
        let table = session.schema[reference.parent]
        guard table.hasKeysInIdentity, table.identifies(reference), table.localKey == nil,
          reference.columns.contains(where: { child.columns[$0].isKeyed })
        else { continue }
        let parent = try session.access(table.id)
        guard try parent.canHavePlainNumbers() else { continue }
        try noteReferencesToPlainKeys(reference, of: session.access(child.id), parent)
      }
    }
  }

  private func noteReferencesToPlainKeys(
    _ reference: ForeignKey, of child: TableAccess, _ parent: TableAccess
  ) throws {
    let keys = child.table.keyColumns.indices.map { "k\($0)" }
    let reading = try SQLStatement(
      "SELECT DISTINCT op, mask, \(keys.joined(separator: ", ")) FROM \(child.table.logName)",
      on: session.database)
    var written: Set<[Value]> = []
    while try reading.step() {
      let kind = try CaptureTriggers.Entry(
        reading: reading.integer(at: 0), from: child.table.logName)
      let isWritten =
        kind == .insert
        || kind == .update && reference.columns.contains { ColumnSet(reading, at: 1).contains($0) }
      let key = keys.indices.map { reading.value(at: $0 + 2) }
      if isWritten, !key.contains(.null) { written.insert(key) }
    }
    let positions = parent.table.identityPositions
    let names = reference.parentColumns.map(\.folded)
    for key in written {
      guard let values = try child.row(key)?.values else { continue }
      var columns: [Int] = []
      for position in positions {
        guard let index = names.firstIndex(of: parent.table.columns[position].name.folded) else {
          continue
        }
        columns.append(reference.columns[index])
      }
      let local = columns.map { values[$0] }
      guard columns.count == positions.count, !local.contains(.null) else { continue }
      var plain: Set<Int> = []
      for (column, value) in zip(columns, try parent.logicalKey(local))
      where child.table.columns[column].isKeyed && value.kind != .identity {
        // A row here has that number.
        guard try session.exported(value, child.table.columns[column]).kind == .identity else {
          continue
        }
        plain.insert(column)
      }
      guard !plain.isEmpty else { continue }
      let row = try notePlainKey(plain, key, values, child)
      for column in plain.sorted() where child.table.keyedPositions.contains(column) {
        session.writtenPlainCells[row, default: []].append(
          StoreSession.PlainCell(
            table: child.table.id, key: key, column: column, value: values[column]))
      }
    }
  }

  /// Notes that numbers in the key of a row are plain values, if it contains some of the columns.
  /// Returns the row.
  private func notePlainKey(
    _ plain: Set<Int>, _ key: [Value], _ values: [Value], _ child: TableAccess
  ) throws -> RowKey {
    let positions = child.table.identityPositions
    guard child.table.hasKeysInIdentity, !plain.isDisjoint(with: positions) else {
      return RowKey(table: child.table.id, identity: try child.identity(ofKey: key))
    }
    let logical = try zip(positions, child.logicalKey(key)).map { position, value in
      plain.contains(position) ? values[position] : value
    }
    let row = RowKey(table: child.table.id, identity: child.identity(of: logical))
    for position in positions where plain.contains(position) {
      try session.plainKeys.note(values[position], in: child.table.columns[position])
    }
    session.writtenPlainRows.insert(row)
    return row
  }
}
