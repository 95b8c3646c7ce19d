import Foundation
import GRDB
import SyncModel

/// The commands that this client sends (`docsync_command`).
struct CommandQueue {
  static let definition = TableDefinition(
    "docsync_command", .device(.store),
    columns: [
      .integer("seq", "PRIMARY KEY"), .blob("content", "NOT NULL"), .integer("number", "UNIQUE"),
      .blob("hash"), .blob("bytes"), .integer("published", "NOT NULL DEFAULT 0"),
    ], damage: nil)

  let database: Database

  func add(_ content: [UInt8]) throws {
    try database.execute(
      sql: "INSERT INTO docsync_command (content) VALUES (?)", arguments: [Data(content)])
  }

  /// Returns all commands, in order.
  func all() throws -> [QueuedCommand] {
    try StoredRow.fetchAll(
      database,
      sql: "SELECT seq, content, number, hash, published FROM docsync_command ORDER BY seq"
    ).map { row in
      let number: UInt64? = try row["number"]
      return QueuedCommand(
        sequence: try row["seq"], content: Array(try row["content"] as Data),
        sealed: try number.map {
          VersionVector.Entry(number: $0, hash: try Self.definition.hash(row["hash"]))
        }, isPublished: try row["published"])
    }
  }

  /// Calls `body` with the number, the command and the bytes of each sealed command. The command is
  /// `nil` if its hash is invalid.
  func forEachSealed(_ body: (UInt64, QueuedCommand?, [UInt8]) throws -> Void) throws {
    let reading = try SQLStatement(
      "SELECT seq, number, hash, bytes, published FROM docsync_command WHERE number IS NOT NULL "
        + "ORDER BY number", on: database)
    while try reading.step() {
      let number = UInt64(bitPattern: reading.integer(at: 1))
      let command = ContentHash(bytes: reading.content(at: 2)).map { hash in
        QueuedCommand(
          sequence: reading.integer(at: 0), content: [],
          sealed: VersionVector.Entry(number: number, hash: hash),
          isPublished: reading.integer(at: 4) != 0)
      }
      try body(number, command, reading.bytes(at: 3))
    }
  }

  /// Returns the bytes of a sealed command, or `nil` if the queue does not have it any more.
  func bytes(_ number: UInt64) throws -> [UInt8]? {
    try Data.fetchOne(
      database, sql: "SELECT bytes FROM docsync_command WHERE number = ?",
      arguments: [Int64(number)]
    ).map(Array.init)
  }

  /// Stores the number, the hash and the bytes of a command that is sealed.
  func seal(_ sequence: Int64, as entry: VersionVector.Entry, bytes: [UInt8]) throws {
    try database.execute(
      sql: "UPDATE docsync_command SET number = ?, hash = ?, bytes = ? WHERE seq = ?",
      arguments: [Int64(entry.number), Data(entry.hash.bytes), Data(bytes), sequence])
  }

  /// Removes all commands except unpublished ones whose content passes `isKept`, and takes their
  /// numbers away. A store calls this when it becomes another client, which sends them.
  func keepUnpublished(where isKept: (_ content: [UInt8]) throws -> Bool = { _ in true }) throws {
    for command in try all() where try command.isPublished || !isKept(command.content) {
      try database.execute(
        sql: "DELETE FROM docsync_command WHERE seq = ?", arguments: [command.sequence])
    }
    try database.execute(sql: "UPDATE docsync_command SET number = NULL, hash = NULL, bytes = NULL")
  }

  func markPublished(_ number: UInt64) throws {
    try database.execute(
      sql: "UPDATE docsync_command SET published = 1 WHERE number = ?",
      arguments: [Int64(number)])
  }

  func removePublished(through number: UInt64) throws {
    try database.execute(
      sql: "DELETE FROM docsync_command WHERE number <= ? AND published = 1",
      arguments: [Int64(clamping: number)])
  }
}
