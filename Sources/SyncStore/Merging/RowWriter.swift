import Foundation
import GRDB
import SyncModel

/// A writer of the decided rows of a working set and of their bookkeeping.
final class RowWriter {
  let set: WorkingSet
  let session: StoreSession
  private var assigned: [WorkingRow] = []

  private(set) var counts = Materializer.Counts()
  /// What has become of which row of which table, until it is certain that no row is refused.
  private var changed: [Int: RowChangeLog.Table] = [:]

  init(set: WorkingSet) {
    self.set = set
    session = set.session
  }

  /// A row that its table's conditions refuse, and the reason.
  typealias Refusal = (row: WorkingRow, reason: ParkedRow.Reason)

  // MARK: - Tables

  /// Writes the rows to their tables. Returns the refused rows; if there are any, the caller rolls
  /// back.
  func writeRows() throws -> [Refusal] {
    /// The rows that are deleted and inserted again, with the device's own values.
    var replaced: [ObjectIdentifier: [Value]] = [:]
    let referrers = LocalReferrers(session)
    try referrers.find(set)
    let leaving = try rowsInTheWay().union(rowsGivingUpNumbers())
    let keepingKeys = try rowsKeepingKeys()
    // A row without a key would refer to the row that takes the number.
    let referredWithoutKey = OrphansWithoutKey(of: set.referrersWithoutKey, session).parents
    // Before any key is forgotten: a value may refer to a row that leaves, too.
    for row in set.rows where !row.isVisible && !row.isLeftAlone {
      if let shown = row.shown { try setLocalValuesAside(of: row, shown) }
    }
    for row in set.rows {
      guard let shown = row.shown, !row.isLeftAlone else { continue }
      if !row.isVisible || leaving.contains(ObjectIdentifier(row)) {
        let access = try session.access(row.key.table)
        if row.isVisible { replaced[ObjectIdentifier(row)] = try access.localValues(shown.key) }
        try access.delete(shown.key)
        changed(access.table).note(.deleted, shown.key)
        if row.isVisible, let key = row.localKey { access.reservedKeys.insert(key) }
        if !row.isVisible {
          // Frees the key before keys are assigned. Another row may take it, unless a row that must
          // differ from others still refers to it.
          if let key = row.localKey, keepingKeys.contains(ObjectIdentifier(row)) {
            try session.goneKeys.keep(key, of: row.key)
          } else if let key = row.localKey, try session.tablesToCompare().isEmpty {
            try access.forgetKey(key, of: row.key.identity)
            if session.schema.isReferredUniquely(access.table)
              || referredWithoutKey.contains(access.table.id)
            {
              access.reservedKeys.insert(key)
            }
          }
          counts.deleted += 1
        }
      }
    }
    // References need the keys of all rows that they may lead to.
    for row in set.rows where row.isVisible && row.shown == nil && !row.isUnseen {
      try assignKey(row)
    }
    try assignKeysToNamedRows()
    for table in Set(set.rows.map(\.key.table)) {
      try session.access(table).reservedKeys.removeAll()
    }
    var refusals: [Refusal] = []
    for row in set.rows where row.isVisible && !row.isUnseen && !row.isLeftAlone {
      do {
        try write(row, replacing: replaced[ObjectIdentifier(row)])
      } catch let error as DatabaseError {
        guard let reason = Self.reason(error) else { throw error }
        refusals.append((row, reason))
      }
    }
    if refusals.isEmpty { try referrers.follow() }
    // Without the rows that are refused for their own values, unique values may be free.
    let ownFault = refusals.filter { $0.reason != .uniqueValueTaken }
    return ownFault.isEmpty ? Array(refusals.prefix(1)) : ownFault
  }

  private func write(_ row: WorkingRow, replacing localValues: [Value]?) throws {
    if row.shown == nil {
      try insert(row)
      counts.inserted += 1
    } else if let localValues, let shown = row.shown {
      try insert(row)
      try session.access(row.key.table).setLocalValues(localValues, of: shown.key)
      counts.updated += 1
    } else if try update(row) {
      counts.updated += 1
    }
  }

  /// Forgets the keys that were assigned in an attempt that was rolled back; they are assigned
  /// again.
  func forgetAssignedKeys() throws {
    for row in assigned {
      row.localKey = nil
      try session.access(row.key.table).forgetKeyMemory()
    }
    for table in session.schema.namedTables { try session.access(table.id).forgetKeyMemory() }
  }

