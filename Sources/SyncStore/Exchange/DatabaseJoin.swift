import GRDB
import SyncModel

/// The merge of another database into a store, in one transaction: its rows
/// (``DatabaseMerge``), its tables that the document does not have, and its data that stays on the
/// device.
struct DatabaseJoin {
  let store: OpenStore
  let former: FormerDatabase
  /// The path of the other database.
  let path: String
  let prefer: MergedRows.Preference
  /// Whether the database is a copy of the store as it was before it took over the document, so
  /// that the data that stays on the device is here.
  let isInPlace: Bool
  let work: WorkCount
  let checkCancellation: () throws -> Void

  /// Merges, in a transaction of its own.
  func run() throws -> MergedRows {
    do {
      return try store.write { session in
        work.begin(try former.rowCount(of: session.schema))
        let merged = try run(session)
        work.finish()
        return merged
      }
    } catch {
      store.forgetSchema()
      throw error
    }
  }

  /// Merges. The caller cannot use `session` afterwards.
  func run(_ session: StoreSession) throws -> MergedRows {
    let database = session.database
    let local = LocalTables(
      database: database, former: former, schema: session.schema,
      checkCancellation: checkCancellation)
    try local.check(path: path)
    let names = local.newTables.map(\.name)
    var session = session
    if !names.isEmpty {
      try local.makeNewTables()
      try session.conflicts.journal.finish()
      session = try store.renewedSession(database, continuing: session)
    }
    try local.addMigrations(to: session.schema)
    let merge = try DatabaseMerge(
      session: session, former: former, prefer: prefer, random: store.options.random, work: work,
      checkCancellation: checkCancellation)
    try merge.run()
    var report = merge.report
    // Some of the new tables may be unsuitable.
    let staying = LocalTables(
      database: database, former: former, schema: session.schema,
      checkCancellation: checkCancellation)
    report.localTables =
      isInPlace ? try staying.follow(merge.translate) : try staying.takeAlong(merge.translate)
    let localTables = Set(report.localTables.map { $0.folded })
    report.newTables = names.filter { !localTables.contains($0.folded) }
    try merge.end()
    // Later, nothing would distinguish these from references.
    if session.hasWrittenPlainValues {
      try store.seal(session, comparesRemade: false, checkCancellation: checkCancellation)
    }
    try raiseVersion(database)
    try UnreportedWarnings.add(session.conflicts.takeWarnings(), to: session.records)
    try session.conflicts.journal.finish()
    return report
  }

  /// Raises the application's schema version to that of the other database, if it is less. The
  /// tables are those of both by now, so the application need not repeat a migration that it made
  /// in one of them.
  private func raiseVersion(_ database: Database) throws {
    let version = "PRAGMA main.user_version"
    let (here, there) = (
      try Int.fetchOne(database, sql: version) ?? 0,
      try Int.fetchOne(former.database, sql: version) ?? 0
    )
    if there > here { try database.execute(sql: "\(version) = \(there)") }
  }
}
