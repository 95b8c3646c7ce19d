import Foundation
import GRDB
import SyncModel

extension StoreSession {
  /// How many change sets the history has at most.
  static let historyCount = 1_000

  /// Adds a change set to the store's history, which drops the oldest.
  func recordHistory(
    client: Int32, entry: VersionVector.Entry, rowCount: Int, byteCount: Int
  ) throws {
    try database.execute(
      sql: "INSERT INTO docsync_history (client, number, hash, changes, size, at) "
        + "VALUES (?, ?, ?, ?, ?, ?)",
      arguments: [client, Int64(entry.number), Data(entry.hash.bytes), rowCount, byteCount, now])
    try database.execute(
      sql: "DELETE FROM docsync_history WHERE seq <= ?",
      arguments: [database.lastInsertedRowID - Int64(Self.historyCount)])
  }
}
