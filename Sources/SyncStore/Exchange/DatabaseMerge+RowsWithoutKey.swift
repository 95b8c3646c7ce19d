import GRDB
import SyncModel

/// Rows with NULL in their key, which stay on the device.
extension DatabaseMerge {
  /// Inserts a row as it is, unless the store has a row with the same values: only the values can
  /// show whether the row is here already.
  func mergeWithoutKey(
    _ values: [Value], _ row: FormerDatabase.Record, _ table: TableSchema, _ formerKey: [Value]
  ) throws {
    let rowid: Int64?
    if let present = try rowWithoutKey(values, table) {
      report.equalRows += 1
      rowid = present
    } else {
      let access = try session.access(table.id)
      do {
        try LocalEdits(session: session).insertWithoutKey(
          localValues: values, into: access,
          localKey: try freeKey(row.localKey.flatMap(Value.key), table))
      } catch let refusal as LocalEdits.Refusal {
        try keys.note(.nowhere, of: formerKey, in: table)
        let isUnique = refusal.detail?.contains("UNIQUE") ?? false
        return try refuse(
          values, row, table, isUnique ? .uniqueValue : .condition, refusal.message)
      }
      report.insertedRows += 1
      rowid = try rowWithoutKey(values, table)
    }
    guard let rowid else { return }
    rowsWithoutKey[table.id, default: []].insert(rowid)
    if table.localKey != nil, formerKey != [.integer(rowid)] {
      report.movedRows += 1
      try keys.note(.moved(to: [.integer(rowid)]), of: formerKey, in: table)
    }
    try takeLocalValues(of: row, to: rowid, table)
  }

  /// The rowid of a row with these values that is not another row of the former database already;
  /// `nil` if there is none.
  private func rowWithoutKey(_ values: [Value], _ table: TableSchema) throws -> Int64? {
    guard let rowid = table.rowidName else { return nil }
    let terms = table.columns.map { "\(quoted($0.name)) IS ? COLLATE BINARY" }
    let reading = try session.access(table.id).statement(
      "SELECT \(rowid), \(table.columns.map { quoted($0.name) }.joined(separator: ", ")) "
        + "FROM \(table.quotedName) WHERE \(terms.joined(separator: " AND ")) ORDER BY \(rowid)")
    for (index, value) in values.enumerated() { reading.bind(value, at: index + 1) }
    defer { reading.reset() }
    let known = rowsWithoutKey[table.id] ?? []
    while try reading.step() {
      guard !known.contains(reading.integer(at: 0)) else { continue }
      // SQLite takes 1 and 1.0 for the same.
      guard values.indices.allSatisfy({ reading.value(at: $0 + 1) == values[$0] }) else { continue }
      return reading.integer(at: 0)
    }
    return nil
  }

  private func takeLocalValues(
    of row: FormerDatabase.Record, to rowid: Int64, _ table: TableSchema
  ) throws {
    let names = table.excludedColumns.sorted().filter { row.localValues[$0.folded] != nil }
    guard !names.isEmpty, let name = table.rowidName else { return }
    let statement = try SQLStatement(
      "UPDATE OR ABORT \(table.quotedName) SET "
        + names.map { "\(quoted($0)) = ?" }.joined(separator: ", ") + " WHERE \(name) = ?",
      on: session.database)
    for (index, column) in names.enumerated() {
      statement.bind(row.localValues[column.folded] ?? .null, at: index + 1)
    }
    statement.bind(rowid, at: names.count + 1)
    do {
      try session.write(statement)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      session.warnOfRefusedValues(names, of: table, error)
    }
  }
}
