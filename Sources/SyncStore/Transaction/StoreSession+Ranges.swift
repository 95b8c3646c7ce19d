import Foundation
import GRDB
import SyncModel

extension StoreSession {
  /// The number of a client's newest change sets whose times are kept one by
  /// one; older ones are taken together.
  private static let separateRanges: Int64 = 1024

  /// Notes the times of a change set that was applied or made.
  ///
  /// - Parameter isMixed: Whether it has stamps of other clients.
  func recordRange(
    client: Int32, number: UInt64, _ range: ClosedRange<HybridTime>?, isMixed: Bool = false
  ) throws {
    let least = range.map { Int64(clamping: $0.lowerBound.rawValue) } ?? 1
    let greatest = range.map { Int64(clamping: $0.upperBound.rawValue) } ?? 0
    try database.execute(
      sql: "INSERT OR REPLACE INTO docsync_range (client, last, first, least, greatest, mixed) "
        + "VALUES (?, ?, ?, ?, ?, ?)",
      arguments: [client, Int64(number), Int64(number), least, greatest, isMixed])
    if number % 256 == 0 { try joinOldRanges(of: client, through: Int64(number)) }
  }

  private func joinOldRanges(of client: Int32, through number: Int64) throws {
    let end = number - Self.separateRanges
    guard end > 0 else { return }
    try database.execute(
      sql: """
        INSERT OR REPLACE INTO docsync_range (client, last, first, least, greatest, mixed) \
        SELECT client, max(last), min(first), \
        coalesce(min(CASE WHEN least <= greatest THEN least END), 1), \
        coalesce(max(CASE WHEN least <= greatest THEN greatest END), 0), max(mixed) \
        FROM docsync_range WHERE client = ? AND last <= ? GROUP BY client
        """, arguments: [client, end])
    try database.execute(
      sql: """
        DELETE FROM docsync_range WHERE client = ?1 AND last < \
        (SELECT max(last) FROM docsync_range WHERE client = ?1 AND last <= ?2)
        """, arguments: [client, end])
  }

  /// The times of a client's change sets after one number, through another;
  /// all of time if one of them is not known.
  func timeRanges(
    of client: Int32, after seen: Int64, through number: Int64
  ) throws -> [ClosedRange<UInt64>] {
    let statement = try SQLStatement(
      "SELECT first, last, least, greatest FROM docsync_range WHERE client = ? AND last > ? "
        + "AND first <= ? ORDER BY last", on: database)
    statement.bind(Int64(client), at: 1)
    statement.bind(seen, at: 2)
    statement.bind(number, at: 3)
    var ranges: [ClosedRange<UInt64>] = []
    // The number through which the times are known.
    var known = seen
    while try statement.step() {
      guard statement.integer(at: 0) <= known || statement.integer(at: 0) - 1 == known else {
        statement.reset()
        break
      }
      known = statement.integer(at: 1)
      let least = UInt64(clamping: statement.integer(at: 2))
      let greatest = UInt64(clamping: statement.integer(at: 3))
      if least <= greatest { ranges.append(least...greatest) }
    }
    return known >= number ? ranges : [0...UInt64.max]
  }

  /// The times of a client's change sets that have stamps of other clients,
  /// after one number, through another.
  func mixedTimeRanges(
    of client: Int32, after seen: Int64, through number: Int64
  ) throws -> [ClosedRange<UInt64>] {
    let statement = try SQLStatement(
      "SELECT least, greatest FROM docsync_range WHERE client = ? AND last > ? AND first <= ? "
        + "AND mixed AND least <= greatest", on: database)
    statement.bind(Int64(client), at: 1)
    statement.bind(seen, at: 2)
    statement.bind(number, at: 3)
    var ranges: [ClosedRange<UInt64>] = []
    while try statement.step() {
      ranges.append(
        UInt64(clamping: statement.integer(at: 0))...UInt64(clamping: statement.integer(at: 1)))
    }
    return ranges
  }

  /// The times of this client's change sets that are not published.
  func unpublishedRanges() throws -> [ClosedRange<UInt64>] {
    let first = try Int64.fetchOne(
      database, sql: "SELECT min(number) FROM docsync_outbox WHERE client = ? AND published = 0",
      arguments: [own])
    let last = try Int64.fetchOne(
      database, sql: "SELECT max(number) FROM docsync_outbox WHERE client = ? AND published = 0",
      arguments: [own])
    guard let first, let last else { return [] }
    return try timeRanges(of: own, after: first &- 1, through: last)
  }
}
