import GRDB
import SyncModel

/// The values of columns that stay on the device.
///
/// Such a column may refer to any table, also to one that is merged later. So the values are written
/// once all rows are merged.
extension DatabaseMerge {
  /// Writes the values that merged rows had in columns that stay on the device.
  func takeLocalValues() throws {
    var count = 0
    var columns: [Int: LocalColumns] = [:]
    for table in tables where !table.excludedColumns.isEmpty {
      guard let reader = readers[table.id] else { continue }
      let local = try LocalColumns(table, session)
      columns[table.id] = local
      while let row = try reader.next() {
        count += 1
        if count % Self.interval == 0 { try checkCancellation() }
        let former = key(of: row, table)
        guard !row.localValues.isEmpty, !former.contains(.null) else { continue }
        let key: [Value]
        switch try keys.place(of: former, in: table) {
        case .nowhere: continue
        case .moved(let new): key = new
        case .same, nil: key = former
        }
        try write(row, to: key, MergedKeys.keyColumns(table).map(quoted), local)
      }
    }
    for (table, row, rowid) in namelessRows {
      guard let name = table.rowidName, let local = columns[table.id] else { continue }
      try write(row, to: [.integer(rowid)], [name], local)
    }
  }

  /// The columns of a table that stay on the device.
  private struct LocalColumns {
    let table: TableSchema
    let names: [SQLName]
    /// The references from them. The columns that stay on the device come after the others.
    let references: [RowReference]

    init(_ table: TableSchema, _ session: StoreSession) throws {
      self.table = table
      names = table.excludedColumns.sorted()
      let all = (table.columns.map(\.name) + names).map(\.folded)
      let declared = try LocalReference.all(
        ofTables: [], orColumnsOf: [table], session.database)
      let references = declared.compactMap { reference -> RowReference? in
        let columns = reference.columns.compactMap { all.firstIndex(of: $0.folded) }
        guard let parent = session.schema.table(named: reference.parent),
          columns.count == reference.columns.count
        else { return nil }
        return RowReference(columns, parent, reference.parentColumns)
      }
      self.references = RowReference.withImplied(references, session.schema)
    }
  }

  /// Writes the values of a row, with references to the rows to which they led.
  private func write(
    _ row: FormerDatabase.Record, to key: [Value], _ keyColumns: [String], _ local: LocalColumns
  ) throws {
    let (table, names) = (local.table, local.names)
    let access = try session.access(table.id)
    let match = keyColumns.map { "\($0) = ?" }.joined(separator: " AND ")
    let reading = try access.statement(
      "SELECT \(names.map(quoted).joined(separator: ", ")) FROM \(table.quotedName) WHERE \(match)")
    for (index, value) in key.enumerated() { reading.bind(value, at: index + 1) }
    guard try reading.step() else { return }
    let current = names.indices.map { reading.value(at: $0) }
    reading.reset()
    let former = zip(names, current).map { row.localValues[$0.folded] ?? $1 }
    let values = try translate(row.values + former, local.references)[row.values.count...]
    guard Array(values) != current else { return }
    let writing = try access.statement(
      "UPDATE OR ABORT \(table.quotedName) SET "
        + names.map { "\(quoted($0)) = ?" }.joined(separator: ", ") + " WHERE \(match)")
    for (index, value) in (values + key).enumerated() { writing.bind(value, at: index + 1) }
    do {
      try session.write(writing)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      session.warnOfRefusedValues(names, of: table, error)
    }
  }
}
