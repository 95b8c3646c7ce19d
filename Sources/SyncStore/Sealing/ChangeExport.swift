import GRDB
import SyncModel

/// The export of the log as change sets: each row once, with its current values and the stamps of
/// the edits.
///
/// It runs inside the transaction that seals the change sets. Memory is bounded by one batch of
/// rows, and a fingerprint for each row of earlier batches that a later one may contain again.
final class ChangeExport {
  let session: StoreSession
  private let builder: ChangeSetBuilder
  let options: StoreOptions
  /// The tables whose log lacks the cells of deleted rows, since the log did not record these yet
  /// when it was written. The deletions of such rows erase them.
  private let lackingDeletedCells: Set<Int>
  /// Cells of rows that refer, or seemed to refer, to a row with another local key.
  let followed: MovedKeys.Followed
  /// The cells that are plain values although a row has their number, by row and column.
  private var plainCells: [RowKey: [Int: Value]] = [:]
  private let work: WorkCount
  private let checkCancellation: () throws -> Void

  /// The number of rows that are read and sorted at once: enough for several change sets, as far as
  /// memory allows. The longer the stretches in order of key, the fewer pages a receiver touches
  /// twice.
  private static let rowsPerBatch = 32_000

  /// The effects of the edits on rows that are not shown.
  var hidden: HiddenEdits?

  /// The rows, keys and cells that sealing has to check afterwards.
  private(set) var suspects = Suspects()

  /// Rows, keys and cells that other devices might not show as they are here.
  struct Suspects {
    /// Rows with a reference to a row that is not in its table, by table.
    var dangling: [(table: Int, identity: RowIdentity)] = []
    /// Rows that were inserted or changed, if this may affect parked rows.
    var changed: [(table: Int, identity: RowIdentity)] = []
    /// Tables in which rows were deleted or keys changed.
    var diminished: Set<Int> = []
    /// Surrogate keys of rows that are gone.
    var freedKeys: [KeysOfGoneRows.Freed] = []
    /// Whether every row that refers to no row is suspect, not only those of which the row that
    /// they refer to has gone now.
    var areAllOrphansSuspect = false
    /// Cells with a plain value that has become the key of a row.
    var plainCells: [StoreSession.PlainCell] = []
  }

  /// - Parameter checkCancellation: Called before each batch of rows.
  init(
    session: StoreSession, builder: ChangeSetBuilder, options: StoreOptions,
    lackingDeletedCells: Set<Int>, followed: MovedKeys.Followed, work: WorkCount,
    checkCancellation: @escaping () throws -> Void
  ) {
    self.followed = followed
    self.lackingDeletedCells = lackingDeletedCells
    self.work = work
    self.checkCancellation = checkCancellation
    self.session = session
    self.builder = builder
    self.options = options
  }

  /// Exports all edits and seals them.
  func run() throws {
    for table in try session.tablesWithEdits() where table.identity == .surrogate {
      try session.assignLoggedIdentities(table)
    }
    try noteReferencesToPlainKeys()
    let written = session.writtenPlainCells.values.flatMap { $0 }
    suspects.plainCells = try cellsBecomingKeys() + written
    plainCells = try stayingPlain(suspects.plainCells)
    try logRebirths()
    try logHiddenDeletions()
    let tables = session.schema.inDependencyOrder(try session.tablesWithEdits())
    work.begin(try tables.reduce(0) { try $0.clampedSum(session.entryCount(of: $1)) })
    for table in tables { try export(table) }
    try builder.seal()
    work.finish()
  }

  /// Notes a surrogate key that is to be freed when sealing is done.
  func freeAfterwards(_ key: Int64, of row: RowKey) {
    suspects.freedKeys.append(
      KeysOfGoneRows.Freed(table: row.table, key: key, identity: row.identity))
  }

