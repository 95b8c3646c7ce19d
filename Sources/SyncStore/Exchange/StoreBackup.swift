import Foundation
import GRDB

/// The copy of a store that stays beside it when its content is exchanged.
enum StoreBackup {
  /// Copies the file to `<store>.before-<date>`, readable only by those who may read the store.
  /// Returns the path of the copy.
  static func make(
    of connection: StoreConnection, at milliseconds: Int64,
    _ checkCancellation: @escaping () throws -> Void
  ) throws -> String {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(identifier: "UTC")
    formatter.dateFormat = "yyyyMMdd-HHmmss"
    let date = Date(timeIntervalSince1970: Double(milliseconds) / 1000)
    let base = "\(connection.path).before-\(formatter.string(from: date))"
    var copy = base
    var number = 2
    while FileManager.default.fileExists(atPath: copy) {
      copy = "\(base)-\(number)"
      number += 1
    }
    // SQLite writes into a file only if it is empty or does not exist.
    try StoreFileMode.makeFile(at: copy, like: connection.path)
    do {
      try connection.use { database in
        try DatabaseCopy.write(database, at: connection.path, to: copy, checkCancellation)
      }
      // Before the content of the store is exchanged.
      try FileFlush.flush(copy)
      try FileFlush.flush(URL(fileURLWithPath: copy).deletingLastPathComponent().path)
      return copy
    } catch {
      if FileManager.default.fileExists(atPath: copy) {
        try FileManager.default.removeItem(atPath: copy)
      }
      throw error
    }
  }
}
