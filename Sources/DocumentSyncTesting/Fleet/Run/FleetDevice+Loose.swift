import DocumentSync
import SyncModel
import SyncStore

/// Tables that cannot be synchronized: their rows stay on the device.
extension FleetDevice {
  /// The tables that are not in the schema, with their definitions and rows as text.
  func looseTables() throws -> [SQLName: String] {
    let known = Set(
      (version.local.tables.map(\.name) + version.local.markTables.map(\.name)).map(\.folded))
    var tables: [SQLName: String] = [:]
    for row in try program.rows(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'docsync_*' "
        + "AND name NOT GLOB 'sqlite_*'")
    {
      guard case .text(let bytes) = row[0] else { continue }
      let name = SQLName(String(decoding: bytes, as: UTF8.self))
      if known.contains(name.folded) { continue }
      let rows = try program.rowsOnce("SELECT rowid, * FROM \(name.quoted) ORDER BY rowid")
      tables[name] = ([row] + rows).map { $0.map(\.sqlDescription).joined(separator: " ") }
        .joined(separator: "\n")
    }
    return tables
  }

  /// Checks that syncing has not changed these tables, and that the device says of each that it stays.
  ///
  /// - Parameter isWhole: Whether the device made a whole synchronization.
  func checkLooseTables(since former: [SQLName: String], _ schema: FleetSchema, isWhole: Bool)
    throws
  {
    let now = try looseTables()
    guard now == former else {
      let changed = Set(now.keys).union(former.keys).filter { now[$0] != former[$0] }.sorted()
      throw FleetFailure(
        .loose,
        "device \(number): "
          + changed.map { "\($0) is \(now[$0] ?? "gone") instead of \(former[$0] ?? "nothing")" }
          .joined(separator: "\n  "))
    }
    let expected = Set(now.keys).subtracting(schema.looseTables.map(\.name))
    let unsuitable = try store.status().unsuitableTables
    guard Set(unsuitable.map(\.name)) == expected,
      unsuitable.allSatisfy({ $0.reason == .noPrimaryKey && !$0.wasSynchronized })
    else {
      throw FleetFailure(
        .loose, "device \(number) has the tables \(expected.sorted()), and says: \(unsuitable)")
    }
    guard isWhole, let lastReport else { return }
    let warned = Set(lastReport.warnings.filter { $0.code == .tableUnsuitable }.compactMap(\.table))
    guard warned == expected else {
      throw FleetFailure(
        .loose, "device \(number) warns of \(warned), and not of \(expected.sorted())")
    }
  }

  /// Returns the statements by which a program creates a table. If there is one without a key, its rows
  /// go along.
  func creation(of table: FleetTable) throws -> String {
    let name = table.name.sql
    let create = table.sql[0]
    guard try looseTables()[table.name] != nil else { return create }
    let new = SQLName("new__\(table.name)").sql
    var renamed = table
    renamed.name = SQLName("new__\(table.name)")
    return
      "\(renamed.sql[0]); INSERT OR IGNORE INTO \(new) (a, b) SELECT a, b FROM \(name) ORDER BY rowid; "
      + "DROP TABLE \(name); ALTER TABLE \(new) RENAME TO \(name)"
  }
}
