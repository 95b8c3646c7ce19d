import GRDB
import SyncModel

/// The context of one transaction on a store: the schema, the clients, and prepared statements.
final class StoreSession {
  let database: Database
  let schema: StoreSchema
  let clients: ClientRegistry
  /// This client's short number.
  let own: Int32
  let ownClient: ClientIdentifier
  /// The time at which the transaction began, in milliseconds since 1970.
  let now: Int64

  /// The most bytes of one block of rows' states.
  let stampBlockBytes: Int
  /// Records conflicts in the journal.
  let conflicts: ConflictRecorder
  let policyCache: PolicyCache
  /// The versions that merging found in tables of the merge type `keepBoth`.
  var losingVersions = LosingVersions()
  /// Deleted rows that were shown under the identity of a row that sealing has exported since the
  /// rows were last decided.
  var formerBorrowers: Set<RowKey> = []
  /// Cells that ``LocalEdits`` has written: they hold plain values that are keys of rows here. They
  /// count for the sealing in the same transaction.
  var writtenPlainCells: [RowKey: [PlainCell]] = [:]
  /// Rows in the log with a plain number in their key that is the key of a row here. They count for
  /// the sealing in the same transaction.
  var writtenPlainRows: Set<RowKey> = []
  /// Whether the log contains plain values that only this transaction knows to be plain, so that it
  /// has to seal them.
  var hasWrittenPlainValues: Bool { !writtenPlainCells.isEmpty || !writtenPlainRows.isEmpty }
  /// Whether an edit of this transaction has inserted a row under a number that its state does not name.
  var hasAssignedKeys = false
  /// The edits that the sealing in this transaction has held back.
  var newHeldEdits: [HeldEdits.Edit] = []
  /// Those of ``heldEdits()`` that it has sealed, since they fit by now.
  var sentHeldEdits: [HeldEdits.Edit] = []
  /// The result of ``heldEdits()``; `nil` until it is first asked for.
  var knownHeldEdits: HeldEdits?
  /// See ``originalKeys()``.
  var knownOriginalKeys: OriginalKeys?
  /// The result of ``tablesToCompare()``; `nil` until it is first asked for.
  var uncomparedTables: Set<Int>?
  /// The result of ``localReferences()``; `nil` until they are first asked for.
  var knownLocalReferences: [SQLName: [LocalReference]]?
  /// What refers to rows that have left their tables while policies may bring rows back
  /// (``LocalReferrers/followUndecided()``); `nil` unless policies decide later in this transaction.
  var undecidedReferrers: [LocalReferrer]?
  /// The rows whose local values are set aside only because a policy may bring the rows back.
  var undecidedAside: Set<RowKey> = []
  /// See ``waitingReferences()``; `nil` until they are first asked for, and when they may have
  /// changed.
  var knownWaitingReferences: [RowKey: [AsideValues.Reference]]?
  /// Whether references wait until the content of the store is exchanged.
  var holdsReferencesBack = false
  /// ``areKeysHeld()``, once that has been asked.
  var knownHoldingKeys: Bool?
  private let statements: StatementCache
  let keptRows: KeptRows
  let early: EarlyAdditions
  let aside: AsideValues
  let plainKeys: PlainKeys
  private(set) lazy var goneKeys = KeysOfGoneRows(self)
  let bases: BaseValues
  let ranges: StampRanges
  let history: History
  let records: DeviceRecords
  let outbox: Outbox
  let inbox: Inbox
  let commands: CommandQueue
  let events: EventQueue

  private let sipHash: SipHash
  private var accesses: [Int: TableAccess] = [:]
  let foreign: ForeignRows

  /// Runs the application's triggers along with changes.
  let appTriggers: AppTriggerRuns
  /// Notes which rows the transaction changes.
  let changes: RowChangeLog

  /// The part of the store's options that a transaction needs.
  struct Settings {
    var stampBlockBytes = StampBlocks.standardCapacity
    var journal = ConflictJournal.Bound()
    /// The file to which the oldest conflicts go; without one they are only counted.
    var archive: ConflictArchive?
    /// The functions for policies, by name.
    var resolvers = PolicyCache.Resolvers()
  }

  init(
    database: Database, schema: StoreSchema, client: ClientIdentifier, now: Int64,
    appTriggers: AppTriggerRuns = AppTriggerRuns(), changes: RowChangeLog = RowChangeLog(),
    settings: Settings = Settings()
  ) throws {
    self.changes = changes
    stampBlockBytes = settings.stampBlockBytes
    policyCache = PolicyCache(resolvers: settings.resolvers)
    self.appTriggers = appTriggers
    self.database = database
    self.schema = schema
    self.now = now
    clients = try ClientRegistry(database)
    foreign = ForeignRows(database)
    statements = StatementCache(database)
    keptRows = KeptRows(statements, schema)
    early = EarlyAdditions(statements, clients)
    aside = AsideValues(statements: statements)
    plainKeys = PlainKeys(database)
    bases = BaseValues(statements: statements)
    ranges = StampRanges(database: database)
    history = History(database: database)
    records = DeviceRecords(database: database)
    outbox = Outbox(database: database, clients: clients)
    inbox = Inbox(database: database)
    commands = CommandQueue(database: database)
    events = EventQueue(database: database)
    own = try clients.number(of: client)
    ownClient = client
    conflicts = ConflictRecorder(
      journal: ConflictJournal(
        database, bound: settings.journal, archive: settings.archive, clients: clients,
        client: client, now: now),
      own: own, now: now)
    guard let key = try MetaTable.read(.fingerprintKey, database), let hash = SipHash(key: key)
    else {
      throw MetaTable.definition.damaged()
    }
    sipHash = hash
  }

