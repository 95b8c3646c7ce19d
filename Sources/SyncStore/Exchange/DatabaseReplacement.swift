import CSQLite
import Foundation
import GRDB
import SyncModel

/// The replacement of a database by a new store, in the file of the database and in one transaction.
///
/// The file stays where it is, so a program that has it open reads the new store from then on, and
/// its edits are synchronized. If the file were renamed, the program would write to the renamed one
/// without an error (SQLite: “How To Corrupt An SQLite Database File”, section 2.4).
package final class DatabaseReplacement {
  private let connection: StoreConnection
  private let options: StoreOptions
  private let version: UInt32

  /// Creates the replacement of the database at `path`, and remembers the state that the database
  /// is in. Returns `nil` if the file is not a database that SQLite can read.
  ///
  /// Throws `busy` if another program has locked the database.
  package convenience init?(databaseAt path: String, options: StoreOptions) throws {
    try StoreError.checkFile(path)
    do {
      try self.init(path: path, options: options)
    } catch let error as StoreError where [.notADatabase, .damaged].contains(error.code) {
      return nil
    }
  }

  private init(path: String, options: StoreOptions) throws {
    let opened = try StoreError.mapping(path) {
      try StoreConnection(path: path, busyTimeout: options.busyTimeout)
    }
    version = try opened.queue.closingOnFailure {
      try opened.use { database in
        // The version is that of the state that was read last.
        _ = try Int.fetchOne(database, sql: "SELECT count(*) FROM main.sqlite_schema")
        return try Self.version(database)
      }
    }
    connection = opened
    self.options = options
  }

  /// Copies the database to a new file at `backup`, and writes the pages of the store at `path` into
  /// its file. The store at `path` must be closed. It cannot be used afterwards: its record of its
  /// place names the other file.
  ///
  /// Throws `busy` if another program has written to the database since ``init(databaseAt:options:)``,
  /// or does not unlock it. If the call throws, the database is as it was, and there is no file at
  /// `backup`. A crash leaves the database as it was, or the store.
  package func run(
    byStoreAt path: String, keeping backup: String,
    checkCancellation: @escaping () throws -> Void
  ) throws {
    try StoreFileMode.makeFile(at: backup, like: connection.path)
    do {
      try connection.use { database in
        try DatabaseCopy.write(database, at: connection.path, to: backup, checkCancellation)
        let pageSize = try Int.fetchOne(database, sql: "PRAGMA main.page_size")
        let isWAL = try String.fetchOne(database, sql: "PRAGMA main.journal_mode") == "wal"
        let store = try StoreConnection(path: path, busyTimeout: options.busyTimeout)
        try store.queue.closing {
          try store.use { store in
            try prepare(store, pageSize: isWAL ? pageSize : nil)
            try copyPages(of: store, to: database, checkCancellation)
          }
        }
      }
    } catch {
      try FileManager.default.removeItem(atPath: backup)
      throw error
    }
  }

  /// Closes the connection.
  package func close() throws { try connection.queue.close() }

  // MARK: - The store

  /// Records the place in which the store is going to be. Gives it a page size, if there is one that
  /// it must have.
  private func prepare(_ store: Database, pageSize: Int?) throws {
    if let places = options.places,
      let record = try MetaTable.value(.place, as: PlaceRecord.self, store)
    {
      let moved = record.moved(to: try places.place(of: connection.path))
      try store.transaction(.immediate) {
        try MetaTable.write(.place, to: Array(JSONEncoder().encode(moved)), store)
      }
    }
    // SQLite never changes the size of the pages of a database in WAL mode.
    guard let pageSize, try Int.fetchOne(store, sql: "PRAGMA main.page_size") != pageSize else {
      return
    }
    try store.execute(
      sql: "PRAGMA main.journal_mode = DELETE; PRAGMA main.page_size = \(pageSize); VACUUM main")
  }

  // MARK: - The pages

  /// The number of pages between two checks for cancellation.
  private static let pagesPerStep: Int32 = 1_000

  private func copyPages(
    of store: Database, to database: Database, _ checkCancellation: () throws -> Void
  ) throws {
    let backup = sqlite3_backup_init(
      database.sqliteConnection, "main", store.sqliteConnection, "main")
    guard let backup else { throw Self.failure(database) }
    do {
      // Locks the database, and copies nothing.
      try step(backup, pages: 0, database)
      guard try Self.version(database) == version else { throw writtenMeanwhile }
      while try step(backup, pages: Self.pagesPerStep, database) { try checkCancellation() }
    } catch {
      // Rolls back. Its result is that of the last step.
      sqlite3_backup_finish(backup)
      throw error
    }
    guard sqlite3_backup_finish(backup) == SQLITE_OK else { throw Self.failure(database) }
  }

  /// Copies a number of pages. Returns whether there are more.
  @discardableResult
  private func step(_ backup: OpaquePointer, pages: Int32, _ database: Database) throws -> Bool {
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
