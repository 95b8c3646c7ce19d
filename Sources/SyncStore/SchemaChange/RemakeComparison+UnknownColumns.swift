import GRDB
import SyncModel

/// Columns of unknown history: the other store does not have them, or they refer to other rows
/// there.
extension RemakeComparison {
  func logUnknown() throws {
    guard !unknown.isEmpty || !redirected.isEmpty else { return }
    let absent = try absentValues.values(of: table)
    try compareDefaults(absent)
    for position in unknown + redirected {
      let name = quoted(table.columns[position].name)
      let keys = table.keyColumns.map(quoted).joined(separator: ", ")
      let reading = try SQLStatement(
        "SELECT \(keys) FROM \(table.quotedName) "
          + "WHERE \(name) COLLATE BINARY IS NOT ?1 OR typeof(\(name)) <> typeof(?1)",
        on: session.database)
      reading.bind(redirected.contains(position) ? .null : absent[position], at: 1)
      while try reading.step() {
        let key = table.keyColumns.indices.map { reading.value(at: $0) }
        if key.contains(.null) || log.entry(key)?.isInserted == true { continue }
        try log.addUpdate(key: key, [(position, .null)], isOfUnknownTime: true)
      }
    }
  }

  /// Finds cells that have their default again, in columns that the other store does not have. That
  /// store has stored their former values.
  private func compareDefaults(_ absent: [Value]) throws {
    for foreign in try former.foreign.all()
    where foreign.table(in: former.schema)?.id == formerAccess.table.id {
      let places = unknown.compactMap { here in
        foreign.columns.firstIndex(of: table.columns[here].wireName).map { (here: here, there: $0) }
      }
      guard !places.isEmpty else { continue }
      var last: RowIdentity?
      while true {
        try checkCancellation()
        let rows = try former.foreign.rows(of: foreign, after: last, limit: Self.rowsPerBatch)
        guard let end = rows.last else { break }
        for (row, known) in zip(rows, try states(rows.map(\.identity))) {
          try compareDefaults(absent, known, row.row, places)
        }
        last = end.identity
      }
    }
  }

  private func compareDefaults(
    _ absent: [Value], _ row: Known, _ foreign: ForeignRow, _ places: [(here: Int, there: Int)]
  ) throws {
    guard let key = try access.key(of: row.identity), let local = try access.row(key),
      try row.here.map({ try session.wasShown(self.key(row), $0) }) ?? true
    else { return }
    let logged = log.entry(key)
    guard logged?.isInserted != true else { return }
    var changed: [(column: Int, before: Value)] = []
    for (here, there) in places where logged?.columns.contains(here) != true {
      let column = table.columns[here]
      guard column.domain != .counter, local.values[here] == absent[here],
        let cell = foreign.cells.first(where: { $0.column == there }),
        stamp((row.here ?? .unstamped).stamp(of: here)) == formerStamp(cell.stamp)
      else { continue }
      let value = try session.exported(local.values[here], column)
      guard value != cell.value, value != cell.value.converted(to: column.affinity) else {
        continue
      }
      changed.append((here, try session.imported(cell.value, column) ?? .null))
    }
    if !changed.isEmpty { try log.addUpdate(key: key, changed) }
  }
}
