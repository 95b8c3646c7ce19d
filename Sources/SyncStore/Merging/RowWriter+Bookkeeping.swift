import GRDB
import SyncModel

/// The bookkeeping of the rows: their states, and the entries of rows that are not shown.
extension RowWriter {
  /// Notes the plain values of the rows before any row is assigned a key, so that no row gets one
  /// of them.
  func notePlainValues() throws {
    for row in set.rows {
      let table = session.schema[row.key.table]
      for (position, column) in table.columns.enumerated() where column.domain != .plain {
        if let value = row.shownValue(position) { try session.plainKeys.note(value, in: column) }
      }
    }
  }

  /// The states of a table's rows that are to be stored.
  private struct States {
    private var states: [RowState?] = []
    private var fingerprints: [RowFingerprint] = []

    mutating func append(_ state: RowState?, of row: WorkingRow) {
      states.append(state)
      fingerprints.append(row.fingerprint)
    }

    func store(in blocks: StampBlocks) throws {
      let order = fingerprints.indices.sorted { fingerprints[$0] < fingerprints[$1] }
      try blocks.store(states, of: fingerprints, inOrder: order)
    }
  }

  /// Writes the states of the rows, their entries (``KeptRow``), and the references and claims by
  /// which the entries are found.
  func writeBookkeeping() throws {
    var changes: [Int: States] = [:]
    try moveLocalValues()
    for row in set.rows {
      let table = session.schema[row.key.table]
      if row.isUnseen, row.isDead == row.wasDead {
        try writeUnseen(row, table)
        changes[table.id, default: States()].append(row.state, of: row)
        continue
      }
      if row.isLeftAlone {
        try writeLeftAlone(row, table)
        continue
      }
      if row.wasKept { try session.keptRows.remove(row.key) }
      let kept = try kept(row, table)
      row.state.isKept = kept != nil
      if let kept {
        try session.keptRows.store(
          kept, of: row.key, references: try references(of: row, table),
          claims: claimsToFind(row))
      }
      try set.conflicts.settled(row, kept)
      if table.identity == .surrogate {
        // A parked row remembers its key too: it may get it again.
        row.state.localKey = row.localKey ?? row.state.localKey
      }
      changes[table.id, default: States()].append(row.storedState, of: row)
    }
    for (table, changes) in changes { try changes.store(in: session.access(table).stamps) }
    try putBackLocalValues()
    try freeNeedlessKeys()
  }

  /// Returns the values that name a row in statements, as it was written.
  func writtenKey(of row: WorkingRow, _ table: TableSchema) throws -> [Value] {
    if table.identity == .surrogate { return [row.localKey.map { .integer($0) } ?? .null] }
    return try table.identityPositions.map {
      try set.local(row.shownValue($0) ?? .null, table.columns[$0])
    }
  }

  /// Leaves the bookkeeping of a row that went unseen as it was when the row was shown: its table
  /// no longer has its cells, and the comparison has to find that it was shown.
  private func writeUnseen(_ row: WorkingRow, _ table: TableSchema) throws {
    let kept = row.wasKept ? try session.keptRows.row(row.key) : nil
    if kept != nil {
      try session.keptRows.noteReferences(try references(of: row, table), of: row.key)
    }
    try set.conflicts.settled(row, kept)
  }

  /// Leaves the bookkeeping of a row as it is that stays in its table as it is. Only the references
  /// and claims by which its entry is found are noted again.
  private func writeLeftAlone(_ row: WorkingRow, _ table: TableSchema) throws {
    let kept = row.wasKept ? try session.keptRows.row(row.key) : nil
    if let kept {
      try session.keptRows.remove(row.key)
      try session.keptRows.store(
        kept, of: row.key, references: try references(of: row, table), claims: claimsToFind(row))
    }
    try set.conflicts.settled(row, kept)
  }

  /// Returns the claims by which a row with a bookkeeping entry is found. A shown row's table gives
  /// the claims of the values that it shows.
  func claimsToFind(_ row: WorkingRow) -> [ClaimKey] {
    row.isVisible ? row.formerClaims : row.claims + row.formerClaims
  }

