import GRDB
import SyncModel

/// The sealing of the edits in the log, as change sets, within one transaction. The session has the
/// warnings.
struct Sealing {
  let session: StoreSession
  let binding: StoreBinding
  let options: StoreOptions
  /// Whether to log remade tables that were not compared
  /// (``LocalStore/compare(_:with:checkCancellation:)``), so that the next step does not overwrite
  /// their rows.
  let comparesRemade: Bool
  /// The tables whose log lacks the cells of deleted rows.
  let lackingDeletedCells: Set<Int>
  let work: WorkCount
  let checkCancellation: () throws -> Void

  /// Returns whether there are edits to seal, or rows to warn of.
  static func isDue(_ session: StoreSession) throws -> Bool {
    try !session.tablesWithEdits().isEmpty || !session.remadeTables().isEmpty
      || session.isSettlingDue() || session.isWarningOfKeysDue()
      || DueHeldEdits(session).exist()
  }

  /// Seals the edits, and empties the log.
  func run() throws -> SealReport {
    try session.restoreKeys()
    try session.warnOfRowsWithoutKey()
    if comparesRemade { try UnseenRows(session: session).logRemadeTables() }
    var notes = PlainKeyNotes(session: session)
    let noted = try notes.note()
    let followed = try MovedKeys(session: session).log()
    var report = SealReport()
    let isSettlingDue = try session.isSettlingDue()
    let held = DueHeldEdits(session)
    guard try isSettlingDue || !session.tablesWithEdits().isEmpty || held.exist() else {
      return report
    }
    if try isSettlingDue || !session.tablesToCompare().isEmpty {
      try session.goneKeys.freeThoseOfHiddenRows(onlyTaken: true)
    }
    try session.setCache(.sealing)
    let builder = try ChangeSetBuilder(session: session, binding: binding, options: options)
    let export = ChangeExport(
      session: session, builder: builder, options: options,
      lackingDeletedCells: lackingDeletedCells, followed: followed, work: work,
      checkCancellation: checkCancellation)
    try export.run()
    var suspects = export.suspects
    suspects.changed += (noted + followed.rows + session.writtenPlainRows).map {
      ($0.table, $0.identity)
    }
    if isSettlingDue {
      suspects.diminished.formUnion(session.schema.tables.map(\.id))
      suspects.areAllOrphansSuspect = true
    }
    let set = WorkingSet(session: session)
    try export.hidden?.export(to: builder, into: set)
    try held.export(to: builder, binding, into: set)
    (report.changeSets, report.files) = (builder.sealed, builder.files)
    let named = try session.goneKeys.keepContained(suspects.freedKeys)
    report.parkedRows = try settle(suspects, followed, set)
    try session.writeHeldEdits()
    // A program may have written them with foreign keys off.
    let orphans = try session.tablesWithEdits().filter(session.mayLackKeys)
    try OrphansWithoutKey(of: Set(orphans.map(\.id)), session).settle()
    if isSettlingDue {
      try SchemaArrival(session: session).settle()
      try session.goneKeys.freeThoseOfHiddenRows(onlyTaken: false)
      try session.goneKeys.freeThoseOfUnknownRows()
      try session.forgetSettling()
    }
    try session.goneKeys.free(suspects.freedKeys, named: named)
    try session.goneKeys.holdDeclared()
    let edited = try session.tablesWithEdits()
    for table in edited {
      try session.database.execute(sql: "DELETE FROM \(table.logName)")
    }
    try session.goneKeys.freeNeedless(afterChangesOf: Set(edited.map(\.id)))
    try SharedLog.forget(session.database)
    session.writtenPlainCells = [:]
    session.writtenPlainRows = []
    session.forgetGoneKeys()
    try session.forgetEarlierKeys()
    if isSettlingDue { try SchemaArrival(session: session).forgetNeedlessNotes() }
    return report
  }

  /// Makes the tables show what every other device will show: a program with foreign keys off may
  /// have left rows whose parent is gone, and a value that was given up may let a parked row
  /// appear. Returns the number of rows that are no longer shown.
  private func settle(
    _ suspects: ChangeExport.Suspects, _ followed: MovedKeys.Followed, _ set: WorkingSet
  ) throws -> Int {
    try set.setPlain(suspects.plainCells, except: followed.references)
    try set.setPlain(followed.plain)
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
      for (child, rows) in try orphans.read(suspects) {
        if rows.contains(where: { $0.contains(.null) }) {
          set.referrersWithoutKey.insert(child.table.id)
        }
        try set.add(rows, child)
      }
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
    for identity in try session.keptRows.claimants(in: table) {
      try set.row(RowKey(table: table, identity: identity))
    }
  }

  /// Loads the rows of a table that have a plain number in their key, and that may be hidden since
  /// another row has that key here.
  private func loadRowsGivingWay(in table: Int, into set: WorkingSet) throws {
    let access = try session.access(table)
    guard try access.canHavePlainNumbers() else { return }
    for identity in try session.keptRows.rowsGivingWay(in: access.table) {
      try set.row(RowKey(table: table, identity: identity))
    }
  }
}
