import GRDB
import SyncModel
import Synchronization

/// Compares the tables and indexes that every store has with those that are
/// made for its version of the layout.
struct BookkeepingCheck {
  let database: Database
  /// The version of the layout, at most the present one: missing tables and indexes of later
  /// versions are made when the store is opened.
  let format: Int

  /// The shapes that this version makes, by the version of the layout. They are kept, since making
  /// a database for them costs more than the comparison.
  private static let wanted = Mutex<[Int: [SQLName: String]]>([:])

  /// A sentence for each table or index that is missing or has other columns, by name.
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

  /// The tables and indexes of bookkeeping, with their columns as text.
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
