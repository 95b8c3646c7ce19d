import Foundation
import GRDB
import Synchronization
import SyncModel

/// One whole store that is under sync: the way into this module.
///
/// All bookkeeping lives in the store itself, in tables that begin
/// `docsync_`, so that it is atomic with the data. Other programs may read
/// and write the file at any time; waiting for them is bounded by
/// ``Options/busyTimeout``. Methods block, may be called from any thread,
/// and run one at a time. All throw ``StoreError``.
public final class LocalStore: Sendable {
  /// How a store is opened.
  public struct Options: Sendable {
    /// How long to wait for other programs, in seconds.
    public var busyTimeout: Double = 10
    /// Milliseconds since 1970, for what is shown to people. Stamps of edits
    /// are taken where the edits are made.
    public var now: @Sendable () -> Int64
    /// The most rows that one change set carries, about.
    public var rowsPerChangeSet = 20_000
    /// The most bytes that one change set carries before compression, about.
    public var bytesPerChangeSet = 8 << 20

    /// The defaults, with the system's clock.
    public init() {
      now = { Int64((Date().timeIntervalSince1970 * 1000).rounded()) }
    }
  }

  let connection: StoreConnection
  let options: Options
  private let state: Mutex<State>

  private struct State {
    var binding: StoreBinding
    var configuration: StoreConfiguration
    /// The schema, and the version by which SQLite tells that it changed.
    var schema: (version: Int, schema: StoreSchema)?
  }

  init(
    connection: StoreConnection, options: Options, binding: StoreBinding,
    configuration: StoreConfiguration
  ) {
    self.connection = connection
    self.options = options
    state = Mutex(State(binding: binding, configuration: configuration, schema: nil))
  }

  /// The path of the store.
  public var path: String { connection.path }

  /// What the store is bound to.
  public var binding: StoreBinding { state.withLock { $0.binding } }

  /// What is synchronized.
  public var configuration: StoreConfiguration { state.withLock { $0.configuration } }

  /// Replaces the hint where the directory is.
  public func setDirectory(_ directory: String) throws {
    var binding = binding
    guard binding.directory != directory else { return }
    binding.directory = directory
    try write { session in
      try Bookkeeping.setMeta("binding", to: Array(JSONEncoder().encode(binding)), session.database)
    }
    state.withLock { [binding] in $0.binding = binding }
  }

  /// Closes the database. Further calls throw.
  public func close() throws {
    try StoreError.mapping(path) { try connection.queue.close() }
  }

  // MARK: - Transactions

  /// Runs `body` in a transaction that may write. Another program's writing
  /// is waited for, within the bound.
  func write<Result>(_ body: (StoreSession) throws -> Result) throws -> Result {
    try StoreError.mapping(path) {
      try connection.queue.writeWithoutTransaction { database in
        var result: Result?
        try database.inTransaction(.immediate) {
          let schema = try currentSchema(database, mayRenew: true)
          result = try body(try session(database, schema))
          return .commit
        }
        guard let result else {
          throw DatabaseError(resultCode: .SQLITE_INTERNAL, message: "no result")
        }
        return result
      }
    }
  }

  /// Runs `body` on one state of the store, without writing.
  func read<Result>(_ body: (StoreSession) throws -> Result) throws -> Result {
    try StoreError.mapping(path) {
      try connection.queue.writeWithoutTransaction { database in
        var result: Result?
        try database.inTransaction(.deferred) {
          let schema = try currentSchema(database, mayRenew: false)
          result = try body(try session(database, schema))
          return .rollback
        }
        guard let result else {
          throw DatabaseError(resultCode: .SQLITE_INTERNAL, message: "no result")
        }
        return result
      }
    }
  }

  private func session(_ database: Database, _ schema: StoreSchema) throws -> StoreSession {
    try StoreSession(
      database: database, schema: schema, client: binding.client, now: options.now())
  }

  /// The schema as it is now. If the application changed it, tables and
  /// columns are registered and the triggers made anew.
  private func currentSchema(_ database: Database, mayRenew: Bool) throws -> StoreSchema {
    let version = try Int.fetchOne(database, sql: "PRAGMA main.schema_version") ?? 0
    if let known = state.withLock({ $0.schema }), known.version == version { return known.schema }
    let schema = try SchemaReader(
      database: database, configuration: configuration, path: path
    ).read(registered: try Bookkeeping.registered(database))
    if mayRenew { try SchemaRenewal(schema: schema, path: path).run(database) }
    try connection.silenceTriggers(for: schema, database)
    let renewed = try Int.fetchOne(database, sql: "PRAGMA main.schema_version") ?? 0
    if mayRenew { state.withLock { $0.schema = (renewed, schema) } }
    return schema
  }
}
