import Foundation
import GRDB
import SyncModel

/// The journal of every value that lost a conflict.
///
/// Its table stays within ``StoreOptions/conflictEntries`` and ``StoreOptions/conflictBytes``: the
/// oldest entries leave it first, but never open ones. They go to the file beside the store
/// (``ConflictArchive``) before they are removed; if that cannot be written, they stay. A store's
/// snapshot has an empty journal.
final class ConflictJournal {
  let database: Database
  /// Milliseconds since 1970 when the transaction began.
  private let now: Int64
  var knownSummary: Summary?
  /// The greatest size of the table.
  let bound: Bound
  /// The file beside the store; `nil` if entries that leave the table are only counted.
  let archive: ConflictArchive?
  /// The bytes that mark the store's blocks in the file from the first one on.
  let firstMark: [UInt8]
  let names: ArchivedNames
  /// Entries that are on their way to the file.
  var leaving = LeavingConflicts()
  /// Whether the file could not be written in this transaction.
  var hasArchiveFailed = false
  /// The number of the last entry before the transaction; `nil` until it adds one, and once the
  /// entries up to it have left the table.
  var lastOfOthers: Int64?
  /// Entries that are not written yet and that will not change any more in this transaction.
  private var pending = PendingConflicts()
  private var insertion: SQLStatement?
  private var settling: [Bool: [SQLStatement]] = [:]
  /// Whether an entry may be open; `nil` until it is looked up.
  private var mayHaveOpen: Bool?
  /// Whether open entries may have been closed, which count for the bound from now on.
  var mayHaveClosed = false

  /// The most entries, and the most bytes of values.
  struct Bound {
    var entries = 10_000
    var bytes = 16 << 20
  }

  /// - Parameter client: The client that the store is.
  init(
    _ database: Database, bound: Bound, archive: ConflictArchive? = nil, clients: ClientRegistry,
    client: ClientIdentifier, now: Int64
  ) {
    self.database = database
    self.bound = bound
    self.archive = archive
    firstMark = client.bits.bytes
    names = ArchivedNames(database, clients)
    self.now = now
  }

  /// An entry, with the store's numbers for tables, columns and clients.
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

  // MARK: - Writing

  /// Adds an entry; returns its number.
  @discardableResult
  func add(_ entry: Entry) throws -> Int64 {
    let entry = try numbered(entry)
    try write(entry)
    return entry.number
  }

  /// Adds an entry that will not change any more in this transaction. Beyond the bound, the oldest
  /// of these entries go to the file.
  func addSettled(_ entry: Entry) throws {
    for old in pending.add(try numbered(entry), within: bound) {
      try moveOutOthers()
      try moveOut(old, isInTable: false)
    }
  }

  private func numbered(_ entry: Entry) throws -> Entry {
    var summary = try summary()
    lastOfOthers = lastOfOthers ?? summary.last
    summary.last += 1
    knownSummary = summary
    var entry = entry
    entry.number = summary.last
    entry.at = now
    return entry
  }

