import SyncModel

/// Migrations by ALTER, as a program makes them that does not know about syncing.
extension FleetDevice {
  /// Makes the next migration if there is one for this device. Skips a migration that SQLite
  /// refuses without our triggers, too.
  ///
  /// The store recognizes columns of a table without our triggers by name, so it must notice
  /// earlier renames first. If columns were added, that waits for a synchronization.
  func migrate(_ migrations: [FleetMigration], at time: Int64) throws {
    guard migrated < migrations.count else { return }
    let migration = migrations[migrated]
    if hasDropped || migration.isRemoval {
      guard arrived.isEmpty else { return }
      try noticeSchema()
      hasDropped = false
    }
    migrated += 1
    if case .changeForm(let change) = migration { return try changeForm(change, migration, time) }
    guard var statement = version.statement(migration, on: number) else { return }
    if case .addTable(let table) = migration { statement = try creation(of: table) }
    clock.time = time
    try program.run("PRAGMA foreign_keys = ON")
    let twin = try currentTwin()
    let refusal = try alter(statement)
    let expected = try twin.alter(statement)
    var differences = refusal == expected ? [] : ["\(statement): \(refusal ?? "done")"]
    if differences.isEmpty { differences = try twin.differencesAfterMigrating(from: program) }
    guard differences.isEmpty else { throw twinFailure(differences) }
    forgetTwin()
    guard refusal == nil else { return }
    version.carryOut(migration)
    hasDropped = migration.isRemoval
    if case .renameTable(let table, _, _) = migration {
      onlyRenamed?.insert(table)
    } else {
      onlyRenamed = nil
    }
    try note(migration)
  }

  /// Recreates a table, which then has no trigger of ours. Like ``migrate(_:at:)`` it waits for a
  /// synchronization if columns were added. If the table was renamed just now, the store need not notice
  /// that first.
  func remake(_ remake: FleetRemake) throws {
    guard arrived.isEmpty, let table = version.shared.table(remake.table).flatMap(version.here)
    else { return }
    if !canFollow(remake, of: table) { try noticeSchema() }
    hasDropped = true
    onlyRenamed = nil
    let objects = try statements(creating: table)
    guard let create = objects.first else { return }
    _ = try edit(remake.edit(table, create: create, others: Array(objects.dropFirst())))
  }

  /// Draws whether a table is recreated although the store has not noticed yet that it was renamed. A
  /// foreign key has to show which table it is.
  private func canFollow(_ remake: FleetRemake, of table: FleetTable) -> Bool {
    guard onlyRenamed?.contains(remake.table) == true, remake.salt.isMultiple(of: 2),
      table.hasSurrogateKey, table.columns.count > 1
    else { return false }
    return version.shared.synchronized.contains { other in
      other.name != remake.table
        && other.references.contains {
          $0.isEnforced && $0.parent == remake.table && $0.parentColumns == table.key
        }
    }
  }

  /// Recreates a table, of which one column then has another affinity.
  private func changeForm(
    _ change: FleetFormChange, _ migration: FleetMigration, _ time: Int64
  ) throws {
    guard let table = version.shared.table(change.table).flatMap(version.here),
      let (old, new) = version.declarations(change)
    else { return }
    let objects = try statements(creating: table)
    guard let create = objects.first, create.hasBytes(old) else {
      throw FleetFailure(.twin, "device \(number): \(old) is not in \(objects)")
    }
    let remake = FleetRemake(
      table: change.table, dropsFirst: change.dropsFirst, time: time, salt: change.salt)
    let edit = remake.edit(
      table, create: create.replacing(old, with: new), others: Array(objects.dropFirst()))
    guard try self.edit(edit) == edit.statements else {
      throw FleetFailure(.twin, "device \(number) cannot migrate: \(edit.statements)")
    }
    version.carryOut(migration)
    scratch = try OracleScratch(schema: version.shared)
    hasDropped = true
    onlyRenamed = nil
  }

  /// Returns the statements that have created a table and its indexes and triggers.
  private func statements(creating table: FleetTable) throws -> [String] {
    try program.rows(
      "SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND sql IS NOT NULL "
        + "AND name NOT GLOB 'docsync_*' ORDER BY type = 'table' DESC, rowid",
      [.text(Array(table.name.text.utf8))]
    ).map { row in
      if case .text(let sql) = row[0] { String(decoding: sql, as: UTF8.self) } else { "" }
    }
  }

  private func twinFailure(_ differences: [String]) -> FleetFailure {
    FleetFailure(.twin, "device \(number):\n  " + differences.joined(separator: "\n  "))
  }

  /// Runs a statement; returns SQLite's message if SQLite refuses it.
  private func alter(_ statement: String) throws -> String? {
    do {
      _ = try program.rowsOnce(statement)
      return nil
    } catch let refusal as FleetSQLite.Refusal {
      return refusal.description
    }
  }

  /// Records that an added column has its default in all rows.
  private func note(_ migration: FleetMigration) throws {
    scratch = try OracleScratch(schema: version.shared)
    // Stored rows of it arrive when the store is opened.
    if migration.isNewTable { arrived[migration.table] = [:] }
    guard case .addColumn(let column, let name, _) = migration,
      let table = version.shared.table(name), let position = table.position(of: column.name)
    else { return }
    let value = try scratch.defaultValue(of: position, in: table)
    arrived[name, default: [:]][column.name] = value
    defaults[name, default: [:]][column.name] = value
    for key in shown.keys where key.table == name { shown[key]?[column.name] = value }
  }
}
