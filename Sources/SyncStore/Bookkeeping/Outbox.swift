import Foundation
import GRDB
import SyncModel

/// The change sets of this client, and unpublished ones that the store sealed as another client
/// (`docsync_outbox`).
struct Outbox {
  static let definition = TableDefinition(
    "docsync_outbox", .device(.changeSets),
    columns: [
      .integer("client", "", .client), .integer("number", "", .number), .blob("hash", "NOT NULL"),
      .integer("size", "NOT NULL"), .integer("changes", "NOT NULL"),
      .integer("published", "NOT NULL"), .blob("bytes", "NOT NULL"),
    ], constraint: "PRIMARY KEY (client, number)")

  /// An SQL query that yields a row if a change set is unpublished.
  static let unpublished = "SELECT 1 FROM docsync_outbox WHERE published = 0"

  let database: Database
  let clients: ClientRegistry

  /// Stores a sealed change set as unpublished. It may stay after it is published.
  func add(
    _ bytes: [UInt8], as entry: VersionVector.Entry, rowCount: Int, of client: Int32
  ) throws {
    let statement = try SQLStatement(
      "INSERT INTO docsync_outbox (client, number, hash, size, changes, published, bytes) "
        + "VALUES (?, ?, ?, ?, ?, 0, ?)", on: database)
    statement.bind(Int64(client), at: 1)
    statement.bind(Int64(entry.number), at: 2)
    statement.bind(blob: entry.hash.bytes, at: 3)
    statement.bind(Int64(bytes.count), at: 4)
    statement.bind(Int64(rowCount), at: 5)
    statement.bind(blob: bytes, at: 6)
    try statement.run()
  }

  // MARK: - Reading

  /// Returns the change sets of a client, in order, and on request the unpublished ones of other
  /// clients.
  func all(of client: Int32, andUnpublished: Bool = false) throws -> [SealedChangeSet] {
    try all(where: "client = \(client)" + (andUnpublished ? " OR published = 0" : ""))
  }

  /// Returns the change sets of all clients but one, in order.
  func all(except client: Int32, onlyUnpublished: Bool) throws -> [SealedChangeSet] {
    try all(where: "client <> \(client)" + (onlyUnpublished ? " AND published = 0" : ""))
  }

  private func all(where condition: String) throws -> [SealedChangeSet] {
    var found: [SealedChangeSet] = []
    try forEach(where: condition, withBytes: false) { _, sealed, _ in
      guard let sealed else { throw Self.definition.damaged() }
      found.append(sealed)
    }
    return found
  }

  /// Calls `body` with the number, the change set and the bytes of each one. The change set is
  /// `nil` if its hash is invalid.
  func forEach(
    where condition: String = "TRUE", withBytes: Bool = true,
    _ body: (UInt64, SealedChangeSet?, [UInt8]) throws -> Void
  ) throws {
    let reading = try SQLStatement(
      "SELECT client, number, hash, size, changes, published, length(bytes) > 0"
        + (withBytes ? ", bytes" : "")
        + " FROM docsync_outbox WHERE \(condition) ORDER BY client, number", on: database)
    while try reading.step() {
      let client = clients.client(try reading.number(at: 0))
      let number: UInt64 = try reading.number(at: 1)
      let (byteCount, rowCount): (Int, Int) = try (reading.number(at: 3), reading.number(at: 4))
      let sealed = ContentHash(bytes: reading.content(at: 2)).map { hash in
        SealedChangeSet(
          client: client, number: number, hash: hash, byteCount: byteCount, rowCount: rowCount,
          isPublished: reading.integer(at: 5) != 0, isKept: reading.integer(at: 6) != 0)
      }
      try body(number, sealed, withBytes ? reading.bytes(at: 7) : [])
    }
  }

  /// Returns the last change set of a client, or `nil` if there is none, or its hash is invalid.
  func last(of client: Int32) throws -> VersionVector.Entry? {
    let row = try StoredRow.fetchOne(
      database,
      sql: "SELECT number, hash FROM docsync_outbox WHERE client = ? ORDER BY number DESC LIMIT 1",
      arguments: [client])
    guard let row, let hash = ContentHash(bytes: try row["hash"] as Data) else { return nil }
    return VersionVector.Entry(number: try row["number"], hash: hash)
  }

  /// Returns the bytes and the hash of a change set, or `nil` if the outbox does not have it. The
  /// bytes are empty if the store has given them up; the hash is `nil` if it is invalid.
  func file(
    _ number: UInt64, of client: Int32
  ) throws -> (bytes: [UInt8], hash: ContentHash?)? {
    let statement = try SQLStatement(
      "SELECT bytes, hash FROM docsync_outbox WHERE client = ? AND number = ?", on: database)
    statement.bind(Int64(client), at: 1)
    statement.bind(Int64(clamping: number), at: 2)
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    return (statement.bytes(at: 0), ContentHash(bytes: statement.content(at: 1)))
  }

  func unpublishedCount() throws -> Int {
    try Int.fetchOne(
      database, sql: "SELECT count(*) FROM docsync_outbox WHERE published = 0") ?? 0
  }

  /// Returns the number of rows in the unpublished change sets.
  func unpublishedRowCount() throws -> Int {
    try Int.fetchOne(
      database, sql: "SELECT total(changes) FROM docsync_outbox WHERE published = 0") ?? 0
  }

  /// Returns the first and the last number of a client's unpublished change sets, or `nil` if there
  /// are none.
  func unpublishedNumbers(of client: Int32) throws -> (first: Int64, last: Int64)? {
    let row = try StoredRow.fetchOne(
      database,
      sql: "SELECT min(number), max(number) FROM docsync_outbox WHERE client = ? AND published = 0",
      arguments: [client])
    guard let row, let first = try row[0] as Int64?, let last = try row[1] as Int64? else {
      return nil
    }
    return (first, last)
  }

  // MARK: - Publishing

  /// Marks a change set as published, or removes it. Idempotent.
  func markPublished(_ number: UInt64, of client: Int32, removing: Bool) throws {
    try database.execute(
      sql: removing
        ? "DELETE FROM docsync_outbox WHERE client = ? AND number = ?"
        : "UPDATE docsync_outbox SET published = 1 WHERE client = ? AND number = ? AND published = 0",
      arguments: [client, Int64(number)])
  }

  /// Removes the bytes of a client's published change sets through a number, but not their other
  /// data.
  func forgetBytes(of client: Int32, through number: UInt64) throws {
    try database.execute(
      sql: "UPDATE docsync_outbox SET bytes = x'' "
        + "WHERE client = ? AND number <= ? AND published = 1 AND length(bytes) > 0",
      arguments: [client, Int64(clamping: number)])
  }

  func remove(of client: Int32, after number: Int64) throws {
    try database.execute(
      sql: "DELETE FROM docsync_outbox WHERE client = ? AND number > ?",
      arguments: [client, number])
  }

  /// Removes the published change sets, or those of them below a number.
  func removePublished(below number: UInt64? = nil) throws {
    let condition = number.map { " AND number < \(Int64(clamping: $0))" } ?? ""
    try database.execute(sql: "DELETE FROM docsync_outbox WHERE published = 1" + condition)
  }

  func removeAll() throws { try database.execute(sql: "DELETE FROM docsync_outbox") }
}
