import Foundation
import GRDB
import SyncModel

/// The exchange of a store's content for that of an attached whole store, within one transaction:
/// see
/// ``LocalStore/replaceContent(withSnapshotAt:binding:ownBytes:records:commandState:events:checkCancellation:onProgress:)``.
struct Replacing {
  /// What happens to this device's changes that the whole store does not contain.
  enum Own {
    /// The device's own change sets are applied again, as they were sealed.
    case appliedAgain
    /// They are set aside, to be rewritten for another generation.
    case setAside
    /// The rows of a copy of the store at a path are merged, as edits of a new client: the whole
    /// store belongs to an unrelated document.
    case merged(FormerDatabase, path: String)
  }

  let store: OpenStore
  let snapshot: CheckedSnapshot
  let commandState: (_ own: [UInt8]?, _ whole: [UInt8]?) throws -> [UInt8]?
  let binding: StoreBinding
  let own: Own
  let ownBytes: [UInt64: [UInt8]]
  let records: [String: [UInt8]?]
  let events: [CommandEvent]
  let work: WorkCount
  let checkCancellation: () throws -> Void

  /// The data of the former store that the exchange needs later.
  struct Former {
    var device: DeviceData
    /// The times of the own change sets, by number.
    var ranges: [StampRanges.Range]
    var lastConflict: Int64
    var lastHistory: Int64
  }

  /// Throws `unsupportedSchema` if an excluded table may have another name now: the whole store would
  /// bring an empty table of the excluded name, and the other one would be shared.
  private func checkExclusions(_ session: StoreSession) throws {
    let renamed = session.schema.problems.values.filter { $0.reason == .renamedExclusion }
    guard let problem = renamed.min(by: { $0.table < $1.table }) else { return }
    throw StoreError(
      .unsupportedSchema, path: store.path, message: problem.message,
      remedy: "Give the table its former name again. \(problem.laterRemedy)")
  }

  func run(_ session: StoreSession, _ result: inout ContentReplacement) throws {
    let database = session.database
    try store.seal(session, checkCancellation: checkCancellation)
    try checkOwn(session)
    try checkExclusions(session)
    try session.conflicts.journal.finish()
    result.vector = snapshot.vector
    var former = try Former(
      device: DeviceData(session), ranges: ownRanges(session),
      lastConflict: session.conflicts.journal.summary().last,
      lastHistory: session.history.end())

    let held = try session.heldEdits().changeSets(session, binding)
    try checkCancellation()
    let schema = try newSchema(database)
    work.begin(try stepCount(schema, session))
    if case .merged(let former, let path) = own {
      try checkMerging(former, path, schema, session)
      try enterParked(session)
    }
    var mapping = KeyMapping(database: database, old: session.schema, new: schema)
    try mapping.build()
    let (rows, keys, referrers) = try exchangeRows(session, mapping, &result)
    try session.conflicts.journal.finish()
    former.lastConflict = try session.conflicts.journal.summary().last
    let before = session
    try checkCancellation()
    try exchangeBookkeeping(session, mapping)
    try moveKeys(
      mapping,
      StoreSession(
        database: database, schema: mapping.new, client: binding.client, now: session.now))
    store.setIdentity(binding, snapshot.configuration)
    let session = try store.renewedSession(database, continuing: before)
    session.holdsReferencesBack = true
    for table in before.schema.tables + session.schema.tables {
      session.changes.rows(of: table).noteAll()
    }
    for (table, keys) in keys { try session.access(table).formerKeys = keys }
    try writeOwn(former, session)
    try rows.notePlainKeys(session)
    let arrival = SchemaArrival(session: session)
    try arrival.forgetClaimsAndReferences()
    try arrival.settle()
    try rows.settlePlainValues(session)
    try checkCancellation()
    switch own {
    case .appliedAgain: try applyAgain(session, former, &result)
    case .setAside:
      result.pendingOwn = try session.setAsideOwn(beyond: snapshot.vector, bytes: ownBytes)
    case .merged: break
    }
    if !held.isEmpty, !isMerging {
      try mergeHeld(held, session)
      if isSameGeneration { try store.decide(session, checkCancellation: checkCancellation) }
    }
    // A merge takes the rest along itself.
    try rows.putBack(session, keepsRest: !isMerging)
    (session.holdsReferencesBack, session.knownWaitingReferences) = (false, nil)
    try session.putBackReferences()
    try referrers.follow(session, isMerging: isMerging)
    try mapping.remove()
    if case .merged(let former, let path) = own {
      try session.conflicts.journal.finish()
      result.merged = try merge(former, path, referrers, session)
    }
    work.finish()
    // Makes other programs that have the store open read all of it again.
    try database.execute(
      sql: "CREATE TABLE docsync_renewed (n); DROP TABLE main.docsync_renewed")
    try session.conflicts.journal.finish()
    store.forgetSchema()
    result.warnings = SyncWarning.joining(
      before.conflicts.takeWarnings() + session.conflicts.takeWarnings())
  }

