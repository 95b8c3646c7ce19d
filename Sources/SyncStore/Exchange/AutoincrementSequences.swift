import GRDB
import SyncModel

/// The greatest keys that tables with AUTOINCREMENT have given out, in two databases that become
/// one: no key is given out twice.
struct AutoincrementSequences {
  private let database: Database
  private var greatest: [SQLName: Int64]

  /// Reads them. A table that is dropped and made again later forgets its own.
  ///
  /// - Parameters:
  ///   - database: The database whose sequences are to be raised.
  ///   - other: The other database.
  init(_ database: Database, and other: Database? = nil) throws {
    self.database = database
    greatest = try Self.read(database)
    guard let other else { return }
    greatest.merge(try Self.read(other), uniquingKeysWith: max)
  }

  private static func read(_ database: Database) throws -> [SQLName: Int64] {
    // SQLite makes it with the first such table.
    guard try database.tableExists("sqlite_sequence", in: "main") else { return [:] }
    var found: [SQLName: Int64] = [:]
    for row in try Row.fetchAll(database, sql: "SELECT name, seq FROM main.sqlite_sequence") {
      guard let name = SQLName.fromDatabaseValue(row["name"]),
        let number = Int64.fromDatabaseValue(row["seq"])
      else { continue }
      found[name.folded] = max(found[name.folded] ?? .min, number)
    }
    return found
  }

  /// Raises the sequences of the tables that are there.
  func raise() throws { for table in greatest.keys.sorted() { try raise(of: table) } }

  /// Raises the sequence of one table.
  func raise(of table: SQLName) throws {
    guard let number = greatest[table.folded] else { return }
    try Self.raise(of: table, to: number, database)
  }

  /// Raises the sequence of a table. If no row was ever inserted into it, it has none.
  static func raise(of table: SQLName, to number: Int64, _ database: Database) throws {
    let entry = try Row.fetchOne(
      database,
      sql: "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table' "
        + "AND name = ? COLLATE NOCASE", arguments: [table])
    guard let entry, let sql = String.fromDatabaseValue(entry["sql"]),
      SQLTokens(sql).tokens.contains(where: { $0.isWord("AUTOINCREMENT") })
    else { return }
    let name: SQLName = entry["name"]
    try database.execute(
      sql: "UPDATE main.sqlite_sequence SET seq = max(seq, ?) WHERE name = ?",
      arguments: [number, name])
    if database.changesCount == 0 {
      try database.execute(
        sql: "INSERT INTO main.sqlite_sequence (name, seq) VALUES (?, ?)",
        arguments: [name, number])
    }
  }
}
