import GRDB
import SyncModel
import Synchronization

/// A comparison of a store's bookkeeping tables and indexes with those of its layout version.
struct BookkeepingCheck {
  let database: Database
  /// The version of the layout, at most the present one: opening the store creates missing tables
  /// and indexes of later versions.
  let format: Int

  /// What a layout consists of.
  private struct Layout {
    /// The columns of each table and index, as text.
    var shapes: [SQLName: String]
    /// The statement that creates each of them.
    var definitions: [SQLName: SQLText]
  }

  /// A cache of the expected layouts, by version: to create a database for them costs more
  /// than the comparison.
  private static let wanted = Mutex<[Int: Layout]>([:])

  /// Returns a sentence for each table or index that is missing or has other columns, in order of
  /// name.
  func run() throws -> [(name: SQLName, message: String)] {
    let wanted = try Self.wanted.withLock { known in
      if let layout = known[format] { return layout }
      let layout = try Self.layout(format)
      known[format] = layout
      return layout
    }
    // Those that were created by the same statements need not be described by SQLite.
    let definitions = try Self.definitions(database)
    if wanted.definitions.allSatisfy({ definitions[$0.key] == $0.value }) { return [] }
    let found = try Self.shapes(database)
    return wanted.shapes.sorted { $0.key < $1.key }.compactMap { name, shape in
      guard let other = found[name] else { return (name, "\(name) is missing.") }
      return shape == other ? nil : (name, "\(name) is not as this version makes it: \(other)")
    }
  }

  private static func layout(_ format: Int) throws -> Layout {
    try DatabaseQueue().write { database in
      for statement in Bookkeeping.creation(upTo: format) { try database.execute(sql: statement) }
      return Layout(shapes: try shapes(database), definitions: try definitions(database))
    }
  }

  private static func definitions(_ database: Database) throws -> [SQLName: SQLText] {
    let rows = try StoredRow.fetchAll(
      database,
      sql: "SELECT name, sql FROM main.sqlite_schema WHERE type IN ('table', 'index') "
        + "AND name GLOB 'docsync_*' AND sql NOT NULL")
    var definitions: [SQLName: SQLText] = [:]
    for row in rows { definitions[try row["name"]] = try row["sql"] as SQLText }
    return definitions
  }

  /// Returns the tables and indexes of bookkeeping, with their columns as text.
  private static func shapes(_ database: Database) throws -> [SQLName: String] {
    func all(_ type: String, _ pragma: String, _ column: String, by rank: String) throws -> [Row] {
      try Row.fetchAll(
        database,
        sql: """
          SELECT name, group_concat(text, ', ') AS shape FROM \
          (SELECT object.name AS name, \(column) AS text \
          FROM main.sqlite_schema AS object, \(pragma)(object.name, 'main') AS part \
          WHERE object.type = '\(type)' AND object.name GLOB 'docsync_*' \
          ORDER BY object.name, part.\(rank)) GROUP BY name
          """)
    }
    var shapes: [SQLName: String] = [:]
    let rows =
      try all(
        "table", "pragma_table_info", "part.name || ' ' || part.type || ' ' || part.pk", by: "cid")
      + all("index", "pragma_index_info", "coalesce(part.name, '')", by: "seqno")
    for row in rows { shapes[row["name"]] = row["shape"] }
    return shapes
  }
}