  /// Returns the tables of the whole store, with the columns that this device's policies need.
  private func newSchema(_ database: Database) throws -> StoreSchema {
    let policies = try SyncPolicies.read(database)
    return snapshot.schema.with(
      snapshot.schema.tables.map { table in
        var table = table
        table.policyColumns = policies == SyncPolicies() ? [] : policies.baseColumns(of: table)
        return table
      })
  }

  /// Returns the number of steps: three for each table, and one for each of the store's own change
  /// sets or rows that follow.
  private func stepCount(_ schema: StoreSchema, _ session: StoreSession) throws -> Int {
    let own: Int
    switch self.own {
    case .appliedAgain, .setAside:
      let contained = snapshot.vector.number(of: session.ownClient)
      let head = try session.ownHead()?.number ?? 0
      own = Int(head - min(head, contained))
    case .merged(let former, _): own = try former.rowCount(of: schema)
    }
    return 3 * schema.tables.count + own
  }

  private var isMerging: Bool { if case .merged = own { true } else { false } }

  private var isSameGeneration: Bool { if case .appliedAgain = own { true } else { false } }

  // MARK: - Before

  /// Throws if the whole store contains change sets of this client that this store does not know.
  private func checkOwn(_ session: StoreSession) throws {
    guard let contained = snapshot.vector[session.ownClient] else { return }
    let known = try session.ownHead()
    let hash = try session.outbox.file(contained.number, of: session.own)?.hash
    guard contained.number <= known?.number ?? 0, hash == nil || hash == contained.hash else {
      throw StoreError(
        .fork, path: store.path,
        message: "The whole store contains change sets of this device that its store does not "
          + "have: the store is an older state, or a copy.",
        remedy: "Synchronize it, so that it becomes a device of its own.")
    }
  }

  private func ownRanges(_ session: StoreSession) throws -> [StampRanges.Range] {
    try session.ranges.all(
      of: session.own,
      after: Int64(clamping: snapshot.vector.number(of: session.ownClient)))
  }

  // MARK: - Rows

