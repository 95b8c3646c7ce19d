import GRDB
import SyncModel

/// Values of columns that a migration has added by making their table again, or whose values now
/// refer to rows, where other devices have given these columns values before.
///
/// No trigger has seen whether such a value is what the migration has filled in, or a later edit, and
/// the other devices' values arrive as soon as the columns are there. What a migration fills in is of
/// 1970. So if the other device's value is of 1970, and both migrations have filled in the same as
/// far as it shows, another value is an edit: it is made again. If at least half of the rows neither
/// have the other device's value nor the most frequent one here, each device fills in values of its
/// own, such as the present time.
///
/// A value that gives way all the same is entered in the journal, unless it is one that a migration
/// has filled in.
struct UnseenCells {
  private struct Found {
    var row: RowKey
    var key: [ConflictJournal.Entry.Cell]
    var column: Int
    var value: Value
    var remote: (value: Value, stamp: LocalStamp)
    /// Whether the other device's value may come from a migration.
    var isFilled: Bool
    var isDefault: Bool
  }

  private static let rowsPerBatch = 10_000
  /// What is of the first day of 1970 is of unknown time.
  private static let unknownTimes = HybridTime(milliseconds: 86_400_000)

  private let session: StoreSession
  private let arrival: SchemaArrival
  private let redirected: [Int: Set<Int>]
  private var edits: [Found] = []
  private var lost: [Found] = []
  /// Edits that take the place of what may be edits of another device.
  private var replacing: [Found] = []

  /// Finds the values. Call it before those of other devices are brought in.
  ///
  /// - Parameter concerned: The tables that were made again, with these columns.
  init(
    _ session: StoreSession, _ concerned: SchemaRenewal.Concerned, _ arrival: SchemaArrival
  ) throws {
    self.session = session
    self.arrival = arrival
    redirected = concerned.redirected
    guard !concerned.remade.isEmpty else { return }
    for foreign in try session.foreign.all() {
      guard let table = foreign.table(in: session.schema), concerned.remade.contains(table.id)
      else {
        continue
      }
      var columns: [Int: UnseenColumn] = [:]
      try forEach(of: foreign, table) { found in
        columns[found.column, default: UnseenColumn()].add(
          found.value, found.remote.value, isFilled: found.isFilled, isDefault: found.isDefault)
      }
      guard columns.values.contains(where: { $0.differingCount > 0 }) else { continue }
      try forEach(of: foreign, table) { found in
        guard !found.isDefault, found.value != found.remote.value else { return }
        guard let column = columns[found.column] else { return }
        switch column.fate(
          of: found.value, instead: found.remote.value, isFilled: found.isFilled)
        {
        case .edit:
          edits.append(found)
          if found.isFilled, column.mayBeEdit(remote: found.remote.value) {
            replacing.append(found)
          }
        case .lost: lost.append(found)
        case .filledIn: return
        }
      }
    }
  }

  private func forEach(
    of foreign: ForeignRows.Table, _ table: TableSchema, _ body: (Found) -> Void
  ) throws {
    let places = foreign.columns.map { name in
      table.cellPositions.first {
        table.columns[$0].wireName == name && table.columns[$0].domain != .counter
      }
    }
    guard places.contains(where: { $0 != nil }) else { return }
    let access = try session.access(table.id)
    let absent = try AbsentValues(session.database).values(of: table)
    var last: RowIdentity?
    while true {
      let rows = try session.foreign.rows(of: foreign, after: last, limit: Self.rowsPerBatch)
      guard let final = rows.last else { return }
      last = final.identity
      for (identity, row) in rows {
        guard let known = try access.canonical(identity), let key = try access.key(of: known),
          let local = try access.row(key)
        else { continue }
        let state = try access.stamps.state(of: access.fingerprint(known))
        for cell in row.cells {
          guard let place = arrival.place(of: cell, in: table, places) else { continue }
          let stamp = state?.stamp(of: place) ?? .zero
          let isRedirected = redirected[table.id]?.contains(place) ?? false
          guard
            stamp == .zero
              || isRedirected && session.clients.precedes(stamp, cell.stamp)
          else { continue }
          let column = table.columns[place]
          body(
            Found(
              row: RowKey(table: table.id, identity: known), key: entryKey(key, table),
              column: place, value: try session.exported(local.values[place], column),
              remote: (try arrival.value(cell.value, column), cell.stamp),
              isFilled: cell.stamp.time < Self.unknownTimes.rawValue
                || isRedirected && cell.stamp.time == stamp.time + 1,
              isDefault: local.values[place] == absent[place]))
        }
      }
    }
  }

  private func entryKey(_ key: [Value], _ table: TableSchema) -> [ConflictJournal.Entry.Cell] {
    table.identity == .surrogate
      ? [(ConflictTable.localKeyPosition, key[0])]
      : Array(zip(table.identityPositions, key))
  }

  /// Makes the edits again, and enters what has given way in the journal. Call it when the values of
  /// other devices are in the tables.
  func finish() throws {
    var rows: [RowKey: [Found]] = [:]
    var order: [RowKey] = []
    var refused: Set<CellKey> = []
    for found in edits {
      if rows[found.row] == nil { order.append(found.row) }
      rows[found.row, default: []].append(found)
    }
    for row in order {
      let cells = rows[row, default: []].sorted { $0.column < $1.column }
      // Conditions may concern several of them.
      if try set(cells) { continue }
      for cell in cells where try cells.count == 1 || !set([cell]) {
        refused.insert(CellKey(row: row, column: cell.column))
        try note(cell)
      }
    }
    for found in lost { try note(found) }
    for found in replacing where !refused.contains(CellKey(row: found.row, column: found.column)) {
      try note(found, outcome: .local)
    }
  }

  /// Returns whether the table allows the values. If not, nothing is changed.
  private func set(_ cells: [Found]) throws -> Bool {
    guard let row = cells.first?.row else { return true }
    do {
      try session.database.atomically {
        try LocalEdits(session: session).set(cells.map { ($0.column, $0.value) }, of: row)
      }
      return true
    } catch is LocalEdits.Refusal {
      return false
    } catch let error as DatabaseError where error.concernsValues {
      // An expression of a condition or an index fails.
      return false
    }
  }

  private func note(_ found: Found, outcome: Conflict.Outcome = .remote) throws {
    session.conflicts.count += 1
    try session.conflicts.addSettled(
      ConflictJournal.Entry(
        kind: .cell, row: found.row, column: found.column, rule: .latestWins, outcome: outcome,
        localStamp: nil, remoteStamp: found.remote.stamp, key: found.key,
        local: [(found.column, found.value)], remote: [(found.column, found.remote.value)]))
  }
}