  static func reason(_ error: DatabaseError) -> ParkedRow.Reason? {
    switch error.extendedResultCode {
    case .SQLITE_CONSTRAINT_CHECK, .SQLITE_CONSTRAINT_DATATYPE: .check
    case .SQLITE_CONSTRAINT_NOTNULL: .notNull
    case .SQLITE_CONSTRAINT_UNIQUE, .SQLITE_CONSTRAINT_PRIMARYKEY, .SQLITE_CONSTRAINT_ROWID:
      .uniqueValueTaken
    default: nil
    }
  }

  /// Returns the rows that stay and give up a unique value that another row takes. They are deleted
  /// first and inserted again, since two rows may swap values.
  private func rowsInTheWay() -> Set<ObjectIdentifier> {
    var holders: [ClaimKey: WorkingRow] = [:]
    for row in set.rows where row.shown != nil && row.isVisible {
      for claim in row.oldClaims { holders[claim] = row }
    }
    var result: Set<ObjectIdentifier> = []
    for row in set.rows where row.isVisible {
      for claim in row.claims {
        if let holder = holders[claim], holder !== row { result.insert(ObjectIdentifier(holder)) }
      }
    }
    return result
  }

  /// Returns such rows where a reference and a plain value are the same number on this device. If
  /// one row gives up the one and another row takes the other, these are two values to the merge
  /// and one to SQLite.
  private func rowsGivingUpNumbers() throws -> Set<ObjectIdentifier> {
    let tables = Set(session.schema.tables.filter(\.hasUniqueReferences).map(\.id))
    guard !tables.isEmpty else { return [] }
    var holders: [ClaimKey: WorkingRow] = [:]
    var taken: Set<ClaimKey> = []
    for row in set.rows where row.isVisible && tables.contains(row.key.table) {
      let table = session.schema[row.key.table]
      let claims = try Set(set.localClaims(of: row))
      taken.formUnion(claims)
      guard let shown = row.shown else { continue }
      for claim in try set.claims(in: table, shown.values) where !claims.contains(claim) {
        holders[claim] = row
      }
    }
    return Set(holders.filter { taken.contains($0.key) }.map { ObjectIdentifier($0.value) })
  }

  private func assignKey(_ row: WorkingRow) throws {
    let access = try session.access(row.key.table)
    guard access.table.localKey != nil, row.localKey == nil else { return }
    if let key = try access.registeredKey(of: row.key.identity, row.state) {
      // It was deleted a moment ago and comes back.
      row.localKey = key
    } else {
      row.localKey = try access.assignKey(
        to: row.key.identity, preferring: row.state.localKey ?? row.keyHint)
    }
    assigned.append(row)
  }

  // MARK: - Keys of rows that are not shown

  /// The rows that rows to be shown contain in their identities, if they can be shown without them
  /// (``StoreSchema/namers(of:)``).
  private lazy var named: Set<RowKey> = {
    guard session.schema.hasNamers else { return [] }
    var named: Set<RowKey> = []
    for row in set.rows where row.isVisible && !row.isUnseen {
      for target in namedRows(of: row) { named.insert(target) }
    }
    return named
  }()

  private func namedRows(of row: WorkingRow) -> [RowKey] {
    let table = session.schema[row.key.table]
    return table.identityPositions.compactMap { position in
      guard case .key(let parent) = table.columns[position].domain,
        !session.schema.namers(of: parent).isEmpty,
        case .identity(let identity)? = row.shownValue(position)
      else { return nil }
      return RowKey(table: parent, identity: identity)
    }
  }

  /// Returns the rows that leave their tables and leave their keys in the keys of rows that stay.
  private func rowsKeepingKeys() throws -> Set<ObjectIdentifier> {
    var result: Set<ObjectIdentifier> = []
    var leaving: [Int: [Int64: WorkingRow]] = [:]
    for row in set.rows where row.shown != nil && !row.isVisible {
      guard let key = row.localKey, !session.schema.namers(of: row.key.table).isEmpty else {
        continue
      }
      if named.contains(row.key) {
        result.insert(ObjectIdentifier(row))
      } else {
        leaving[row.key.table, default: [:]][key] = row
      }
    }
    for (table, rows) in leaving {
      for namer in session.schema.namers(of: table) {
        let child = try session.access(namer.table)
        for (key, local) in try session.goneKeys.rows(of: namer, containing: Set(rows.keys)) {
          guard let row = rows[key], !result.contains(ObjectIdentifier(row)) else { continue }
          let identity = try child.identity(ofKey: local)
          if set[RowKey(table: namer.table, identity: identity)] == nil {
            result.insert(ObjectIdentifier(row))
          }
        }
      }
    }
    return result
  }

