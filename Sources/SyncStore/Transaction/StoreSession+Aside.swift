import GRDB
import SyncModel

/// Values of columns that stay on this device, for rows that are not in their tables and may come
/// back: hidden rows, rows whose deletion is in conflict with an edit, and rows that no longer
/// existed when the store's content was exchanged.
///
/// A row that comes back gets its values at once, in the transaction that brings it: otherwise
/// values typed since would be lost.
extension StoreSession {
  /// Sets aside the values of the columns that stay on this device, of a row that is about to leave
  /// its table. A reference by a number is stored as the identity of the other row, which may get
  /// another number meanwhile.
  ///
  /// - Parameter values: What ``TableAccess/localValues(_:)`` returns.
  func setAside(_ values: [Value], of row: RowKey) throws {
    let access = try access(row.table)
    let table = access.table
    let parents = try parentsByNumber(of: table)
    let former = try aside.values(of: row.identity, in: table.wireName)
    for (column, value) in zip(table.excludedColumns.sorted(), values) {
      // The row to which it leads has not come back.
      if var waiting = former.first(where: { $0.column == column && $0.isWaiting }),
        try access.isLocalDefault(value, of: column)
      {
        try aside.remove(waiting, of: row.identity, in: table.wireName)
        waiting.isWaiting = false
        try aside.store(waiting, of: row.identity, in: table.wireName)
        continue
      }
      for entry in former where entry.column == column {
        try aside.remove(entry, of: row.identity, in: table.wireName)
      }
      var entry = AsideValues.Entry(column: column, value: value)
      if let parent = parents[column.folded], value != .null {
        guard let parent, let number = Value.referredKey(value),
          let referred = try self.access(parent.id).identity(ofKeyInUse: number)
        else { continue }
        entry.value = .blob(referred.bytes)
        entry.parent = parent.wireName
      }
      try aside.store(entry, of: row.identity, in: table.wireName)
    }
  }

  /// Returns the synchronized tables to which excluded columns refer by numbers, by the folded names
  /// of the columns; `nil` for columns whose values cannot be stored.
  private func parentsByNumber(of table: TableSchema) throws -> [SQLName: TableSchema?] {
    var parents: [SQLName: TableSchema?] = [:]
    for reference in try localReferences().values.joined()
    where reference.isColumn && reference.child.isSame(as: table.name) {
      // No other table gets other numbers.
      guard let parent = schema.table(named: reference.parent),
        parent.containsNumber(reference.parentColumns)
      else { continue }
      let isKey =
        reference.parentColumns.count == 1
        && reference.parentColumns.contains { parent.localKey?.isSame(as: $0) ?? false }
      for column in reference.columns { parents[column.folded] = .some(isKey ? parent : nil) }
    }
    return parents
  }

  /// Removes the values of rows that no policy has brought back. Must be called when policies have
  /// decided.
  func settleUndecidedAside() throws {
    for row in undecidedAside {
      let access = try access(row.table)
      guard try access.shown(row.identity) == nil,
        try access.stamps.state(of: access.fingerprint(row.identity))?.existence == .deleted
      else { continue }
      try aside.removeAll(of: row.identity, in: access.table.wireName)
    }
    undecidedAside = []
  }

  /// Puts back the values that were set aside for a row that has just been inserted. References to
  /// rows that are not shown wait for these. Returns whether the row was changed.
  ///
  /// - Parameter key: The values that name the row in statements.
  @discardableResult
  func putBackAside(into row: RowKey, key: [Value]) throws -> Bool {
    let access = try access(row.table)
    let table = access.table
    guard !table.excludedColumns.isEmpty else { return false }
    var isChanged = false
    for var entry in try aside.values(of: row.identity, in: table.wireName)
    where table.excludedColumns.contains(entry.column) {
      // Until the content is exchanged, rows get their former values afterwards.
      let isHeldBack = holdsReferencesBack && entry.parent != nil
      if !isHeldBack, let value = try present(entry) {
        guard try putBack(value, entry.column, key, access) else { continue }
        isChanged = true
        try aside.remove(entry, of: row.identity, in: table.wireName)
      } else if !entry.isWaiting {
        try aside.remove(entry, of: row.identity, in: table.wireName)
        entry.isWaiting = true
        try aside.store(entry, of: row.identity, in: table.wireName)
        if knownWaitingReferences != nil, let referred = try referredRow(entry) {
          let reference = AsideValues.Reference(
            wireName: table.wireName, row: row.identity, entry: entry)
          knownWaitingReferences?[referred, default: []].append(reference)
        }
      }
    }
    return isChanged
  }

