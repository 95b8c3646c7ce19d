import GRDB
import SyncModel

/// The making of a store for a new client from a snapshot.
struct SnapshotAdoption {
  let path: String
  let binding: StoreBinding
  let options: StoreOptions

  /// Checks the snapshot, makes it a store, and opens it.
  func run(_ checkCancellation: @escaping () throws -> Void) throws -> OpenStore {
    try StoreError.checkFile(path)
    return try StoreError.mapping(path) {
      let connection = try StoreConnection(path: path, busyTimeout: options.busyTimeout)
      let configuration = try connection.queue.closingOnFailure {
        try connection.use { database in
          try QueryCancellation.run(database, checkCancellation) { try adopt(database) }
        }
      }
      return OpenStore(
        connection: connection, options: options, binding: binding, configuration: configuration)
    }
  }

  private func adopt(_ database: Database) throws -> StoreConfiguration {
    let configuration = try CheckedSnapshot.check(database, path)
    try database.transaction(.immediate) {
      try Bookkeeping.upgrade(database)
      try StoreIdentity.write(binding, configuration, database)
      _ = try StoreIdentity(database: database, path: path, options: options)
        .settle(as: binding.client, former: nil)
      let schema = try SchemaReader(
        database: database, configuration: configuration, path: path
      ).read(registered: try TableRegistry.registered(database))
      try CheckedSnapshot.checkTables(of: schema, path)
      _ = try StoreSession(
        database: database, schema: schema, client: binding.client, now: 0)
      for table in schema.tables {
        for statement in Bookkeeping.creation(for: table) { try database.execute(sql: statement) }
      }
    }
    if let mode = try MetaTable.read(.journalMode, database), mode == Array("wal".utf8) {
      try database.execute(sql: "PRAGMA main.journal_mode = WAL")
    }
    return configuration
  }
}
