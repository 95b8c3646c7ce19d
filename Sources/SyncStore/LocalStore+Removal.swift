import Foundation
import GRDB

extension LocalStore {
  /// Takes the database out of sync, in one transaction: removes the capture
  /// triggers and all bookkeeping, and leaves the rest as it is. Only
  /// ``close()`` may be called afterwards.
  ///
  /// Returns `false`, and changes nothing, if there are rows or change sets
  /// that bookkeeping alone holds, and that would be lost.
  public func removeBookkeeping() throws -> Bool {
    try StoreError.mapping(path) {
      try connection.queue.writeWithoutTransaction { database in
        var isRemoved = false
        try database.inTransaction(.immediate) {
          let holds =
            try Bool.fetchOne(
              database,
              sql: """
                SELECT EXISTS (SELECT 1 FROM docsync_inbox) \
                OR EXISTS (SELECT 1 FROM docsync_foreign) OR EXISTS \
                (SELECT 1 FROM docsync_kept WHERE reason NOT IN \(KeptRow.Reason.silentList))
                """) ?? true
          if holds { return .rollback }
          try Bookkeeping.remove(database)
          isRemoved = true
          return .commit
        }
        return isRemoved
      }
    }
  }
}

extension Bookkeeping {
  /// Removes what ``creation``, ``creation(for:)`` and capture have made.
  fileprivate static func remove(_ database: Database) throws {
    let triggers = try String.fetchAll(
      database,
      sql: "SELECT name FROM main.sqlite_schema WHERE type = 'trigger' "
        + "AND name GLOB 'docsync_[0-9]*_[a-z][a-z]'")
    for name in triggers { try database.execute(sql: "DROP TRIGGER main.\(quoted(name))") }
    let fixed = [
      "meta", "table", "column", "client", "outbox", "inbox", "history", "record", "kept",
      "kept_reference", "claim", "foreign", "foreign_table", "foreign_column", "lost",
      "range", "conflict", "base",
    ].map { "docsync_" + $0 }
    let perTable = try String.fetchAll(
      database,
      sql: """
        SELECT name FROM main.sqlite_schema WHERE type = 'table' \
        AND (name GLOB 'docsync_log_[0-9]*' OR name GLOB 'docsync_id_[0-9]*' \
        OR name GLOB 'docsync_stamps_[0-9]*')
        """)
    for name in fixed + perTable {
      try database.execute(sql: "DROP TABLE main.\(quoted(name))")
    }
  }
}
