import GRDB
import SyncModel

/// The translation of merged rows' references.
extension DatabaseMerge {
  func key(of row: FormerDatabase.Record, _ table: TableSchema) -> [Value] {
    if let key = row.localKey { return [key] }
    return table.identityPositions.map { row.values[$0] }
  }

  /// Merges the rows that a row refers to, however long the chain is, and then the row.
  func mergeWithParents(_ row: FormerDatabase.Record, _ table: TableSchema) throws {
    struct Name: Hashable {
      var table: Int
      var key: [Value]
    }
    var path = [(table: table, row: row)]
    var onPath: Set<Name> = [Name(table: table.id, key: key(of: row, table))]
    while let (table, row) = path.last {
      let name = Name(table: table.id, key: key(of: row, table))
      if try keys.place(of: name.key, in: table) == nil {
        var parent: (table: TableSchema, row: FormerDatabase.Record)?
        for reference in table.foreignKeys where circular.contains(reference.parent) {
          guard let found = try self.parent(of: row, by: reference, table) else { continue }
          let name = Name(table: found.table.id, key: key(of: found.row, found.table))
          guard try keys.place(of: name.key, in: found.table) == nil, !onPath.contains(name) else {
            continue
          }
          parent = found
          onPath.insert(name)
          break
        }
        if let parent {
          path.append(parent)
          continue
        }
        try merge(row, table)
      }
      onPath.remove(name)
      path.removeLast()
    }
  }

  func parent(
    of row: FormerDatabase.Record, by reference: ForeignKey, _ table: TableSchema
  ) throws -> (table: TableSchema, row: FormerDatabase.Record)? {
    let parent = session.schema[reference.parent]
    guard let key = parentKey(row.values, reference, parent),
      let found = try readers[parent.id]?.record(key)
    else { return nil }
    return (parent, found)
  }

  func finishCircles() throws {
    for (table, key, reference, values) in unfinished {
      let access = try session.access(table)
      guard case .moved(let new) = try translation(values, reference) else { continue }
      let statement = try access.update(reference.columns)
      for (index, value) in (new + key).enumerated() { statement.bind(value, at: index + 1) }
      // The log has the row as inserted; sealing reads the values that it has then.
      try session.write(statement)
      access.changes.note(.updated, key)
    }
  }

  /// Returns the key by which a reference finds a row, or `nil` if it refers to nothing, or to
  /// other columns than the key.
  private func parentKey(
    _ values: [Value], _ reference: ForeignKey, _ parent: TableSchema
  ) -> [Value]? {
    parentKey(reference.columns.map { values[$0] }, reference.parentColumns, parent)
  }

  private func parentKey(
    _ referring: [Value], _ parentColumns: [SQLName], _ parent: TableSchema
  ) -> [Value]? {
    guard !referring.contains(.null) else { return nil }
    let names = parentColumns.map { $0.folded }
    let wanted = MergedKeys.keyColumns(parent).map { $0.folded }
    guard names.count == wanted.count else { return nil }
    var key: [Value] = []
    for (index, name) in wanted.enumerated() {
      guard let position = names.firstIndex(of: name) else { return nil }
      let affinity =
        parent.localKey != nil ? .integer : parent.columns[parent.identityPositions[index]].affinity
      key.append(referring[position].applying(affinity))
    }
    return key
  }

  /// Returns where a reference leads, with a new key in the order of the reference's columns; `nil`
  /// if nothing is recorded for its key.
  func translation(
    _ values: [Value], _ reference: ForeignKey
  ) throws -> MergedKeys.Place? {
    try translation(
      reference.columns.map { values[$0] }, reference.parentColumns,
      session.schema[reference.parent])
  }

  func translation(
    _ referring: [Value], _ parentColumns: [SQLName], _ parent: TableSchema
  ) throws -> MergedKeys.Place? {
    guard let key = parentKey(referring, parentColumns, parent) else { return .same }
    guard case .moved(let new) = try keys.place(of: key, in: parent) else {
      return try keys.place(of: key, in: parent)
    }
    let wanted = MergedKeys.keyColumns(parent).map { $0.folded }
    return .moved(
      to: parentColumns.map { name in
        wanted.firstIndex(of: name.folded).map { new[$0] } ?? .null
      })
  }

  /// Returns the values of a row that stays on the device, with references to the new keys of the
  /// rows to which they lead.
  func translate(
    _ values: [Value], _ references: [LocalTables.Reference]
  ) throws -> [Value] {
    var values = values
    for reference in references {
      let referring = reference.columns.map { values[$0] }
      if case .moved(let new) = try translation(
        referring, reference.parentColumns, reference.parent)
      {
        for (column, value) in zip(reference.columns, new) { values[column] = value }
      }
    }
    return values
  }
}
