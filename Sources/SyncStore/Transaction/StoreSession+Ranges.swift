import Foundation
import GRDB
import SyncModel

extension StoreSession {
  /// The times of this client's change sets that are not published.
  func unpublishedRanges() throws -> [ClosedRange<UInt64>] {
    let first = try Int64.fetchOne(
      database, sql: "SELECT min(number) FROM docsync_outbox WHERE client = ? AND published = 0",
      arguments: [own])
    let last = try Int64.fetchOne(
      database, sql: "SELECT max(number) FROM docsync_outbox WHERE client = ? AND published = 0",
      arguments: [own])
    guard let first, let last else { return [] }
    return try ranges.times(of: own, after: first &- 1, through: last)
  }
}
