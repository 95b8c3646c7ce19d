import GRDB
import SyncModel

extension StoreSchema {
  /// The schema, with what bookkeeping records about it.
  static func read(
    from database: Database, configuration: StoreConfiguration, path: String
  ) throws -> StoreSchema {
    let schema = try SchemaReader(
      database: database, configuration: configuration, path: path
    ).read(registered: try TableRegistry.registered(database))
    return try schema.addingPolicies(database)
  }

  /// The schema with the columns that the triggers have to record for policies.
  func addingPolicies(_ database: Database) throws -> StoreSchema {
    let policies = try SyncPolicies.read(database)
    guard policies != SyncPolicies() else { return self }
    let tables = self.tables.map { table in
      var table = table
      table.policyColumns = policies.baseColumns(of: table)
      return table
    }
    return StoreSchema(tables: tables, leftOut: leftOut)
  }
}
