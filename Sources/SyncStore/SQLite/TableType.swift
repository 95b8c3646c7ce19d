import GRDB
import SyncModel

/// What a table of a database is.
enum TableType: Equatable {
  case ordinary
  case virtual
  /// A table in which the module of a virtual table keeps data, and whether SQLite says so.
  case virtualTablePart(isShadow: Bool)
  case view

  /// Returns the tables and views of a database, or of one that is attached to it, with their types.
  static func all(
    _ database: Database, schema: String = "main"
  ) throws -> [(name: SQLName, type: TableType)] {
    let tables = try Row.fetchAll(database, sql: "PRAGMA \(schema).table_list")
      .filter { $0["schema"] == schema }
    let parts = try VectorTableParts(database, schema: schema)
    return tables.compactMap { row in
      let name: SQLName = row["name"]
      switch row["type"] as String {
      case "table":
        return (name, parts.contain(name) ? .virtualTablePart(isShadow: false) : .ordinary)
      case "virtual": return (name, .virtual)
      case "shadow": return (name, .virtualTablePart(isShadow: true))
      case "view": return (name, .view)
      default: return nil
      }
    }
  }
}

/// The names of the tables in which `vec0`, the module of sqlite-vec, keeps data.
///
/// To SQLite they are ordinary tables if the program does not have the module, and some of them also if
/// it has. The names are those of sqlite-vec 0.1.9 (https://github.com/asg017/sqlite-vec, sqlite-vec.c).
private struct VectorTableParts {
  private let virtualTables: [SQLName]

  init(_ database: Database, schema: String) throws {
    virtualTables = try Row.fetchAll(
      database,
      sql: "SELECT name, sql FROM \(schema).sqlite_schema "
        + "WHERE type = 'table' AND rootpage = 0 AND sql LIKE '%vec0%'"
    ).compactMap { row in
      let words = SQLTokens(row["sql"] as String).tokens
      guard let using = words.firstIndex(where: { $0.isWord("USING") }), using + 1 < words.count,
        words[using + 1].name.isSame(as: "vec0")
      else { return nil }
      return row["name"]
    }
  }

  func contain(_ name: SQLName) -> Bool {
    virtualTables.contains { table in
      guard name.begins(with: table) else { return false }
      let ending = String(
        decoding: name.folded.text.utf8.dropFirst(table.text.utf8.count), as: UTF8.self)
      return Self.endings.contains(ending)
        || Self.numberedEndings.contains {
          ending.hasPrefix($0) && ending.count == $0.count + 2
            && ending.suffix(2).allSatisfy(\.isNumber)
        }
    }
  }

  private static let endings: Set = ["_chunks", "_rowids", "_info", "_auxiliary"]
  private static let numberedEndings = ["_vector_chunks", "_metadatachunks", "_metadatatext"]
}
