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
    var report = try store.sealUnreported(
      checkCancellation: checkCancellation, onProgress: onProgress, prepare: prepare)
    if try record(UnreportedWarnings.key) != nil {
      report.warnings = try write { try UnreportedWarnings.take($0.records) }
    }
    return report
  }

  /// Has the next sealing warn of the rows that have NULL in their key now, if there are any.
  package func noteRowsWithoutKey() throws {
    guard try read({ try $0.hasRowsWithoutKey() }) else { return }
    try write { try MetaTable.write(.keyMissing, to: [1], $0.database) }
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
      let held = try session.heldEdits().byTable(session)
      if held.isEmpty { return try session.bases.removeIfAllIsPublished() }
      guard try session.outbox.unpublishedCount() == 0 else { return }
      // Policies need what held cells had before.
      try session.bases.remove { row, column in
        held[row.table]?.cells[row.identity]?.contains(column) != true
      }
    }
  }
}
