import GRDB
import SyncModel

/// The translation of conflict journal entries into a readable form: names instead of numbers.
final class ConflictNames {
  private let session: StoreSession
  private var tables: [Int: (name: SQLName, columns: [SQLName])] = [:]
  private var former: FormerNames?
  private let sides: PresentSides

  init(session: StoreSession) {
    self.session = session
    sides = PresentSides(session: session)
  }

  /// Returns entries with names, each with what is shown now. If a later edit has replaced the
  /// outcome of a rule, the status is `superseded`.
  func conflicts(_ entries: [ConflictJournal.Entry]) throws -> [Conflict] {
    try session.readAhead(entries.map(\.row).filter { session.schema.contains($0.table) })
    return try entries.map { entry in
      var conflict = try conflict(entry)
      conflict.now = try sides.present(entry)
      if let now = conflict.now, try sides.isSuperseded(entry, by: now) {
        conflict.status = .superseded
      }
      return conflict
    }
  }

  /// Returns an entry with names, as the journal has it.
  func conflict(_ entry: ConflictJournal.Entry) throws -> Conflict {
    let former = try formerNames()
    let table = try table(entry.row.table)
    func name(_ position: Int) -> SQLName {
      if position == ConflictTable.localKeyPosition {
        return session.schema.tables.first { $0.id == entry.row.table }?.localKey ?? "rowid"
      }
      if position < table.columns.count { return table.columns[position] }
      let columns = former.tables[entry.row.table]?.columns ?? former.columns[entry.row.table]
      return columns?[position]?.name ?? "column \(position)"
    }
    func cells(_ cells: [ConflictJournal.Entry.Cell]?) -> [Conflict.Cell]? {
      cells?.map { Conflict.Cell(column: name($0.column), value: $0.value) }
    }
    return Conflict(
      number: entry.number, milliseconds: entry.at, kind: entry.kind, table: table.name,
      identity: entry.row.identity, key: cells(entry.key) ?? [],
      column: entry.column.map(name), base: entry.base,
      local: Conflict.Side(
        stamp: entry.localStamp.map(session.clients.stamp), cells: cells(entry.local)),
      remote: Conflict.Side(
        stamp: entry.remoteStamp.map(session.clients.stamp), cells: cells(entry.remote)),
      rule: entry.rule, outcome: entry.outcome, status: entry.status, message: entry.message)
  }

  private func formerNames() throws -> FormerNames {
    if let former { return former }
    let read = try FormerNames.read(session.database)
    former = read
    return read
  }

  /// Returns the recorded names of a table and its columns. Bookkeeping keeps them as long as rows
  /// of the table may be in the journal.
  private func table(_ id: Int) throws -> (name: SQLName, columns: [SQLName]) {
    if let known = tables[id] { return known }
    if let gone = try formerNames().tables[id] { return (gone.name, []) }
    let recorded = try TableRegistry.names(of: id, session.database)
    let names = (recorded.table ?? "table \(id)", recorded.columns)
    tables[id] = names
    return names
  }
}
