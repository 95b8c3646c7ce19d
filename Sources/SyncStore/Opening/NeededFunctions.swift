import CSQLite
import GRDB
import SyncModel

/// Functions and collations that only the application defines, and that the schema of its database
/// needs.
///
/// SQLite compiles the expressions of a table whenever a row is written, and of all tables when it
/// copies the database. So it can do neither without the functions. Only triggers are compiled
/// apart.
struct NeededFunctions {
  /// A function or a collation that is missing, and the object of the schema that names it.
  struct Missing: Hashable {
    /// “function” or “collation”.
    var kind: String
    /// The name that SQLite does not know.
    var name: String
    /// The table that has the expression or the trigger.
    var table: SQLName
    /// The index or the trigger of the table; `nil` for the table itself.
    var object: SQLName?
  }

  private let database: Database

  init(_ database: Database) { self.database = database }

  /// Throws if a table or an index of the database needs a function or a collation that is missing.
  /// Disables the triggers of the connection.
  func check(path: String) throws {
    setTriggersEnabled(false)
    var found: [Missing] = []
    for table in try tables() {
      let name = quoted(table)
      for statement in ["SELECT * FROM main.\(name)", "INSERT INTO main.\(name) DEFAULT VALUES"] {
        guard let missing = try missing(in: statement, of: table, objects: "index") else {
          continue
        }
        found.append(missing)
        break
      }
    }
    guard let first = found.first else { return }
    let places = found.map { missing in
      let place = missing.object.map { "the index \(quoted($0)) of" } ?? "the table"
      return "\(place) \(quoted(missing.table)) needs the \(missing.kind) “\(missing.name)”"
    }
    let sentence = places.joined(separator: ", and ")
    throw StoreError(
      .unsupportedSchema, path: path,
      message: sentence.prefix(1).uppercased() + sentence.dropFirst()
        + ", which only the application defines: without it, SQLite cannot copy the database.",
      remedy: first.object.map {
        "Drop the index \(quoted($0)), or write it without “\(first.name)”."
      }
        ?? "Change the table so that its CHECKs and generated columns do not need “\(first.name)”.")
  }

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
        in: try trigger.firingStatement(database), of: table.name, objects: "trigger")
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

  /// The tables whose expressions SQLite compiles.
  private func tables() throws -> [SQLName] {
    try SQLName.fetchAll(
      database,
      sql: "SELECT name FROM main.sqlite_schema WHERE type = 'table' "
        + "AND name NOT LIKE 'sqlite~_%' ESCAPE '~' AND name NOT LIKE 'docsync~_%' ESCAPE '~' "
        + "AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name")
  }

  /// Compiles a statement, and returns what it lacks.
  private func missing(
    in statement: String, of table: SQLName, objects type: String
  ) throws -> Missing? {
    do {
      _ = try SQLStatement("EXPLAIN " + statement, on: database)
      return nil
    } catch let error as DatabaseError {
      guard let (kind, name) = Self.need(error.message ?? "") else { return nil }
      return Missing(
        kind: kind, name: name, table: table, object: try object(naming: name, type, of: table))
    }
  }

  /// Returns the function or the collation that a message of SQLite says is missing.
  private static func need(_ message: String) -> (kind: String, name: String)? {
    let beginnings = [
      ("no such function: ", "function"), ("unknown function: ", "function"),
      ("no such collation sequence: ", "collation"),
    ]
    for (beginning, kind) in beginnings where message.hasPrefix(beginning) {
      let name = message.dropFirst(beginning.count)
      return (kind, String(name.hasSuffix("()") ? name.dropLast(2) : name))
    }
    return nil
  }

  /// Returns the index or trigger of a table whose statement has the name.
  private func object(naming name: String, _ type: String, of table: SQLName) throws -> SQLName? {
    let rows = try Row.fetchAll(
      database,
      sql: "SELECT name, sql FROM main.sqlite_schema WHERE type = ? "
        + "AND tbl_name = ? COLLATE NOCASE AND sql IS NOT NULL ORDER BY rowid",
      arguments: [type, table])
    return rows.first { row in
      SQLTokens(row["sql"]).tokens.contains { $0.isName(SQLName(name)) }
    }.map { $0["name"] }
  }
}
