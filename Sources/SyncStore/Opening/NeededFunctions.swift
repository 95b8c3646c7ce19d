import CSQLite
import GRDB
import SyncModel

/// Functions and collations that only the application defines, and that triggers of synchronized
/// tables need. Those that a table needs are a ``TableProblem``.
struct NeededFunctions {
  /// A function or a collation that is missing, and the trigger that names it.
  struct Missing: Hashable {
    /// The name that SQLite does not know.
    var name: String
    /// The table that has the trigger.
    var table: SQLName
    /// The trigger; `nil` if it was not found.
    var object: SQLName?
  }

  private let database: Database

  init(_ database: Database) { self.database = database }

  /// Returns the triggers of synchronized tables that need a function or a collation that is
  /// missing. They run for the edits of the application, and not for changes from other devices.
  ///
  /// Enables triggers, so the connection must be one that only reads.
  func triggers(of schema: StoreSchema) throws -> [Missing] {
    setTriggersEnabled(true)
    let statements = try String.fetchAll(
      database,
      sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger' "
        + "AND name NOT LIKE 'docsync~_%' ESCAPE '~' ORDER BY rowid")
    var found: [Missing] = []
    for trigger in statements.compactMap(AppTrigger.init) {
      guard let table = schema.table(named: trigger.tableName) else { continue }
      let missing = try missing(
        in: try trigger.firingStatement(database), of: table.name)
      // SQLite compiles all triggers of the table, and names the function alone.
      guard let missing, missing.object == trigger.triggerName else { continue }
      found.append(missing)
    }
    return found
  }

  private func setTriggersEnabled(_ isEnabled: Bool) {
    guard let connection = database.sqliteConnection else { return }
    csqlite_set_triggers_enabled(connection, isEnabled ? 1 : 0)
  }

  /// Compiles a statement, and returns what it lacks.
  private func missing(in statement: String, of table: SQLName) throws -> Missing? {
    do {
      _ = try SQLStatement("EXPLAIN " + statement, on: database)
      return nil
    } catch let error as DatabaseError {
      guard let name = ProgramDefinitions.missing(in: error) else { return nil }
      return Missing(
        name: name, table: table, object: try trigger(naming: name, of: table))
    }
  }

  /// Returns the trigger of a table whose statement has the name.
  private func trigger(naming name: String, of table: SQLName) throws -> SQLName? {
    let rows = try Row.fetchAll(
      database,
      sql: "SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger' "
        + "AND tbl_name = ? COLLATE NOCASE AND sql IS NOT NULL ORDER BY rowid",
      arguments: [table])
    return rows.first { row in
      SQLTokens(row["sql"]).tokens.contains { $0.isName(SQLName(name)) }
    }.map { $0["name"] }
  }
}
