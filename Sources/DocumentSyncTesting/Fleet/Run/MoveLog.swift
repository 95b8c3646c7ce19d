import SyncModel

/// Notes beside the product which keys a program changes: by temporary
/// triggers on the program's own connection.
struct MoveLog {
  private let program: FleetSQLite
  /// The tables to which others refer, by keys that are the same everywhere.
  private let tables: [FleetTable]

  init(_ program: FleetSQLite, schema: FleetSchema) throws {
    self.program = program
    tables = schema.synchronized.filter { table in
      !table.hasSurrogateKey
        && schema.synchronized.contains { $0.references.contains { $0.parent == table.name } }
        && table.key.allSatisfy { schema.keyTable(of: $0, in: table) == nil }
    }
    for table in tables {
      let names = table.key.map { table.columns[$0].name }
      let columns = ["o", "n"].flatMap { prefix in names.indices.map { "\(prefix)\($0)" } }
      let values = ["OLD", "NEW"].flatMap { row in names.map { "\(row).\($0)" } }
      try program.run(
        "CREATE TEMP TABLE moves_\(table.name) "
          + "(seq INTEGER PRIMARY KEY, \(columns.joined(separator: ", ")))")
      try program.run(
        "CREATE TEMP TRIGGER moved_\(table.name) AFTER UPDATE ON main.\(table.name) WHEN "
          + names.map { "OLD.\($0) IS NOT NEW.\($0)" }.joined(separator: " OR ")
          + " BEGIN INSERT INTO moves_\(table.name) (\(columns.joined(separator: ", "))) "
          + "VALUES (\(values.joined(separator: ", "))); END")
    }
  }

  /// Forgets what was noted.
  func clear() throws {
    for table in tables { try program.run("DELETE FROM moves_\(table.name)") }
  }

  /// Where rows went whose key was changed once, and where nothing went on
  /// from.
  func moves() throws -> [OracleKey: OracleKey] {
    var result: [OracleKey: OracleKey] = [:]
    for table in tables {
      let rows = try program.rows("SELECT * FROM moves_\(table.name) ORDER BY seq").map { row in
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

  private func key(_ values: [Value], _ table: FleetTable) -> OracleKey {
    OracleKey(
      table: table.name,
      identity: IdentityEncoding.encode(values, collations: table.keyCollations))
  }
}
