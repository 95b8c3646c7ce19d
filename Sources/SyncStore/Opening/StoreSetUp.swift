import GRDB
import SyncModel

/// The setting up of a database that is not under sync yet.
struct StoreSetUp {
  let database: Database
  let path: String
  let configuration: StoreConfiguration
  /// Whether to look at a database as if it were not under sync.
  var ignoresBookkeeping = false

  /// Puts the database at `path` under sync, in one transaction, and opens it.
  static func run(
    at path: String, _ binding: StoreBinding, _ configuration: StoreConfiguration,
    _ options: StoreOptions
  ) throws -> OpenStore {
    try StoreError.checkFile(path)
    return try StoreError.mapping(path) {
      let connection = try StoreConnection(
        path: path, busyTimeout: options.busyTimeout, onStatement: options.onStatement)
      try connection.queue.closingOnFailure {
        try connection.use { database in
          let setUp = StoreSetUp(database: database, path: path, configuration: configuration)
          try database.transaction(.immediate) { try setUp.run(binding, options) }
        }
      }
      return OpenStore(
        connection: connection, options: options, binding: binding, configuration: configuration)
    }
  }

  /// Returns what setting up would do.
  func plan() throws -> StorePlan {
    let schema = try checkedSchema()
    let likely = try LikelyReferences(
      database, schema, plainColumns: configuration.plainColumns)
    return StorePlan(
      tables: schema.tables.map { $0.status(configuration) }, leftOut: schema.leftOut,
      likelyReferences: try likely.found(),
      hints: try likely.hints()
        + NeededFunctions(database).triggers(of: schema).map { missing in
          StorePlan.Hint(
            kind: .triggerNeedsFunction, table: missing.table, trigger: missing.object,
            needed: missing.name)
        })
  }

  private func run(_ binding: StoreBinding, _ options: StoreOptions) throws {
    let random = options.random
    let schema = try checkedSchema()
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
    let registered = try reader.read(registered: try TableRegistry.registered(database))
    try StoreSession(
      database: database, schema: registered, client: binding.client, now: options.now()
    ).plainKeys.noteBeginning(registered)
    try MetaTable.write(.plainValues, to: EarlierPlainValues.version, database)
    try KeyForms.noteIfAbsent(registered, database)
  }

  /// Reads the schema, and checks that the rows can be synchronized.
  private func checkedSchema() throws -> StoreSchema {
    if !ignoresBookkeeping, try database.tableExists("docsync_meta") {
      let binding = try StoreIdentity.read(database, path).binding
      throw StoreError(
        .alreadyUnderSync, path: path,
        message: "The database is under sync already, as “\(binding.documentIdentifier)” in "
          + "\(binding.directory).",
        remedy: "Synchronize it with \(.synchronize).")
    }
    let schema = try reader.read()
    try SetUpChecks.checkExclusions(configuration, database, path: path)
    for table in schema.tables { try SetUpChecks(table: table, path: path).run(database) }
    try SetUpChecks.checkForeignKeys(schema, database, path: path)
    try SetUpChecks.checkReferencesToRowsWithoutKey(schema, database, path: path)
    return schema
  }

  private var reader: SchemaReader {
    SchemaReader(database: database, configuration: configuration, path: path)
  }
}
