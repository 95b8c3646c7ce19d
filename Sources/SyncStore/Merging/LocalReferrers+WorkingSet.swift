import SyncModel

extension LocalReferrers {
  /// Finds what refers to rows that will be deleted or get other values. Must be called before the
  /// rows are written.
  func find(_ set: WorkingSet) throws {
    let references = try session.localReferences()
    guard !references.isEmpty else { return }
    for (id, rows) in Dictionary(grouping: set.rows, by: \.key.table).sorted(by: { $0.key < $1.key }
    ) {
      let table = session.schema[id]
      for reference in references[table.name.folded] ?? [] {
        var targets: [(row: RowKey, target: LocalReferrer.Target)] = []
        var keys: [[Value]] = []
        for row in rows {
          guard let shown = row.shown, let target = try target(of: row, reference, set) else {
            continue
          }
          targets.append((row.key, target))
          keys.append(shown.key)
        }
        for row in try referrers(by: reference, of: keys, table.keyColumns) {
          let (referred, target) = targets[row.index]
          add(
            LocalReferrer(
              row: referred, key: row.key, reference: reference, values: row.values,
              referred: row.referred, target: target))
        }
      }
    }
  }

  /// Returns what becomes of a row, as far as it matters to a foreign key; `nil` if nothing does.
  private func target(
    of row: WorkingRow, _ reference: LocalReference, _ set: WorkingSet
  ) throws -> LocalReferrer.Target? {
    if row.isVisible {
      guard reference.onUpdate != .refuse, try changes(row, reference, set) else { return nil }
      return .updated(row.key) { row.localKey }
    }
    // A row that comes back may have another number.
    let isIgnored = reference.onDelete == .refuse && !session.mayBringRowsBack
    let deleted: LocalReferrer.Target? = isIgnored ? nil : .deleted
    // Another row was, or is, shown under its identity.
    guard !row.exists, row.borrower == nil, !row.wasBorrowed else { return nil }
    guard row.movedTo != nil else { return deleted }
    let isFollowed = reference.onUpdate != .refuse
    var last = row
    var seen: Set<RowKey> = [row.key]
    while let identity = last.movedTo {
      let key = RowKey(table: row.key.table, identity: identity)
      guard seen.insert(key).inserted else { return nil }
      guard let next = set[key] else { return isFollowed ? .updated(key) { nil } : nil }
      if next.exists { return isFollowed ? .updated(key) { next.localKey } : nil }
      last = next
    }
    return deleted
  }

  /// Whether a row that stays in its table gets other values in columns to which a foreign key
  /// leads.
  private func changes(
    _ row: WorkingRow, _ reference: LocalReference, _ set: WorkingSet
  ) throws -> Bool {
    guard let shown = row.shown else { return false }
    let table = session.schema[row.key.table]
    return try reference.parentColumns.contains { name in
      guard let position = table.columns.firstIndex(where: { $0.name.isSame(as: name) }),
        let value = row.shownValue(position)
      else { return false }
      let column = table.columns[position]
      return try !column.shows(value, set.local(value, column), as: shown.values[position])
    }
  }
}
