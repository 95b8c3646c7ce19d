import Foundation
import GRDB
import SyncModel

/// Commands: this client's commands until no device needs them any more, the queue of commands for
/// the application, and the result of all clients' commands.
///
/// The result is a value of the layer above, the *command state*. Snapshots contain it; the others
/// stay here.
extension LocalStore {
  // MARK: Own commands

  /// Stores a command to be sent, durably.
  package func enqueueCommand(_ content: [UInt8]) throws {
    try write { session in
      try session.database.execute(
        sql: "INSERT INTO docsync_command (content) VALUES (?)", arguments: [Data(content)])
    }
  }

  /// The commands of this client that are not cleared away, in order.
  package func queuedCommands() throws -> [QueuedCommand] {
    try read { session in
      try StoredRow.fetchAll(
        session.database,
        sql: "SELECT seq, content, number, hash, published FROM docsync_command ORDER BY seq"
      ).map { row in
        let number: UInt64? = try row["number"]
        return QueuedCommand(
          sequence: try row["seq"], content: Array(try row["content"] as Data),
          sealed: try number.map {
            VersionVector.Entry(number: $0, hash: try Self.hash(row["hash"]))
          }, isPublished: try row["published"])
      }
    }
  }

  /// Gives a command its number and its file, with the command state that
  /// results, in one transaction.
  package func sealCommand(
    _ sequence: Int64, as entry: VersionVector.Entry, bytes: [UInt8], state: [UInt8]
  ) throws {
    try write { session in
      try session.database.execute(
        sql: "UPDATE docsync_command SET number = ?, hash = ?, bytes = ? WHERE seq = ?",
        arguments: [Int64(entry.number), Data(entry.hash.bytes), Data(bytes), sequence])
      try MetaTable.write(.commandState, to: state, session.database)
    }
  }

  /// The bytes of a sealed command, exactly as they are published.
  package func commandBytes(_ number: UInt64) throws -> [UInt8] {
    let bytes = try read { session in
      try Data.fetchOne(
        session.database, sql: "SELECT bytes FROM docsync_command WHERE number = ?",
        arguments: [Int64(number)])
    }
    guard let bytes else {
      throw StoreError(
        .missing, path: path, message: "The store no longer keeps its command \(number).",
        remedy: "It was removed after all members had processed it.")
    }
    return Array(bytes)
  }

  /// Records that a sealed command is in the shared directory, with the
  /// command state that results, in one transaction.
  package func markCommandPublished(_ number: UInt64, state: [UInt8]) throws {
    try write { session in
      try MetaTable.write(.commandState, to: state, session.database)
      try session.database.execute(
        sql: "UPDATE docsync_command SET published = 1 WHERE number = ?",
        arguments: [Int64(number)])
    }
  }

  /// Forgets the published commands up to a number.
  package func forgetCommands(through number: UInt64) throws {
    try write { session in
      try session.database.execute(
        sql: "DELETE FROM docsync_command WHERE number <= ? AND published = 1",
        arguments: [Int64(clamping: number)])
    }
  }

  // MARK: Processing

  /// The result of all commands that were processed; `nil` before the first.
  package func commandState() throws -> [UInt8]? {
    try read { try MetaTable.read(.commandState, $0.database) }
  }

  /// Stores the new command state and queues events for the application, in one transaction. Skips
  /// events whose command was queued before.
  ///
  /// - Parameter limits: The last wanted change set of each client: those with a greater number
  ///   that wait in the store are removed.
  package func process(
    state: [UInt8], events: [CommandEvent] = [], limits: [ClientIdentifier: UInt64] = [:]
  ) throws {
    try write { session in
      try MetaTable.write(.commandState, to: state, session.database)
      try Self.queue(events, session.database)
      for (client, number) in limits {
        try session.database.execute(
          sql: "DELETE FROM docsync_inbox WHERE client = ? AND number > ?",
          arguments: [Data(client.bits.bytes), Int64(clamping: number)])
      }
    }
  }

  // MARK: The application's queue

  /// Queues commands that were not queued before. For use within a transaction.
  static func queue(_ events: [CommandEvent], _ database: Database) throws {
    for event in events {
      try database.execute(
        sql: "INSERT OR IGNORE INTO docsync_event (client, number, name, payload) "
          + "VALUES (?, ?, ?, ?)",
        arguments: [
          Data(event.client.bits.bytes), Int64(event.number), event.name, Data(event.payload),
        ])
    }
  }

  /// The commands that the application has not acknowledged, in order.
  package func pendingEvents() throws -> [CommandEvent] {
    try read { session in
      try StoredRow.fetchAll(
        session.database,
        sql: "SELECT client, number, name, payload FROM docsync_event "
          + "ORDER BY id"
      ).map { row in
        guard let bits = Bits128(bytes: try row["client"] as Data) else {
          throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "docsync_event is damaged")
        }
        return CommandEvent(
          client: ClientIdentifier(bits: bits), number: try row["number"],
          name: try row["name"], payload: Array(try row["payload"] as Data))
      }
    }
  }

  /// Removes a command from the queue, durably. Idempotent.
  package func acknowledgeEvent(of client: ClientIdentifier, number: UInt64) throws {
    try write { session in
      try session.database.execute(
        sql: "DELETE FROM docsync_event WHERE client = ? AND number = ?",
        arguments: [Data(client.bits.bytes), Int64(clamping: number)])
    }
  }
}
