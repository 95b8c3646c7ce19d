import Foundation
import GRDB
import SyncModel

/// The table of the conflict journal (`docsync_conflict`).
enum ConflictTable {
  static let definition = TableDefinition(
    "docsync_conflict", .device(.store),
    columns: [
      .integer("number", "PRIMARY KEY"), .integer("at", "NOT NULL"), .integer("size", "NOT NULL"),
      .text("status", "NOT NULL"), .text("kind", "NOT NULL"),
      .integer("tbl", "NOT NULL", .journalTable),
      .blob("identity", "NOT NULL", .row),
      .integer("col", "", .column, isOptional: true), .text("rule", "NOT NULL"),
      .text("outcome", "NOT NULL"), .integer("local_time", isOptional: true),
      .integer("local_client", "", .client, isOptional: true),
      .integer("remote_time", isOptional: true),
      .integer("remote_client", "", .client, isOptional: true), .text("message", isOptional: true),
      .blob("key", "", .cells, isOptional: true), .blob("base", "", .cells, isOptional: true),
      .blob("local", "", .cells, isOptional: true), .blob("remote", "", .cells, isOptional: true),
    ],
    indexes: [
      TableDefinition.Index(name: "docsync_conflict_row", columns: "tbl, identity"),
      TableDefinition.Index(
        name: "docsync_conflict_open", columns: "status", condition: "status = 'open'"),
    ])

  /// Removes an entry.
  static func remove(_ number: Int64, _ database: Database) throws {
    let statement = try database.cachedStatement(
      sql: "DELETE FROM docsync_conflict WHERE number = ?")
    try statement.execute(arguments: [number])
  }

  /// Returns the number of entries and the bytes of their values.
  static func size(_ database: Database) throws -> (count: Int, size: Int) {
    let total = try SQLStatement(
      "SELECT count(*), coalesce(sum(size), 0) FROM docsync_conflict", on: database)
    guard try total.step() else { return (0, 0) }
    defer { total.reset() }
    return (Int(total.integer(at: 0)), Int(total.integer(at: 1)))
  }

  /// Returns number, time and size of entries that are not open, the oldest first.
  static func settled(
    from first: Int64, through last: Int64, limit: Int, _ database: Database
  ) throws -> [StoredRow] {
    try StoredRow.fetchAll(
      database,
      sql: "SELECT number, at, size FROM docsync_conflict WHERE status <> 'open' "
        + "AND number BETWEEN ? AND ? ORDER BY number LIMIT ?", arguments: [first, last, limit])
  }

  /// The position that stands for the local key in the key of an entry: the local key is no
  /// synchronized column.
  static let localKeyPosition = 1 << 20

  static func count(_ database: Database) throws -> Int {
    try Int.fetchOne(database, sql: "SELECT count(*) FROM docsync_conflict") ?? 0
  }

  static func openCount(_ database: Database) throws -> Int {
    try Int.fetchOne(
      database, sql: "SELECT count(*) FROM docsync_conflict WHERE status = 'open'") ?? 0
  }

  static func openNumbers(_ database: Database) throws -> Set<Int64> {
    try Int64.fetchSet(database, sql: "SELECT number FROM docsync_conflict WHERE status = 'open'")
  }

  /// Returns the numbers and rows of the open entries about cells, of all rows or of one.
  static func openCells(
    of row: RowKey?, _ database: Database
  ) throws -> [(number: Int64, row: RowKey)] {
    let cells =
      "SELECT number, tbl, identity FROM docsync_conflict WHERE status = 'open' AND kind = 'cell'"
    let statement = try SQLStatement(
      cells + (row == nil ? "" : " AND tbl = ? AND identity = ?"), on: database)
    if let row {
      statement.bind(Int64(row.table), at: 1)
      statement.bind(blob: row.identity.bytes, at: 2)
    }
    var found: [(number: Int64, row: RowKey)] = []
    while try statement.step() {
      let identity = RowIdentity(bytes: statement.bytes(at: 2))
      found.append(
        (statement.integer(at: 0), RowKey(table: Int(statement.integer(at: 1)), identity: identity))
      )
    }
    return found
  }

  /// Returns the numbers of the entries, in order.
  static func numbers(_ database: Database) throws -> [Int64] {
    try Int64.fetchAll(database, sql: "SELECT number FROM docsync_conflict ORDER BY number")
  }

  /// Returns the numbers of the newest entries before a number, the newest first.
  static func numbers(
    before number: Int64, limit: Int, _ database: Database
  ) throws -> [Int64] {
    try Int64.fetchAll(
      database,
      sql: "SELECT number FROM docsync_conflict WHERE number < ? ORDER BY number DESC LIMIT ?",
      arguments: [number, limit])
  }

  /// Returns the numbers of the tables that entries name.
  static func tables(_ database: Database) throws -> [Int] {
    try Int.fetchAll(database, sql: "SELECT DISTINCT tbl FROM docsync_conflict")
  }

  static func names(_ table: Int, _ database: Database) throws -> Bool {
    try Bool.fetchOne(
      database, sql: "SELECT EXISTS (SELECT 1 FROM docsync_conflict WHERE tbl = ?)",
      arguments: [table]) ?? false
  }

  /// Replaces the number of a table that no longer exists. Settles its open entries: they cannot be
  /// answered.
  static func rename(_ table: Int, toGone number: Int, _ database: Database) throws {
    try database.execute(
      sql: """
        UPDATE docsync_conflict SET tbl = ?, \
        status = CASE status WHEN 'open' THEN 'settled' ELSE status END WHERE tbl = ?
        """, arguments: [number, table])
  }

  /// Changes the positions of a table's columns in its entries. Settles open entries about a column
  /// that no longer exists: they cannot be answered.
  ///
  /// - Returns: Whether the table has entries.
  static func moveColumns(
    of table: Int, _ database: Database, isGone: (Int) -> Bool, to moved: (Int) -> Int
  ) throws -> Bool {
    let rows = try StoredRow.fetchAll(
      database,
      sql: "SELECT number, col, key, base, local, remote FROM docsync_conflict "
        + "WHERE tbl = ?", arguments: [table])
    for row in rows {
      let column = try row["col"] as Int?
      let cells = try ["key", "base", "local", "remote"].map { name in
        try (row[name] as Data?).map { bytes in
          Data(
            KeptCells.encode(
              try KeptCells.decode(Array(bytes)).map { (moved($0.column), $0.value) }))
        }
      }
      try database.execute(
        sql: """
          UPDATE docsync_conflict SET col = ?, key = ?, base = ?, local = ?, remote = ?, \
          status = CASE WHEN status = 'open' AND ? THEN 'settled' ELSE status END WHERE number = ?
          """,
        arguments: StatementArguments([column.map(moved)]) + StatementArguments(cells)
          + [column.map(isGone) ?? false, row["number"] as Int64])
    }
    return !rows.isEmpty
  }

  /// Removes entries with a number above `last` that repeat an earlier entry, except open ones.
  static func removeRepeated(after last: Int64, _ database: Database) throws {
    let same = [
      "tbl", "identity", "col", "kind", "local_time", "local_client", "remote_time",
      "remote_client",
    ]
    try database.execute(
      sql: """
        DELETE FROM docsync_conflict AS c WHERE number > ?1 AND status <> 'open' AND EXISTS \
        (SELECT 1 FROM docsync_conflict AS o WHERE o.number <= ?1 AND \
        \(same.map { "o.\($0) IS c.\($0)" }.joined(separator: " AND ")))
        """, arguments: [last])
  }
}
