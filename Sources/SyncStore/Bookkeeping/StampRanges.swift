import GRDB
import SyncModel

/// The least and the greatest time of each change set (`docsync_range`); an empty range for a
/// change set without stamps. Mixed change sets have stamps of clients other than their author.
struct StampRanges {
  static let definition = TableDefinition(
    "docsync_range", .document,
    columns: [
      .integer("client", "", .client), .integer("last", "", .number),
      .integer("first", "NOT NULL", .number), .integer("least", "NOT NULL"),
      .integer("greatest", "NOT NULL"), .integer("mixed", "NOT NULL DEFAULT 0"),
    ], constraint: "PRIMARY KEY (client, last)", isWithoutRowID: true)

  let database: Database

  /// The number of a client's newest change sets whose times are stored one by one; those of older
  /// ones are joined.
  private static let separateCount: Int64 = 1024

  /// Records the times of a change set that was applied or sealed.
  ///
  /// - Parameter isMixed: Whether it has stamps of other clients.
  func record(
    client: Int32, number: UInt64, _ range: ClosedRange<HybridTime>?, isMixed: Bool = false
  ) throws {
    try store(
      Range(
        last: Int64(number), first: Int64(number),
        least: range.map { Int64(clamping: $0.lowerBound.rawValue) } ?? 1,
        greatest: range.map { Int64(clamping: $0.upperBound.rawValue) } ?? 0,
        isMixed: isMixed ? 1 : 0), of: client)
    if number % 256 == 0 { try joinOld(of: client, through: Int64(number)) }
  }

  private func joinOld(of client: Int32, through number: Int64) throws {
    let end = number - Self.separateCount
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

  /// Returns the times of a client's change sets after the number `seen`, through `number`; all of
  /// time if one of them is not known.
  func times(
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

  /// Returns the times of those among a client's change sets, after the number `seen`, through
  /// `number`, that have stamps of other clients.
  func mixedTimes(
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

  // MARK: - As they are stored

  /// The times of some change sets of a client.
  struct Range {
    fileprivate var last: Int64
    fileprivate var first: Int64
    fileprivate var least: Int64
    fileprivate var greatest: Int64
    fileprivate var isMixed: Int64
  }

  /// Returns the ranges of a client after a number.
  func all(of client: Int32, after number: Int64) throws -> [Range] {
    try StoredRow.fetchAll(
      database,
      sql: "SELECT last, first, least, greatest, mixed FROM docsync_range "
        + "WHERE client = ? AND last > ?",
      arguments: [client, number]
    ).map { row in
      Range(
        last: try row["last"], first: try row["first"], least: try row["least"],
        greatest: try row["greatest"], isMixed: try row["mixed"])
    }
  }

  func store(_ range: Range, of client: Int32) throws {
    try database.execute(
      sql: "INSERT OR REPLACE INTO docsync_range (client, last, first, least, greatest, mixed) "
        + "VALUES (?, ?, ?, ?, ?, ?)",
      arguments: [client, range.last, range.first, range.least, range.greatest, range.isMixed])
  }

  func remove(of client: Int32, after number: Int64) throws {
    try database.execute(
      sql: "DELETE FROM docsync_range WHERE client = ? AND last > ?", arguments: [client, number])
  }

  func removeAll() throws { try database.execute(sql: "DELETE FROM docsync_range") }
}
