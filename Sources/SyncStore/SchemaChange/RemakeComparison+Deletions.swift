import GRDB
import SyncModel

/// Rows that were deleted while there were no triggers, and deletions that triggers have seen.
extension RemakeComparison {
  /// Compares the rows whose deletion triggers have seen, as they were when they were deleted. Logs
  /// an unseen edit before the deletion as an edit, and an unseen insertion as an insertion.
  func compareDeleted() throws {
    var batch: [RemakeLog.Deletion] = []
    func flush() throws {
      try checkCancellation()
      let rows = try states(try batch.map { try access.identity(ofKey: $0.key) })
      for (deletion, row) in zip(batch, rows) { try compare(deletion, row) }
      batch = []
    }
    try log.forEachFirstDeletion { deletion in
      batch.append(deletion)
      if batch.count == Self.rowsPerBatch { try flush() }
    }
    try flush()
  }

  func compare(_ deletion: RemakeLog.Deletion, _ row: Known) throws {
    // The row may be there again, or under another key.
    if let key = try access.key(of: row.identity), try access.row(key) != nil { return }
    guard let before = try rowThere(row.identity) else {
      guard row.here == nil, row.there == nil else { return }
      let isNumbered = table.identity == .surrogate
      let known = isNumbered ? try Value.key(deletion.key[0]).flatMap(access.explicitIdentity) : nil
      if isNumbered, known == nil { return }
      let number =
        isNumbered ? Value.key(deletion.key[0]) : try access.localKey(of: row.identity)
      if let number, try session.isReferredToBySealedCells(number, of: table.id) {
        // Other devices know of the row by these references, so its deletion is sealed, with all
        // cells.
        return try logAllCells(deletion.key)
      }
      return try log.addInsertion(key: deletion.key, known)
    }
    guard try wasShown(row) else { return }
    let (changed, lacking) = try differences(
      deletion.values, from: before.values, of: row,
      but: log.entry(deletion.key)?.columns ?? ColumnSet())
    if !changed.isEmpty { try log.addUpdate(key: deletion.key, changed) }
    if !lacking.isEmpty { try logUnknown(lacking, key: deletion.key) }
  }

  /// Lets the deletion of a row name all its cells, if other devices keep them.
  private func logAllCells(_ key: [Value]) throws {
    guard table.keepsDeleted else { return }
    try log.addUpdate(key: key, table.cellPositions.map { ($0, .null) })
  }

  func findDeleted() throws {
    let there = formerAccess.table
    let reading = try SQLStatement(
      "SELECT \(there.keyColumns.map(quoted).joined(separator: ", ")) FROM \(there.quotedName)",
      on: former.database)
    var batch: [[Value]] = []
    func flush() throws {
      try checkCancellation()
      let rows = try states(try batch.map { try identityHere(formerAccess.identity(ofKey: $0)) })
      for (formerKey, row) in zip(batch, rows) {
        // Both know nothing of rows that are older than the document.
        if row.here == nil, row.there == nil, !table.hasUnstampedRows { continue }
        guard let key = try keyIfGone(row), let before = try formerAccess.row(formerKey)
        else { continue }
        try logDeletion(of: row, key: key, before.values)
      }
      batch = []
    }
    while try reading.step() {
      batch.append(there.keyColumns.indices.map { reading.value(at: $0) })
      if batch.count == Self.rowsPerBatch { try flush() }
    }
    try flush()
  }

  /// Finds rows that are gone here and that the other store does not show. Either that store knows
  /// changes of other devices that this one does not, or this store sealed a deletion before the
  /// table was remade once more, and the deletion hides the rows there. The other store has stored
  /// their former values.
  func findDeletedOfHidden() throws {
    let found = try former.keptRows.identities(in: formerAccess.table.id)
    for row in try states(found.map(identityHere)) {
      try checkCancellation()
      guard let kept = try former.keptRows.row(keyThere(row)), !kept.reason.isShown,
        let key = try keyIfGone(row)
      else { continue }
      try logDeletion(of: row, key: key) { position in
        guard let value = kept.cells.first(where: { $0.column == position })?.value else {
          return .null
        }
        let column = formerAccess.table.columns[position]
        return column.domain == .counter ? column.number(value) : value
      }
    }
  }

  /// Returns the key of a row that was here and was deleted unseen; `nil` if the row is here, or
  /// never was.
  private func keyIfGone(_ row: Known) throws -> [Value]? {
    if row.here == nil, try wasHere(row) { try notePlainNumbers(of: row) }
    let key = try access.namingKey(of: row.identity)
    if let key, try access.row(key) != nil { return nil }
    guard try wasHere(row) else { return nil }
    if let key, try logNames(row.identity, by: key) {
      return log.entry(key)?.isDeleted == true ? nil : key
    }
    // Another row has got its number, and was sealed since, or had it before the edits in the log, or
    // its key contains such a number.
    guard table.identity == .surrogate else {
      return try logKeys.key(of: row.identity, in: table)
    }
    return try logKeys.number(of: self.key(row)).map { [.integer($0)] }
  }

  /// Returns whether an entry in the log with this key is about the row: it is about the row that the
  /// numbers in the key stood for before the edits in the log.
  private func logNames(_ identity: RowIdentity, by key: [Value]) throws -> Bool {
    guard table.hasKeysInIdentity else { return true }
    return try access.earlierIdentity(ofKey: key) == identity
  }

