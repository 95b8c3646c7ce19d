import CSQLite
import Foundation
import GRDB
import SyncModel

extension LocalStore {
  /// Returns whether the database at `path` is under sync.
  ///
  /// Throws `missing` or `notADatabase`, and `damaged` if the bookkeeping exists without the table
  /// by which it is known.
  package static func isUnderSync(at path: String) throws -> Bool {
    try inspect(path) { try Bookkeeping.exists(in: $0) }
  }

  /// Returns what ``create(at:binding:configuration:options:)`` would do, without writing: the
  /// tables with their identities, and the tables that are left out, with the reasons. Throws the
  /// same errors.
  package static func plan(at path: String, configuration: StoreConfiguration) throws -> StorePlan {
    try inspect(path) { database in
      let schema = try checkedSchema(database, configuration: configuration, path: path)
      let likely = try LikelyReferences(database, schema)
      return StorePlan(
        tables: schema.tables.map { $0.status(configuration) }, leftOut: schema.leftOut,
        likelyReferences: try likely.found(), hints: try likely.hints())
    }
  }

  /// Puts the database at `path` under sync: writes the bookkeeping tables and the capture triggers
  /// in one transaction. Rows that exist already are the document's beginning and are not sent as
  /// changes.
  ///
  /// Throws and changes nothing if the store is under sync, is not a database, or has a schema that
  /// cannot be synchronized.
  package static func create(
    at path: String, binding: StoreBinding, configuration: StoreConfiguration,
    options: StoreOptions = StoreOptions()
  ) throws -> LocalStore {
    try StoreError.checkFile(path)
    return try StoreError.mapping(path) {
      let connection = try StoreConnection(
        path: path, busyTimeout: options.busyTimeout, onStatement: options.onStatement)
      do {
        try connection.queue.writeWithoutTransaction { database in
          try database.inTransaction(.immediate) {
            try setUp(database, binding, configuration, path, options)
            return .commit
          }
        }
      } catch {
        try connection.queue.close()
        throw error
      }
      return LocalStore(
        connection: connection, options: options, binding: binding, configuration: configuration)
    }
  }

  private static func setUp(
    _ database: Database, _ binding: StoreBinding, _ configuration: StoreConfiguration,
    _ path: String, _ options: StoreOptions
  ) throws {
    let random = options.random
    let schema = try checkedSchema(database, configuration: configuration, path: path)
    for statement in Bookkeeping.creation() { try database.execute(sql: statement) }
    try Bookkeeping.setFormat(database)
    try MetaTable.write(
      .fingerprintKey, to: Bits128(high: random(), low: random()).bytes, database)
    try StoreIdentity.write(binding, configuration, database)
    _ = try StoreIdentity(database: database, path: path, options: options)
      .settle(as: binding.client, former: nil)
    // Registers the client here, so that no reader has to.
    _ = try ClientRegistry(database).number(of: binding.client)
    var originalKeys = OriginalKeys()
    for var table in schema.tables {
      table.origin = random()
      table.hasUnstampedRows =
        try Bool.fetchOne(
          database, sql: "SELECT EXISTS (SELECT 1 FROM \(table.quotedName))") ?? false
      if table.hasUnstampedRows { try originalKeys.note(table, database) }
      try TableRegistry.register(table, database)
    }
    try originalKeys.write(database)
    let registered = try SchemaReader(
      database: database, configuration: configuration, path: path
    ).read(registered: try TableRegistry.registered(database))
    try StoreSession(
      database: database, schema: registered, client: binding.client, now: options.now()
    ).plainKeys.noteBeginning(registered)
    try MetaTable.write(
      .plainValues, to: EarlierPlainValues.version, database)
  }

  /// Opens a store that is under sync. Renews the triggers if the application changed its schema.
  package static func open(at path: String, options: StoreOptions = StoreOptions()) throws
    -> LocalStore
  {
    let isUnderSync = try inspect(path, busyTimeout: options.busyTimeout) {
      try Bookkeeping.exists(in: $0)
    }
    guard isUnderSync else {
      throw StoreError(
        .notUnderSync, path: path, message: "The database is not under sync.",
        remedy: "Put it under sync with \(.create), or fetch the document with "
          + "\(.join).")
    }
    return try StoreError.mapping(path) {
      let connection = try StoreConnection(
        path: path, busyTimeout: options.busyTimeout, onStatement: options.onStatement)
      do {
        let (stored, configuration) = try connection.queue.read { database in
          try meta(database, path)
        }
        // This comes before anything is sealed.
        let binding = try connection.queue.writeWithoutTransaction { database in
          try ifWritable {
            try upgrade(database)
            return try StoreIdentity(database: database, path: path, options: options)
              .check(stored)?.binding
          } ?? stored
        }
        let store = LocalStore(
          connection: connection, options: options, binding: binding,
          configuration: configuration)
        let isUpgraded = try connection.queue.read { database in
          try Bookkeeping.format(of: database) == Bookkeeping.format
            && MetaTable.read(.plainValues, database)
              != EarlierPlainValues.version
        }
        if isUpgraded { try store.write { _ in } } else { try store.read { _ in } }
        return store
      } catch {
        try connection.queue.close()
        throw error
      }
    }
  }

