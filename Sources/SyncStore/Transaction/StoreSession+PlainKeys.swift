import GRDB
import SyncModel

/// Plain values in columns that stand for keys: 0, '' or 7, where no row had
/// that key when they were written.
///
/// They have the same value on every device. A row here can have such a key all the same: changes
/// never give one to their rows, but the application may. Then bookkeeping stores the value, since
/// the table does not distinguish it from a reference (``KeptRow/Reason/overlaid``).
extension StoreSession {
  /// The integers that are plain values somewhere in columns that stand for keys of a table, and
  /// maybe other integers.
  func plainKeys(of table: Int) throws -> Set<Int64> {
    if let known = plainKeys[table] { return known }
    let found = try Int64.fetchSet(
      database, sql: "SELECT key FROM docsync_plain WHERE tbl = ?", arguments: [table])
    plainKeys[table] = found
    return found
  }

  /// Notes a plain value; ignores others.
  func notePlain(_ value: Value, in column: ColumnSchema) throws {
    guard case .key(let table) = column.domain, let key = Value.key(value),
      try !plainKeys(of: table).contains(key)
    else { return }
    plainKeys[table]?.insert(key)
    try database.execute(
      sql: "INSERT OR IGNORE INTO docsync_plain (tbl, key) VALUES (?, ?)", arguments: [table, key])
  }

  /// Whether the table of a column would show a plain value as a reference to a row.
  func isAmbiguous(_ value: Value, in column: ColumnSchema) throws -> Bool {
    guard case .key(let table) = column.domain, let key = Value.key(value) else { return false }
    return try access(table).hasRow(localKey: key)
  }

  /// Whether any change of a row is known, or it is in its table.
  func isKnown(_ row: RowKey) throws -> Bool {
    let access = try access(row.table)
    if let state = try access.stamps.state(of: access.fingerprint(row.identity)) {
      return state.existence != .unsaid || !state.isKept
    }
    return try access.shown(row.identity) != nil
  }

  /// Whether the row is known to which the local values of a reference lead.
  func isKnown(_ values: [Value], by key: ForeignKey) throws -> Bool {
    let child = schema[key.child]
    let logical = try zip(values, key.columns).map { try exported($0, child.columns[$1]) }
    guard let identity = schema[key.parent].identity(for: logical, of: key) else { return false }
    return try isKnown(RowKey(table: key.parent, identity: identity))
  }

  /// Notes the plain values of rows that exist before syncing begins.
  func notePlainBeginning() throws {
    for table in schema.tables {
      for column in table.columns {
        guard case .key(let id) = column.domain, let key = schema[id].localKey else { continue }
        let reading = try SQLStatement(
          "SELECT DISTINCT \(quoted(column.name)) FROM \(table.quotedName) AS c "
            + "WHERE \(quoted(column.name)) IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "
            + "\(schema[id].quotedName) AS p WHERE p.\(quoted(key)) = c.\(quoted(column.name)))",
          on: database)
        while try reading.step() { try notePlain(reading.value(at: 0), in: column) }
      }
    }
  }

  /// The plain values that bookkeeping stores for the rows of a table, by column.
  func keptPlainValues(of table: TableSchema) throws -> [RowIdentity: [Int: Value]] {
    let columns = table.keyedPositions
    guard !columns.isEmpty else { return [:] }
    let reading = try SQLStatement(
      "SELECT identity, cells FROM docsync_kept WHERE tbl = ? "
        + "AND reason IN ('overlaid', 'rescued')", on: database)
    reading.bind(Int64(table.id), at: 1)
    var found: [RowIdentity: [Int: Value]] = [:]
    while try reading.step() {
      let cells = try KeptCells.decode(reading.bytes(at: 1)).filter {
        columns.contains($0.column) && Value.key($0.value) != nil
      }
      guard !cells.isEmpty else { continue }
      found[RowIdentity(bytes: reading.bytes(at: 0))] = Dictionary(
        cells.map { ($0.column, $0.value) }, uniquingKeysWith: { first, _ in first })
    }
    return found
  }
}

extension TableSchema {
  /// Positions of the cells that stand for keys.
  var keyedPositions: [Int] {
    columns.indices.filter {
      if case .key = columns[$0].domain { !columns[$0].isIdentity } else { false }
    }
  }

}

// MARK: - Rows that get such a key

extension StoreSession {
  /// A cell with a number that has become the key of a row.
  struct PlainCell {
    var table: Int
    var key: [Value]
    var column: Int
    var value: Value
  }

  /// The cells of a column that hold a key and that the edits in the log have not written.
  func plainCells(
    _ child: TableSchema, _ column: Int, holding key: Int64
  ) throws -> [PlainCell] {
    let name = quoted(child.columns[column].name)
    let reading = try SQLStatement(
      "SELECT \(name), \(child.keyColumns.map(quoted).joined(separator: ", ")) "
        + "FROM \(child.quotedName) WHERE \(name) = ?", on: database)
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
        let kind = CaptureTriggers.Entry(rawValue: edits.integer(at: 0))
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

  /// Whether a cell was plain before the edits in the log, although a row had its value as key.
  func isKeptPlain(_ cell: PlainCell) throws -> Bool {
    let kept = try kept(cellKey(cell).row)
    return kept?.reason.isShown == true
      && kept?.cells.contains { $0.column == cell.column && $0.value == cell.value } == true
  }
}
