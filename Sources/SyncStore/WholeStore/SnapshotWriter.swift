import Foundation
import GRDB
import SyncModel

/// The writer of snapshots: consistent copies of a store without the data of its client.
struct SnapshotWriter {
  /// Which edits of the store other devices may not have yet.
  enum Edits {
    /// None.
    case published
    /// Those in sealed change sets. Edits are sealed first.
    ///
    /// - Parameter prepare: Called before change sets are sealed.
    case sealed(prepare: () throws -> Void)

    fileprivate var mustBePublished: Bool { if case .published = self { true } else { false } }
  }

  let store: OpenStore
  let edits: Edits

  private var connection: StoreConnection { store.connection }

  /// Writes a snapshot of the store, whose bookkeeping is in line with its schema. Throws
  /// `unpublishedEdits`.
  func write(
    to destination: String, _ checkCancellation: @escaping () throws -> Void,
    _ onProgress: @escaping WorkProgress
  ) throws -> StoreSnapshot {
    guard !FileManager.default.fileExists(atPath: destination) else {
      throw StoreError(
        .notWritable, path: destination, message: "There is a file already.",
        remedy: "Name a path that is free.")
    }
    do {
      // SQLite writes into a file only if it is empty or does not exist.
      try StoreFileMode.makeFile(at: destination, like: connection.path)
      let work = try copy(to: destination, checkCancellation, onProgress)
      work.beginCleaning()
      let snapshot = try StoreError.mapping(destination) { try scrub(destination, work) }
      work.finish()
      return snapshot
    } catch {
      if FileManager.default.fileExists(atPath: destination) {
        try FileManager.default.removeItem(atPath: destination)
      }
      // The pages are those of the store.
      if var error = error as? StoreError, error.code == .damaged, error.path == destination {
        error.path = connection.path
        throw error
      }
      throw error
    }
  }

  private func copy(
    to destination: String, _ checkCancellation: @escaping () throws -> Void,
    _ onProgress: @escaping WorkProgress
  ) throws -> SnapshotWork {
    func work(_ database: Database) throws -> SnapshotWork {
      SnapshotWork(
        file: destination, byteCount: try Self.byteCount(of: database), progress: onProgress,
        checkCancellation: checkCancellation)
    }
    switch edits {
    case .published:
      return try connection.use { database in
        let work = try work(database)
        try DatabaseCopy.write(database, at: connection.path, to: destination) { try work.look() }
        return work
      }
    case .sealed(let prepare):
      let work = try store.readSealed(checkCancellation: checkCancellation, prepare: prepare) {
        let work = try work($0.database)
        // `VACUUM INTO` begins a transaction of its own: it would see edits that were made since.
        try DatabaseCopy.writePages($0.database, to: destination) { try work.look() }
        return work
      }
      guard let work else {
        throw StoreError(
          .unpublishedEdits, path: connection.path,
          message: "The database could not be copied: programs made new edits at each attempt.",
          remedy: "Let no program write to the database for a moment, then try again.")
      }
      return work
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
    let copy = try StoreConnection(path: destination, busyTimeout: store.options.busyTimeout)
    return try copy.queue.closing {
      try copy.queue.writeWithoutTransaction { database in
        try QueryCancellation.run(database, { try work.look() }) {
          try scrub(database, destination, journalMode: journalMode)
        }
      }
    }
  }

  private func scrub(
    _ database: Database, _ destination: String, journalMode: String
  ) throws -> StoreSnapshot {
    try database.execute(sql: "PRAGMA secure_delete = ON; PRAGMA synchronous = OFF")
    let snapshot = try database.transaction(.immediate) {
      let read = try SchemaReader(
        database: database, configuration: store.configuration, path: destination
      ).read(registered: try TableRegistry.registered(database))
      let schema = try RecordedSchema.addPolicies(to: read, database)
      let session = try StoreSession(
        database: database, schema: schema, client: store.binding.client,
        now: store.options.now())
      try checkNothingUnpublished(session)
      if try SchemaRenewal(schema: schema, path: connection.path).isNeeded(database) {
        throw unpublished
      }
      for table in schema.tables {
        for statement in CaptureTriggers(table: table).removal {
          try database.execute(sql: statement)
        }
      }
      try PrivateData(schema: schema, database: database).remove()
      try MetaTable.write(.journalMode, to: Array(journalMode.utf8), database)
      return StoreSnapshot(
        path: destination, vector: try session.clients.vector(), schema: schema.fingerprint)
    }
    try database.execute(sql: "VACUUM")
    return snapshot
  }

  private func checkNothingUnpublished(_ session: StoreSession) throws {
    guard
      try (!edits.mustBePublished || session.outbox.unpublishedCount() == 0)
        && session.tablesWithEdits().isEmpty
        && session.remadeTables().isEmpty && !HeldTombstones(session: session).exist()
    else { throw unpublished }
    try Self.checkNothingHeld(session, connection.path)
    // Edits that were sealed since are in the tables and would not be in the vector.
    guard try !session.isAwaitingOthers() else {
      throw StoreError(
        .unpublishedEdits, path: connection.path,
        message: "The store has change sets of its own that wait for those of other devices.",
        remedy: "Synchronize it first, then try again.")
    }
  }

  /// Throws `unpublishedEdits` if edits are too large for a change set: devices that join would have
  /// them, and the others would not.
  static func checkNothingHeld(_ session: StoreSession, _ path: String) throws {
    guard let first = try session.heldEdits().reports(session).first else { return }
    throw StoreError(
      .unpublishedEdits, path: path,
      message: "The copy of the database would contain an edit that other devices do not have: "
        + first.message,
      remedy: Remedy(first.remedy))
  }

  private var unpublished: StoreError {
    StoreError(
      .unpublishedEdits, path: connection.path,
      message: "The store has edits that are not in the shared directory yet.",
      remedy: "Synchronize it first, then try again.")
  }
}
