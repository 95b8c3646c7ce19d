import Foundation
import GRDB
import SyncModel

/// The table that keeps every value that lost.
///
/// It stays within ``LocalStore/Options/conflictEntries`` and
/// ``LocalStore/Options/conflictBytes``: the oldest entries go first, those
/// that are open never, and what went is counted. A store's snapshot has an
/// empty one.
final class ConflictJournal {
  private unowned let session: StoreSession
  private var knownSummary: Summary?

  init(session: StoreSession) { self.session = session }

  static let creation = [
    """
    CREATE TABLE docsync_conflict (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, \
    size INTEGER NOT NULL, status TEXT NOT NULL, kind TEXT NOT NULL, tbl INTEGER NOT NULL, \
    identity BLOB NOT NULL, col INTEGER, rule TEXT NOT NULL, outcome TEXT NOT NULL, \
    local_time INTEGER, local_client INTEGER, remote_time INTEGER, remote_client INTEGER, \
    message TEXT, key BLOB, base BLOB, local BLOB, remote BLOB)
    """,
    "CREATE INDEX docsync_conflict_row ON docsync_conflict (tbl, identity)",
    "CREATE INDEX docsync_conflict_open ON docsync_conflict (status) WHERE status = 'open'",
  ]

  /// Stands for the local key, which is no synchronized column, in
  /// ``Entry/key``.
  static let localKeyPosition = 1 << 20

  /// An entry in terms of the store.
  struct Entry {
    typealias Cell = (column: Int, value: Value)

    var number: Int64 = 0
    var at: Int64 = 0
    var status = Conflict.Status.settled
    var kind: Conflict.Kind
    var row: RowKey
    var column: Int?
    var rule: Conflict.Rule
    var outcome: Conflict.Outcome
    var localStamp: LocalStamp?
    var remoteStamp: LocalStamp?
    var message: String?
    var key: [Cell] = []
    var base: Value?
    var local: [Cell]?
    var remote: [Cell]?
  }

  private var database: Database { session.database }

  // MARK: - Writing

  /// Adds an entry; returns its number.
  @discardableResult
  func add(_ entry: Entry) throws -> Int64 {
    var entry = entry
    var summary = try summary()
    summary.last += 1
    knownSummary = summary
    entry.number = summary.last
    entry.at = session.now
    try write(entry)
    return entry.number
  }

  /// Writes an entry over the one with its number.
  func write(_ entry: Entry) throws {
    let blobs: [[UInt8]?] = [
      KeptCells.encode(entry.key),
      entry.base.map { KeptCells.encode([(entry.column ?? 0, $0)]) },
      entry.local.map(KeptCells.encode), entry.remote.map(KeptCells.encode),
    ]
    let size =
      entry.row.identity.bytes.count + blobs.reduce(64) { $0 + ($1?.count ?? 0) }
      + (entry.message?.utf8.count ?? 0)
    let stamps = [entry.localStamp, entry.remoteStamp].flatMap { stamp in
      [stamp.map { Int64(clamping: $0.time) }, stamp.map { Int64($0.client) }]
    }
    var arguments: StatementArguments = [
      entry.number, entry.at, size, entry.status.rawValue, entry.kind.rawValue, entry.row.table,
      Data(entry.row.identity.bytes), entry.column, entry.rule.rawValue, entry.outcome.rawValue,
    ]
    arguments += StatementArguments(stamps)
    arguments += [entry.message]
    arguments += StatementArguments(blobs.map { $0.map { Data($0) } })
    let statement = try database.cachedStatement(
      sql: """
        INSERT OR REPLACE INTO docsync_conflict (number, at, size, status, kind, tbl, identity, \
        col, rule, outcome, local_time, local_client, remote_time, remote_client, message, key, \
        base, local, remote) VALUES (\(Array(repeating: "?", count: 19).joined(separator: ", ")))
        """)
    try statement.execute(arguments: arguments)
  }

  /// Removes what was entered for a row after a number and says that it is
  /// not shown, and settles what was entered before. Of a row that is shown
  /// although it is deleted that goes for its deletion as well.
  func settleShown(_ row: RowKey, isRescued: Bool, enteredAfter last: Int64) throws {
    let hidden: [Conflict.Kind] =
      [.uniqueValue, .reference, .condition] + (isRescued ? [.existence] : [])
    let kinds = hidden.map { literal($0.rawValue) }.joined(separator: ", ")
    let arguments: StatementArguments = [row.table, Data(row.identity.bytes), last]
    try database.execute(
      sql: "DELETE FROM docsync_conflict WHERE tbl = ? AND identity = ? AND number > ? "
        + "AND kind IN (\(kinds)) AND status <> 'open'", arguments: arguments)
    try database.execute(
      sql: "UPDATE docsync_conflict SET outcome = 'both' WHERE tbl = ? AND identity = ? "
        + "AND number <= ? AND kind IN (\(kinds)) AND status = 'settled'", arguments: arguments)
  }

