import SyncModel

/// The state of the store.
extension LocalStore {
  /// Returns the edits that stay on the device since no change set can carry them.
  package func heldEdits() throws -> [StoreStatus.HeldEdit] {
    try read { try $0.heldEdits().reports($0) }
  }

  /// Returns these edits as change sets that no device gets, with the stamps that they have here.
  package func heldChangeSets() throws -> [SyncChangeSet] {
    try read { try $0.heldEdits().changeSets($0, binding) }
  }

  /// Forgets which edits stay on the device, since all devices will have them from a whole store.
  /// Returns whether there were any.
  package func forgetHeldEdits() throws -> Bool {
    try write { session in
      guard try !session.heldEdits().edits.isEmpty else { return false }
      try MetaTable.remove(.heldEdits, session.database)
      session.knownHeldEdits = HeldEdits()
      return true
    }
  }

  /// Returns the tables that stay on the device since they cannot be synchronized.
  package func unsuitableTables() throws -> [StoreStatus.UnsuitableTable] {
    try read { $0.schema.unsuitableTables }
  }

  /// Throws `unsupportedSchema` or `badConfiguration` if a table that was synchronized cannot be at
  /// present. Then nothing is sealed or applied.
  package func checkTables() throws { try read { try $0.schema.checkNoneSuspended(path) } }

  /// Returns the state of the store: the change sets that wait, the parked rows, and what was
  /// applied.
  package func status() throws -> StoreStatus {
    let (status, hasInvalid) = try read { session in
      let (waiting, hasInvalid) = try store.waiting(session, isCommitted: isCommitted)
      return (try StatusReport(session).make(waiting: waiting), hasInvalid)
    }
    if hasInvalid { try removeInvalid() }
    return status
  }

  /// Returns whether edits are not sealed, or change sets not published.
  package func hasUnsentEdits() throws -> Bool {
    try read { try $0.hasEdits() || $0.outbox.unpublishedCount() > 0 }
  }

  /// Returns the edits that no other device can have, row by row, at most `limit`.
  package func pendingChanges(limit: Int) throws -> StoreStatus.PendingChanges {
    try read(isLong: true) { try PendingChangesReport.make($0, limit: limit) }
  }

  /// Returns their number, without looking at each of them.
  package func pendingCount() throws -> StoreStatus.PendingCount {
    try read { try PendingChangesReport.count($0) }
  }

  /// Whether the file at the path is still the one that is open; if the file is gone, or another one has
  /// its place, edits of other programs do not come here.
  package var isFileInPlace: Bool { connection.readers.isFileInPlace }

  /// Brings SQLite's write-ahead log into the file, if no program uses the store at the moment:
  /// ``StoreConnection/checkpoint()``.
  package func checkpoint() throws { try connection.checkpoint() }

  /// Returns the number of rows in the synchronized tables that have no NULL in their key.
  package func rowCount() throws -> Int {
    try read(isLong: true) { session in
      try session.schema.tables.reduce(0) { try $0 + session.rowCount($1) }
    }
  }

  /// Returns the parked rows.
  package func parkedRows() throws -> [ParkedRow] { try read { try ParkedRows($0).all() } }

  /// Returns the number of parked rows.
  package func parkedCount() throws -> Int { try read { try $0.keptRows.parkedCount() } }

  /// Returns what would be lost if the store were taken out of sync.
  package func removalLoss() throws -> RemovalLoss {
    try read(isLong: true) { try RemovalLoss($0) }
  }

  /// Returns the last change sets that were sealed or applied here, newest first.
  package func history(limit: Int) throws -> [AppliedChangeSet] {
    try read { try $0.history.last(limit, $0.clients) }
  }

  /// Returns the number of bytes in the files of the change sets beyond a vector, as far as the
  /// history goes back.
  package func historyByteCount(beyond vector: VersionVector) throws -> Int {
    try read { try $0.history.byteCount(beyond: vector, $0.clients) }
  }

  /// The digest of what the store shows and of the state beneath.
  ///
  /// The first includes edits that are not sealed yet; the second does not.
  package func digest() throws -> StoreDigest {
    try read(isLong: true) { session in
      try session.schema.checkNoneSuspended(path)
      return try StoreDigester(session: session).run()
    }
  }

  // MARK: - Applied and waiting change sets

  /// Returns the change sets of other clients that have been applied.
  package func appliedVector() throws -> VersionVector {
    try read { try $0.appliedVector() }
  }

  /// Returns the binding of the store, and what it has applied and processed under it: of one state.
  package func standing() throws -> Standing {
    try read { session in
      Standing(
        binding: try StoreIdentity.read(session.database, path).binding,
        applied: try session.appliedVector(),
        commandState: try MetaTable.read(.commandState, session.database))
    }
  }

  /// What a store is in its document, at one time.
  package struct Standing: Sendable {
    package var binding: StoreBinding
    /// The change sets of other clients that it has applied.
    package var applied: VersionVector
    /// The result of all commands that it has processed.
    package var commandState: [UInt8]?
  }

  /// Returns the change sets that have been applied, including those of this client.
  package func vector() throws -> VersionVector {
    try read { try $0.clients.vector() }
  }

  /// Returns the hashes of a client's change sets that were applied or sealed here, by their
  /// numbers, from `first` on. Old ones are missing.
  package func hashes(
    of client: ClientIdentifier, from first: UInt64
  ) throws -> [UInt64: ContentHash] {
    try read { session in
      guard let number = session.clients.knownNumber(of: client) else { return [:] }
      var hashes = try session.history.hashes(of: number, from: first)
      if let last = try session.clients.vector()[client], last.number >= first {
        hashes[last.number] = last.hash
      }
      return hashes
    }
  }

  /// Returns the last change set that this client sealed; `nil` for none.
  package func head() throws -> VersionVector.Entry? {
    try read { try $0.ownHead() }
  }

  /// Returns the received change sets that wait. Own ones are among them after the store's content
  /// was exchanged.
  ///
  /// Removes entries whose client or hash is invalid: a synchronization fetches their change sets
  /// again. ``lastCommitted`` leaves them.
  package func waiting() throws -> [StoreStatus.WaitingChangeSet] {
    let (waiting, hasInvalid) = try read { try store.waiting($0, isCommitted: isCommitted) }
    if hasInvalid { try removeInvalid() }
    return waiting
  }

  /// Removes invalid entries of the inbox, unless the caller must not wait for a transaction.
  private func removeInvalid() throws {
    guard !isCommitted else { return }
    try write { try $0.inbox.removeInvalid(own: $0.ownClient) }
  }

  // MARK: - Values of the layer above

  /// Returns a value that the layer above has stored here; `nil` if unset.
  package func record(_ key: String) throws -> [UInt8]? {
    // The schema does not matter here.
    let reading = { try DeviceRecords(database: $0).read(key) }
    return try isCommitted ? store.useCommitted(reading) : connection.use(reading)
  }

  /// Stores a value for the layer above, durably; `nil` removes it.
  package func setRecord(_ key: String, to value: [UInt8]?) throws {
    try write { try $0.records.write(key, to: value) }
  }

  /// Keeps a value for the layer above, and looks at nothing else in the store: for values that
  /// come and go with every synchronization. `nil` removes it.
  package func setRecordAlone(_ key: String, to value: [UInt8]?) throws {
    try connection.use { try DeviceRecords(database: $0).write(key, to: value) }
  }
}
