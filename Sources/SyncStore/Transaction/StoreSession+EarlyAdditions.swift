import GRDB
import SyncModel

/// Additions of clients to counters that arrived before the value that the counters were set to.
///
/// Change sets arrive in causal order. However, a change set that is written again in another
/// generation no longer records what its author had seen: it may arrive before the value that it
/// adds to, which another device sends.
extension StoreSession {
  /// Whether there are early additions to any row.
  func hasEarlyAdditions() throws -> Bool {
    if let known = knowsEarlyAdditions { return known }
    let found =
      try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 FROM docsync_early)") ?? false
    knowsEarlyAdditions = found
    return found
  }

  /// Keeps a client's sum, unless a later sum of that client is kept.
  ///
  /// - Parameter stamp: The stamp of the value that the sum adds to.
  func keepEarly(
    _ sum: Counter.Sum, of client: Int32, since stamp: LocalStamp, _ column: Int, _ row: RowKey
  ) throws {
    if let known = try earlySum(of: client, since: stamp, column, row), !known.precedes(sum) {
      return
    }
    let statement = try access(row.table).statement(
      "INSERT OR REPLACE INTO docsync_early (tbl, identity, col, since, setter, client, sum, at) "
        + "VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
    bind(row, column, to: statement)
    statement.bind(Int64(bitPattern: stamp.time), at: 4)
    statement.bind(Int64(stamp.client), at: 5)
    statement.bind(Int64(client), at: 6)
    statement.bind(blob: KeptCells.encode([(column, sum.value)]), at: 7)
    statement.bind(Int64(bitPattern: sum.time.rawValue), at: 8)
    try statement.run()
    knowsEarlyAdditions = true
  }

  /// The sum that is kept for a client; `nil` if there is none.
  func earlySum(
    of client: Int32, since stamp: LocalStamp, _ column: Int, _ row: RowKey
  ) throws -> Counter.Sum? {
    guard try hasEarlyAdditions() else { return nil }
    return try earlySums(since: stamp, column, row)[client]
  }

  /// The sums of clients that add to a value that has arrived. Removes them and the sums that are
  /// void now.
  func takeEarlySums(
    since stamp: LocalStamp, _ column: Int, _ row: RowKey
  ) throws -> [Int32: Counter.Sum] {
    guard try hasEarlyAdditions() else { return [:] }
    let sums = try earlySums(since: stamp, column, row)
    var void: [LocalStamp] = []
    let all = try access(row.table).statement(
      "SELECT DISTINCT since, setter FROM docsync_early "
        + "WHERE tbl = ? AND identity = ? AND col = ?")
    bind(row, column, to: all)
    while try all.step() {
      let other = LocalStamp(
        time: UInt64(bitPattern: all.integer(at: 0)), client: try all.number(at: 1))
      if !clients.precedes(stamp, other) { void.append(other) }
    }
    let removal = try access(row.table).statement(
      "DELETE FROM docsync_early "
        + "WHERE tbl = ? AND identity = ? AND col = ? AND since = ? AND setter = ?")
    for other in void {
      bind(row, column, to: removal)
      removal.bind(Int64(bitPattern: other.time), at: 4)
      removal.bind(Int64(other.client), at: 5)
      try removal.run()
    }
    return sums
  }

  private func earlySums(
    since stamp: LocalStamp, _ column: Int, _ row: RowKey
  ) throws -> [Int32: Counter.Sum] {
    let statement = try access(row.table).statement(
      "SELECT client, sum, at FROM docsync_early "
        + "WHERE tbl = ? AND identity = ? AND col = ? AND since = ? AND setter = ?")
    bind(row, column, to: statement)
    statement.bind(Int64(bitPattern: stamp.time), at: 4)
    statement.bind(Int64(stamp.client), at: 5)
    var sums: [Int32: Counter.Sum] = [:]
    while try statement.step() {
      guard let value = try KeptCells.decode(statement.bytes(at: 1)).first?.value else { continue }
      sums[try statement.number(at: 0)] = Counter.Sum(
        value, at: HybridTime(rawValue: UInt64(bitPattern: statement.integer(at: 2))))
    }
    return sums
  }

  private func bind(_ row: RowKey, _ column: Int, to statement: SQLStatement) {
    statement.bind(Int64(row.table), at: 1)
    statement.bind(blob: row.identity.bytes, at: 2)
    statement.bind(Int64(column), at: 3)
  }
}
