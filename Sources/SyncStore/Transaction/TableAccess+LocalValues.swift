import GRDB
import SyncModel

/// The values of the columns that stay on this device.
extension TableAccess {
  /// Returns the values of the columns that stay on this device, of the row with a key, in order of
  /// name.
  func localValues(_ key: [Value]) throws -> [Value] {
    guard !table.excludedColumns.isEmpty else { return [] }
    let names = table.excludedColumns.sorted()
    let statement = try statement(
      "SELECT \(names.map(quoted).joined(separator: ", ")) FROM \(table.quotedName) "
        + "WHERE \(Self.match(table.keyColumns))")
    for (index, value) in key.enumerated() { statement.bind(value, at: index + 1) }
    guard try statement.step() else { return [] }
    defer { statement.reset() }
    return names.indices.map { statement.value(at: $0) }
  }

  /// Whether the columns that stay on this device have their default values in the row with a key.
  func hasDefaultLocalValues(_ key: [Value]) throws -> Bool {
    try zip(table.excludedColumns.sorted(), localValues(key)).allSatisfy {
      try isLocalDefault($1, of: $0)
    }
  }

  /// Whether a new row may have a value in a column that stays on this device.
  func isLocalDefault(_ value: Value, of column: SQLName) throws -> Bool {
    guard let known = try localDefaults()[column.folded] else { return false }
    return known.isChanging || value == known.value
  }

  /// Puts back the values that ``localValues(_:)`` returned.
  func setLocalValues(_ values: [Value], of key: [Value]) throws {
    guard !values.isEmpty else { return }
    let terms = table.excludedColumns.sorted().map { "\(quoted($0)) = ?" }
    let statement = try statement(
      "UPDATE\(table.orAbort) \(table.quotedName) SET \(terms.joined(separator: ", ")) "
        + "WHERE \(Self.match(table.keyColumns))")
    for (index, value) in (values + key).enumerated() { statement.bind(value, at: index + 1) }
    try session.write(statement)
  }

  /// Returns the defaults of the columns that stay on this device, by their folded names.
  private func localDefaults() throws -> [SQLName: (value: Value, isChanging: Bool)] {
    if let known = knownLocalDefaults { return known }
    var defaults: [SQLName: (value: Value, isChanging: Bool)] = [:]
    for row in try Row.fetchAll(
      session.database, sql: "PRAGMA main.table_xinfo(\(quoted(table.name)))")
    {
      let name = (row["name"] as SQLName).folded
      guard table.excludedColumns.contains(name) else { continue }
      let affinity = SchemaReader.affinity(of: row["type"])
      let declared = ColumnDefault(row["dflt_value"])
      defaults[name] = (
        try declared.value(session.database).applying(affinity).stored(with: affinity),
        declared.isChanging
      )
    }
    knownLocalDefaults = defaults
    return defaults
  }
}
