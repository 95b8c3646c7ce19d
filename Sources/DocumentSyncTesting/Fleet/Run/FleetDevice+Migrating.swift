import SyncModel

/// Migrations by ALTER, as a program makes them that does not know about syncing.
extension FleetDevice {
  /// Makes the next migration if there is one for this device. Skips a migration that SQLite
  /// refuses without our triggers, too. Returns the table that it changed without our triggers, if
  /// there is one: it then counts as made again.
  ///
  /// The store recognizes columns of a table without our triggers by name, so it must notice
  /// earlier renames first. If columns were added, that waits for a synchronization.
  func migrate(_ migrations: [FleetMigration], at time: Int64) throws -> SQLName? {
    guard migrated < migrations.count else { return nil }
    let migration = migrations[migrated]
    if hasDropped || migration.isRemoval {
      guard arrived.isEmpty else { return nil }
      try noticeSchema()
      hasDropped = false
    }
    migrated += 1
    guard let statement = version.statement(migration, on: number) else { return nil }
    clock.time = time
    try program.run("PRAGMA foreign_keys = ON")
    let twin = try currentTwin()
    var refusal = try alter(statement)
    var remade: SQLName?
    if refusal?.contains("docsync") ?? false {
      // Our triggers name the column. So nothing has changed, and the statement works without them.
      let differences = try twin.differences(from: program)
      guard differences.isEmpty else { throw twinFailure(differences) }
      refusal = try alter(statement, without: migration.table)
      remade = migration.table
    }
    let expected = try twin.alter(statement)
    var differences = refusal == expected ? [] : ["\(statement): \(refusal ?? "done")"]
    if differences.isEmpty { differences = try twin.differencesAfterMigrating(from: program) }
    guard differences.isEmpty else { throw twinFailure(differences) }
    forgetTwin()
    guard refusal == nil else { return nil }
    version.carryOut(migration)
    hasDropped = migration.isRemoval
    try note(migration)
    return remade
  }

  /// Recreates a table, which then has no trigger of ours. Like ``migrate(_:at:)`` it waits for a
  /// synchronization if columns were added.
  func remake(_ remake: FleetRemake) throws {
    guard arrived.isEmpty, let table = version.shared.table(remake.table).flatMap(version.here)
    else { return }
    try noticeSchema()
    hasDropped = true
    let objects = try program.rows(
      "SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND sql IS NOT NULL "
        + "AND name NOT LIKE 'docsync%' ORDER BY type = 'table' DESC, rowid",
      [.text(Array(table.name.text.utf8))]
    ).map { row in
      if case .text(let sql) = row[0] { String(decoding: sql, as: UTF8.self) } else { "" }
    }
    guard let create = objects.first else { return }
    _ = try edit(remake.edit(table, create: create, others: Array(objects.dropFirst())))
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

  /// Removes our triggers of a table and runs a statement in one transaction; returns SQLite's
  /// message if SQLite refuses the statement.
  private func alter(_ statement: String, without table: SQLName) throws -> String? {
    try program.run("BEGIN")
    let triggers = try program.rows(
      "SELECT name FROM sqlite_schema AS s WHERE type = 'trigger' AND EXISTS "
        + "(SELECT 1 FROM docsync_table WHERE wire = ? AND s.name GLOB 'docsync_' || id || '_*')",
      [.text(Array(table.text.utf8))])
    for row in triggers {
      guard case .text(let name) = row[0] else { continue }
      try program.run("DROP TRIGGER \"\(String(decoding: name, as: UTF8.self))\"")
    }
    let refusal = try alter(statement)
    try program.run(refusal == nil ? "COMMIT" : "ROLLBACK")
    // Until the next synchronization no trigger captures edits of the table.
    if refusal == nil { try moves.stop(table) }
    return refusal
  }

  /// Records that an added column has its default in all rows.
  private func note(_ migration: FleetMigration) throws {
    scratch = try OracleScratch(schema: version.shared)
    guard case .addColumn(let column, let name, _) = migration,
      let table = version.shared.table(name), let position = table.position(of: column.name)
    else { return }
    let value = try scratch.defaultValue(of: position, in: table)
    arrived[name, default: [:]][column.name] = value
    for key in shown.keys where key.table == name { shown[key]?[column.name] = value }
  }
}
