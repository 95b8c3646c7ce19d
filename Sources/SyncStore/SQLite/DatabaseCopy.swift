import Foundation
import GRDB

/// A copy of a database in another file.
enum DatabaseCopy {
  /// Copies a database to a path where ``StoreFileMode`` has created an empty file.
  ///
  /// `VACUUM INTO` needs all functions and collations that the schema names, and a sound database: in
  /// a damaged one it may fail with any error. Then the pages are copied as they are.
  ///
  /// - Parameters:
  ///   - store: The path of the database.
  ///   - evenIfDamaged: Whether a damaged database is copied, too. Otherwise the call throws.
  static func write(
    _ database: Database, at store: String, to path: String, evenIfDamaged: Bool = false,
    _ checkCancellation: @escaping () throws -> Void
  ) throws {
    do {
      try QueryCancellation.run(database, checkCancellation) {
        try database.execute(sql: "VACUUM main INTO ?", arguments: [path])
      }
    } catch let error as DatabaseError
      where ProgramDefinitions.missing(in: error) != nil || evenIfDamaged && !error.isPassing
    {
      try FileManager.default.removeItem(atPath: path)
      try StoreFileMode.makeFile(at: path, like: store)
      try writePages(database, to: path, checkCancellation)
    }
  }

  /// Copies all pages of a database, also the free ones, to a path where ``StoreFileMode`` has created
  /// an empty file. Within a transaction that reads, copies the state that the transaction sees.
  static func writePages(
    _ database: Database, to path: String, _ checkCancellation: @escaping () throws -> Void
  ) throws {
    let copy = try DatabaseQueue(path: path)
    try copy.closing {
      try copy.writeWithoutTransaction { destination in
        try database.backup(to: destination, pagesPerStep: 1_000) { _ in try checkCancellation() }
        // In WAL mode, a database consists of several files.
        try destination.execute(sql: "PRAGMA journal_mode = DELETE")
      }
    }
  }
}

extension DatabaseError {
  /// Whether a statement failed for a reason that does not lie in the database.
  fileprivate var isPassing: Bool {
    [.SQLITE_INTERRUPT, .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_CANTOPEN, .SQLITE_READONLY]
      .contains(resultCode)
  }
}
