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

  /// Returns archived entries, each with what is shown now.
  func conflicts(_ entries: [ArchivedConflict]) throws -> [Conflict] {
    let stored = try entries.map { try entry($0) }
    try session.readAhead(stored.compactMap { $0?.row })
    return try zip(entries, stored).map { archived, entry in
      var conflict = try conflict(archived)
      guard let entry else { return conflict }
      conflict.now = try sides.present(entry)
      if let now = conflict.now, try sides.isSuperseded(entry, by: now) {
        conflict.status = .superseded
      }
      return conflict
    }
  }

  private func conflict(_ archived: ArchivedConflict) throws -> Conflict {
    let table = session.schema.table(named: archived.table)
    func cells(_ cells: [ArchivedConflict.Cell]) -> [Conflict.Cell] {
      cells.map {
        Conflict.Cell(column: $0.column ?? table?.localKey ?? "rowid", value: $0.value.value)
      }
    }
    func side(_ side: ArchivedConflict.Side) -> Conflict.Side {
      let stamp = side.time.flatMap { time in
        side.client.flatMap { ClientIdentifier($0) }.map {
          Stamp(time: HybridTime(rawValue: time), client: $0)
        }
      }
      return Conflict.Side(stamp: stamp, cells: side.cells.map(cells))
    }
    guard let kind = Conflict.Kind(rawValue: archived.kind),
      let outcome = Conflict.Outcome(rawValue: archived.outcome),
      let status = Conflict.Status(rawValue: archived.status)
    else {
      throw DatabaseError(
        resultCode: .SQLITE_CORRUPT, message: "the archive has an entry of an unknown kind")
    }
    var conflict = Conflict(
      number: archived.number, milliseconds: archived.at, kind: kind, table: archived.table,
      identity: RowIdentity(bytes: Array(archived.identity)), key: cells(archived.key),
      column: archived.column, base: archived.base?.value, local: side(archived.local),
      remote: side(archived.remote), rule: Conflict.Rule(rawValue: archived.rule),
      outcome: outcome, status: status, message: archived.message)
    conflict.isArchived = true
    return conflict
  }

  /// Returns an archived entry with the store's present numbers; `nil` if its table or one of its
  /// columns does not exist any more under the same name.
  ///
  /// - Parameter registers: Whether to register clients that the store does not know any more.
  func entry(
    _ archived: ArchivedConflict, registers: Bool = false
  ) throws -> ConflictJournal.Entry? {
    guard let table = session.schema.table(named: archived.table),
      let kind = Conflict.Kind(rawValue: archived.kind),
      let outcome = Conflict.Outcome(rawValue: archived.outcome),
      let status = Conflict.Status(rawValue: archived.status)
    else { return nil }
    // The rows of the table may have been identified otherwise when the entry was made.
    let known = RowIdentity(bytes: Array(archived.identity))
    guard let identity = try session.access(table.id).canonical(known) else { return nil }
    struct Missing: Error {}
    func position(_ name: SQLName) throws -> Int {
      guard let found = table.columns.firstIndex(where: { $0.name.folded == name.folded }) else {
        throw Missing()
      }
      return found
    }
    func cells(_ cells: [ArchivedConflict.Cell]) throws -> [ConflictJournal.Entry.Cell] {
      try cells.map {
        (try $0.column.map(position) ?? ConflictTable.localKeyPosition, $0.value.value)
      }
    }
    func stamp(_ side: ArchivedConflict.Side) throws -> LocalStamp? {
      guard let time = side.time, let client = side.client.flatMap({ ClientIdentifier($0) }) else {
        return nil
      }
      let number =
        registers ? try session.clients.number(of: client) : session.clients.knownNumber(of: client)
      return LocalStamp(time: time, client: number ?? 0)
    }
    do {
      return ConflictJournal.Entry(
        number: archived.number, at: archived.at, status: status, kind: kind,
        row: RowKey(table: table.id, identity: identity),
        column: try archived.column.map(position), rule: Conflict.Rule(rawValue: archived.rule),
        outcome: outcome, localStamp: try stamp(archived.local),
        remoteStamp: try stamp(archived.remote), message: archived.message,
        key: try cells(archived.key), base: archived.base?.value,
        local: try archived.local.cells.map(cells), remote: try archived.remote.cells.map(cells))
    } catch is Missing {
      return nil
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
    let columns = session.schema.tables.first { $0.id == entry.row.table }?.columns ?? []
    // Of a counter only the sum counts.
    func number(_ value: Value, in column: Int) -> Value {
      guard columns.indices.contains(column), columns[column].domain == .counter else {
        return value
      }
      return columns[column].number(value)
    }
    func cells(_ cells: [ConflictJournal.Entry.Cell]?) -> [Conflict.Cell]? {
      cells?.map {
        Conflict.Cell(column: name($0.column), value: number($0.value, in: $0.column))
      }
    }
    return Conflict(
      number: entry.number, milliseconds: entry.at, kind: entry.kind, table: table.name,
      identity: entry.row.identity, key: cells(entry.key) ?? [],
      column: entry.column.map(name),
      base: entry.base.map { base in entry.column.map { number(base, in: $0) } ?? base },
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
