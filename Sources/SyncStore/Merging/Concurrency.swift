import GRDB
import SyncModel

/// Which changes the author of a change set had not seen when it was sealed.
///
/// No cell records the change set in which it came. The store knows only the
/// least and the greatest time of each change set, so a stamp counts as unseen
/// if its time lies within a change set of its author that the dependencies do
/// not contain. If a clock went back, two change sets of one client can
/// overlap: then too much counts as unseen, never too little.
struct Concurrency {
  /// The times of unseen change sets, by client.
  private let unseen: [Int32: [ClosedRange<UInt64>]]
  /// The times of unseen change sets that have stamps of clients other than
  /// their authors.
  private let mixed: [ClosedRange<UInt64>]

  /// Nothing is concurrent.
  static let none = Concurrency(unseen: [:], mixed: [])

  private init(unseen: [Int32: [ClosedRange<UInt64>]], mixed: [ClosedRange<UInt64>]) {
    self.unseen = unseen
    self.mixed = mixed
  }

  /// The changes that this store has applied and that the author of a change
  /// set with these dependencies had not.
  ///
  /// - Parameter countsOwn: Whether this client's own change sets are among
  ///   them.
  init(
    author: Int32, dependencies: VersionVector, session: StoreSession, countsOwn: Bool = true
  ) throws {
    var unseen: [Int32: [ClosedRange<UInt64>]] = [:]
    let ownHead = try session.ownHead()?.number ?? 0
    let statement = try SQLStatement(
      "SELECT id, number FROM docsync_client WHERE number > 0 OR id = ?", on: session.database)
    statement.bind(Int64(session.own), at: 1)
    var ahead: [(client: Int32, seen: Int64, number: Int64)] = []
    while try statement.step() {
      let client = Int32(truncatingIfNeeded: statement.integer(at: 0))
      // Sealed edits are shown even if they do not count as applied yet.
      let number =
        client == session.own
        ? Int64(clamping: ownHead) : statement.integer(at: 1)
      let seen = Int64(
        clamping: dependencies.number(of: session.clients.client(client)))
      guard countsOwn || client != session.own else { continue }
      if client != author, seen < number { ahead.append((client, seen, number)) }
    }
    var mixed: [ClosedRange<UInt64>] = []
    for (client, seen, number) in ahead {
      unseen[client] = try session.timeRanges(of: client, after: seen, through: number)
      mixed += try session.mixedTimeRanges(of: client, after: seen, through: number)
    }
    self.unseen = unseen
    self.mixed = mixed
  }

  /// Whether anything can be concurrent.
  var isPossible: Bool { !unseen.isEmpty }

  /// Whether the author may not have seen the change with this stamp.
  func isConcurrent(_ stamp: LocalStamp) -> Bool {
    if let ranges = unseen[stamp.client], ranges.contains(where: { $0.contains(stamp.time) }) {
      return true
    }
    return mixed.contains { $0.contains(stamp.time) }
  }
}

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
