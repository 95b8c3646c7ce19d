import GRDB

/// The note that another store may have the same log: this store became a client of its own, as a
/// copy, while it had unsealed edits.
///
/// A row that was inserted and deleted before sealing is not sent. If the log is shared, the other
/// store may seal the insertion, so this store has to send the deletion.
enum SharedLog {
  /// Notes that the log may be shared, if it has edits.
  static func note(_ database: Database) throws {
    let hasEdits = try TableRegistry.registeredIDs(database).contains { id in
      try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 FROM docsync_log_\(id))") ?? false
    }
    if hasEdits { try MetaTable.write(.sharedLog, to: [1], database) }
  }

  static func isNoted(_ database: Database) throws -> Bool {
    try MetaTable.read(.sharedLog, database) != nil
  }

  /// Removes the note, once the log is sealed.
  static func forget(_ database: Database) throws {
    try MetaTable.remove(.sharedLog, database)
  }
}
