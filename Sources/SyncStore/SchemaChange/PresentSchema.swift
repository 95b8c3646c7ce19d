import GRDB
import SyncModel
import Synchronization

/// The schema of a store as it is now. It is read again when the application has changed it; then
/// bookkeeping and triggers are renewed.
final class PresentSchema: Sendable {
  private let connection: StoreConnection
  private let state = Mutex(State())

  private struct State {
    /// The schema, and the schema version of SQLite for which it was read.
    var known: (version: Int, schema: StoreSchema)?
    /// The schema version for which the connection's own triggers were made.
    var triggersVersion: Int?
  }

  init(_ connection: StoreConnection) { self.connection = connection }

  /// Makes the next transaction read the schema again, including what depends on policies.
  func forget() { state.withLock { $0.known = nil } }

  /// Makes the next transaction that writes make the connection's own triggers again.
  func forgetTriggers() { state.withLock { $0.triggersVersion = nil } }

  /// Returns whether the database has had the known schema all the time.
  func isUnchanged(_ database: Database) throws -> Bool {
    let version = try version(database)
    return state.withLock { $0.known?.version == version }
  }

  /// Returns the schema; `nil` if bookkeeping is not in line with it.
  ///
  /// - Parameter configuration: Called if the schema may have changed.
  func current(
    _ database: Database, _ configuration: () throws -> StoreConfiguration
  ) throws -> StoreSchema? {
    let version = try version(database)
    if let known = state.withLock({ $0.known }), known.version == version { return known.schema }
    let schema = try read(database, configuration())
    guard try !renewal(schema).isNeeded(database) else { return nil }
    state.withLock { $0.known = (version, schema) }
    return schema
  }

  /// Returns the tables that are still synchronized if one that was cannot be at present; otherwise
  /// `nil`. Bookkeeping is as it was before the change.
  func stopped(
    _ database: Database, _ configuration: () throws -> StoreConfiguration
  ) throws -> StoreSchema? {
    let schema = try read(database, configuration())
    guard !schema.suspended.isEmpty else { return nil }
    return schema.limited(to: try TableRegistry.registered(database))
  }

  /// Returns the schema. If the application changed it, registers tables and columns and renews the
  /// triggers; `concerned` then names the tables for which earlier edits matter.
  func renewed(
    _ database: Database, _ configuration: () throws -> StoreConfiguration
  ) throws -> (schema: StoreSchema, concerned: SchemaRenewal.Concerned?) {
    let current = try current(database, configuration)
    var concerned: SchemaRenewal.Concerned?
    if current == nil {
      concerned = try renewal(read(database, configuration())).run(database)
    }
    let renewed = try current ?? read(database, configuration())
    let version = try version(database)
    if state.withLock({ $0.triggersVersion }) != version {
      try connection.copyTriggers(for: renewed, database)
      state.withLock { $0.triggersVersion = version }
    }
    return (renewed, concerned)
  }

  private func version(_ database: Database) throws -> Int {
    try Int.fetchOne(database.cachedStatement(sql: "PRAGMA main.schema_version")) ?? 0
  }

  private func read(
    _ database: Database, _ configuration: StoreConfiguration
  ) throws -> StoreSchema {
    try RecordedSchema.read(
      from: database, configuration: configuration, path: connection.path)
  }

  private func renewal(_ schema: StoreSchema) -> SchemaRenewal {
    SchemaRenewal(schema: schema, path: connection.path)
  }
}
