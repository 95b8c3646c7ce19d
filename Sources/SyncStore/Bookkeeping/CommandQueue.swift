import Foundation
import GRDB

/// The commands of this client (`docsync_command`).
struct CommandQueue {
  static let definition = TableDefinition(
    "docsync_command", .device(.store),
    columns: [
      .integer("seq", "PRIMARY KEY"), .blob("content", "NOT NULL"), .integer("number", "UNIQUE"),
      .blob("hash"), .blob("bytes"), .integer("published", "NOT NULL DEFAULT 0"),
    ], damage: nil)

  let database: Database

  /// Keeps only the commands that are not sent and whose content `isKept`, without their numbers,
  /// for another client to send.
  func keepUnsent(where isKept: (_ content: [UInt8]) throws -> Bool) throws {
    try database.execute(sql: "DELETE FROM docsync_command WHERE published = 1")
    let unsent = try StoredRow.fetchAll(
      database, sql: "SELECT seq, content FROM docsync_command"
    ).map { (sequence: try $0["seq"] as Int64, content: Array(try $0["content"] as Data)) }
    for command in unsent where try !isKept(command.content) {
      try database.execute(
        sql: "DELETE FROM docsync_command WHERE seq = ?", arguments: [command.sequence])
    }
    try database.execute(sql: "UPDATE docsync_command SET number = NULL, hash = NULL, bytes = NULL")
  }
}
