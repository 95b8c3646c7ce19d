import Foundation
import GRDB
import SyncModel

/// Other clients' commands that wait for the application (`docsync_event`).
struct EventQueue {
  static let definition = TableDefinition(
    "docsync_event", .device(.store),
    columns: [
      .integer("id", "PRIMARY KEY"), .blob("client", "NOT NULL"), .integer("number", "NOT NULL"),
      .text("name", "NOT NULL"), .blob("payload", "NOT NULL"),
    ], constraint: "UNIQUE (client, number)", damage: nil)

  let database: Database

  /// Queues commands, except those that are in the queue already.
  func add(_ events: [CommandEvent]) throws {
    for event in events {
      try database.execute(
        sql: "INSERT OR IGNORE INTO docsync_event (client, number, name, payload) "
          + "VALUES (?, ?, ?, ?)",
        arguments: [
          Data(event.client.bits.bytes), Int64(event.number), event.name, Data(event.payload),
        ])
    }
  }

  /// Returns all commands, in order.
  func all() throws -> [CommandEvent] {
    try StoredRow.fetchAll(
      database, sql: "SELECT client, number, name, payload FROM docsync_event ORDER BY id"
    ).map { row in
      CommandEvent(
        client: try Self.definition.client(row["client"]), number: try row["number"],
        name: try row["name"], payload: Array(try row["payload"] as Data))
    }
  }

  func remove(_ number: UInt64, of client: ClientIdentifier) throws {
    try database.execute(
      sql: "DELETE FROM docsync_event WHERE client = ? AND number = ?",
      arguments: [Data(client.bits.bytes), Int64(clamping: number)])
  }
}