  func access(_ id: Int) throws -> TableAccess {
    if let access = accesses[id] { return access }
    // Ids are read from the tables of bookkeeping, too.
    guard schema.contains(id) else {
      throw StoreError(damagedTable: TableRegistry.tables.name, "no table has the id \(id)")
    }
    let access = try TableAccess(table: schema[id], session: self)
    accesses[id] = access
    return access
  }

  /// Forgets what is remembered of keys and states outside the tables, after a rollback, so that it
  /// is read again.
  func forgetKeyMemory() {
    plainKeys.forgetMemory()
    knownWaitingReferences = nil
    for access in accesses.values { access.forgetKeyMemory() }
  }

  /// Looks up the states of rows that will be asked for one by one.
  func readAhead(_ rows: [RowKey]) throws {
    for (table, rows) in Dictionary(grouping: rows, by: \.table) {
      let access = try access(table)
      try access.stamps.readAhead(rows.map { access.fingerprint($0.identity) })
    }
  }

  /// Forgets the keys of rows that are gone, after sealing.
  func forgetGoneKeys() {
    for access in accesses.values { access.forgetGoneKeys() }
  }

  /// Forgets what ``TableAccess/rememberEarlierKeys()`` remembered, once the
  /// log is empty.
  func forgetEarlierKeys() throws {
    for access in accesses.values { try access.forgetEarlierKeys() }
  }

  /// Returns a hash of a key, by a secret of the document.
  func hash(_ key: [UInt8]) -> Bits128 { sipHash.hash(key) }

  /// Returns the fingerprint by which a row is found among the stamps.
  func fingerprint(_ identity: UnsafeRawBufferPointer, of kind: IdentityKind) -> RowFingerprint {
    if case .surrogate = kind, identity.count == 16 {
      let word = UInt64(
        bigEndian: identity.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      let low = UInt16(bigEndian: identity.loadUnaligned(as: UInt16.self))
      // The bit that does not fit moves to the other part.
      return RowFingerprint(high: word & (.max >> 1), low: low ^ UInt16(word >> 63))
    }
    let digest = sipHash.hash(identity)
    return RowFingerprint(
      high: digest.high & (.max >> 1), low: UInt16(truncatingIfNeeded: digest.low))
  }

  func fingerprint(_ identity: RowIdentity, of kind: IdentityKind) -> RowFingerprint {
    identity.bytes.withUnsafeBytes { fingerprint($0, of: kind) }
  }

  /// The size of SQLite's cache, in KiB, by the kind of work.
  enum Cache: Int {
    /// Sealing needs memory for the rows of a batch as well.
    case sealing = 15_000
    /// Applying goes over a whole table and its index.
    case applying = 36_000
    /// A value of the greatest length is in memory several times while it is applied.
    case applyingLarge = 4_000
  }

  /// Sets the size of the cache, in KiB.
  func setCache(_ cache: Cache) throws {
    try database.execute(sql: "PRAGMA cache_size = -\(cache.rawValue)")
  }

  // MARK: - References

  /// Returns the value that a change set has for a local value of a column; the local value itself
  /// if it leads to no row.
  func exported(_ value: Value, _ column: ColumnSchema) throws -> Value {
    switch column.domain {
    case .plain: return value
    case .counter: return CounterValue.plain(value).encoded
    case .key(let table):
      guard let key = column.key(value) else { return value }
      let row = try access(table).identity(ofKeyInUse: key, countsUnseen: column.isIdentity)
      return row.map { .identity($0) } ?? value
    }
  }

  /// Returns the local value of a column for a value of a change set; `nil` for a reference to a
  /// row that has no key here.
  func imported(_ value: Value, _ column: ColumnSchema) throws -> Value? {
    switch column.domain {
    case .plain: return value
    case .counter: return column.number(value)
    case .key(let table):
      guard case .identity(let row) = value else { return value }
      return try access(table).localKey(of: row).map(column.stored(key:))
    }
  }

  /// Returns the same for a column of an identity, but `nil` also for a plain value that is the key
  /// of a row here: the row with that value in its key is another row.
  func importedKey(_ value: Value, _ column: ColumnSchema) throws -> Value? {
    try isKeyHere(value, column) ? nil : imported(value, column)
  }

  /// Returns whether a row of the table to which a column refers can have an identity, or a row
  /// that is gone had it. Any table can be the destination of a column that refers to none.
  func canRefer(_ column: ColumnSchema, to identity: RowIdentity) throws -> Bool {
    guard case .key(let table) = column.domain else { return true }
    return try Bits128(bytes: identity.bytes) != nil || access(table).canonical(identity) != nil
  }

  /// Returns whether a logical value is a plain value that is the key of a row here.
  func isKeyHere(_ value: Value, _ column: ColumnSchema) throws -> Bool {
    guard case .key(let table) = column.domain, let key = column.key(value) else { return false }
    return try access(table).identity(ofKeyInUse: key, countsUnseen: true) != nil
  }
}