  /// Runs `body`, or returns `nil` if the store cannot be written to: such a store can seal nothing
  /// either, and stays as it is.
  private static func ifWritable<Result>(_ body: () throws -> Result?) throws -> Result? {
    do {
      return try body()
    } catch let error as DatabaseError
      where [.SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM].contains(error.resultCode)
    {
      return nil
    }
  }

  private static func upgrade(_ database: Database) throws {
    guard let format = try Bookkeeping.format(of: database), format < Bookkeeping.format else {
      return
    }
    try database.inTransaction(.immediate) {
      try Bookkeeping.upgrade(database)
      return .commit
    }
  }

  private static func meta(
    _ database: Database, _ path: String
  ) throws -> (StoreBinding, StoreConfiguration) {
    guard let format = try Bookkeeping.format(of: database) else { throw damaged(path) }
    guard format <= Bookkeeping.format else {
      throw StoreError(
        .newerFormat, path: path,
        message: "The store was put under sync by a newer version (format \(format)).",
        remedy: "Update DocumentSync on this device.")
    }
    do {
      guard let binding = try MetaTable.value(.binding, as: StoreBinding.self, database),
        let configuration = try MetaTable.value(
          .configuration, as: StoreConfiguration.self, database)
      else { throw damaged(path) }
      return (binding, configuration)
    } catch let error as StoreError {
      throw damaged(path, error.detail)
    }
  }

  private static func damaged(_ path: String, _ detail: String? = nil) -> StoreError {
    StoreError(
      .damaged, path: path,
      message:
        "The store's bookkeeping is damaged: the table “docsync_meta” holds an invalid value.",
      remedy: "Restore the file from a backup, or fetch the document again with \(.join).",
      detail: detail)
  }

  // MARK: - Checks

  /// Runs `body` on a connection that cannot write.
  private static func inspect<Result>(
    _ path: String, busyTimeout: Double = StoreOptions().busyTimeout,
    _ body: (Database) throws -> Result
  ) throws -> Result {
    try StoreError.checkFile(path)
    return try StoreError.mapping(path) {
      var configuration = Configuration()
      configuration.busyMode = .timeout(busyTimeout)
      configuration.foreignKeysEnabled = false
      configuration.prepareDatabase { try $0.execute(sql: "PRAGMA query_only = ON") }
      let queue = try DatabaseQueue(path: path, configuration: configuration)
      do {
        let result = try queue.read(body)
        try queue.close()
        return result
      } catch {
        try queue.close()
        throw error
      }
    }
  }

  /// Reads the schema of a database that is to be put under sync, and checks
  /// that its rows can be synchronized.
  private static func checkedSchema(
    _ database: Database, configuration: StoreConfiguration, path: String
  ) throws -> StoreSchema {
    if try database.tableExists("docsync_meta") {
      let binding = try meta(database, path).0
      throw StoreError(
        .alreadyUnderSync, path: path,
        message: "The database is under sync already, as “\(binding.documentIdentifier)” in "
          + "\(binding.directory).",
        remedy: "Synchronize it with \(.synchronize).")
    }
    let schema = try SchemaReader(
      database: database, configuration: configuration, path: path
    ).read()
    try SetUpChecks.checkExclusions(configuration, database, path: path)
    for table in schema.tables { try SetUpChecks(table: table, path: path).run(database) }
    try SetUpChecks.checkForeignKeys(schema, database, path: path)
    try SetUpChecks.checkReferencesToRowsWithoutKey(schema, database, path: path)
    return schema
  }
}

extension TableSchema {
  /// Returns the description of the table for reports.
  func status(_ configuration: StoreConfiguration) -> StoreStatus.TableStatus {
    let chosen: StoreConfiguration.Identity =
      switch identity {
      case .primaryKey: .primaryKey
      case .surrogate: .surrogate
      case .columns(let positions): .columns(positions.map { columns[$0].name })
      }
    let excluded = configuration.excludedColumns.first {
      $0.key.folded == name.folded
    }
    return StoreStatus.TableStatus(
      name: name, identity: chosen, excludedColumns: (excluded?.value ?? []).sorted())
  }
}