  /// Writes an entry, in place of the one with its number.
  func write(_ entry: Entry) throws {
    if entry.status == .open { mayHaveOpen = true } else { mayHaveClosed = true }
    let blobs: [[UInt8]?] = [
      KeptCells.encode(entry.key),
      entry.base.map { KeptCells.encode([(entry.column ?? 0, $0)]) },
      entry.local.map(KeptCells.encode), entry.remote.map(KeptCells.encode),
    ]
    let size =
      entry.row.identity.bytes.count + blobs.reduce(64) { $0 + ($1?.count ?? 0) }
      + (entry.message?.utf8.count ?? 0)
    let statement =
      try insertion
      ?? SQLStatement(
        """
        INSERT OR REPLACE INTO docsync_conflict (number, at, size, status, kind, tbl, identity, \
        col, rule, outcome, local_time, local_client, remote_time, remote_client, message, key, \
        base, local, remote) VALUES (\(Array(repeating: "?", count: 19).joined(separator: ", ")))
        """, on: database)
    insertion = statement
    statement.bind(entry.number, at: 1)
    statement.bind(entry.at, at: 2)
    statement.bind(Int64(size), at: 3)
    statement.bind(entry.status.rawValue, at: 4)
    statement.bind(entry.kind.rawValue, at: 5)
    statement.bind(Int64(entry.row.table), at: 6)
    statement.bind(blob: entry.row.identity.bytes, at: 7)
    statement.bind(entry.column.map { .integer(Int64($0)) } ?? .null, at: 8)
    statement.bind(entry.rule.rawValue, at: 9)
    statement.bind(entry.outcome.rawValue, at: 10)
    for (index, stamp) in [entry.localStamp, entry.remoteStamp].enumerated() {
      let time = stamp.map { Value.integer(Int64(clamping: $0.time)) }
      statement.bind(time ?? .null, at: 11 + 2 * index)
      statement.bind(stamp.map { .integer(Int64($0.client)) } ?? .null, at: 12 + 2 * index)
    }
    if let message = entry.message {
      statement.bind(message, at: 15)
    } else {
      statement.bind(null: 15)
    }
    for (index, blob) in blobs.enumerated() {
      statement.bind(blob.map(Value.blob) ?? .null, at: 16 + index)
    }
    try statement.run()
  }

  /// Writes the added entries that are still in memory. Call it before a step that may be rolled
  /// back alone.
  func writePending() throws {
    for entry in pending.takeAll() { try write(entry) }
  }

  /// Updates the entries of a row that is shown again. Removes those after the number `last` that
  /// record that it is not shown, and gives the earlier ones the outcome `both`. If the row is
  /// shown although it is deleted (`isRescued`), this includes the entries of its deletion.
  func settleShown(_ row: RowKey, isRescued: Bool, enteredAfter last: Int64) throws {
    for statement in try settlingStatements(isRescued: isRescued) {
      statement.bind(Int64(row.table), at: 1)
      statement.bind(blob: row.identity.bytes, at: 2)
      statement.bind(last, at: 3)
      try statement.run()
    }
  }

  private func settlingStatements(isRescued: Bool) throws -> [SQLStatement] {
    if let known = settling[isRescued] { return known }
    let hidden: [Conflict.Kind] =
      [.uniqueValue, .reference, .condition] + (isRescued ? [.existence] : [])
    let kinds = hidden.map { literal($0.rawValue) }.joined(separator: ", ")
    let made = try [
      SQLStatement(
        "DELETE FROM docsync_conflict WHERE tbl = ? AND identity = ? AND number > ? "
          + "AND kind IN (\(kinds)) AND status <> 'open'", on: database),
      SQLStatement(
        "UPDATE docsync_conflict SET outcome = 'both' WHERE tbl = ? AND identity = ? "
          + "AND number <= ? AND kind IN (\(kinds)) AND status = 'settled'", on: database),
    ]
    settling[isRescued] = made
    return made
  }

  // MARK: - Reading

  func entry(_ number: Int64) throws -> Entry? {
    try entries("WHERE number = ?", [number]).first
  }

  /// Returns the open entry of a cell, or of a row's existence for no column; `nil` if there is
  /// none.
  func openEntry(_ row: RowKey, column: Int?) throws -> Entry? {
    let mayHaveOpen = try mayHaveOpen ?? (openCount > 0)
    self.mayHaveOpen = mayHaveOpen
    guard mayHaveOpen else { return nil }
    return try entries(
      "WHERE tbl = ? AND identity = ? AND col IS ? AND status = 'open' AND kind IN "
        + "('cell', 'existence')",
      [row.table, Data(row.identity.bytes), column]
    ).first
  }

  /// Returns the numbers and rows of the open entries about cells, of all rows or of one. None of them
  /// is in memory only.
  func openCells(of row: RowKey? = nil) throws -> [(number: Int64, row: RowKey)] {
    guard try openCount > 0 else { return [] }
    return try ConflictTable.openCells(of: row, database)
  }