  // MARK: - Reading

  func entry(_ number: Int64) throws -> Entry? {
    try entries("WHERE number = ?", [number]).first
  }

  /// The open entry of a cell, or of a row's existence.
  func openEntry(_ row: RowKey, column: Int?) throws -> Entry? {
    try entries(
      "WHERE tbl = ? AND identity = ? AND col IS ? AND status = 'open' AND kind IN "
        + "('cell', 'existence')",
      [row.table, Data(row.identity.bytes), column]
    ).first
  }

  /// The entries, the newest first.
  func entries(_ condition: String, _ arguments: StatementArguments) throws -> [Entry] {
    try Row.fetchAll(
      database, sql: "SELECT * FROM docsync_conflict \(condition) ORDER BY number DESC",
      arguments: arguments
    ).map(Self.entry)
  }

  var openCount: Int {
    get throws {
      try Int.fetchOne(
        database, sql: "SELECT count(*) FROM docsync_conflict WHERE status = 'open'") ?? 0
    }
  }

  private static func entry(_ row: Row) throws -> Entry {
    guard let status = Conflict.Status(rawValue: row["status"]),
      let kind = Conflict.Kind(rawValue: row["kind"]),
      let outcome = Conflict.Outcome(rawValue: row["outcome"])
    else {
      throw DatabaseError(
        resultCode: .SQLITE_CORRUPT, message: "docsync_conflict has an unknown kind of entry")
    }
    func cells(_ name: String) throws -> [Entry.Cell]? {
      try (row[name] as Data?).map { try KeptCells.decode(Array($0)) }
    }
    func stamp(_ side: String) -> LocalStamp? {
      guard let time = row["\(side)_time"] as Int64?, let client = row["\(side)_client"] as Int32?
      else { return nil }
      return LocalStamp(time: UInt64(clamping: time), client: client)
    }
    return Entry(
      number: row["number"], at: row["at"], status: status, kind: kind,
      row: RowKey(
        table: row["tbl"], identity: RowIdentity(bytes: Array(row["identity"] as Data))),
      column: row["col"], rule: Conflict.Rule(rawValue: row["rule"]), outcome: outcome,
      localStamp: stamp("local"), remoteStamp: stamp("remote"), message: row["message"],
      key: try cells("key") ?? [], base: try cells("base")?.first?.value,
      local: try cells("local"), remote: try cells("remote"))
  }

  // MARK: - The bound

  /// What is kept beside the entries.
  struct Summary: Codable {
    /// The number of the last entry.
    var last: Int64 = 0
    var dropped = DroppedConflicts()
  }

  func summary() throws -> Summary {
    if let knownSummary { return knownSummary }
    guard let bytes = try Bookkeeping.meta("conflictJournal", database) else { return Summary() }
    return try JSONDecoder().decode(Summary.self, from: Data(bytes))
  }

  /// Keeps what is beside the entries, if any were added.
  func finish(entries: Int, bytes: Int) throws {
    guard knownSummary != nil else { return }
    try trim(entries: entries, bytes: bytes)
    try Bookkeeping.setMeta(
      "conflictJournal", to: Array(JSONEncoder().encode(try summary())), database)
    knownSummary = nil
  }

  /// Drops the oldest entries that are not open until the rest is within the
  /// bounds. The newest one stays, however large it is.
  private func trim(entries: Int, bytes: Int) throws {
    let row = try Row.fetchOne(
      database,
      sql: "SELECT count(*) AS count, coalesce(sum(size), 0) AS size "
        + "FROM docsync_conflict")
    guard let row, var count = row["count"] as Int?, var size = row["size"] as Int?,
      count > entries || size > bytes
    else { return }
    var summary = try summary()
    let candidates = try Row.fetchAll(
      database,
      sql: "SELECT number, at, size FROM docsync_conflict WHERE status <> 'open' AND number < ? "
        + "ORDER BY number", arguments: [summary.last])
    for candidate in candidates where count > entries || size > bytes {
      try database.execute(
        sql: "DELETE FROM docsync_conflict WHERE number = ?",
        arguments: [candidate["number"] as Int64])
      count -= 1
      size -= candidate["size"] as Int
      summary.dropped.count += 1
      let at: Int64 = candidate["at"]
      summary.dropped.firstMilliseconds = min(summary.dropped.firstMilliseconds ?? at, at)
      summary.dropped.lastMilliseconds = max(summary.dropped.lastMilliseconds ?? at, at)
    }
    knownSummary = summary
  }
}
