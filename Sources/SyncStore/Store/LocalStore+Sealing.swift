import GRDB
import SyncModel

extension LocalStore {
  /// Seals the edits made since the last time: writes them as change sets
  /// into the store, durably, and empties the log, in one transaction.
  /// Without edits it writes nothing.
  ///
  /// - Parameters:
  ///   - checkCancellation: Called between batches of rows. If it throws, nothing is sealed and the
  ///     error is passed on.
  ///   - onProgress: Called with the number of entries of the log that were read.
  ///   - prepare: Called before anything is written, if there are edits. If it throws, nothing is
  ///     sealed and the error is passed on.
  ///
  /// The report contains all warnings that the store holds, also those of other processes
  /// (``UnreportedWarnings``).
  package func seal(
    checkCancellation: @escaping () throws -> Void = {},
    onProgress: @escaping WorkProgress = { _, _ in },
    prepare: () throws -> Void = {}
  ) throws -> SealReport {
    var report = try sealUnreported(
      checkCancellation: checkCancellation, onProgress: onProgress, prepare: prepare)
    if try record(UnreportedWarnings.key) != nil {
      report.warnings = try write { try UnreportedWarnings.take($0.records) }
    }
    return report
  }

  /// Seals the edits, and leaves the warnings to the next
  /// ``seal(checkCancellation:onProgress:prepare:)``.
  @discardableResult
  func sealUnreported(
    checkCancellation: @escaping () throws -> Void,
    onProgress: @escaping WorkProgress = { _, _ in },
    prepare: () throws -> Void = {}
  ) throws -> SealReport {
    guard try hasUnsealedEdits() else { return SealReport() }
    try prepare()
    return try passingOverTriggers {
      try write {
        try seal($0, work: WorkCount(onProgress), checkCancellation: checkCancellation)
      }
    }
  }

  /// Has the next sealing warn of the rows that have NULL in their key now, if there are any.
  package func noteRowsWithoutKey() throws {
    guard try read({ try $0.hasRowsWithoutKey() }) else { return }
    try write { try MetaTable.write(.keyMissing, to: [1], $0.database) }
  }

  /// Returns whether there are edits to seal, or rows to warn of.
  private func hasUnsealedEdits() throws -> Bool {
    try read {
      try !$0.tablesWithEdits().isEmpty || !$0.remadeTables().isEmpty || $0.isSettlingDue()
        || $0.isWarningOfKeysDue()
    }
  }

  /// Seals within a transaction.
  ///
  /// - Parameter comparesRemade: Whether to log remade tables that were not compared
  ///   (``compare(_:with:checkCancellation:)``), so that the next step does not overwrite their
  ///   rows.
  /// - Parameter lackingDeletedCells: The tables whose log lacks the cells of deleted rows.
  ///
  /// The session has the warnings.
  @discardableResult
  func seal(
    _ session: StoreSession, work: WorkCount = WorkCount { _, _ in },
    comparesRemade: Bool = true, lackingDeletedCells: Set<Int> = [],
    checkCancellation: @escaping () throws -> Void
  ) throws -> SealReport {
    try session.restoreKeys()
    try session.warnOfRowsWithoutKey()
    if comparesRemade { try UnseenRows(session: session).logRemadeTables() }
    var notes = PlainKeyNotes(session: session)
    let noted = try notes.note()
    let followed = try MovedKeys(session: session).log()
    var report = SealReport()
    let isSettlingDue = try session.isSettlingDue()
    guard try isSettlingDue || !session.tablesWithEdits().isEmpty else { return report }
    if try isSettlingDue || !session.tablesToCompare().isEmpty {
      try session.goneKeys.freeThoseOfHiddenRows(onlyTaken: true)
    }
    try session.setCache(.sealing)
    let builder = try ChangeSetBuilder(session: session, binding: binding, options: options)
    let export = ChangeExport(
      session: session, builder: builder, options: options,
      lackingDeletedCells: lackingDeletedCells, work: work, checkCancellation: checkCancellation)
    try export.run()
    var suspects = export.suspects
    suspects.followed = followed
    suspects.changed += (noted + followed.rows).map { ($0.table, $0.identity) }
    if isSettlingDue {
      suspects.diminished.formUnion(session.schema.tables.map(\.id))
      suspects.areAllOrphansSuspect = true
    }
    let set = WorkingSet(session: session)
    try export.hidden?.export(to: builder, into: set)
    (report.changeSets, report.files) = (builder.sealed, builder.files)
    try session.goneKeys.keepContained(suspects.freedKeys)
    report.parkedRows = try settle(suspects, set)
    if isSettlingDue {
      try SchemaArrival(session: session).settle()
      try session.goneKeys.freeThoseOfHiddenRows(onlyTaken: false)
      try session.forgetSettling()
    }
    try session.goneKeys.free(suspects.freedKeys)
    try session.goneKeys.holdDeclared()
    let edited = try session.tablesWithEdits()
    for table in edited {
      try session.database.execute(sql: "DELETE FROM \(table.logName)")
    }
    try session.goneKeys.freeNeedless(afterChangesOf: Set(edited.map(\.id)))
    try SharedLog.forget(session.database)
    session.writtenPlainCells = [:]
    session.forgetGoneKeys()
    try session.forgetEarlierKeys()
    return report
  }

