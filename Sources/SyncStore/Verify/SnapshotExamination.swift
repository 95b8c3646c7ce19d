import CSQLite
import Foundation
import GRDB
import SyncModel

/// The content of a whole store's database, examined without changing it.
package struct SnapshotExamination: Sendable {
  /// The damage that was found. If there is any, no device should join from the whole store.
  package private(set) var damage: [String] = []
  /// Content that should not have left its device.
  package private(set) var privateContent: [String] = []
  /// Whether some of the private content is bookkeeping, which a device that adopts the whole store
  /// would take for its own.
  package private(set) var hasDeviceState = false
  /// Whether a newer version made the whole store. Then nothing else was examined.
  package private(set) var isNewer = false
  /// The hash of its schema; `nil` if it cannot be read.
  package private(set) var schema: ContentHash?
  /// The change sets that it contains; `nil` if they cannot be read.
  package private(set) var vector: VersionVector?
  /// The result of all processed commands, as the layer above has written it.
  package private(set) var commandState: [UInt8]?

  /// Examines the database at `path`, on a connection that cannot write.
  ///
  /// - Parameter checkCancellation: Called repeatedly; its errors are thrown.
  package init(path: String, checkCancellation: @escaping () throws -> Void) throws {
    var configuration = Configuration()
    configuration.readonly = true
    configuration.foreignKeysEnabled = false
    configuration.prepareDatabase { database in
      try database.execute(sql: "PRAGMA trusted_schema = ON; PRAGMA cell_size_check = ON")
    }
    do {
      let queue = try DatabaseQueue(path: path, configuration: configuration)
      do {
        try queue.writeWithoutTransaction { database in
          try QueryCancellation.run(database, checkCancellation) { try look(at: database, path) }
        }
      } catch let error as DatabaseError {
        damage.append(error.description)
      }
      try queue.close()
    } catch let error as DatabaseError {
      damage.append(error.description)
    }
  }

  private mutating func look(at database: Database, _ path: String) throws {
    damage += try CheckedSnapshot.brokenPages(database).prefix(10)
    guard damage.isEmpty else { return }
    guard try database.tableExists("docsync_meta") else {
      damage.append("docsync_meta is missing.")
      return
    }
    guard let format = try Bookkeeping.format(of: database) else {
      damage.append("docsync_meta has no format number.")
      return
    }
    guard format <= Bookkeeping.format else {
      isNewer = true
      return
    }
    damage += try BookkeepingCheck(database: database, format: format).run().map(\.message)
    guard damage.isEmpty else { return }
    damage += try BookkeepingTypes(database: database, format: format).run().map {
      "\($0.name): \($0.message)"
    }
    guard damage.isEmpty else { return }
    try readContent(database, path)
  }

  private mutating func readContent(_ database: Database, _ path: String) throws {
    do {
      guard
        let configuration = try MetaTable.value(
          .configuration, as: StoreConfiguration.self, database)
      else {
        damage.append("its configuration is missing")
        return
      }
      let schema = try SchemaReader(
        database: database, configuration: configuration, path: path
      ).read(registered: try TableRegistry.registered(database))
      self.schema = schema.fingerprint
      vector = try ClientRegistry(database).vector()
      commandState = try MetaTable.read(.commandState, database)
      try CheckedSnapshot.checkForStrangers(database, path)
      try checkTables(of: schema, database)
      try findPrivateContent(schema, database)
    } catch let error as StoreError {
      damage.append(error.detail ?? error.message)
    }
  }

  private mutating func checkTables(of schema: StoreSchema, _ database: Database) throws {
    for table in schema.tables {
      let names =
        [table.stampsName] + (table.identity == .surrogate ? [table.identityName] : [])
      for name in names where try !database.tableExists(name) {
        damage.append("\(name) is missing.")
      }
    }
  }

  // MARK: - Private content

  private mutating func findPrivateContent(
    _ schema: StoreSchema, _ database: Database
  ) throws {
    for key in MetaTable.Key.deviceOwn where try MetaTable.read(key, database) != nil {
      privateContent.append("docsync_meta has \(key)")
    }
    let logs = schema.tables.map(\.logName)
    for table in PrivateData.tables + logs where try database.tableExists(table) {
      try expectEmpty(SQLName(table), database)
    }
    hasDeviceState = !privateContent.isEmpty
    for table in schema.localTables where !schema.suspendedNames.contains(table) {
      try expectEmpty(table, database)
    }
    for table in schema.tables where !table.excludedColumns.isEmpty {
      try findExcludedValues(table, database)
    }
  }

  private mutating func expectEmpty(_ table: SQLName, _ database: Database) throws {
    let count = try Int.fetchOne(database, sql: "SELECT count(*) FROM main.\(quoted(table))") ?? 0
    if count > 0 { privateContent.append("\(table) has \(count) rows") }
  }

  /// Finds values in excluded columns without a default. Columns with a default contain it, and it
  /// is not known whether the default has changed since.
  private mutating func findExcludedValues(
    _ table: TableSchema, _ database: Database
  ) throws {
    let information = try Row.fetchAll(
      database, sql: "PRAGMA main.table_xinfo(\(quoted(table.name)))")
    for row in information {
      let name: SQLName = row["name"]
      guard (row["hidden"] as Int) == 0, (row["dflt_value"] as String?) == nil,
        table.excludedColumns.contains(name.folded)
      else { continue }
      let isFilled = try Bool.fetchOne(
        database,
        sql: "SELECT EXISTS (SELECT 1 FROM \(table.quotedName) WHERE \(quoted(name)) IS NOT NULL)")
      if isFilled ?? false { privateContent.append("\(table.name).\(name) has values") }
    }
  }
}
