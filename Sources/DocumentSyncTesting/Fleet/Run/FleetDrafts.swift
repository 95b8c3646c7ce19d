import SyncModel

/// The values of excluded columns, before and after a synchronization: they stay with their rows,
/// and come back with a row that was hidden.
struct FleetDrafts {
  /// The values of one row.
  struct Draft {
    var values: [Value]
    /// When the row was inserted or deleted last.
    var stamp: Stamp?
  }

  private var drafts: [OracleKey: Draft] = [:]

  /// Reads the rows that the device knows since its last synchronization.
  init(_ device: FleetDevice) throws {
    let reader = try VisibleRows(device.program, schema: device.version)
    let (shared, local) = (device.version.shared, device.version.local)
    for (table, here) in zip(shared.tables, local.tables) where !table.isLocal {
      let columns = here.columns.indices.filter { here.columns[$0].isLocal }
      guard !columns.isEmpty, table.localKey == nil else { continue }
      let rows = try device.program.rowsOnce(
        "SELECT \(here.names(here.key + columns)) FROM \(here.name.sql)")
      for row in rows {
        let key = Array(row.prefix(here.key.count))
        guard let identity = Self.identity(of: key, table, shared, reader) else { continue }
        let found = OracleKey(table: table.name, identity: identity)
        guard device.shown[found] != nil else { continue }
        drafts[found] = Draft(
          values: Array(row.dropFirst(key.count)),
          stamp: device.state.rows[found]?.existenceStamp)
      }
    }
  }

  /// Returns the identity of the row with a key; `nil` if the key contains others' keys, or NULL.
  private static func identity(
    of key: [Value], _ table: FleetTable, _ schema: FleetSchema, _ reader: VisibleRows
  ) -> RowIdentity? {
    if table.hasSurrogateKey {
      return key[0].referredNumber.map { reader.identity(of: $0, in: table.name) }
    }
    guard !key.contains(.null),
      table.key.allSatisfy({ schema.keyTable(of: $0, in: table) == nil })
    else { return nil }
    return IdentityEncoding.encode(key, collations: table.keyCollations)
  }

  /// Returns a line for each row whose values are not those that it had.
  ///
  /// - Parameters:
  ///   - former: The rows before the synchronization.
  ///   - hidden: The values of rows that were hidden before. Updated by this synchronization.
  ///   - isHidden: Whether a row exists and is not shown now.
  ///   - state: The state of the device now.
  func faults(
    since former: FleetDrafts, hidden: inout [OracleKey: Draft],
    isHidden: (OracleKey) -> Bool, _ state: LogicalState
  ) -> [String] {
    var faults: [String] = []
    for (row, draft) in former.drafts {
      hidden[row] = nil
      if drafts[row] == nil, isHidden(row) { hidden[row] = draft }
    }
    for (row, draft) in drafts {
      guard let before = former.drafts[row] ?? hidden[row] else { continue }
      hidden[row] = nil
      // A row that has gone and come back may have lost them.
      guard before.stamp == draft.stamp, before.values != draft.values else { continue }
      func text(_ values: [Value]) -> String {
        values.map(\.sqlDescription).joined(separator: ", ")
      }
      faults.append("\(row) had \(text(before.values)), and has \(text(draft.values))")
    }
    hidden = hidden.filter { state.rows[$0.key]?.existenceStamp == $0.value.stamp }
    return faults.sorted()
  }
}