  /// Returns the entry that bookkeeping stores for a row beyond what its table shows; `nil` for
  /// none.
  func kept(_ row: WorkingRow, _ table: TableSchema) throws -> KeptRow? {
    if row.borrower != nil {
      return KeptRow(
        reason: .borrowed, movedTo: row.isDead ? row.movedTo : nil,
        cells: cells(row, table.cellPositions))
    }
    if row.isVisible {
      var differing = Set(row.overlays.keys).union(table.counters.filter(row.isAddedTo))
      for column in table.keyedPositions + table.identityPositions
      where row.overlays[column] == nil {
        guard let value = row.values[column] else { continue }
        if try session.isAmbiguous(value, in: table.columns[column]) { differing.insert(column) }
      }
      differing.formUnion(try columnsLeftAlone(row))
      let cells = differing.sorted().compactMap { column in
        row.values[column].map { (column: column, value: $0) }
      }
      if row.isDead { return KeptRow(reason: .rescued, movedTo: row.movedTo, cells: cells) }
      return cells.isEmpty ? nil : KeptRow(reason: .overlaid, cells: cells)
    }
    switch row.state.existence {
    case _ where row.isLiving:
      // The identity under which it lived while it was deleted no longer matters, whether its
      // deletion or the edit that won came first.
      return KeptRow(
        reason: row.isElsewhere ? .elsewhere : .parked(reason(row)), movedTo: row.shownIdentity,
        cells: cells(row, table.cellPositions))
    case .inserted: return nil
    case .unsaid:
      let cells = cells(row, table.cellPositions)
      // Values that come only from the row's key do not count.
      let isSaid = cells.contains {
        !table.columns[$0.column].isIdentity || row.state.stamp(of: $0.column) != .zero
      }
      return isSaid ? KeptRow(reason: .parked(.rowMissing), cells: cells) : nil
    case .deleted:
      let newer = table.cellPositions.filter {
        session.clients.precedes(row.state.existenceStamp, row.state.stamp(of: $0))
      }
      let cells = cells(row, row.state.isErased ? newer : table.cellPositions)
      if row.state.isErased, cells.isEmpty, row.movedTo == nil { return nil }
      let hasNewer = cells.contains { newer.contains($0.column) }
      return KeptRow(
        reason: hasNewer ? .parked(.deleted) : .tombstone, movedTo: row.movedTo, cells: cells)
    }
  }

  private func cells(
    _ row: WorkingRow, _ positions: some Sequence<Int>
  ) -> [(column: Int, value: Value)] {
    positions.compactMap { position in row.values[position].map { (position, $0) } }
  }

  /// Returns the rows to which the row's references lead, by their own values and as they are
  /// shown, and the rows on the way where one has moved.
  func references(of row: WorkingRow, _ table: TableSchema) throws
    -> Set<ReferenceKey>
  {
    guard row.isLiving || row.exists else { return [] }
    var result: Set<ReferenceKey> = []
    for key in table.foreignKeys {
      let parent = session.schema[key.parent]
      for values in [
        key.columns.map { row.values[$0] ?? .null },
        key.columns.map { row.shownValue($0) ?? .null },
      ] where !values.contains(.null) {
        result.insert(
          ReferenceKey(
            parent: key.parent, columns: key.columnsName, key: parent.referenceKey(values, key)))
      }
    }
    for link in row.links {
      for target in link.path {
        let parent = session.schema[target.table]
        let values = parent.referredValues(of: target.identity, by: link.key)
        result.insert(
          ReferenceKey(
            parent: target.table, columns: link.key.columnsName,
            key: parent.referenceKey(values, link.key)))
      }
    }
    return result
  }

  func reason(_ row: WorkingRow) -> ParkedRow.Reason {
    if let failure = row.failure ?? row.standInFailure { return failure }
    if row.isKilled { return .parentDeleted }
    return row.stands ? .parentMissing : .uniqueValueTaken
  }
}

extension WorkingRow {
  /// The state to store; `nil` if the row is in its table as it was before syncing began, or if
  /// nothing is known of it.
  fileprivate var storedState: RowState? {
    if isVisible, !state.isKept, state.existence == .inserted, state.isUnstamped,
      state.localKey == nil
    {
      return nil
    }
    // The row was looked up, and nothing is known of it.
    if !isVisible, !state.isKept, state.existence == .unsaid, state.isUnstamped,
      state.localKey == nil
    {
      return nil
    }
    return state
  }
}
