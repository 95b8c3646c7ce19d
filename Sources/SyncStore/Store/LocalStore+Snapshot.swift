import Foundation
import GRDB
import SyncModel

extension LocalStore {
  /// Writes a consistent copy to `destination`, which must not exist, without client identity,
  /// binding, log, or excluded data.
  ///
  /// Throws `unpublishedEdits` if there are edits that are not sealed and published: synchronize
  /// first. Writers need not wait, since the copy is checked and not the store.
  ///
  /// - Parameters:
  ///   - checkCancellation: Called repeatedly. If it throws, the error is passed on and nothing is
  ///     left at `destination`.
  ///   - onProgress: Called with the number of bytes that were written; there are twice as many as
  ///     the copy has.
  package func snapshot(
    to destination: String, checkCancellation: @escaping () throws -> Void = {},
    onProgress: @escaping WorkProgress = { _, _ in }
  ) throws -> StoreSnapshot {
    guard !FileManager.default.fileExists(atPath: destination) else {
      throw StoreError(
        .notWritable, path: destination, message: "There is a file already.",
        remedy: "Name a path that is free.")
    }
    // The bookkeeping in the copy must be in line with its schema.
    try read { _ in }
    do {
      // SQLite writes into a file only if it is empty or does not exist.
      try StoreFileMode.makeFile(at: destination, like: path)
      let work = try StoreError.mapping(path) {
        try connection.queue.writeWithoutTransaction { database in
          let work = SnapshotWork(
            file: destination, byteCount: try Self.byteCount(of: database), progress: onProgress,
            checkCancellation: checkCancellation)
          try QueryCancellation.run(database, { try work.look() }) {
            try database.execute(sql: "VACUUM INTO ?", arguments: [destination])
          }
          return work
        }
      }
      work.beginCleaning()
      let snapshot = try StoreError.mapping(destination) { try scrub(destination, work) }
      work.finish()
      return snapshot
    } catch {
      if FileManager.default.fileExists(atPath: destination) {
        try FileManager.default.removeItem(atPath: destination)
      }
      throw error
    }
  }

  /// Returns the length that a copy without free pages will have.
  private static func byteCount(of database: Database) throws -> Int {
    func pragma(_ name: String) throws -> Int {
      try Int.fetchOne(database, sql: "PRAGMA main.\(name)") ?? 0
    }
    return try (pragma("page_count") - pragma("freelist_count")) * pragma("page_size")
  }

  private func scrub(_ destination: String, _ work: SnapshotWork) throws -> StoreSnapshot {
    let journalMode = try connection.queue.writeWithoutTransaction { database in
      try String.fetchOne(database, sql: "PRAGMA main.journal_mode") ?? "delete"
    }
    let copy = try StoreConnection(path: destination, busyTimeout: options.busyTimeout)
    do {
      let snapshot = try copy.queue.writeWithoutTransaction { database in
        try QueryCancellation.run(database, { try work.look() }) {
          try scrub(database, destination, journalMode: journalMode)
        }
      }
      try copy.queue.close()
      return snapshot
    } catch {
      try copy.queue.close()
      throw error
    }
  }

  private func scrub(
    _ database: Database, _ destination: String, journalMode: String
  ) throws -> StoreSnapshot {
    try database.execute(sql: "PRAGMA secure_delete = ON; PRAGMA synchronous = OFF")
    var snapshot: StoreSnapshot?
    try database.inTransaction(.immediate) {
      let read = try SchemaReader(
        database: database, configuration: configuration, path: destination
      ).read(registered: try TableRegistry.registered(database))
      let schema = try RecordedSchema.addPolicies(to: read, database)
      let session = try StoreSession(
        database: database, schema: schema, client: binding.client, now: options.now())
      try checkNothingUnpublished(session)
      if try SchemaRenewal(schema: schema, path: path).isNeeded(database) { throw unpublished }
      for table in schema.tables {
        for statement in CaptureTriggers(table: table).removal {
          try database.execute(sql: statement)
        }
      }
      try PrivateData(schema: schema, database: database).remove()
      try MetaTable.write(.journalMode, to: Array(journalMode.utf8), database)
      snapshot = StoreSnapshot(
        path: destination, vector: try session.clients.vector(), schema: schema.fingerprint)
      return .commit
    }
    try database.execute(sql: "VACUUM")
    guard let snapshot else {
      throw DatabaseError(resultCode: .SQLITE_INTERNAL, message: "no snapshot")
    }
    return snapshot
  }

  private func checkNothingUnpublished(_ session: StoreSession) throws {
    guard
      try session.outbox.unpublishedCount() == 0 && session.tablesWithEdits().isEmpty
        && session.remadeTables().isEmpty
    else { throw unpublished }
    // Edits that were sealed since are in the tables and would not be in the vector.
    guard try !session.isAwaitingOthers() else {
      throw StoreError(
        .unpublishedEdits, path: path,
        message: "The store has change sets of its own that wait for those of other devices.",
        remedy: "Synchronize it first, then try again.")
    }
  }

  private var unpublished: StoreError {
    StoreError(
      .unpublishedEdits, path: path,
      message: "The store has edits that are not in the shared directory yet.",
      remedy: "Synchronize it first, then try again.")
  }

  /// Makes the snapshot at `path` a store of its own for `binding.client`, which must be new.
  /// Change sets that the snapshot contains count as applied.
  ///
  /// The snapshot is checked first, with `quick_check`.
  ///
  /// - Parameter checkCancellation: Called repeatedly. If it throws, the error is passed on and the
  ///   file cannot be used.
  package static func adopt(
    snapshotAt path: String, binding: StoreBinding, options: StoreOptions = StoreOptions(),
    checkCancellation: @escaping () throws -> Void = {}
  ) throws -> LocalStore {
    try StoreError.checkFile(path)
    return try StoreError.mapping(path) {
      let connection = try StoreConnection(path: path, busyTimeout: options.busyTimeout)
      do {
        let configuration = try connection.queue.writeWithoutTransaction { database in
          try QueryCancellation.run(database, checkCancellation) {
            try adopt(database, binding, path, options)
          }
        }
        return LocalStore(
          connection: connection, options: options, binding: binding,
          configuration: configuration)
      } catch {
        try connection.queue.close()
        throw error
      }
    }
  }

  private static func adopt(
    _ database: Database, _ binding: StoreBinding, _ path: String, _ options: StoreOptions
  ) throws -> StoreConfiguration {
    let configuration = try CheckedSnapshot.check(database, path)
    try database.inTransaction(.immediate) {
      try Bookkeeping.upgrade(database)
      try StoreIdentity.write(binding, configuration, database)
      _ = try StoreIdentity(database: database, path: path, options: options)
        .settle(as: binding.client, former: nil)
      let schema = try SchemaReader(
        database: database, configuration: configuration, path: path
      ).read(registered: try TableRegistry.registered(database))
      _ = try StoreSession(
        database: database, schema: schema, client: binding.client, now: 0)
      for table in schema.tables {
        for statement in Bookkeeping.creation(for: table) { try database.execute(sql: statement) }
      }
      return .commit
    }
    if let mode = try MetaTable.read(.journalMode, database), mode == Array("wal".utf8) {
      try database.execute(sql: "PRAGMA main.journal_mode = WAL")
    }
    return configuration
  }
}
