import GRDB
import SyncModel

/// Values of columns that a migration has added by making their table again, where other devices
/// have given these columns values before.
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
  fileprivate struct Found {
    var row: RowKey
    var key: [ConflictJournal.Entry.Cell]
    var column: Int
    var value: Value
    var remote: (value: Value, stamp: LocalStamp)
  }

  /// What is known of one column.
  fileprivate struct Column {
    /// The number of rows for which another device's value is of 1970.
    var filledCount = 0
    /// The number of those that have this value here, too.
    var sameCount = 0
    /// What other devices' migrations have filled in.
    var filled: Set<Value> = []
    /// How many rows have which value here.
    var counts: [Value: Int] = [:]
    /// The cells that differ, and have no default.
    var differing: [Found] = []
  }

  private static let rowsPerBatch = 10_000
  /// The most different values of a column that are told apart.
  fileprivate static let distinctCount = 10_000
  /// The most rows of which each value is entered in the journal, whatever it is.
  private static let fewRows = 20
  /// What is of the first day of 1970 is of unknown time.
  fileprivate static let unknownTimes = HybridTime(milliseconds: 86_400_000)

  private let session: StoreSession
  private var edits: [Found] = []
  private var lost: [Found] = []

  /// Finds the values. Call it before those of other devices are brought in.
  ///
  /// - Parameter tables: The tables that were made again.
  init(_ session: StoreSession, in tables: [Int]) throws {
    self.session = session
    guard !tables.isEmpty else { return }
    for foreign in try session.foreign.all() {
      guard let table = foreign.table(in: session.schema), tables.contains(table.id) else {
        continue
      }
      for column in try columns(of: foreign, table).values { decide(column) }
    }
  }

  private func columns(
    of foreign: ForeignRows.Table, _ table: TableSchema
  ) throws -> [Int: Column] {
    let places = foreign.columns.map { name in
      table.cellPositions.first {
        table.columns[$0].wireName == name && table.columns[$0].domain != .counter
      }
    }
    guard places.contains(where: { $0 != nil }) else { return [:] }
    let access = try session.access(table.id)
    let absent = try AbsentValues(session.database).values(of: table)
    var columns: [Int: Column] = [:]
    var last: RowIdentity?
    while true {
      let rows = try session.foreign.rows(of: foreign, after: last, limit: Self.rowsPerBatch)
      guard let final = rows.last else { return columns }
      last = final.identity
      for (identity, row) in rows {
        guard let known = try access.canonical(identity), let key = try access.key(of: known),
          let local = try access.row(key)
        else { continue }
        let state = try access.stamps.state(of: access.fingerprint(known))
        for cell in row.cells where cell.column < places.count {
          guard let place = places[cell.column], state?.stamp(of: place) ?? .zero == .zero else {
            continue
          }
          let value = try session.exported(local.values[place], table.columns[place])
          let found = Found(
            row: RowKey(table: table.id, identity: known), key: entryKey(key, table),
            column: place, value: value,
            remote: (cell.value.kept(in: table.columns[place]), cell.stamp))
          columns[place, default: Column()].add(
            found, isDefault: local.values[place] == absent[place])
        }
      }
    }
  }

  private func entryKey(_ key: [Value], _ table: TableSchema) -> [ConflictJournal.Entry.Cell] {
    table.identity == .surrogate
      ? [(ConflictTable.localKeyPosition, key[0])]
      : Array(zip(table.identityPositions, key))
  }

  private mutating func decide(_ column: Column) {
    let usual = column.usual
    let filled = column.differing.filter(\.isFilled)
    let isSame =
      2 * (column.sameCount + filled.count { $0.value == usual }) >= column.filledCount
    for found in column.differing where found.value != usual {
      if found.isFilled, isSame {
        edits.append(found)
      } else if isSame && !column.filled.contains(found.value)
        || column.differing.count <= Self.fewRows
      {
        lost.append(found)
      }
    }
  }

  /// Makes the edits again, and enters what has given way in the journal. Call it when the values of
  /// other devices are in the tables.
  func finish() throws {
    let edits = LocalEdits(session: session)
    for found in self.edits {
      do {
        try edits.set([(found.column, found.value)], of: found.row)
      } catch is LocalEdits.Refusal {
        try note(found)
      }
    }
    for found in lost { try note(found) }
  }

  private func note(_ found: Found) throws {
    session.conflicts.count += 1
    try session.conflicts.addSettled(
      ConflictJournal.Entry(
        kind: .cell, row: found.row, column: found.column, rule: .latestWins, outcome: .remote,
        localStamp: nil, remoteStamp: found.remote.stamp, key: found.key,
        local: [(found.column, found.value)], remote: [(found.column, found.remote.value)]))
  }
}

extension UnseenCells.Found {
  /// Whether the other device's value may come from a migration.
  fileprivate var isFilled: Bool { remote.stamp.time < UnseenCells.unknownTimes.rawValue }
}

extension UnseenCells.Column {
  /// The most frequent value here: what the migration has filled in. Of two, the one that other
  /// devices have. `nil` if no two rows have the same.
  fileprivate var usual: Value? {
    let count = counts.values.max() ?? 0
    let candidates = counts.filter { $0.value == count }.map(\.key)
    return candidates.first(where: filled.contains) ?? (count > 1 ? candidates.first : nil)
  }

  fileprivate mutating func add(_ found: UnseenCells.Found, isDefault: Bool) {
    let isSame = found.value == found.remote.value
    if found.isFilled {
      filledCount += 1
      filled.insert(found.remote.value)
      if isSame { sameCount += 1 }
    }
    if counts.count < UnseenCells.distinctCount || counts[found.value] != nil {
      counts[found.value, default: 0] += 1
    }
    if !isSame, !isDefault { differing.append(found) }
  }
}
