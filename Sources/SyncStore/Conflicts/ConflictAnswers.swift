import Foundation
import GRDB
import SyncModel

/// The answers to open questions, and the restoring of sides that lost: both are ordinary edits,
/// recorded in the conflict journal.
struct ConflictAnswers {
  let session: StoreSession
  let path: String

  /// Returns an entry of the journal, also one that is in the archive. Throws `noSuchConflict`, and
  /// `editRefused` if an archived one is about a table or a column that does not exist any more.
  func entry(_ number: Int64) throws -> ConflictJournal.Entry {
    if let entry = try session.conflicts.journal.entry(number) { return entry }
    if let archived = try session.conflicts.journal.archivedEntry(number) {
      guard
        let entry = try ConflictNames(session: session).entry(archived.entry, registers: true)
      else {
        throw refused(
          number,
          LocalEdits.Refusal(
            message: "Its table or one of its columns does not exist any more, or has a new name."))
      }
      return entry
    }
    throw StoreError(
      .noSuchConflict, path: path, message: "There is no conflict \(number) in the journal.",
      remedy: "See which there are with \(.listConflicts).")
  }

  /// Answers an open question, or closes it if it is about a cell of a row that does not exist any more. Throws
  /// `noSuchConflict`, `conflictNotOpen` and `editRefused`.
  ///
  /// Returns the columns of a row that has come back whose values are not known.
  @discardableResult
  func answer(_ number: Int64, by answer: Conflict.Answer) throws -> [SQLName] {
    let entry = try entry(number)
    guard entry.status == .open else {
      throw StoreError(
        .conflictNotOpen, path: path,
        message: "Conflict \(number) is already decided: it is \(entry.status.rawValue).",
        remedy: entry.status == .restored
          ? "Edit the row itself to change its value."
          : "Put back what lost with \(.restoreConflict(number)).")
    }
    let gone = GoneQuestions(session: session)
    if try gone.concern(entry) {
      if let other = try session.conflicts.journal.openEntry(entry.row, column: nil) {
        throw refused(
          number,
          LocalEdits.Refusal(
            message:
              "Answer conflict \(other.number) first, which decides whether the row comes back."))
      }
      try register(of: entry).0.forEach(gone.close)
      return []
    }
    switch answer {
    case .local: return try put(.local, of: entry, as: .answered)
    case .remote: return try put(.remote, of: entry, as: .answered)
    case .value(let value):
      try refusing(number) {
        guard let column = entry.column else {
          throw LocalEdits.Refusal(
            message: "The conflict is about a whole row; a single value cannot decide it.")
        }
        guard let table = session.schema.tables.first(where: { $0.id == entry.row.table }),
          column < table.columns.count
        else { throw LocalEdits.Refusal(message: "Its column does not exist any more.") }
        let logical = try session.meant(value, in: table.columns[column])
        try LocalEdits(session: session).set([(column, logical)], of: entry.row)
      }
      var entry = entry
      entry.outcome = .other
      entry.status = .answered
      try session.conflicts.journal.write(entry)
      return []
    }
  }

  /// Restores a side of a decided conflict; `nil` stands for the one that is not shown now. Throws as
  /// ``answer(_:by:)`` does. Returns the columns of a row that has come back whose values are not known.
  @discardableResult
  func restore(_ number: Int64, side: Conflict.Outcome?) throws -> [SQLName] {
    let entry = try entry(number)
    switch entry.status {
    case .settled, .answered, .superseded: break
    case .open:
      throw StoreError(
        .conflictNotOpen, path: path, message: "Conflict \(number) is an open question.",
        remedy: "Answer it with \(.answerConflict(number)).")
    case .restored:
      throw StoreError(
        .conflictNotOpen, path: path, message: "Conflict \(number) has been restored already.",
        remedy: "Edit the row itself if it should be different.")
    }
    return try put(side ?? hiddenSide(of: entry), of: entry, as: .restored)
  }

  /// Returns the side of an entry that is not shown now.
  private func hiddenSide(of entry: ConflictJournal.Entry) throws -> Conflict.Outcome {
    switch try PresentSides(session: session).present(entry)?.outcome ?? entry.outcome {
    case .local: return .remote
    case .remote: return .local
    case .other:
      throw refused(
        entry.number,
        LocalEdits.Refusal(message: "Neither side is shown now: name the side to restore."))
    case .both:
      throw refused(entry.number, LocalEdits.Refusal(message: "The row is shown again."))
    }
  }

