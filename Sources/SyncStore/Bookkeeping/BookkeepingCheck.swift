import GRDB
import SyncModel
import Synchronization

/// A comparison of a store's bookkeeping tables and indexes with those of its layout version.
struct BookkeepingCheck {
  let database: Database
  /// The version of the layout, at most the present one: opening the store creates missing tables
  /// and indexes of later versions.
  let format: Int

  /// A cache of the expected shapes, by layout version: to create a database for them costs more
  /// than the comparison.
  private static let wanted = Mutex<[Int: [SQLName: String]]>([:])

  /// Returns a sentence for each table or index that is missing or has other columns, in order of
  /// name.
  func run() throws -> [(name: SQLName, message: String)] {
    let wanted = try Self.wanted.withLock { known in
      if let shapes = known[format] { return shapes }
      let shapes = try Self.shapes(ofLayout: format)
      known[format] = shapes
      return shapes
    }
    let found = try Self.shapes(database)
    return wanted.sorted { $0.key < $1.key }.compactMap { name, shape in
      guard let other = found[name] else { return (name, "\(name) is missing.") }
      return shape == other ? nil : (name, "\(name) is not as this version makes it: \(other)")
    }
  }

  private static func shapes(ofLayout format: Int) throws -> [SQLName: String] {
    try DatabaseQueue().write { database in
      for statement in Bookkeeping.creation(upTo: format) { try database.execute(sql: statement) }
      return try shapes(database)
    }
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