  private func exchangeRows(
    _ session: StoreSession, _ mapping: KeyMapping, _ result: inout ContentReplacement
  ) throws -> (
    RowExchange, declaredKeys: [Int: [RowIdentity: Int64]], referrers: ReplacedReferrers
  ) {
    let database = session.database
    let schema = try SchemaExchange(database: database, old: mapping.old, new: mapping.new)
    let rows = RowExchange(
      session: session, mapping: mapping, kept: schema.kept, work: work,
      checkCancellation: checkCancellation)
    let rowsWithoutKey = RowsWithoutKey(
      session: session, old: mapping.old, new: mapping.new, leaving: schema.leavingTables)
    // A merge takes these rows along itself.
    let isMerged = isMerging
    try isMerged ? rowsWithoutKey.remove() : rowsWithoutKey.putAside()
    try rows.putAside()
    let keys = try rows.declaredKeys()
    let referrers = try rows.referrers(leaving: schema.leavingTables)
    result.deletedRows += try rows.removeRows()
    for table in schema.leavingTables { result.deletedRows += try rows.removeAllRows(of: table) }
    // The capture triggers are created again with their tables.
    result.changedSchema = schema.isNeeded
    if result.changedSchema {
      try schema.run()
      try store.connection.copyTriggers(for: mapping.new, database)
    }
    result.insertedRows += try rows.insertRows()
    try schema.takeSchemaTables()
    try schema.makeIndexes()
    if !isMerged { result.deletedRows += try rowsWithoutKey.putBack() }
    try schema.rebuildUnfilled()
    if try Int.fetchOne(database, sql: "PRAGMA main.user_version") != snapshot.userVersion {
      try database.execute(sql: "PRAGMA main.user_version = \(snapshot.userVersion)")
    }
    return (rows, keys, referrers)
  }

  // MARK: - Bookkeeping

  private func exchangeBookkeeping(_ session: StoreSession, _ mapping: KeyMapping) throws {
    let database = session.database
    for table in mapping.old.tables { try removeBookkeeping(of: table, mapping.new, database) }
    for table in Bookkeeping.tables where table.scope == .document {
      try copy(table.name, database)
    }
    if try !database.tableExists(PlainKeys.definition.name, in: KeyMapping.attached) {
      try MetaTable.remove(.plainValues, database)
    }
    if try Bookkeeping.format(of: database, in: KeyMapping.attached) ?? 0 < Bookkeeping.fourthFormat
    {
      try RemadeTables.noteSettlingDue(database)
    }
    for key in MetaTable.Key.allCases where key.scope == .document {
      try MetaTable.copy(key, from: KeyMapping.attached, database)
    }
    // A whole store of an earlier build has none.
    try KeyForms.noteIfAbsent(mapping.new, database)
    let whole = try MetaTable.read(.commandState, database, in: KeyMapping.attached)
    let own = try MetaTable.read(.commandState, database)
    if let state = try commandState(own, whole) {
      try MetaTable.write(.commandState, to: state, database)
    }
    try session.events.add(events)
    try MetaTable.write(.binding, to: Array(JSONEncoder().encode(binding)), database)
    for table in mapping.new.tables {
      if try !database.tableExists(table.stampsName, in: "main") {
        for statement in Bookkeeping.creation(for: table) { try database.execute(sql: statement) }
      }
      try copy(table.stampsName, database)
      if table.identity == .surrogate { try copyIdentities(of: table, mapping, database) }
      try checkCancellation()
      work.advance()
    }
  }

  /// Removes the bookkeeping of a table, unless its log and its triggers stay as they are.
  private func removeBookkeeping(
    of table: TableSchema, _ new: StoreSchema, _ database: Database
  ) throws {
    let wanted = new.tables.first { $0.id == table.id }.map { CaptureTriggers(table: $0) }
    let present = try SQLText.fetchSet(
      database,
      sql: "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger' AND name GLOB ?",
      arguments: ["docsync_\(table.id)_*"])
    if let wanted, Set(wanted.triggers.map(SQLText.init)) == present,
      wanted.logTable == CaptureTriggers(table: table).logTable
    {
      return
    }
    try TableRegistry.remove(table.id, database)
  }

  /// Replaces the rows of a bookkeeping table by the whole store's, in the columns that both have:
  /// one of them may be older.
  private func copy(_ name: String, _ database: Database) throws {
    try database.execute(sql: "DELETE FROM main.\(name)")
    guard try database.tableExists(name, in: KeyMapping.attached) else { return }
    func columns(_ schema: String) throws -> [SQLName] {
      try SQLName.fetchAll(
        database, sql: "SELECT name FROM pragma_table_info(?, ?)", arguments: [name, schema])
    }
    let there = try columns(KeyMapping.attached)
    let common = try columns("main").filter(there.contains).map(quoted).joined(separator: ", ")
    try database.execute(
      sql: "INSERT INTO main.\(name) (\(common)) "
        + "SELECT \(common) FROM \(KeyMapping.attached).\(name)")
  }