  /// Makes the tables show what every other device will show: a program with foreign keys off may
  /// have left rows whose parent is gone, and a value that was given up may let a parked row
  /// appear. Returns the number of rows that are no longer shown.
  private func settle(_ suspects: ChangeExport.Suspects, _ set: WorkingSet) throws -> Int {
    let session = set.session
    try set.setPlain(suspects.plainCells, except: suspects.followed.references)
    try set.setPlain(suspects.followed.plain)
    let loaded = (suspects.dangling + suspects.changed).map {
      RowKey(table: $0.table, identity: $0.identity)
    }
    try session.readAhead(loaded + suspects.freedKeys.map(\.row))
    for suspect in suspects.dangling + suspects.changed {
      let key = RowKey(table: suspect.table, identity: suspect.identity)
      // The comparison finds out whether the row is new, and then it is decided.
      if try session.mayHaveComeUnseen(key) { continue }
      try set.row(key).isEdited = true
    }
    for table in suspects.diminished.sorted() {
      let orphans = Orphans(of: session.schema[table], session: session)
      for (child, rows) in try orphans.read(suspects) { try set.add(rows, child) }
    }
    let touched = Set(suspects.changed.map(\.table)).union(suspects.diminished)
    for table in touched.sorted() {
      try loadClaimants(in: table, into: set)
      try loadRowsGivingWay(in: table, into: set)
    }
    // Rows that nothing refers to any more are removed.
    for row in try session.keptRows.undead() { try set.row(row) }
    return try Materializer(set: set).run().deleted
  }

  /// Loads the parked rows that claim unique values of a table.
  private func loadClaimants(in table: Int, into set: WorkingSet) throws {
    for identity in try set.session.keptRows.claimants(in: table) {
      try set.row(RowKey(table: table, identity: identity))
    }
  }

  /// Loads the rows of a table that have a plain number in their key, and that may be hidden since
  /// another row has that key here.
  private func loadRowsGivingWay(in table: Int, into set: WorkingSet) throws {
    let access = try set.session.access(table)
    guard try access.canHavePlainNumbers() else { return }
    for identity in try set.session.keptRows.rowsGivingWay(in: access.table) {
      try set.row(RowKey(table: table, identity: identity))
    }
  }

  // MARK: - The outbox

  /// Returns the change sets that this store has sealed.
  package func outbox() throws -> SealedChangeSets {
    try read { session in
      let all = try session.outbox.all(of: session.own, andUnpublished: true)
      let own = all.filter { $0.client == session.ownClient }
      let applied = try session.clients.vector()[session.ownClient]
      var head = applied
      if let last = own.last, last.number > applied?.number ?? 0 {
        head = VersionVector.Entry(number: last.number, hash: last.hash)
      }
      return SealedChangeSets(
        own: own, ancestral: all.filter { $0.client != session.ownClient }, head: head)
    }
  }

  /// Returns the change sets that this store made as its present client, in order.
  package func sealedChangeSets() throws -> [SealedChangeSet] {
    try read { try $0.outbox.all(of: $0.own) }
  }

  /// Returns the change sets that this store, or the store of which it is a copy, has sealed as
  /// another client and that are not known to be published, in order.
  package func ancestralChangeSets() throws -> [SealedChangeSet] {
    try read { try $0.outbox.all(except: $0.own, onlyUnpublished: true) }
  }

  /// Returns the bytes of a sealed change set, exactly as they are published.
  ///
  /// - Parameter client: The client as which it was sealed; `nil` for the store's present one.
  package func sealedBytes(
    _ number: UInt64, of client: ClientIdentifier? = nil
  ) throws -> [UInt8] {
    try read { session in
      let author = try client.map(session.clients.number) ?? session.own
      guard let bytes = try session.outbox.file(number, of: author)?.bytes, !bytes.isEmpty else {
        throw StoreError(
          .missing, path: path,
          message: "The database does not keep its change set \(number) any more.",
          remedy: "Ask for one that \(.listChangeSets) lists as its own.")
      }
      return bytes
    }
  }

  /// Removes the bytes of the change sets up to a number, which every member of the document has
  /// applied. Change sets that are not published keep theirs.
  ///
  /// SQLite uses the space again; the file does not become smaller.
  package func forgetSealedBytes(through number: UInt64) throws {
    try write { try $0.outbox.forgetBytes(of: $0.own, through: number) }
  }

  /// Removes the published change sets below a number altogether: they were removed from the shared
  /// directory by a vacuum.
  package func forgetSealed(below number: UInt64) throws {
    try write { try $0.outbox.removePublished(below: number) }
  }

  /// Records that a sealed change set is in the shared directory. Idempotent. A change set that was
  /// sealed as another client is removed.
  package func markPublished(_ number: UInt64, of client: ClientIdentifier? = nil) throws {
    try write { session in
      let author = try client.map(session.clients.number) ?? session.own
      try session.outbox.markPublished(number, of: author, removing: author != session.own)
      try session.bases.removeIfAllIsPublished()
    }
  }
}
