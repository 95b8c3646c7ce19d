import SyncModel

/// The rows of tables with integer keys that differ from device to device, by these keys. Numbers
/// in other tables refer to these rows.
struct KeysInUse {
  private let schema: FleetSchema
  private let formerKeys: [SQLName: [Int64: RowIdentity]]
  /// The local values of each row, the values of its key first.
  private(set) var rows: [SQLName: [Int64: [Value]]] = [:]

  /// - Parameters:
  ///   - tables: The rows as ``VisibleRows/localRows()`` returns them.
  ///   - formerKeys: The keys that rows with declared columns had before.
  init(
    _ tables: [SQLName: [[Value]]], schema: FleetSchema,
    formerKeys: [SQLName: [Int64: RowIdentity]]
  ) {
    self.schema = schema
    self.formerKeys = formerKeys
    for table in schema.synchronized where table.integerKey != nil {
      for values in tables[table.name] ?? [] {
        let value = table.localKey == nil ? values[0] : values[values.count - 1]
        if case .integer(let key) = value { rows[table.name, default: [:]][key] = values }
      }
    }
  }

  /// Returns whether a column of the row's key contains a former key, which no row has any more, as
  /// after a change with foreign keys off.
  func isFollowing(_ values: [Value], _ columns: [Int], _ table: FleetTable) -> Bool {
    zip(columns, values).contains { column, value in
      guard table.key.contains(column), let parent = schema.keyTable(of: column, in: table),
        let key = value.referredNumber
      else { return false }
      return rows[parent]?[key] == nil && formerKeys[parent]?[key] != nil
    }
  }
}
