import SyncModel

/// The open questions about cells of rows that do not exist any more: no answer can change such a cell.
struct GoneQuestions {
  let session: StoreSession

  /// Closes the open questions about cells of rows whose deletion is sealed or has arrived. Their values stay in
  /// the journal.
  ///
  /// If it is an open question whether the row is to come back, its cells wait for that answer.
  ///
  /// - Parameter row: The only row to look at; `nil` for all.
  func close(of row: RowKey? = nil) throws {
    let journal = session.conflicts.journal
    for question in try journal.openCells(of: row) {
      guard session.schema.contains(question.row.table), try isDeleted(question.row),
        try journal.openEntry(question.row, column: nil) == nil,
        let entry = try journal.storedEntries("WHERE number = ?", [question.number]).first,
        try concern(entry)
      else { continue }
      try close(entry)
    }
  }

  /// Returns whether an entry is about a cell of a row that does not exist, whether or not its deletion is sealed.
  /// A row exists if it is hidden for another reason than its deletion.
  func concern(_ entry: ConflictJournal.Entry) throws -> Bool {
    guard entry.column != nil, session.schema.contains(entry.row.table),
      try !ShownRows(session: session).contains(entry.row)
    else { return false }
    return switch try session.keptRows.row(entry.row)?.reason {
    case nil, .tombstone, .parked(.deleted): true
    default: false
    }
  }

  /// Records that the deletion of the row has overtaken a question.
  func close(_ entry: ConflictJournal.Entry) throws {
    var entry = entry
    entry.status = .superseded
    let isMoved = try session.keptRows.row(entry.row)?.movedTo != nil
    entry.message = isMoved ? "The row has another key now." : "The row does not exist any more."
    try session.conflicts.journal.write(entry)
  }

  private func isDeleted(_ row: RowKey) throws -> Bool {
    let access = try session.access(row.table)
    return try access.stamps.state(of: access.fingerprint(row.identity))?.existence == .deleted
  }
}
