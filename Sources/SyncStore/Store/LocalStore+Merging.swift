import Foundation
import GRDB
import SyncModel

extension LocalStore {
  /// Makes the snapshot at `path` a store of its own, as
  /// ``adopt(snapshotAt:binding:options:checkCancellation:)`` does, and merges into it the rows of
  /// a database that was not under sync, as edits of now that are not published yet. The database
  /// itself is only read.
  ///
  /// Rows are matched by the identities of the document. A row whose key has no meaning on other
  /// devices is the document's if it has the same key and the same values, or if the document has
  /// its unique values already. Otherwise it is new: it gets a free key if its own is taken, and
  /// references follow it. If both have a row with different values, `prefer` decides which are
  /// shown; the others are entered in the conflict journal. Tables and columns that stay on the
  /// device are taken along. Tables that the document does not have become part of it.
  ///
  /// Throws `schemasDiffer`, which names the columns, if tables that both have differ in their
  /// columns, and `alreadyUnderSync` if the database is under sync. The file at `path` cannot be
  /// used then.
  ///
  /// - Parameters:
  ///   - checkCancellation: Called repeatedly. Its errors are passed on.
  ///   - onProgress: Called with the number of the database's rows that were looked at.
  ///   - catchUp: Applies what was published after the snapshot, so that the rows are compared with
  ///     the document as it is now.
  package static func adopt(
    snapshotAt path: String, mergingDatabaseAt other: String,
    prefer: MergedRows.Preference = .document, binding: StoreBinding,
    options: StoreOptions = StoreOptions(),
    checkCancellation: @escaping () throws -> Void = {},
    onProgress: @escaping WorkProgress = { _, _ in },
    catchUp: (LocalStore) throws -> Void = { _ in }
  ) throws -> (store: LocalStore, merged: MergedRows) {
    guard try !isUnderSync(at: other) else {
      throw StoreError(
        .alreadyUnderSync, path: other, message: "The database is under sync already.",
        remedy: "Synchronize it with \(.synchronize), or take it out of sync first.")
    }
    let store = try adopt(
      snapshotAt: path, binding: binding, options: options, checkCancellation: checkCancellation)
    do {
      try catchUp(store)
      let merged = try DatabaseQueue.reading(other, busyTimeout: options.busyTimeout) { former in
        try store.merge(
          try FormerDatabase(former), path: other, prefer: prefer, WorkCount(onProgress),
          checkCancellation)
      }
      return (store, merged)
    } catch {
      try store.close()
      // No store will ever be that client.
      try options.forgetTokens(of: binding.client)
      throw error
    }
  }

  private func merge(
    _ former: FormerDatabase, path other: String, prefer: MergedRows.Preference, _ work: WorkCount,
    _ checkCancellation: @escaping () throws -> Void
  ) throws -> MergedRows {
    do {
      return try write { session in
        work.begin(try former.rowCount(of: session.schema))
        let merged = try merge(
          former, path: other, prefer: prefer, isInPlace: false, session, work, checkCancellation)
        work.finish()
        return merged
      }
    } catch {
      forgetSchema()
      throw error
    }
  }

  /// Merges within a transaction. The caller cannot use `session` afterwards.
  ///
  /// - Parameter isInPlace: Whether the database is a copy of the store as it was before it took
  ///   over the document, so that the data that stays on the device is here.
  func merge(
    _ former: FormerDatabase, path other: String, prefer: MergedRows.Preference, isInPlace: Bool,
    _ session: StoreSession, _ work: WorkCount,
    _ checkCancellation: @escaping () throws -> Void
  ) throws -> MergedRows {
    let database = session.database
    let local = LocalTables(
      database: database, former: former, schema: session.schema,
      checkCancellation: checkCancellation)
    try local.check(path: other)
    let names = local.newTables.map(\.name)
    var session = session
    if !names.isEmpty {
      try local.makeNewTables()
      try session.conflicts.journal.finish()
      session = try renewedSession(database)
    }
    let merge = try DatabaseMerge(
      session: session, former: former, prefer: prefer, random: options.random, work: work,
      checkCancellation: checkCancellation)
    try merge.run()
    var report = merge.report
    report.newTables = names
    report.localTables =
      isInPlace ? try local.follow(merge.translate) : try local.takeAlong(merge.translate)
    try merge.end()
    try raiseVersion(to: former, database)
    try UnreportedWarnings.add(session.conflicts.takeWarnings(), to: session.records)
    try session.conflicts.journal.finish()
    return report
  }

  /// Raises the application's schema version to that of the other database, if it is less. The
  /// tables are those of both by now, so the application need not repeat a migration that it made
  /// in one of them.
  private func raiseVersion(to former: FormerDatabase, _ database: Database) throws {
    let version = "PRAGMA main.user_version"
    let (here, there) = (
      try Int.fetchOne(database, sql: version) ?? 0,
      try Int.fetchOne(former.database, sql: version) ?? 0
    )
    if there > here { try database.execute(sql: "\(version) = \(there)") }
  }
}