  private func copyIdentities(
    of table: TableSchema, _ mapping: KeyMapping, _ database: Database
  ) throws {
    try database.execute(sql: "DELETE FROM main.\(table.identityName)")
    let whole = "\(KeyMapping.attached).\(table.identityName)"
    guard mapping.isMapped(table) else {
      return try database.execute(
        sql: "INSERT INTO main.\(table.identityName) (key, identity) "
          + "SELECT key, identity FROM \(whole)")
    }
    try mapping.withFunctions {
      try database.execute(
        sql: """
          INSERT INTO main.\(table.identityName) (key, identity) SELECT key, identity FROM \
          (SELECT coalesce(k.new, s.key) AS key, s.identity AS identity FROM \(whole) AS s \
          LEFT JOIN \(KeyMapping.keys(table.id)) AS k ON k.old = s.key) \
          WHERE key IS NOT docsync_first_key(?1, identity) OR NOT EXISTS (SELECT 1 FROM \
          \(KeyMapping.attached).\(table.quotedName) AS t \
          WHERE t.\(quoted(table.keyColumns[0])) = docsync_first_key(?1, identity));
          """, arguments: [Int64(bitPattern: table.origin)])
      try database.execute(
        sql: """
          INSERT INTO main.\(table.identityName) (key, identity) \
          SELECT k.new, docsync_first_identity(?1, k.old) FROM \(KeyMapping.keys(table.id)) AS k \
          WHERE NOT EXISTS (SELECT 1 FROM \(whole) AS s WHERE s.key = k.old)
          """, arguments: [Int64(bitPattern: table.origin)])
    }
  }

  /// Replaces the local keys in the states of rows by those that the rows have here.
  private func moveKeys(_ mapping: KeyMapping, _ session: StoreSession) throws {
    for table in mapping.new.tables where table.identity == .surrogate && mapping.isMapped(table) {
      let access = try session.access(table.id)
      let lookup = try SQLStatement(
        "SELECT new FROM \(KeyMapping.keys(table.id)) WHERE old = ?", on: session.database)
      try access.stamps.rewrite { state in
        guard let key = state.localKey else { return }
        lookup.bind(key, at: 1)
        guard try lookup.step() else { return }
        state.localKey = lookup.integer(at: 0)
        lookup.reset()
      }
      // Rows that existed before syncing began have no state yet.
      let first = try SQLStatement(
        "SELECT k.old, k.new FROM \(KeyMapping.keys(table.id)) AS k WHERE NOT EXISTS (SELECT 1 "
          + "FROM \(KeyMapping.attached).\(table.identityName) AS s WHERE s.key = k.old)",
        on: session.database)
      var moved: [(fingerprint: RowFingerprint, key: Int64)] = []
      while try first.step() {
        let identity = RowIdentity(
          bytes: Bits128(high: table.origin, low: UInt64(bitPattern: first.integer(at: 0))).bytes)
        moved.append((access.fingerprint(identity), first.integer(at: 1)))
      }
      moved.sort { $0.fingerprint < $1.fingerprint }
      let states = try access.stamps.states(of: moved.map(\.fingerprint))
      try access.stamps.store(
        zip(moved, states).map { moved, state in
          var state =
            state
            ?? RowState(existence: .inserted, existenceStamp: .zero, cellStamp: .zero)
          state.localKey = moved.key
          return (moved.fingerprint, state)
        })
    }
  }

  /// Writes the device's own data into the new content.
  private func writeOwn(_ former: Former, _ session: StoreSession) throws {
    try former.device.write(to: session)
    for row in former.ranges where isSameGeneration {
      try session.ranges.store(row, of: session.own)
    }
    try session.records.write(records)
  }
}
