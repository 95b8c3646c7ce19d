import GRDB

/// Whether another store may have the log as it is: this one became a client of its own, as a copy, while
/// edits were not sealed.
///
/// Of a row that came and went before it was sealed nothing is said. Of such a store the other one
/// may seal the insertion, so that the deletion has to be said.
enum SharedLog {
  /// Where it is kept among what bookkeeping knows of the device.
  static let key = "sharedLog"

  /// Notes it where there are edits in the log.
  static func note(_ database: Database) throws {
    let hasEdits = try Bookkeeping.registeredIDs(database).contains { id in
      try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 FROM docsync_log_\(id))") ?? false
    }
    if hasEdits { try Bookkeeping.setMeta(key, to: [1], database) }
  }

  static func isNoted(_ database: Database) throws -> Bool {
    try Bookkeeping.meta(key, database) != nil
  }

  /// Once the log is sealed.
  static func forget(_ database: Database) throws {
    try database.execute(sql: "DELETE FROM docsync_meta WHERE key = ?", arguments: [key])
  }
}
