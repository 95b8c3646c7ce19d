import SyncModel

/// The rows of excluded tables that refer to others, before and after a synchronization: they follow
/// the rows to which they refer as if foreign keys were on.
struct FleetMarks {
  private struct Mark: Equatable {
    var value: Value
    /// Whether the row to which it refers is in its table.
    var leads: Bool
    /// The row to which it refers. If its table has integer keys, only if the device knows the row
    /// since its last synchronization.
    var row: OracleKey?
    /// When that row was inserted or deleted last.
    var stamp: Stamp?
  }

  private let schema: FleetSchema
  private var marks: [SQLName: [Value: Mark]] = [:]
  private let reader: VisibleRows
  private let state: LogicalState
  /// The rows with declared columns, by their integer keys.
  private let declared: [SQLName: [Int64: RowIdentity]]

  init(_ device: FleetDevice) throws {
    schema = device.version.local
    reader = try VisibleRows(device.program, schema: device.version)
    state = device.state
    declared = try reader.declaredKeys()
    for table in schema.markTables {
      let key = table.parentKey.sql
      for row in try device.program.rowsOnce(
        "SELECT m.id, m.p, (SELECT count(*) FROM \(table.parent.sql) AS p WHERE p.\(key) = m.p) "
          + "FROM \(table.name.sql) AS m")
      {
        var mark = Mark(value: row[1], leads: row[2] == .integer(1))
        if let parent = schema.table(table.parent), mark.leads {
          mark.row = self.row(row[1], of: parent)
          if parent.integerKey != nil, mark.row.map({ device.shown[$0] == nil }) ?? true {
            mark.row = nil
          }
          mark.stamp = mark.row.flatMap { state.rows[$0]?.existenceStamp }
        }
        marks[table.name, default: [:]][row[0]] = mark
      }
    }
  }

  /// Returns the row with a key; `nil` if the key contains others' keys, or is not its identity.
  private func row(_ key: Value, of table: FleetTable) -> OracleKey? {
    if table.hasSurrogateKey {
      return key.referredNumber.map {
        OracleKey(table: table.name, identity: reader.identity(of: $0, in: table.name))
      }
    }
    guard table.key.allSatisfy({ schema.keyTable(of: $0, in: table) == nil }) else { return nil }
    if table.localKey != nil {
      return key.referredNumber.flatMap { declared[table.name]?[$0] }.map {
        OracleKey(table: table.name, identity: $0)
      }
    }
    return OracleKey(
      table: table.name,
      identity: IdentityEncoding.encode([key], collations: table.keyCollations))
  }

  /// Returns a line for each row that has not become what it must.
  ///
  /// - Parameters:
  ///   - former: The rows before the synchronization.
  ///   - hidden: The rows that exist and are not shown now.
  func faults(since former: FleetMarks, hidden: Set<OracleKey>) throws -> [String] {
    try schema.markTables.flatMap { table in
      let (before, after) = (former.marks[table.name] ?? [:], marks[table.name] ?? [:])
      return try Set(before.keys).union(after.keys).sorted { $0.sqlDescription < $1.sqlDescription }
        .compactMap { id -> String? in
          guard let old = before[id] else {
            return "\(table.name) has a new row \(id.sqlDescription)"
          }
          let allowed = try allowed(for: old, of: table, hidden: hidden)
          let new = after[id]
          if allowed.contains(where: { $0.accepts(new?.value, old.value) }) {
            return nil
          }
          return "\(table.name) \(id.sqlDescription) referred to \(old.value.sqlDescription), and "
            + (new.map { "refers to \($0.value.sqlDescription)" } ?? "is gone")
        }
    }
  }

  private enum Outcome {
    case same, gone, null
    /// It refers to a row under another key.
    case moved

    func accepts(_ new: Value?, _ old: Value) -> Bool {
      switch self {
      case .same: new == old
      case .gone: new == nil
      case .null: new == .null
      case .moved: new.map { $0 != .null && $0 != old } ?? false
      }
    }
  }

  private func allowed(
    for old: Mark, of table: FleetSchema.MarkTable, hidden: Set<OracleKey>
  ) throws -> [Outcome] {
    guard old.value != .null else { return [.same] }
    let deleted: Outcome = Self.outcome(table.onDelete, .gone)
    guard let parent = schema.table(table.parent) else {
      // Another excluded table, or the same.
      let isThere = marks[table.parent]?[old.value] != nil
      return isThere || !old.leads ? [.same] : [deleted]
    }
    let others = [deleted, Self.outcome(table.onUpdate, .moved)]
    guard try isThere(old, parent) else {
      if let row = old.row, parent.hasSurrogateKey, state.rows[row]?.moved == nil {
        return hidden.contains(row) ? [.same] : [deleted]
      }
      // If it led nowhere, the other row may have come and gone in this synchronization.
      let isHidden = !old.leads || hidden.contains { $0.table == table.parent }
      return others + (isHidden ? [.same] : [])
    }
    guard let row = old.row, !parent.hasSurrogateKey else {
      // Without declared columns that are known, the number may be another row's by now.
      return parent.localKey != nil && old.leads ? others + [.same] : [.same]
    }
    // It may have gone and come back.
    return state.rows[row]?.existenceStamp == old.stamp ? [.same] : others + [.same]
  }

  private static func outcome(
    _ action: FleetReference.Action, _ cascade: Outcome
  ) -> Outcome {
    switch action {
    case .noAction, .restrict: .same
    case .cascade: cascade
    case .setNull, .setDefault: .null
    }
  }

  /// Whether the row to which a row referred is in its table. A number is not enough: if the row has
  /// moved or is deleted, another row may have got its number in the same synchronization.
  private func isThere(_ old: Mark, _ parent: FleetTable) throws -> Bool {
    let key = parent.columns[parent.integerKey ?? parent.key[0]].name.sql
    let found = try reader.database.rows(
      "SELECT 1 FROM \(parent.name.sql) WHERE \(key) = ?", [old.value])
    guard !found.isEmpty else { return false }
    guard parent.integerKey != nil, var row = old.row else { return true }
    let now = self.row(old.value, of: parent)
    var seen: Set<OracleKey> = []
    while row != now, seen.insert(row).inserted, let next = state.rows[row]?.moved {
      row.identity = next
    }
    return row == now
  }
}
