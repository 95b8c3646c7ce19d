import CSQLite
import Foundation
import GRDB
import SyncModel

/// The replacement of a database by a new store, in the file of the database and in one transaction.
///
/// The file stays where it is, so a program that has it open reads the new store from then on, and
/// its edits are synchronized. If the file were renamed, the program would write to the renamed one
/// without an error (<https://www.sqlite.org/howtocorrupt.html>, section 2.4).
package final class DatabaseReplacement {
  private let connection: StoreConnection
  private let options: StoreOptions
  private let version: UInt32
  /// Whether the database is a store with edits that were not sealed when the replacement was
  /// created.
  package let hasUnsealedEdits: Bool
  /// Whether the database may be another one than before: ``run(byStoreAt:checkCancellation:)`` has
  /// begun to write, and it is not sure that SQLite has rolled that back.
  package private(set) var mayHaveWritten = false

  /// Creates the replacement of the database at `path`, and remembers the state that the database
  /// is in. Returns `nil` if the file is not a database that SQLite can read.
  ///
  /// Throws `busy` if another program has locked the database, and `notWritable`.
  package convenience init?(databaseAt path: String, options: StoreOptions) throws {
    try StoreError.checkFile(path)
    do {
      try self.init(path: path, options: options)
    } catch let error as StoreError where [.notADatabase, .damaged, .sqlite].contains(error.code) {
      return nil
    }
  }

  private init(path: String, options: StoreOptions) throws {
    let opened = try StoreError.mapping(path) {
      try StoreConnection(path: path, busyTimeout: options.busyTimeout)
    }
    (version, hasUnsealedEdits) = try opened.queue.closingOnFailure {
      try opened.use { database in
        // A database that cannot be locked for writing is noticed before anything is downloaded.
        try database.transaction(.immediate, .rollback) {
          let hasEdits = try Self.hasUnsealedEdits(database)
          // The version is that of the state that was read last.
          return (try Self.version(database), hasEdits)
        }
      }
    }
    connection = opened
    self.options = options
  }

  private static func hasUnsealedEdits(_ database: Database) throws -> Bool {
    let logs = try SQLName.fetchAll(
      database,
      sql: "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name GLOB ?",
      arguments: [TableSchema.logPattern])
    return try logs.contains {
      try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 FROM main.\(quoted($0)))") ?? false
    }
  }

  /// Copies the database to a new file at `backup`, flushes that file, and makes the store at `path`
  /// ready to take the place of the database: it must be closed, and cannot be used afterwards.
  ///
  /// If the call throws, there is no file at `backup`.
  package func prepare(
    storeAt path: String, backup: String, checkCancellation: @escaping () throws -> Void
  ) throws {
    try StoreFileMode.makeFile(at: backup, like: connection.path)
    do {
      try connection.use { database in
        try DatabaseCopy.write(
          database, at: connection.path, to: backup, evenIfDamaged: true, checkCancellation)
        try FileFlush.flush(backup)
        let isWAL = try String.fetchOne(database, sql: "PRAGMA main.journal_mode") == "wal"
        let pageSize = isWAL ? try Int.fetchOne(database, sql: "PRAGMA main.page_size") : nil
        let store = try StoreConnection(path: path, busyTimeout: options.busyTimeout)
        try store.queue.closing {
          try store.use { store in
            try QueryCancellation.run(store, checkCancellation) {
              try prepare(store, pageSize: pageSize)
            }
          }
        }
      }
    } catch {
      if FileManager.default.fileExists(atPath: backup) {
        try FileManager.default.removeItem(atPath: backup)
      }
      throw error
    }
  }

  /// Makes the store a single file, records the place in which it is going to be, and gives it a page
  /// size, if there is one that it must have: SQLite never changes that of a database in WAL mode.
  private func prepare(_ store: Database, pageSize: Int?) throws {
    try store.execute(sql: "PRAGMA main.journal_mode = DELETE")
    if let places = options.places,
      let record = try MetaTable.value(.place, as: PlaceRecord.self, store)
    {
      let moved = record.moved(to: try places.place(of: connection.path))
      try store.transaction(.immediate) {
        try MetaTable.write(.place, to: Array(JSONEncoder().encode(moved)), store)
      }
    }
    guard let pageSize, try Int.fetchOne(store, sql: "PRAGMA main.page_size") != pageSize else {
      return
    }
    try store.execute(sql: "PRAGMA main.page_size = \(pageSize); VACUUM main")
  }

  /// Writes the pages of the store at `path`, which was prepared, into the file of the database.
  ///
  /// The older conflicts of the store come to the file beside the database, in addition to those of
  /// the database.
  ///
  /// Throws `busy` if another program has written to the database since the replacement was created,
  /// or does not unlock it. A crash leaves the database as it was, or the store.
  package func run(byStoreAt path: String, checkCancellation: () throws -> Void) throws {
    try connection.use { database in
      let store = try StoreConnection(path: path, busyTimeout: options.busyTimeout)
      try store.queue.closing {
        try store.queue.writeWithoutTransaction { store in
          try StoreError.mapping(connection.path) {
            try copyPages(of: store, at: path, to: database, checkCancellation)
          }
        }
      }
    }
  }

  /// Closes the connection.
  package func close() throws { try connection.queue.close() }

  // MARK: - The pages

  /// The number of pages between two checks for cancellation.
  private static let pagesPerStep: Int32 = 1_000

  private func copyPages(
    of store: Database, at storePath: String, to database: Database,
    _ checkCancellation: () throws -> Void
  ) throws {
    let backup = sqlite3_backup_init(
      database.sqliteConnection, "main", store.sqliteConnection, "main")
    guard let backup else { throw Self.failure(database) }
    do {
      // Locks the database, and copies nothing.
      try step(backup, pages: 0)
      guard try Self.version(database) == version else { throw writtenMeanwhile }
      // No program can write to the file while the database is locked.
      try ConflictArchive.add(fileOf: storePath, to: connection.path)
      mayHaveWritten = true
      while try step(backup, pages: Self.pagesPerStep) {
        do {
          try checkCancellation()
        } catch {
          mayHaveWritten = false
          throw error
        }
      }
    } catch {
      // Rolls back. Its result is that of the last step.
      sqlite3_backup_finish(backup)
      throw error
    }
    guard sqlite3_backup_finish(backup) == SQLITE_OK else { throw Self.failure(database) }
  }

  /// Copies a number of pages. Returns whether there are more.
  @discardableResult
  private func step(_ backup: OpaquePointer, pages: Int32) throws -> Bool {
    let code = sqlite3_backup_step(backup, pages)
    guard code == SQLITE_OK || code == SQLITE_DONE else {
      throw DatabaseError(
        resultCode: ResultCode(rawValue: code), message: String(cString: sqlite3_errstr(code)))
    }
    return code == SQLITE_OK
  }

  /// Returns the number of the state that the connection has read last: it differs once any
  /// connection has written. It can be asked for while pages are being copied.
  ///
  /// <https://www.sqlite.org/c3ref/c_fcntl_begin_atomic_write.html#sqlitefcntldataversion>
  private static func version(_ database: Database) throws -> UInt32 {
    var version: UInt32 = 0
    let code = sqlite3_file_control(
      database.sqliteConnection, "main", SQLITE_FCNTL_DATA_VERSION, &version)
    guard code == SQLITE_OK else { throw failure(database) }
    return version
  }

  private static func failure(_ database: Database) -> DatabaseError {
    guard let connection = database.sqliteConnection else {
      return DatabaseError(resultCode: .SQLITE_MISUSE, message: "connection is closed")
    }
    return DatabaseError(
      resultCode: ResultCode(rawValue: sqlite3_extended_errcode(connection)),
      message: String(cString: sqlite3_errmsg(connection)))
  }

  private var writtenMeanwhile: StoreError {
    StoreError(
      .busy, path: connection.path,
      message: "Another program has written to the database meanwhile.",
      remedy: "Close the programs that use it, then try again.")
  }
}
