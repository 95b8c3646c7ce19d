import GRDB
import SyncModel

/// The virtual tables that triggers of the application fill, such as full-text tables, in a copy of
/// a store.
struct FilledVirtualTables {
  let database: Database
  let virtualTables: [SQLName]
  private let triggers: [AppTrigger]

  init(database: Database, virtualTables: [SQLName]) throws {
    self.database = database
    self.virtualTables = virtualTables
    triggers = try String.fetchAll(
      database,
      sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger' "
        + "AND name NOT LIKE 'docsync~_%' ESCAPE '~' ORDER BY rowid"
    ).compactMap(AppTrigger.init)
  }

  /// Returns whether a trigger writes values of a table to a virtual table.
  func isFilled(_ virtualTable: SQLName, by table: SQLName) -> Bool {
    isFilled(virtualTable) { statement, trigger in
      trigger.tableName.isSame(as: table) || statement.contains { $0.isName(table) }
    }
  }

  /// Returns whether a statement of a trigger that writes to a virtual table meets a condition.
  func isFilled(
    _ virtualTable: SQLName, by condition: (_ statement: [SQLTokens.Token], AppTrigger) -> Bool
  ) -> Bool {
    triggers.contains { trigger in
      trigger.statements(writingTo: virtualTable).contains { condition($0, trigger) }
    }
  }

  /// Returns whether the application removes a deleted row from a virtual table: the deletion
  /// fires a trigger, and rows of other tables bring no values of the row there.
  private func isCleared(_ virtualTable: SQLName, of table: SQLName) -> Bool {
    let writing = triggers.filter { !$0.statements(writingTo: virtualTable).isEmpty }
    return writing.contains { $0.firesOnDeletion && $0.tableName.isSame(as: table) }
      && writing.allSatisfy { trigger in
        trigger.tableName.isSame(as: table)
          || trigger.statements(writingTo: virtualTable).allSatisfy { statement in
            !statement.contains { $0.isName(table) }
          }
      }
  }

  /// Deletes rows of a table, and lets the application's triggers remove them from virtual tables.
  /// Returns the virtual tables that may still have values of these rows.
  ///
  /// - Parameter deletion: The statement that deletes the rows.
  func remove(by deletion: String, from table: SQLName) throws -> Set<SQLName> {
    let filled = virtualTables.filter { isFilled($0, by: table) }
    guard !filled.isEmpty else {
      try database.execute(sql: deletion)
      return []
    }
    do {
      return try database.atomically {
        let before = try filled.map(rowCount)
        try copyDeletionTriggers(of: table)
        try database.execute(sql: deletion)
        let deleted = database.changesCount
        try dropCopies()
        let after = try filled.map(rowCount)
        // A trigger may look for a row by its key, which is NULL, and find none.
        return Set(
          zip(filled, zip(before, after)).compactMap { name, counts in
            isCleared(name, of: table) && counts.0 - counts.1 >= deleted ? nil : name
          })
      }
    } catch let error as DatabaseError where Self.canBeOfTrigger(error) {
      try database.execute(sql: deletion)
      return Set(filled)
    }
  }

  private func rowCount(_ virtualTable: SQLName) throws -> Int {
    try Int.fetchOne(database, sql: "SELECT count(*) FROM main.\(quoted(virtualTable))") ?? 0
  }

  /// Returns whether a trigger may have made the deletion fail: it calls a function of the
  /// application, or the virtual table is damaged.
  private static func canBeOfTrigger(_ error: DatabaseError) -> Bool {
    [.SQLITE_ERROR, .SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_CORRUPT].contains(
      error.resultCode)
  }

  private func copyDeletionTriggers(of table: SQLName) throws {
    let own = triggers.filter { $0.firesOnDeletion && $0.tableName.isSame(as: table) }
    for (number, trigger) in own.enumerated() {
      let copy = trigger.temporary(named: "docsync_clear_\(number)", condition: "1") { target in
        virtualTables.contains { $0.isSame(as: target) }
      }
      if let copy { try database.execute(sql: copy) }
    }
  }

  private func dropCopies() throws {
    let copies = try SQLName.fetchAll(
      database,
      sql: "SELECT name FROM temp.sqlite_schema WHERE type = 'trigger' "
        + "AND name GLOB 'docsync_clear_*'")
    for name in copies { try database.execute(sql: "DROP TRIGGER temp.\(quoted(name))") }
  }
}