  /// Gives a key to each row that is not shown, and that a row to be shown contains in its own key.
  private func assignKeysToNamedRows() throws {
    for row in named.sorted(by: { ($0.table, $0.identity) < ($1.table, $1.identity) })
    where set[row]?.localKey == nil {
      try session.goneKeys.giveKey(to: row)
    }
  }

  /// Frees the keys that rows left in the keys of others, where those others have left their tables
  /// as well.
  func freeNeedlessKeys() throws {
    let tables = Set(set.rows.filter { $0.shown != nil && !$0.isVisible }.map(\.key.table))
    try session.goneKeys.freeNeedless(afterChangesOf: tables)
  }

  func insert(_ row: WorkingRow) throws {
    let access = try session.access(row.key.table)
    let columns = access.table.columns.indices.filter { row.shownValue($0) != nil }
    let statement = try access.insert(columns)
    let values = try columns.map {
      try set.local(row.shownValue($0) ?? .null, access.table.columns[$0])
    }
    if let key = row.localKey { statement.bind(key, at: columns.count + 1) }
    try statement.withBound(values[...]) { try session.write(statement) }
    let table = access.table
    try changed(table).note(
      .inserted, writtenKey(of: row, table))
  }

  /// Writes the columns that differ, except those that are left alone. Returns false if there are
  /// none.
  private func update(_ row: WorkingRow) throws -> Bool {
    guard let shown = row.shown else { return false }
    let access = try session.access(row.key.table)
    let leftAlone = try columnsLeftAlone(row)
    var columns: [Int] = []
    var values: [Value] = []
    for (position, column) in access.table.columns.enumerated() {
      guard !leftAlone.contains(position), let value = row.shownValue(position) else { continue }
      let local = try set.local(value, column)
      guard !column.shows(value, local, as: shown.values[position]) else { continue }
      columns.append(position)
      values.append(local)
    }
    guard !columns.isEmpty else { return false }
    let statement = try access.update(columns)
    try statement.withBound((values + shown.key)[...]) { try session.write(statement) }
    let key = access.table.identityPositions.enumerated().map { index, position in
      columns.firstIndex(of: position).map { values[$0] } ?? shown.key[index]
    }
    if key.isEmpty || key == shown.key {
      changed(access.table).note(.updated, shown.key)
    } else {
      // A number in its key is another one now.
      changed(access.table).note(.deleted, shown.key)
      changed(access.table).note(.inserted, key)
    }
    return true
  }

  /// Returns the columns that are not written until the table is compared, since a program has
  /// remade it: those in which the table differs from the merged state although no change was
  /// merged. Such a difference may be an edit that was not seen yet.
  func columnsLeftAlone(_ row: WorkingRow) throws -> Set<Int> {
    guard let shown = row.shown, try session.tablesToCompare().contains(row.key.table) else {
      return []
    }
    let table = session.schema[row.key.table]
    return try Set(
      table.columns.indices.filter { position in
        guard let value = row.shownValue(position),
          row.values[position] == row.loadedValues[position]
        else { return false }
        let column = table.columns[position]
        return try !column.shows(value, set.local(value, column), as: shown.values[position])
      })
  }

  private func changed(_ table: TableSchema) -> RowChangeLog.Table {
    if let rows = changed[table.id] { return rows }
    let rows = session.changes.separateRows(of: table)
    changed[table.id] = rows
    return rows
  }

  /// Notes which rows have changed.
  func noteChanges() throws {
    for (table, rows) in changed { try session.access(table).changes.note(rows) }
  }
}

extension TableSchema {
  /// Whether a unique index contains a column that stands for keys.
  fileprivate var hasUniqueReferences: Bool {
    let keyed = keyedPositions
    return uniqueIndexes.contains { index in
      index.columns.contains { $0.map(keyed.contains) ?? false }
    }
  }
}
