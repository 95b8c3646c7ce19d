import GRDB
import SyncModel

/// Compares the tables and indexes that every store has with those that are
/// made for its version of the layout.
struct BookkeepingCheck {
  let database: Database
  /// That version, at most the present one: what is missing of later ones is
  /// made when the store is opened.
  let format: Int

  /// What is missing or has other columns, a sentence each, by name.
  func run() throws -> [(name: SQLName, message: String)] {
    let reference = try DatabaseQueue()
    let wanted = try reference.write { database in
      for statement in Bookkeeping.creation(upTo: format) { try database.execute(sql: statement) }
      return try Self.shapes(database)
    }
    let found = try Self.shapes(database)
    return wanted.sorted { $0.key < $1.key }.compactMap { name, shape in
      guard let other = found[name] else { return (name, "\(name) is missing.") }
      return shape == other ? nil : (name, "\(name) is not as this version makes it: \(other)")
    }
  }

  /// The tables and indexes of bookkeeping, with their columns as text.
  private static func shapes(_ database: Database) throws -> [SQLName: String] {
    let rows = try Row.fetchAll(
      database,
      sql: "SELECT type, name FROM main.sqlite_schema "
        + "WHERE type IN ('table', 'index') AND name GLOB 'docsync_*'")
    var shapes: [SQLName: String] = [:]
    for row in rows {
      let name: SQLName = row["name"]
      let isTable = row["type"] as String == "table"
      let information = try Row.fetchAll(
        database,
        sql: "PRAGMA main.\(isTable ? "table_info" : "index_info")(\(quoted(name)))")
      shapes[name] = information.map { column in
        let text = (column["name"] as SQLName?) ?? ""
        return isTable
          ? "\(text) \((column["type"] as String?) ?? "") \(column["pk"] as Int? ?? 0)" : text
      }.joined(separator: ", ")
    }
    return shapes
  }
}
