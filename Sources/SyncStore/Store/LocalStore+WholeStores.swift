import GRDB
import SyncModel

/// Whole stores: making one, making a store of one, and exchanging the store's content for one.
extension LocalStore {
  /// Writes a consistent copy to `destination`, which must not exist, without client identity,
  /// binding, log, or excluded data.
  ///
  /// Throws `unpublishedEdits` if there are edits that are not sealed and published: synchronize
  /// first. Throws `unsupportedSchema` if a table that was synchronized cannot be at present, since
  /// the copy would lack its rows. Writers need not wait, since the copy is checked and not the
  /// store.
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
    try snapshot(to: destination, .published, checkCancellation, onProgress)
  }

  /// Seals the edits, and writes a copy of the store as it is then, as
  /// ``snapshot(to:checkCancellation:onProgress:)`` does. Other programs may make edits all the time:
  /// the copy has those that were sealed, and no others.
  ///
  /// Change sets that the copy contains may not be published: publish them before the copy.
  ///
  /// Throws `unpublishedEdits` if other programs make edits without any pause, or if there are edits
  /// that no change set can carry.
  ///
  /// - Parameter prepare: Called before edits are sealed. If it throws, the error is passed on.
  package func sealedSnapshot(
    to destination: String, checkCancellation: @escaping () throws -> Void = {},
    onProgress: @escaping WorkProgress = { _, _ in }, prepare: @escaping () throws -> Void = {}
  ) throws -> StoreSnapshot {
    try snapshot(to: destination, .sealed(prepare: prepare), checkCancellation, onProgress)
  }

  private func snapshot(
    to destination: String, _ edits: SnapshotWriter.Edits,
    _ checkCancellation: @escaping () throws -> Void, _ onProgress: @escaping WorkProgress
  ) throws -> StoreSnapshot {
    // The bookkeeping in the copy must be in line with its schema.
    try checkCompleteness()
    try read { try SnapshotWriter.checkNothingHeld($0, path) }
    return try SnapshotWriter(store: store, edits: edits)
      .write(to: destination, checkCancellation, onProgress)
  }

  /// Throws `unsupportedSchema` if a whole store would lack the rows of a table that other devices
  /// synchronize and this one cannot, or an excluded table: on a device that joins, any table could
  /// be that one under another name.
  package func checkCompleteness() throws {
    let (lacking, missing) = try read { session in
      try session.schema.checkNoneSuspended(path)
      let unknown = try session.foreign.unknownNames(session.schema)
      let tables = session.schema.unsuitableTables
      return (
        tables.first { unknown.contains($0.name) }, tables.first { $0.reason == .missingExclusion }
      )
    }
    if let missing {
      throw StoreError(
        .unsupportedSchema, path: path, message: missing.message, remedy: Remedy(missing.remedy))
    }
    guard let table = lacking else { return }
    throw StoreError(
      .unsupportedSchema, path: path,
      message:
        "A copy of the database would lack the rows of the table \(quoted(table.name)), which "
        + "other devices synchronize. \(table.message)",
      remedy: Remedy(table.remedy))
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
    LocalStore(
      try SnapshotAdoption(path: path, binding: binding, options: options).run(checkCancellation))
  }

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
  /// The store has the newer version of the schema, and the migrations of both. Throws
  /// `schemasDiffer`, which names the differences, if it would lack something that these stand for,
  /// or if tables that both have differ in their columns, and `alreadyUnderSync` if the database is
  /// under sync. The file at `path` cannot be used then.
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
        try DatabaseJoin(
          store: store.store, former: FormerDatabase(former), path: other, prefer: prefer,
          isInPlace: false, work: WorkCount(onProgress), checkCancellation: checkCancellation
        ).run()
      }
      return (store, merged)
    } catch {
      try store.close()
      // No store will ever be that client.
      try options.forgetTokens(of: binding.client)
      throw error
    }
  }

  // MARK: - Exchanging the content

  /// Exchanges the store's content for that of a whole store, in one transaction: programs that
  /// have the file open see nothing in between.
  ///
  /// Edits in the log are sealed first. The synchronized tables, and all that bookkeeping knows of
  /// the document, become those of the whole store, with its schema if that is another. The
  /// device's own data stays: excluded tables and columns, policies, the conflict journal, records,
  /// and its own change sets. Rows that the store had keep the keys that they have here. Own change
  /// sets that the whole store does not contain are applied again, as they were sealed; if they
  /// depend on change sets of other clients that are missing, they wait for these.
  ///
  /// A copy of the former file remains beside it.
  ///
  /// - Parameters:
  ///   - path: A whole store as ``adopt(snapshotAt:binding:options:checkCancellation:)`` takes it.
  ///     It is checked first, and not changed.
  ///   - binding: The store's binding from then on, if the whole store is of another generation.
  ///     The own change sets are not applied again then: the result has those that the whole store
  ///     does not contain, and the store has them until ``rewriteReturning(checkCancellation:)``.
  ///   - ownBytes: The files of own change sets whose bytes the store no longer has, by their
  ///     numbers.
  ///   - records: Values of ``setRecord(_:to:)`` to set in the same transaction; `nil` removes one.
  ///   - commandState: Combines the command states of this store and of the whole store
  ///     (``commandState()``).
  ///   - events: The commands in these states that are for the application, and that it has not
  ///     received.
  ///   - checkCancellation: Called between steps. If it throws, nothing is changed and the error is
  ///     passed on.
  ///   - onProgress: Called with the number of steps that are done: each table takes a few, and
  ///     each own change set that is applied again takes one.
  ///
  /// Throws `damaged` if the file is not a sound whole store, `fork` if it has own change sets that
  /// this store does not know, and `changeSetMissing` if the bytes of one that has to be applied
  /// again cannot be found.
  package func replaceContent(
    withSnapshotAt path: String, binding: StoreBinding? = nil,
    ownBytes: [UInt64: [UInt8]] = [:], records: [String: [UInt8]?] = [:],
    commandState: @escaping (_ own: [UInt8]?, _ whole: [UInt8]?) throws -> [UInt8]? = { $0 ?? $1 },
    events: [CommandEvent] = [],
    checkCancellation: @escaping () throws -> Void = {},
    onProgress: @escaping WorkProgress = { _, _ in }
  ) throws -> ContentReplacement {
    try ContentExchange(
      store: store, snapshot: checkedSnapshot(path, checkCancellation), records: records,
      commandState: commandState, checkCancellation: checkCancellation, onProgress: onProgress
    ).run(as: binding, ownBytes, events)
  }

  /// Exchanges the store's content for that of a whole store of an unrelated document, as
  /// ``replaceContent(withSnapshotAt:binding:ownBytes:records:commandState:events:checkCancellation:onProgress:)``
  /// does, and merges the rows that the store had into it, as edits that a new client makes now.
  /// They are not published yet.
  ///
  /// Rows are matched by the identities of the document, as in
  /// ``adopt(snapshotAt:mergingDatabaseAt:prefer:binding:options:checkCancellation:onProgress:)``,
  /// and by the identities that they had. Values that contradict the document, and parked rows, are
  /// entered in the conflict journal. If both documents stem from one, the later value is shown.
  /// The store forgets the change sets that it had sealed and received for its former document: the
  /// rows contain their changes. A copy of the former file remains beside it.
  ///
  /// The other parameters are those of the other function. Throws `schemasDiffer` if the schemas do
  /// not fit, or if data that stays on this device would be shared, and `busy` if
  /// other programs write all the time. In these cases the rows are unchanged.
  ///
  /// - Parameter binding: The store's binding from then on, with the client that it has been.
  package func replaceContent(
    withSnapshotAt path: String, mergingInto binding: StoreBinding,
    records: [String: [UInt8]?] = [:],
    commandState: @escaping (_ own: [UInt8]?, _ whole: [UInt8]?) throws -> [UInt8]? = { $0 ?? $1 },
    checkCancellation: @escaping () throws -> Void = {},
    onProgress: @escaping WorkProgress = { _, _ in }
  ) throws -> ContentReplacement {
    try ContentExchange(
      store: store, snapshot: checkedSnapshot(path, checkCancellation), records: records,
      commandState: commandState, checkCancellation: checkCancellation, onProgress: onProgress
    ).merge(into: binding)
  }

  private func checkedSnapshot(
    _ path: String, _ checkCancellation: @escaping () throws -> Void
  ) throws -> CheckedSnapshot {
    try CheckedSnapshot(
      path: path, busyTimeout: options.busyTimeout, checkCancellation: checkCancellation)
  }

  // MARK: - Own change sets of a former generation

  /// Returns the own change sets of a generation that the store has left, in order. They are to be
  /// rewritten.
  package func returning() throws -> [ContentReplacement.OwnChangeSet] {
    try read { try $0.returning() }
  }

  /// Stores files of change sets of another store of the document. They are to be rewritten after
  /// those that are stored already.
  package func keepReturning(_ changeSets: [[UInt8]]) throws {
    try write { session in try session.keepReturning(changeSets) }
  }

  /// Seals the edits, and returns the files of the change sets that were sealed here and are not
  /// published, in the order in which they can be rewritten: those that the store has brought along
  /// itself (``returning()``), those of former clients, and its own.
  package func unsentChangeSets(
    checkCancellation: @escaping () throws -> Void = {}
  ) throws -> [[UInt8]] {
    try store.sealUnreported(checkCancellation: checkCancellation)
    let sealed = try ancestralChangeSets() + sealedChangeSets().filter { !$0.isPublished }
    return try returning().map(\.bytes)
      + sealed.map { set in
        let bytes = try sealedBytes(set.number, of: set.client)
        guard ContentHash(of: bytes) == set.hash else {
          throw StoreError(
            .damaged, path: path, message: "Change set \(set.number) of the store is damaged.",
            remedy: "Restore the file from a backup, or join the document again.")
        }
        return bytes
      }
  }

  /// Returns the definitions that a whole store's database has and this store lacks.
  ///
  /// - Parameter path: The database, which was found sound.
  package func missingDefinitions(
    comparedTo path: String, checkCancellation: @escaping () throws -> Void
  ) throws -> [StoreStatus.MissingSchema.Definition] {
    let missing = try read { try MissingDefinitions($0) }
    let busyTimeout = options.busyTimeout
    let other = try CheckedSnapshot(
      path: path, busyTimeout: busyTimeout, checkCancellation: checkCancellation)
    return try StoreError.mapping(path) {
      let connection = try StoreConnection(path: path, busyTimeout: busyTimeout)
      return try connection.queue.closing {
        try connection.queue.writeWithoutTransaction {
          try missing.definitions(in: other.schema, $0)
        }
      }
    }
  }
}