  /// Returns the value that a column gets; `nil` as long as the row to which a reference leads is
  /// not shown.
  private func present(_ entry: AsideValues.Entry) throws -> Value? {
    guard entry.parent != nil else { return entry.value }
    guard let referred = try referredRow(entry) else { return nil }
    return try access(referred.table).shown(referred.identity)?.localKey.map { .integer($0) }
  }

  /// Returns the row to which a reference leads, by the identity that it has by now.
  private func referredRow(_ entry: AsideValues.Entry) throws -> RowKey? {
    guard let parent = entry.parent.flatMap({ schema.table(wireName: $0) }),
      let identity = entry.referred
    else { return nil }
    var last = RowKey(table: parent.id, identity: identity)
    var seen: Set<RowKey> = [last]
    while try access(parent.id).shown(last.identity) == nil,
      let identity = try keptRows.row(last)?.movedTo
    {
      last = RowKey(table: parent.id, identity: identity)
      guard seen.insert(last).inserted else { return nil }
    }
    return last
  }

  /// Puts back the references that wait for rows. Must be called when these are shown.
  ///
  /// - Parameter rows: The rows that are shown again; `nil` for all that are shown.
  func putBackReferences(to rows: Set<RowKey>? = nil) throws {
    guard rows?.isEmpty != true, !holdsReferencesBack else { return }
    let waiting = try waitingReferences()
    guard !waiting.isEmpty else { return }
    let referred = rows ?? Set(waiting.keys)
    for row in referred.sorted(by: { ($0.table, $0.identity) < ($1.table, $1.identity) }) {
      for reference in waiting[row] ?? [] { try putBack(reference) }
    }
  }

  private func putBack(_ reference: AsideValues.Reference) throws {
    let entry = reference.entry
    guard let child = schema.table(wireName: reference.wireName),
      let shown = try access(child.id).shown(reference.row), let value = try present(entry)
    else { return }
    let access = try access(child.id)
    let values = zip(child.excludedColumns.sorted(), try access.localValues(shown.key))
    // Otherwise a program has set another one meanwhile.
    if let former = values.first(where: { $0.0 == entry.column })?.1,
      try access.isLocalDefault(former, of: entry.column)
    {
      guard try putBack(value, entry.column, shown.key, access) else { return }
      access.changes.note(.updated, shown.key)
    }
    try aside.remove(entry, of: reference.row, in: reference.wireName)
  }

  /// Returns the references that wait, by the rows to which they lead. They may contain some that
  /// were put back in this transaction.
  private func waitingReferences() throws -> [RowKey: [AsideValues.Reference]] {
    if let known = knownWaitingReferences { return known }
    var references: [RowKey: [AsideValues.Reference]] = [:]
    if schema.tables.contains(where: { !$0.excludedColumns.isEmpty }) {
      for reference in try aside.references() where reference.entry.isWaiting {
        guard let row = try referredRow(reference.entry) else { continue }
        references[row, default: []].append(reference)
      }
    }
    knownWaitingReferences = references
    return references
  }

  /// Puts back one value. Returns false if a constraint of the table refuses the value, which then
  /// stays set aside.
  private func putBack(
    _ value: Value, _ column: SQLName, _ key: [Value], _ access: TableAccess
  ) throws -> Bool {
    let table = access.table
    let statement = try access.statement(
      "UPDATE\(table.orAbort) \(table.quotedName) SET \(quoted(column)) = ? "
        + "WHERE \(TableAccess.match(table.keyColumns))")
    for (index, value) in ([value] + key).enumerated() { statement.bind(value, at: index + 1) }
    do {
      try write(statement)
      return true
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      warnOfRefusedValues([column], of: table, error)
      return false
    }
  }

  /// Warns that a constraint of the table refuses values that stay on this device, in rows that
  /// have come back.
  func warnOfRefusedValues(_ columns: [SQLName], of table: TableSchema, _ error: DatabaseError) {
    var warning = SyncWarning(
      .localValueRefused, table: table.name,
      message: "\(columns.joined(separator: ", ")) of \(table.name), which stays on this device, "
        + "could not be restored in rows that exist again: "
        + (error.message ?? error.description))
    warning.names = columns
    conflicts.warn(warning)
  }
}
