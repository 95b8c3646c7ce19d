import SyncModel

/// A record of the keys that a program changes, independent of the product: temporary triggers on
/// the program's own connection write it.
struct MoveLog {
  private let program: FleetSQLite
  /// The tables to which other tables refer by keys that are the same on all devices.
  private let tables: [FleetTable]
  /// The tables with an integer key that are identified by declared columns, which are the same on
  /// all devices.
  private let numbered: [FleetTable]

  init(_ program: FleetSQLite, schema version: FleetVersion) throws {
    self.program = program
    let schema = version.shared
    tables = schema.synchronized.filter { table in
      !table.hasSurrogateKey
        && (schema.synchronized.contains { $0.references.contains { $0.parent == table.name } }
          || schema.markTables.contains { $0.parent == table.name })
        && table.key.allSatisfy { schema.keyTable(of: $0, in: table) == nil }
    }
    for table in tables {
      guard let here = version.here(table) else { continue }
      let names = here.key.map { here.columns[$0].name.sql }
      let columns = ["o", "n"].flatMap { prefix in names.indices.map { "\(prefix)\($0)" } }
      let values = ["OLD", "NEW"].flatMap { row in names.map { "\(row).\($0)" } }
      try program.run(
        "CREATE TEMP TABLE \(SQLName("moves_\(table.name)").sql) "
          + "(seq INTEGER PRIMARY KEY, \(columns.joined(separator: ", ")))")
      try program.run(
        "CREATE TEMP TRIGGER \(SQLName("moved_\(table.name)").sql) AFTER UPDATE ON main.\(here.name.sql) WHEN "
          + names.map { "OLD.\($0) IS NOT NEW.\($0)" }.joined(separator: " OR ")
          + " BEGIN INSERT INTO \(SQLName("moves_\(table.name)").sql) (\(columns.joined(separator: ", "))) "
          + "VALUES (\(values.joined(separator: ", "))); END")
    }
    numbered = schema.synchronized.filter { table in
      table.localKey != nil && table.key.allSatisfy { schema.keyTable(of: $0, in: table) == nil }
    }
    for table in numbered {
      if let here = version.here(table) { try noteNumbers(of: table, here) }
    }
  }

  private func noteNumbers(of table: FleetTable, _ here: FleetTable) throws {
    guard let localKey = here.localKey else { return }
    let number = here.columns[localKey].name.sql
    let names = here.key.map { here.columns[$0].name.sql }
    let columns = names.indices.map { "o\($0)" }.joined(separator: ", ")
    try program.run(
      "CREATE TEMP TABLE \(SQLName("numbers_\(table.name)").sql) (seq INTEGER PRIMARY KEY, number, \(columns))"
    )
    for (name, event) in [
      ("numbered", "UPDATE ON main.\(here.name.sql) WHEN OLD.\(number) IS NOT NEW.\(number)"),
      ("gone", "DELETE ON main.\(here.name.sql)"),
    ] {
      try program.run(
        "CREATE TEMP TRIGGER \(SQLName("\(name)_\(table.name)").sql) AFTER \(event) BEGIN "
          + "INSERT INTO \(SQLName("numbers_\(table.name)").sql) (number, \(columns)) "
          + "VALUES (OLD.\(number), \(names.map { "OLD.\($0)" }.joined(separator: ", "))); END")
    }
  }

  /// Forgets the recorded changes.
  func clear() throws {
    for table in tables { try program.run("DELETE FROM \(SQLName("moves_\(table.name)").sql)") }
    for table in numbered { try program.run("DELETE FROM \(SQLName("numbers_\(table.name)").sql)") }
  }

  /// Returns the new row of each row whose key was changed once, unless the new key was changed
  /// again.
  func moves() throws -> [OracleKey: OracleKey] {
    var result: [OracleKey: OracleKey] = [:]
    for table in tables {
      let rows = try program.rows(
        "SELECT * FROM \(SQLName("moves_\(table.name)").sql) ORDER BY seq"
      ).map { row in
        let count = table.key.count
        return (
          key(Array(row[1..<(1 + count)]), table), key(Array(row[(1 + count)...]), table)
        )
      }
      for (old, new) in rows
      where rows.filter({ $0.0 == old }).count == 1 && !rows.contains(where: { $0.0 == new }) {
        result[old] = new
      }
    }
    return result
  }

  /// Returns the rows that had changed or deleted integer keys, in tables with declared columns.
  /// Keys in `known` belong to the rows there.
  func numbers(
    besides known: [SQLName: [Int64: RowIdentity]]
  ) throws -> [SQLName: [Int64: RowIdentity]] {
    var result = known
    for table in numbered {
      for row in try program.rows(
        "SELECT * FROM \(SQLName("numbers_\(table.name)").sql) ORDER BY seq")
      {
        guard case .integer(let number) = row[1], result[table.name]?[number] == nil else {
          continue
        }
        result[table.name, default: [:]][number] = key(Array(row[2...]), table).identity
      }
    }
    return result
  }

  private func key(_ values: [Value], _ table: FleetTable) -> OracleKey {
    OracleKey(
      table: table.name,
      identity: IdentityEncoding.encode(
        table.formless(key: values), collations: table.keyCollations))
  }
}
