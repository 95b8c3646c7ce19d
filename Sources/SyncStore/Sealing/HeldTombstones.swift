import SyncModel

/// Rows that another device has deleted, with cells here that no change set can carry.
///
/// The tombstones on other devices keep other values of these cells, and this device does not know
/// them. So this device deletes the row once more, with values of these cells that every device can
/// have. What they were here is in the conflict journal.
struct HeldTombstones {
  let session: StoreSession

  private typealias Cells = (row: RowKey, columns: ColumnSet)

  /// Returns whether there are such rows.
  func exist() throws -> Bool { try !rows().isEmpty }

  /// Returns the rows, table by table.
  private func rows() throws -> [Cells] {
    let held = try session.heldEdits()
    guard !held.edits.isEmpty else { return [] }
    var found: [Cells] = []
    for name in Set(held.edits.map(\.table)).sorted() {
      guard let table = session.schema.table(wireName: name) else { continue }
      let access = try session.access(table.id)
      let edits = try held.inTable(table, session)
      for (identity, columns) in edits.cells.sorted(by: { $0.key < $1.key })
      where !columns.isEmpty {
        let row = RowKey(table: table.id, identity: identity)
        guard let state = try access.stamps.state(of: access.fingerprint(identity)),
          try session.isGone(row, state)
        else { continue }
        found.append((row, columns))
      }
    }
    return found
  }

  /// Adds the deletions to the change sets and merges them. Must be called after the edits were
  /// exported.
  func export(to builder: ChangeSetBuilder, into set: WorkingSet) throws {
    var rows = try rows()[...]
    while let first = rows.first {
      let table = session.schema[first.row.table]
      let inTable = rows.prefix { $0.row.table == table.id }
      rows = rows.dropFirst(inTable.count)
      try export(inTable, of: table, to: builder, into: set)
    }
    try builder.seal()
  }

  private func export(
    _ rows: some Sequence<Cells>, of table: TableSchema, to builder: ChangeSetBuilder,
    into set: WorkingSet
  ) throws {
    var exported = ExportedRows(of: table, session: session)
    for cells in rows {
      let row = try set.row(cells.row)
      let erases = !table.keepsDeleted || row.state.isErased
      let greatest = HybridTime.zero.raised(aboveAllOf: row.state)
      // No person has deleted the row once more: an insertion after the deletion counts.
      let time = erases ? greatest : HybridTime.zero.raised(above: row.state.existenceStamp)
      let stamp = LocalStamp(time: time.rawValue, client: session.own)
      let cellTime = max(time, greatest)
      var changed: [(column: Int, value: Value, stamp: LocalStamp)] = []
      var shape: [Int] = []
      if !erases {
        let blanks = try BlankCells(session).cells(
          of: cells.columns, in: table, of: cells.row.identity)
        for (index, position) in table.cellPositions.enumerated() {
          guard let value = blanks[position] else { continue }
          exported.appendCell(value, to: index)
          if cellTime > time { exported.appendException(column: index, time: cellTime) }
          shape.append(index)
          changed.append(
            (position, value, LocalStamp(time: cellTime.rawValue, client: session.own)))
        }
      }
      let movedTo = table.isReferred ? row.movedTo : nil
      if let movedTo { exported.appendMove(to: movedTo) }
      let action = erases ? RowAction.erase : .delete
      exported.appendRow(
        try session.access(table.id).changeSetKey(of: cells.row.identity), action, time,
        cells: shape)
      try exported.finishIfFull(builder)
      try set.merge(
        WorkingSet.Change(
          action: action, stamp: stamp, cells: changed, movedTo: movedTo,
          erasureStamp: erases ? stamp : nil), into: row)
    }
    try exported.finish(builder)
  }
}

/// The values that cells of a tombstone have in place of values that no change set can carry: the
/// column's default or, if it has none, NULL or an empty value.
struct BlankCells {
  private let absent: AbsentValues

  init(_ session: StoreSession) { absent = AbsentValues(session.database) }

  /// Returns values for columns of a row, and for those that form one register with them. Those of
  /// its key keep their values.
  func cells(
    of columns: ColumnSet, in table: TableSchema, of row: RowIdentity
  ) throws -> [Int: Value] {
    var wanted = columns
    for position in table.cellPositions where columns.contains(position) {
      if let register = table.registers[position] { wanted.formUnion(register) }
    }
    let defaults = try absent.values(of: table)
    let positions = table.identity == .surrogate ? [] : table.identityPositions
    let key = IdentityEncoding.values(of: row, count: positions.count) ?? []
    let keyValues = Dictionary(uniqueKeysWithValues: zip(positions, key))
    var cells: [Int: Value] = [:]
    for position in table.cellPositions where wanted.contains(position) {
      cells[position] =
        keyValues[position] ?? Self.value(table.columns[position], defaults[position])
    }
    return cells
  }

  private static func value(_ column: ColumnSchema, _ value: Value) -> Value {
    guard column.domain == .plain else { return .null }
    guard value == .null, column.isNotNull else { return value }
    switch column.affinity {
    case .text: return .text([])
    case .blob: return .blob([])
    case .integer, .numeric: return .integer(0)
    case .real: return .real(0)
    }
  }
}
