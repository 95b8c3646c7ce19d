import GRDB
import SyncModel

/// Rows and cells whose values may be plain (``PlainKeys``).
extension StoreSession {
  /// Returns whether the table of a column would show a plain value as a reference to a row, or to a
  /// row that is gone (``KeysOfGoneRows``).
  func isAmbiguous(_ value: Value, in column: ColumnSchema) throws -> Bool {
    guard case .key(let table) = column.domain, let key = column.key(value) else { return false }
    let access = try access(table)
    if try access.hasRow(localKey: key) { return true }
    // Until remade tables are compared and that is sealed, the key of any deleted row can stand for it.
    guard try !areKeysHeld() else {
      return try access.identity(ofKeyInUse: key, countsUnseen: true) != nil
    }
    return try !schema.namers(of: table).isEmpty && access.explicitIdentity(of: key) != nil
  }

  /// The logical value for a value that a user of this device gives to a column: a number names the
  /// row here that has it for its key, if there is one.
  func meant(_ value: Value, in column: ColumnSchema) throws -> Value {
    guard case .key = column.domain else { return value }
    return try exported(value, column)
  }

  /// Whether any change of a row is known, or it is in its table.
  func isKnown(_ row: RowKey) throws -> Bool {
    let access = try access(row.table)
    if let state = try access.stamps.state(of: access.fingerprint(row.identity)) {
      return state.existence != .unsaid || !state.isKept
    }
    return try access.shown(row.identity) != nil
  }

  /// Returns whether the row to which the local values of a reference lead is known.
  func isKnown(_ values: [Value], by key: ForeignKey) throws -> Bool {
    let child = schema[key.child]
    let logical = try zip(values, key.columns).map { try exported($0, child.columns[$1]) }
    let parent = schema[key.parent]
    guard let identity = parent.identity(for: logical, of: key) else { return false }
    // Such a number is no plain value although other devices may never have heard of its row.
    let isPartOfKey = key.columns.allSatisfy { child.columns[$0].isIdentity }
    if parent.localKey != nil, isPartOfKey || !schema.namers(of: parent.id).isEmpty { return true }
    return try isKnown(RowKey(table: key.parent, identity: identity))
  }
}

// MARK: - Plain values that become keys

extension StoreSession {
  /// A cell with a number that has become the key of a row.
  struct PlainCell {
    var table: Int
    var key: [Value]
    var column: Int
    var value: Value
  }

  /// Returns the cells of a column that hold a key and that the edits in the log have not written.
  func plainCells(
    _ child: TableSchema, _ column: Int, holding key: Int64
  ) throws -> [PlainCell] {
    let name = quoted(child.columns[column].name)
    let reading = try SQLStatement(
      "SELECT \(name), \(child.keyColumns.map(quoted).joined(separator: ", ")) "
        + "FROM \(child.quotedName) WHERE \(name) = CAST(? AS NUMERIC)", on: database)
    reading.bind(key, at: 1)
    let edits = try SQLStatement(
      "SELECT op, mask FROM \(child.logName) WHERE "
        + child.keyColumns.indices.map { "k\($0) = ?" }.joined(separator: " AND "),
      on: database)
    var found: [PlainCell] = []
    while try reading.step() {
      let row = child.keyColumns.indices.map { reading.value(at: $0 + 1) }
      for (index, value) in row.enumerated() { edits.bind(value, at: index + 1) }
      var isEdited = false
      while try edits.step() {
        let kind = try CaptureTriggers.Entry(reading: edits.integer(at: 0), from: child.logName)
        // Columns of one register are written together.
        let said = child.columns.indices.filter {
          $0 == column || child.registers[column]?.contains($0) == true
        }
        isEdited =
          isEdited || kind == .insert
          || kind == .update && said.contains(where: ColumnSet(edits, at: 1).contains)
      }
      guard !isEdited else { continue }
      found.append(
        PlainCell(table: child.id, key: row, column: column, value: reading.value(at: 0)))
    }
    return found
  }
}

extension StoreSession {
  func cellKey(_ cell: PlainCell) throws -> CellKey {
    let identity = try access(cell.table).identity(ofKey: cell.key)
    return CellKey(row: RowKey(table: cell.table, identity: identity), column: cell.column)
  }

  /// Returns whether a cell was plain before the edits in the log, although a row had its value as
  /// key.
  func isKeptPlain(_ cell: PlainCell) throws -> Bool {
    let kept = try keptRows.row(cellKey(cell).row)
    return kept?.reason.isShown == true
      && kept?.cells.contains { $0.column == cell.column && $0.value == cell.value } == true
  }
}

extension StoreSession {
  /// Notes that numbers in the key of a row that is in its table are plain values.
  func notePlainNumbers(_ plain: [(column: Int, value: Value)], in row: RowKey) throws {
    let access = try access(row.table)
    let fingerprint = access.fingerprint(row.identity)
    var state = try access.stamps.state(of: fingerprint) ?? .unstamped
    if state.existence == .unsaid { state.existence = .inserted }
    let kept = state.isKept ? try keptRows.row(row) : nil
    if let kept {
      let others = kept.cells.filter { cell in !plain.contains { $0.column == cell.column } }
      try keptRows.replaceCells(
        of: row, with: (others + plain).sorted { $0.column < $1.column })
    } else {
      try keptRows.store(
        KeptRow(reason: .overlaid, cells: plain.sorted { $0.column < $1.column }), of: row)
    }
    state.isKept = true
    try access.stamps.store([(fingerprint, state)])
  }
}
