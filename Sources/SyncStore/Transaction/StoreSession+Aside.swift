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
    let table = schema[row.table]
    let parents = try parentsByNumber(of: table)
    for (column, value) in zip(table.excludedColumns.sorted(), values) {
      var stored = value
      if let parent = parents[column.folded], value != .null {
        guard let parent, let number = Value.referredKey(value),
          let referred = try access(parent.id).identity(ofKeyInUse: number)
        else { continue }
        stored = .blob(referred.bytes)
      }
      try aside.store(stored, in: column, of: row.identity, in: table.wireName)
    }
  }

  /// Returns the tables to which excluded columns refer by numbers, by the folded names of the
  /// columns; `nil` for columns whose values cannot be stored.
  private func parentsByNumber(of table: TableSchema) throws -> [SQLName: TableSchema?] {
    var parents: [SQLName: TableSchema?] = [:]
    for reference in try localReferences().values.joined()
    where reference.isColumn && reference.child.isSame(as: table.name) {
      let parent = schema.table(named: reference.parent)
      if let parent, !parent.containsNumber(reference.parentColumns) { continue }
      let isKey = parent?.localKey.map { reference.parentColumns == [$0] } ?? false
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

  /// Puts back the values that were set aside for a row that has just been inserted.
  ///
  /// - Parameter key: The values that name the row in statements.
  func putBackAside(into row: RowKey, key: [Value]) throws {
    let access = try access(row.table)
    let table = access.table
    guard !table.excludedColumns.isEmpty else { return }
    let stored = try aside.values(of: row.identity, in: table.wireName)
    let parents = stored.isEmpty ? [:] : try parentsByNumber(of: table)
    for (column, value) in stored where table.excludedColumns.contains(column) {
      var value = value
      if let parent = parents[column.folded], let parent, case .blob(let identity) = value {
        let referred = try self.access(parent.id).shown(RowIdentity(bytes: identity))
        value = referred?.localKey.map { .integer($0) } ?? .null
      }
      guard try putBack(value, column, key, access) else { continue }
      try aside.remove(column, of: row.identity, in: table.wireName)
    }
  }

  /// Puts back one value. Returns false if a constraint of the table refuses the value, which then
  /// stays set aside.
  private func putBack(
    _ value: Value, _ column: SQLName, _ key: [Value], _ access: TableAccess
  ) throws -> Bool {
    let table = access.table
    // ABORT is explicit, so that a conflict clause in the schema does not take effect.
    let statement = try access.statement(
      "UPDATE OR ABORT \(table.quotedName) SET \(quoted(column)) = ? "
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
