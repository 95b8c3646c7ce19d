import GRDB
import SyncModel
import Synchronization

/// The schema of a store as it is now. It is read again when the application has changed it; then
/// bookkeeping and triggers are renewed.
final class PresentSchema: Sendable {
  private let connection: StoreConnection
  /// ``StoreOptions/schemaPause``
  private let pause: Duration
  private let state = Mutex(State())

  private struct State {
    /// The schema, and the schema version of SQLite for which it was read.
    var known: (version: Int, schema: StoreSchema)?
    /// The schema version for which the connection's own triggers were made.
    var triggersVersion: Int?
    /// The change of tables that does not count yet.
    var change: TableChange?
  }

  /// A change of tables that programs have made, and may not have done all of.
  private struct TableChange {
    /// SQLite's number of the schema.
    var schema: Int
    /// SQLite's number of the commits of other connections.
    var data: Int
    /// Since when both have been the same.
    var since: ContinuousClock.Instant
    /// When the last look ended.
    var lastLook: ContinuousClock.Instant
    /// How often it was looked at.
    var looks = 0
    var isSettled = false
  }

  /// Programs have changed tables just now, and may not have done all of it.
  struct Unsettled: Error {}

  init(_ connection: StoreConnection, pause: Duration) {
    self.connection = connection
    self.pause = pause
  }

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
  ///
  /// - Parameter isOwnChange: Whether this transaction may have changed tables itself. Otherwise throws
  ///   ``Unsettled`` while programs change them.
  func renewed(
    _ database: Database, isOwnChange: Bool, _ configuration: () throws -> StoreConfiguration
  ) throws -> (schema: StoreSchema, concerned: SchemaRenewal.Concerned?) {
    let current = try current(database, configuration)
    var concerned: SchemaRenewal.Concerned?
    if current == nil {
      let renewal = try renewal(read(database, configuration()))
      if !isOwnChange { try checkIsSettled(renewal, database) }
      concerned = try renewal.run(database)
      state.withLock { $0.change = nil }
    }
    let renewed = try current ?? read(database, configuration())
    let version = try version(database)
    if state.withLock({ $0.triggersVersion }) != version {
      try connection.copyTriggers(for: renewed, database)
      state.withLock { $0.triggersVersion = version }
    }
    return (renewed, concerned)
  }

  /// Returns whether programs are done with tables that they have created, dropped or made again: the
  /// schema has been the same for long enough, and so has the database, unless programs write all the
  /// time.
  ///
  /// SQLite can change few parts of a table, so programs make it again in several statements, and some use
  /// no transaction. In between, the table is gone, or has not got its rows yet.
  ///
  /// <https://www.sqlite.org/lang_altertable.html#otheralter>
  func isSettled(
    _ database: Database, _ configuration: () throws -> StoreConfiguration
  ) throws -> Bool {
    guard pause > .zero else { return true }
    let now = ContinuousClock.now
    guard try current(database, configuration) == nil,
      try renewal(read(database, configuration())).changesTables(database)
    else {
      state.withLock { $0.change = nil }
      return true
    }
    let (schema, data) = try versions(database)
    return state.withLock { state in
      var change =
        state.change ?? TableChange(schema: schema, data: data, since: now, lastLook: now)
      // While a lock was waited for, a program worked.
      let isLate = now - change.lastLook > pause
      if isLate || change.schema != schema || change.data != data {
        (change.schema, change.data, change.since) = (schema, data, now)
      }
      change.looks += 1
      change.isSettled = now - change.since >= pause || change.looks > Self.mostLooks
      change.lastLook = ContinuousClock.now
      state.change = change
      return change.isSettled
    }
  }

  /// How often a database is looked at that programs change all the time, ten times in a pause.
  private static let mostLooks = 100

  /// Throws ``Unsettled`` unless a change of tables is as it was when it was settled.
  private func checkIsSettled(_ renewal: SchemaRenewal, _ database: Database) throws {
    guard pause > .zero, try renewal.changesTables(database) else { return }
    let (schema, data) = try versions(database)
    let isSettled = state.withLock { state in
      guard let change = state.change, change.isSettled else { return false }
      return change.looks > Self.mostLooks || change.schema == schema && change.data == data
    }
    if !isSettled { throw Unsettled() }
  }

  private func versions(_ database: Database) throws -> (schema: Int, data: Int) {
    (
      try version(database),
      try Int.fetchOne(database.cachedStatement(sql: "PRAGMA main.data_version")) ?? 0
    )
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