  private func export(_ table: TableSchema) throws {
    let exporter = try TableExport(
      session: session, table: table,
      keepsDeleted: table.keepsDeleted && !lackingDeletedCells.contains(table.id),
      limits: options.limits, plainCells: plainCells)
    var log = try EditLog(table: table, session: session)
    while true {
      try checkCancellation()
      let batch = try log.next(
        limit: Self.rowsPerBatch, byteLimit: options.bytesPerChangeSet)
      defer { work.advance(by: batch.entryCount) }
      if batch.rows.isEmpty { break }
      try exporter.export(batch, to: builder, suspects: &suspects)
      guard !batch.isLast else { break }
      // The next batch may contain further edits of the same rows, and one
      // change set contains each row once.
      try exporter.finish(builder)
      try builder.seal()
    }
    try exporter.finish(builder)
  }
}

extension StoreSession {
  /// Returns the number of entries in the log of a table, or a few more: their numbers go up by
  /// one.
  func entryCount(of table: TableSchema) throws -> Int { try entryCount(of: table.logName) }

  private func entryCount(of log: String) throws -> Int {
    // Two queries, each of which looks at one entry.
    try Int.fetchOne(
      database.cachedStatement(
        sql: "SELECT (SELECT max(seq) FROM \(log)) - (SELECT min(seq) FROM \(log)) + 1")) ?? 0
  }

  /// Returns whether edits in the log may have given the number of a row to another one. Updates cannot: a changed key
  /// is logged as a deletion and an insertion. Rows that ``LocalEdits`` has inserted are known by their numbers already.
  func mayHavePassedOnKeys() throws -> Bool {
    try tablesWithEdits().contains { table in
      guard table.localKey != nil else { return false }
      let isKnown =
        table.identity == .surrogate
        ? " AND NOT (l.op = \(CaptureTriggers.Entry.insert.rawValue) AND EXISTS (SELECT 1 FROM "
          + "\(table.identityName) AS i WHERE i.key = l.k0 AND i.identity = l.identity))" : ""
      return try Bool.fetchOne(
        database,
        sql: "SELECT EXISTS (SELECT 1 FROM \(table.logName) AS l "
          + "WHERE l.op <> \(CaptureTriggers.Entry.update.rawValue)\(isKnown))") ?? false
    }
  }

  /// Returns the tables whose log has entries.
  func tablesWithEdits() throws -> [TableSchema] {
    try schema.tables.filter { table in
      try hasEntries(table.logName)
    }
  }

  /// Returns the number of entries in the logs of all tables, among them those that cannot be
  /// synchronized at present.
  func editCount() throws -> Int {
    try logNames.reduce(0) { sum, log in
      sum + (try Int.fetchOne(database.cachedStatement(sql: "SELECT count(*) FROM \(log)")) ?? 0)
    }
  }

  /// Returns about the same number, after a look at the ends of each log.
  func entryCount() throws -> Int {
    try logNames.reduce(0) { try $0.clampedSum(entryCount(of: $1)) }
  }

  /// Returns whether there is any such entry.
  func hasEdits() throws -> Bool {
    try logNames.contains(where: hasEntries)
  }

  private func hasEntries(_ log: String) throws -> Bool {
    try Bool.fetchOne(
      database.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM \(log))")) ?? false
  }

  private var logNames: [String] {
    schema.tables.map(\.logName) + schema.suspended.map(TableSchema.logName(of:))
  }
}

extension StoreSchema {
  /// Returns the tables, each after the tables that it refers to, as far as cycles allow.
  func inDependencyOrder(_ tables: [TableSchema]) -> [TableSchema] {
    var result: [TableSchema] = []
    var seen: Set<Int> = []
    let wanted = Set(tables.map(\.id))
    func visit(_ table: TableSchema) {
      guard seen.insert(table.id).inserted else { return }
      for key in table.foreignKeys { visit(self[key.parent]) }
      if wanted.contains(table.id) { result.append(table) }
    }
    for table in tables { visit(table) }
    return result
  }
}
