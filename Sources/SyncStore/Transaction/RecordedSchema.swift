import GRDB
import SyncModel

/// The schema of a store, with what bookkeeping records about it.
enum RecordedSchema {
  static func read(
    from database: Database, configuration: StoreConfiguration, path: String
  ) throws -> StoreSchema {
    let schema = try SchemaReader(
      database: database, configuration: configuration, path: path
    ).read(registered: try TableRegistry.registered(database))
    return try addPolicies(to: schema, database)
  }

  /// Returns the schema with the columns that the triggers have to record for policies.
  static func addPolicies(to schema: StoreSchema, _ database: Database) throws -> StoreSchema {
    let policies = try SyncPolicies.read(database)
    guard policies != SyncPolicies() else { return schema }
    let tables = schema.tables.map { table in
      var table = table
      table.policyColumns = policies.baseColumns(of: table)
      return table
    }
    return schema.with(tables)
  }
}
