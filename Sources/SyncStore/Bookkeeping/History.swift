import Foundation
import GRDB
import SyncModel

/// The last change sets that this store has sealed or applied, in order (`docsync_history`).
struct History {
  static let definition = TableDefinition(
    "docsync_history", .device(.generation),
    columns: [
      .integer("seq", "PRIMARY KEY"), .integer("client", "NOT NULL", .client),
      .integer("number", "NOT NULL", .number), .blob("hash", "NOT NULL"),
      .integer("changes", "NOT NULL"), .integer("size", "NOT NULL"), .integer("at", "NOT NULL"),
    ])

  let database: Database

  /// The most change sets that the history holds.
  static let greatestCount = 1_000

  /// Adds a change set, and drops the oldest beyond ``greatestCount``.
  ///
  /// - Parameter now: Milliseconds since 1970.
  func add(
    client: Int32, entry: VersionVector.Entry, rowCount: Int, byteCount: Int, at now: Int64
  ) throws {
    try database.execute(
      sql: "INSERT INTO docsync_history (client, number, hash, changes, size, at) "
        + "VALUES (?, ?, ?, ?, ?, ?)",
      arguments: [client, Int64(entry.number), Data(entry.hash.bytes), rowCount, byteCount, now])
    try database.execute(
      sql: "DELETE FROM docsync_history WHERE seq <= ?",
      arguments: [database.lastInsertedRowID - Int64(Self.greatestCount)])
  }

  /// Returns the last change sets, the newest first.
  func last(_ limit: Int, _ clients: ClientRegistry) throws -> [AppliedChangeSet] {
    try StoredRow.fetchAll(
      database,
      sql: "SELECT client, number, hash, changes, at FROM docsync_history "
        + "ORDER BY seq DESC LIMIT ?",
      arguments: [limit]
    ).map { row in
      AppliedChangeSet(
        client: clients.client(try row["client"]),
        number: try row["number"], hash: try Self.definition.hash(row["hash"]),
        rowCount: try row["changes"], milliseconds: try row["at"])
    }
  }

  /// Returns the total length, in bytes, of the files of the change sets beyond a vector.
  func byteCount(beyond vector: VersionVector, _ clients: ClientRegistry) throws -> Int {
    try StoredRow.fetchAll(
      database, sql: "SELECT client, number, size FROM docsync_history"
    ).reduce(0) { sum, row in
      let client = clients.client(try row["client"])
      return try (row["number"] as UInt64) > vector.number(of: client)
        ? sum + (try row["size"] as Int) : sum
    }
  }

  /// Returns the hashes of a client's change sets by their numbers, from `first` on.
  func hashes(of client: Int32, from first: UInt64) throws -> [UInt64: ContentHash] {
    let rows = try StoredRow.fetchAll(
      database,
      sql: "SELECT number, hash FROM docsync_history WHERE client = ? AND number >= ? "
        + "ORDER BY seq",
      arguments: [client, Int64(first)])
    var hashes: [UInt64: ContentHash] = [:]
    for row in rows { hashes[try row[0]] = try Self.definition.hash(row[1]) }
    return hashes
  }

  /// Returns the position of the last change set; 0 if there is none.
  func end() throws -> Int64 {
    try Int64.fetchOne(database, sql: "SELECT max(seq) FROM docsync_history") ?? 0
  }

  /// Removes the change sets after a position that the history also has before it.
  func removeRepeated(after end: Int64) throws {
    try database.execute(
      sql: "DELETE FROM docsync_history WHERE seq > ? AND EXISTS (SELECT 1 FROM docsync_history "
        + "AS h WHERE h.seq <= ?1 AND h.client = docsync_history.client "
        + "AND h.number = docsync_history.number)",
      arguments: [end])
  }

  func remove(of client: Int32, after number: Int64) throws {
    try database.execute(
      sql: "DELETE FROM docsync_history WHERE client = ? AND number > ?",
      arguments: [client, number])
  }
}
