import GRDB
import SyncModel

/// Additions to counters that arrived before the value to which the counter was set
/// (`docsync_early`).
///
/// The store applies change sets in causal order. However, a change set that is rewritten for
/// another generation no longer records what its author had seen: it may be applied before the
/// value that it adds to, which another device sends.
final class EarlyAdditions {
  static let definition = TableDefinition(
    "docsync_early", .document, version: 2,
    columns: [
      .integer("tbl", "", .table), .blob("identity", "", .row), .integer("col", "", .column),
      .integer("since"), .integer("setter", "", .client), .integer("client", "", .client),
      .blob("sum", "NOT NULL", .cells), .integer("at", "NOT NULL"),
    ], constraint: "PRIMARY KEY (tbl, identity, col, since, setter, client)", isWithoutRowID: true)

  private let statements: StatementCache
  private let clients: ClientRegistry
  /// Whether any are stored; `nil` until it is looked up.
  private var isKnown: Bool?

  init(_ statements: StatementCache, _ clients: ClientRegistry) {
    self.statements = statements
    self.clients = clients
  }

  /// Returns whether there are early additions to any row.
  func exist() throws -> Bool {
    if let isKnown { return isKnown }
    let found =
      try Bool.fetchOne(
        statements.database, sql: "SELECT EXISTS (SELECT 1 FROM docsync_early)") ?? false
    isKnown = found
    return found
  }

  /// Stores a client's sum, unless a later sum of that client is stored.
  ///
  /// - Parameter stamp: The stamp of the value that the sum adds to.
  func store(
    _ sum: Counter.Sum, of client: Int32, since stamp: LocalStamp, _ column: Int, _ row: RowKey
  ) throws {
    if let known = try self.sum(of: client, since: stamp, column, row), !known.precedes(sum) {
      return
    }
    let statement = try statements.statement(
      "INSERT OR REPLACE INTO docsync_early (tbl, identity, col, since, setter, client, sum, at) "
        + "VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
    bind(row, column, to: statement)
    statement.bind(Int64(bitPattern: stamp.time), at: 4)
    statement.bind(Int64(stamp.client), at: 5)
    statement.bind(Int64(client), at: 6)
    statement.bind(blob: KeptCells.encode([(column, sum.value)]), at: 7)
    statement.bind(Int64(bitPattern: sum.time.rawValue), at: 8)
    try statement.run()
    isKnown = true
  }

  /// Returns the sum that is stored for a client, or `nil` if there is none.
  func sum(
    of client: Int32, since stamp: LocalStamp, _ column: Int, _ row: RowKey
  ) throws -> Counter.Sum? {
    guard try exist() else { return nil }
    return try sums(since: stamp, column, row)[client]
  }

  /// Removes and returns the sums, by client, that add to a value that has arrived. Also removes
  /// the sums that the value makes void.
  func take(
    since stamp: LocalStamp, _ column: Int, _ row: RowKey
  ) throws -> [Int32: Counter.Sum] {
    guard try exist() else { return [:] }
    let sums = try sums(since: stamp, column, row)
    var void: [LocalStamp] = []
    let all = try statements.statement(
      "SELECT DISTINCT since, setter FROM docsync_early "
        + "WHERE tbl = ? AND identity = ? AND col = ?")
    bind(row, column, to: all)
    while try all.step() {
      let other = LocalStamp(
        time: UInt64(bitPattern: all.integer(at: 0)), client: try all.number(at: 1))
      if !clients.precedes(stamp, other) { void.append(other) }
    }
    let removal = try statements.statement(
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

  private func sums(
    since stamp: LocalStamp, _ column: Int, _ row: RowKey
  ) throws -> [Int32: Counter.Sum] {
    let statement = try statements.statement(
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
    statement.bind(row)
    statement.bind(Int64(column), at: 3)
  }
}
