import GRDB
import SyncModel
import Synchronization

/// The schema of a store as its last committed state has it, for connections that only read.
///
/// ``PresentSchema`` belongs to the connection that writes, and may know the schema of a transaction
/// that is not committed.
final class CommittedSchema: Sendable {
  private let path: String
  private let known = Mutex<Known?>(nil)

  private struct Known {
    /// The schema version of SQLite.
    var version: Int
    var configuration: StoreConfiguration
    var registry: TableRegistry.Content
    var schema: StoreSchema
  }

  init(_ path: String) { self.path = path }

  /// Returns the schema; without the tables that cannot be synchronized at present, if there are any.
  /// Returns `nil` if bookkeeping is not in line with it: then it has to be renewed first.
  func read(_ database: Database, _ configuration: StoreConfiguration) throws -> StoreSchema? {
    let version =
      try Int.fetchOne(database.cachedStatement(sql: "PRAGMA main.schema_version")) ?? 0
    let registry = try TableRegistry.content(database)
    let known = known.withLock { $0 }
    if let known, known.version == version, known.configuration == configuration,
      known.registry == registry
    {
      return known.schema
    }
    guard let schema = try readRecorded(database, configuration) else { return nil }
    self.known.withLock {
      $0 = Known(
        version: version, configuration: configuration, registry: registry, schema: schema)
    }
    return schema
  }

  private func readRecorded(
    _ database: Database, _ configuration: StoreConfiguration
  ) throws -> StoreSchema? {
    let schema = try RecordedSchema.read(from: database, configuration: configuration, path: path)
    guard schema.suspended.isEmpty else {
      return schema.limited(to: try TableRegistry.registered(database))
    }
    return try SchemaRenewal(schema: schema, path: path).isNeeded(database) ? nil : schema
  }
}