  /// Edits the row or its cells to have what one side wrote, and records that in the journal. Returns the columns
  /// of a row that has come back whose values are not known.
  private func put(
    _ side: Conflict.Outcome, of entry: ConflictJournal.Entry, as status: Conflict.Status
  ) throws -> [SQLName] {
    let (entries, blocks) = try register(of: entry)
    let unknown: [SQLName] = try refusing(entry.number) {
      guard let table = session.schema.tables.first(where: { $0.id == entry.row.table }) else {
        throw LocalEdits.Refusal(message: "Its table does not exist any more.")
      }
      guard entries.allSatisfy({ ($0.column ?? 0) < table.columns.count }) else {
        throw LocalEdits.Refusal(message: "Its column does not exist any more.")
      }
      let cells = entries.map { side == .local ? $0.local : $0.remote }
      guard entry.column == nil else {
        try LocalEdits(session: session).set(cells.flatMap { $0 ?? [] }, of: entry.row)
        return []
      }
      let isShown = try ShownRows(session: session).contains(entry.row)
      if let cells = cells[0] {
        // The answer to an open question may be what is shown already.
        if status == .answered, isShown { return [] }
        return try insert(cells, as: entry.row, table)
      } else if isShown || status == .restored {
        throw LocalEdits.Refusal(
          message: "That side deleted the row: delete the row itself.")
      }
      return []
    }
    let journal = session.conflicts.journal
    for var entry in entries {
      if let block = blocks[entry.number] { try journal.takeBack(from: block) }
      entry.status = status
      entry.outcome = side
      try journal.write(entry)
    }
    return unknown
  }

  /// Inserts a row again. Returns the columns whose values this store does not know: they have their defaults.
  ///
  /// An entry about a row that was erased here has only what the other device has written. Values that arrived
  /// since are with the deleted row.
  private func insert(
    _ cells: [ConflictJournal.Entry.Cell], as row: RowKey, _ table: TableSchema
  ) throws -> [SQLName] {
    var cells = cells
    func unknown() -> [Int] {
      table.cellPositions.filter { position in !cells.contains { $0.column == position } }
    }
    let lacking = unknown().filter { table.columns[$0].domain != .counter }
    let kept = try session.keptRows.row(row)?.cells ?? []
    cells += kept.filter { lacking.contains($0.column) }
    try LocalEdits(session: session).insert(cells, as: row)
    return unknown().map { table.columns[$0].name }
  }

  /// Returns an entry, and the entries of the same two edits to columns that belong to its column;
  /// for those that are in the file beside the store, the numbers of their blocks.
  private func register(
    of entry: ConflictJournal.Entry
  ) throws -> ([ConflictJournal.Entry], blocks: [Int64: UInt64]) {
    let journal = session.conflicts.journal
    let archived =
      try journal.entry(entry.number) == nil ? journal.archivedEntry(entry.number) : nil
    var blocks: [Int64: UInt64] = [:]
    if let archived { blocks[entry.number] = archived.block }
    guard let column = entry.column,
      let table = session.schema.tables.first(where: { $0.id == entry.row.table }),
      let register = table.registers[column]
    else { return ([entry], blocks) }
    let kept = try journal.entries(
      "WHERE tbl = ? AND identity = ? AND number <> ?",
      [entry.row.table, Data(entry.row.identity.bytes), entry.number])
    let names = ConflictNames(session: session)
    // The last block with an entry has its last state.
    var others: [Int64: (entry: ConflictJournal.Entry, block: UInt64)] = [:]
    for neighbor in archived?.neighbors ?? []
    where neighbor.entry.number != entry.number
      && neighbor.entry.identity == archived?.entry.identity
    {
      guard let other = try names.entry(neighbor.entry, registers: true) else { continue }
      others[other.number] = (other, neighbor.block)
    }
    for entry in kept { others[entry.number] = nil }
    let found = (kept + others.values.map(\.entry)).filter { other in
      other.row == entry.row && other.kind == .cell && other.status == entry.status
        && other.localStamp == entry.localStamp && other.remoteStamp == entry.remoteStamp
        && (other.column.map(register.contains) ?? false)
    }.sorted { $0.number < $1.number }
    for entry in found { blocks[entry.number] = others[entry.number]?.block }
    return ([entry] + found, blocks)
  }

  private func refusing<Output>(
    _ number: Int64, _ body: () throws -> Output
  ) throws -> Output {
    do {
      return try body()
    } catch let refusal as LocalEdits.Refusal {
      throw refused(number, refusal)
    }
  }

  private func refused(_ number: Int64, _ refusal: LocalEdits.Refusal) -> StoreError {
    StoreError(
      .editRefused, path: path,
      message: "Conflict \(number) cannot be decided that way. \(refusal.message)",
      remedy: "Change what is in the way, or choose another value.", detail: refusal.detail)
  }
}
