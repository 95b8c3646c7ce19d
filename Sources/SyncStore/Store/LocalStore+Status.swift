import GRDB
import SyncModel

extension LocalStore {
  /// Returns the state of the store: the change sets that wait, the parked rows, and what was
  /// applied.
  package func status() throws -> StoreStatus {
    let waiting = try waiting()
    return try read { session in
      var vector = try session.clients.vector()
      let head = try session.ownHead()?.number ?? 0
      vector[binding.client] = nil
      var status = StoreStatus(
        unsealedEdits: try session.editCount(),
        unpublishedChangeSets: try session.outbox.unpublishedCount(),
        head: head, vector: vector, waiting: waiting, parked: try session.keptRows.parked(),
        tables: session.schema.tables.map { $0.status(configuration) },
        leftOut: session.schema.leftOut)
      status.unknownNames = try session.foreign.unknownNames(session.schema)
      status.incompleteNames = try incompleteNames(session)
      for table in session.schema.tables {
        let count = try session.rowsWithoutKey(table)
        if count > 0 { status.rowsWithoutKey[table.name] = count }
      }
      return status
    }
  }

  /// Returns the parked rows.
  package func parkedRows() throws -> [ParkedRow] { try read { try $0.keptRows.parked() } }

  /// Returns what would be lost if the store were taken out of sync.
  package func removalLoss() throws -> RemovalLoss { try read { try $0.removalLoss() } }

  private func incompleteNames(_ session: StoreSession) throws -> [SQLName] {
    try LostNames.all(session.database).compactMap { name, column -> SQLName? in
      guard let table = session.schema.table(wireName: name) else { return nil }
      guard let column else { return table.name }
      return table.columns.first { $0.wireName == column }.map {
        "\(table.name).\($0.name)" as SQLName
      }
    }
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

  /// Returns a value that the layer above has stored here; `nil` if unset.
  package func record(_ key: String) throws -> [UInt8]? {
    try StoreError.mapping(path) {
      // The schema does not matter here.
      try connection.queue.writeWithoutTransaction { database in
        try DeviceRecords(database: database).read(key)
      }
    }
  }

  /// Stores a value for the layer above, durably; `nil` removes it.
  package func setRecord(_ key: String, to value: [UInt8]?) throws {
    try write { try $0.records.write(key, to: value) }
  }

  /// Keeps a value for the layer above, and looks at nothing else in the store: for values that
  /// come and go with every synchronization. `nil` removes it.
  package func setRecordAlone(_ key: String, to value: [UInt8]?) throws {
    try StoreError.mapping(path) {
      try connection.queue.writeWithoutTransaction { database in
        try DeviceRecords(database: database).write(key, to: value)
      }
    }
  }

  /// The digest of what the store shows and of the state beneath.
  ///
  /// The first includes edits that are not sealed yet; the second does not.
  package func digest() throws -> StoreDigest {
    try read { try StoreDigester(session: $0).run() }
  }
}