  /// Returns whether the row was shown here, regardless of changes of other devices that only the
  /// other store knows.
  func wasHere(_ row: Known) throws -> Bool {
    if let here = row.here { return try session.wasShown(key(row), here) }
    guard let there = row.there, there.existence == .deleted else { return isSame(row) }
    guard table.hasUnstampedRows else { return false }
    // A row that was inserted later has another identity, or a stamp for each cell.
    if let bits = Bits128(bytes: row.identity.bytes), bits.high == table.origin,
      try session.originalKeys().contains(Int64(bitPattern: bits.low), of: table)
    {
      return true
    }
    return formerAccess.table.cellPositions.contains { position in
      formerAccess.table.columns[position].domain != .counter && there.stamp(of: position) == .zero
    }
  }

  /// Finds rows that no change set has carried and that were deleted unseen. Those that were hidden
  /// were not in the table before, either.
  func findDeletedHeld() throws {
    for row in try states(held.unknown.sorted()) where row.here?.existence == .inserted {
      guard let key = try keyIfGone(row) else { continue }
      let absent = try absentValues.values(of: table)
      try log.addDeletion(key: key, table.recordedColumns.map { absent[$0] })
    }
  }

  /// - Parameter before: The values of the row in the other store.
  func logDeletion(of row: Known, key: [Value], _ before: [Value]) throws {
    let there = formerAccess.table
    try logDeletion(of: row, key: key) { try former.exported(before[$0], there.columns[$0]) }
  }

  /// - Parameter before: The logical values of the row, by column of the other store.
  func logDeletion(
    of row: Known, key: [Value], _ before: (Int) throws -> Value
  ) throws {
    var plain: [(column: Int, value: Value)] = []
    let olds = try table.recordedColumns.map { position in
      guard let cell = cells.first(where: { $0.here == position }) else {
        return try unknownValue(of: position, row)
      }
      let (value, column) = (try before(cell.there), table.columns[position])
      if try session.isAmbiguous(value, in: column) { plain.append((position, value)) }
      return try logKeys.value(value, of: column)
    }
    // A row that is there again has other values.
    if table.keepsDeleted, try access.row(key) == nil { try notePlainCells(plain, of: row) }
    try log.addDeletion(key: key, olds)
  }

  /// Notes the plain numbers in the cells of a deleted row that are keys of rows by now: otherwise the tombstone
  /// would store references to these. Other devices keep the numbers.
  private func notePlainCells(_ plain: [(column: Int, value: Value)], of row: Known) throws {
    guard !plain.isEmpty else { return }
    switch try session.keptRows.row(key(row))?.reason {
    case nil, .overlaid, .rescued: try session.notePlainNumbers(plain, in: key(row))
    case .parked, .tombstone, .elsewhere, .borrowed: break
    }
  }

  /// Notes the plain numbers in the key of a row without a state that are keys of rows by now:
  /// otherwise the log would name the row that refers to these.
  private func notePlainNumbers(of row: Known) throws {
    guard table.hasKeysInIdentity,
      let values = IdentityEncoding.values(of: row.identity, count: table.identityPositions.count)
    else { return }
    let plain = try zip(table.identityPositions, values).filter { position, value in
      try session.isAmbiguous(value, in: table.columns[position])
    }
    guard !plain.isEmpty else { return }
    try session.notePlainNumbers(plain.map { (column: $0, value: $1) }, in: key(row))
  }

  /// Finds rows that were inserted unseen, then edited, and deleted unseen when the table was
  /// remade once more. The edit was sealed before any comparison, and the other store knows nothing
  /// else of them.
  func findDeletedEdits() throws {
    let found = try former.keptRows.identities(
      in: formerAccess.table.id, for: .parked(.rowMissing))
    for row in try states(found.map(identityHere)) {
      guard row.here?.existence == .unsaid, try wasShown(row),
        let key = try access.namingKey(of: row.identity), try access.row(key) == nil,
        log.entry(key)?.isDeleted != true,
        let kept = try former.keptRows.row(keyThere(row))
      else { continue }
      let absent = try absentValues.values(of: table)
      let olds = try table.recordedColumns.map { position in
        let there = cells.first { $0.here == position }?.there
        guard let cell = kept.cells.first(where: { $0.column == there }) else {
          return absent[position]
        }
        return try logKeys.value(cell.value, of: table.columns[position])
      }
      try log.addDeletion(key: key, olds)
      // Its other values are unknown. The deletion names all its cells, with the values that are
      // stored of them.
      let columns = table.cellPositions.filter { table.columns[$0].domain != .counter }
      if table.keepsDeleted { try log.addUpdate(key: key, columns.map { ($0, .null) }) }
    }
  }

  /// Finds rows that were inserted unseen, and deleted unseen when the table was remade once more,
  /// after references to them were sealed. Nothing else is known of them.
  func findDeletedReferred() throws {
    guard table.identity == .surrogate else { return }
    let found = try session.goneKeys.strayEntries(in: table.id, isNeedless: false)
    for (gone, row) in zip(found, try states(found.map(\.identity)))
    where row.here == nil && row.there == nil {
      guard try session.isReferredToBySealedCells(gone.key, of: table.id) else { continue }
      let absent = try absentValues.values(of: table)
      let key: [Value] = [.integer(gone.key)]
      try log.addDeletion(key: key, table.recordedColumns.map { absent[$0] })
      try logAllCells(key)
    }
  }

  /// Returns the value of a row in a column that the other store does not have: the value that the
  /// other store stores until it has the column, or else the default.
  private func unknownValue(of position: Int, _ row: Known) throws -> Value {
    let column = table.columns[position]
    for foreign in try former.foreign.all()
    where foreign.table(in: former.schema)?.id == formerAccess.table.id {
      guard let number = foreign.columns.firstIndex(of: column.wireName),
        let kept = try former.foreign.row(identityThere(row.identity), of: foreign.id),
        let cell = kept.cells.first(where: { $0.column == number })
      else { continue }
      return try logKeys.value(cell.value, of: column)
    }
    return try absentValues.values(of: table)[position]
  }
}
