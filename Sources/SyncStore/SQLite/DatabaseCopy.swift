import Foundation
import GRDB

/// A copy of a database in another file.
enum DatabaseCopy {
  /// Copies a database to a path where ``StoreFileMode`` has created an empty file.
  ///
  /// `VACUUM INTO` needs all functions and collations that the schema names, and a sound database: in
  /// a damaged one it may fail with any error. Otherwise the pages are copied as they are.
  ///
  /// - Parameter store: The path of the database.
  static func write(
    _ database: Database, at store: String, to path: String,
    _ checkCancellation: @escaping () throws -> Void
  ) throws {
    do {
      try QueryCancellation.run(database, checkCancellation) {
        try database.execute(sql: "VACUUM main INTO ?", arguments: [path])
      }
    } catch let error as DatabaseError where error.resultCode != .SQLITE_INTERRUPT {
      try FileManager.default.removeItem(atPath: path)
      try StoreFileMode.makeFile(at: path, like: store)
      try copyPages(database, to: path, checkCancellation)
    }
  }

  private static func copyPages(
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