  /// Returns the entries that meet an SQL condition, the newest first.
  func entries(_ condition: String, _ arguments: StatementArguments) throws -> [Entry] {
    try writePending()
    return try storedEntries(condition, arguments)
  }

  /// Does the same without writing the added entries that are still in memory.
  func storedEntries(
    _ condition: String, _ arguments: StatementArguments
  ) throws -> [Entry] {
    try StoredRow.fetchAll(
      database, sql: "SELECT * FROM docsync_conflict \(condition) ORDER BY number DESC",
      arguments: arguments
    ).map(Self.entry)
  }

  var openCount: Int {
    get throws {
      try ConflictTable.openCount(database)
    }
  }

  private static func entry(_ row: StoredRow) throws -> Entry {
    guard let status = Conflict.Status(rawValue: try row["status"]),
      let kind = Conflict.Kind(rawValue: try row["kind"]),
      let outcome = Conflict.Outcome(rawValue: try row["outcome"])
    else {
      throw DatabaseError(
        resultCode: .SQLITE_CORRUPT, message: "docsync_conflict has an entry of an unknown kind")
    }
    func cells(_ name: String) throws -> [Entry.Cell]? {
      try (row[name] as Data?).map { try KeptCells.decode(Array($0)) }
    }
    func stamp(_ side: String) throws -> LocalStamp? {
      guard let time = try row["\(side)_time"] as Int64?,
        let client = try row["\(side)_client"] as Int32?
      else { return nil }
      return LocalStamp(time: UInt64(clamping: time), client: client)
    }
    let column: Int? = try row["col"]
    guard column.map({ 0...ConflictTable.localKeyPosition ~= $0 }) ?? true else {
      throw DatabaseError(
        resultCode: .SQLITE_CORRUPT, message: "docsync_conflict names a column that does not exist")
    }
    return Entry(
      number: try row["number"], at: try row["at"], status: status, kind: kind,
      row: RowKey(
        table: try row["tbl"], identity: RowIdentity(bytes: Array(try row["identity"] as Data))),
      column: column, rule: Conflict.Rule(rawValue: try row["rule"]), outcome: outcome,
      localStamp: try stamp("local"), remoteStamp: try stamp("remote"), message: try row["message"],
      key: try cells("key") ?? [], base: try cells("base")?.first?.value,
      local: try cells("local"), remote: try cells("remote"))
  }

  // MARK: - The bound

  /// The data that is kept beside the entries.
  struct Summary: Codable, StoredValue {
    /// The number of the last entry.
    var last: Int64 = 0
    /// The entries that are no longer kept.
    var dropped = Conflict.Dropped()
    /// What is known of the file beside the store; `nil` if no entry has left the table.
    var archive: ArchiveState?

    /// The number is counted on from, and the count is added to.
    func checkNumbers() throws {
      try StoredNumbers.check("last", count: Int(last))
      try StoredNumbers.check("dropped.count", count: dropped.count)
      try StoredNumbers.check("dropped", milliseconds: dropped.firstMilliseconds)
      try StoredNumbers.check("dropped", milliseconds: dropped.lastMilliseconds)
      try archive?.checkNumbers()
    }
  }

  func summary() throws -> Summary {
    if let knownSummary { return knownSummary }
    return try MetaTable.value(.conflictJournal, database) ?? Summary()
  }

  /// Writes the entries that the transaction has added, and trims the journal to its bound.
  func finish() throws {
    guard knownSummary != nil || mayHaveClosed else { return }
    // Trimming notes there what has gone to the file.
    knownSummary = try summary()
    try writePending()
    try trim()
    try MetaTable.write(
      .conflictJournal, to: Array(JSONEncoder().encode(try summary())), database)
    knownSummary = nil
    mayHaveClosed = false
  }
}
