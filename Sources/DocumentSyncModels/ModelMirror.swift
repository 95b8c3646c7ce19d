import DocumentSync
import Foundation
import GRDB

/// Synchronizes an application's model that is not in SQLite.
///
/// A mirror is a store of the library, with a table for each type of records. It stands between the model and the synchronization:
///
/// 1. It takes what the application has changed from the ``ModelAdapter``.
/// 2. The document is synchronized, as every store is: merging, policies, the conflict journal and parked rows are
///    those of any document, and ``manager`` has them.
/// 3. It gives the adapter what is different now.
///
/// The mirror notes what the model is known to have, record by record. An edit of the application is the
/// difference from that, field by field. An edit that the application makes during a synchronization counts as
/// later than what the synchronization has received: in the same field it wins, and other fields are kept.
///
/// ```swift
/// let mirror = try await ModelMirror.open(
///   storeAt: path, directory: FolderDirectory(root: folder), document: "notes", schema: schema,
///   adapter: adapter)
/// let report = try await mirror.synchronize()
/// ```
public actor ModelMirror {
  /// A mirror's options. Each has a default.
  public struct Options: Sendable {
    /// The options of the manager that ``ModelMirror/open(storeAt:directory:document:schema:adapter:options:)``
    /// makes. The configuration is replaced by that of the schema.
    public var manager: DocumentSyncManager.Options
    /// The most records that the mirror gives at once, and those that it asks for besides those that it could
    /// not take. From 1 to 1 000 000.
    public var batchSize = 200 { didSet { batchSize = Self.suitable(batchSize) } }
    /// The most records of one import, and its most deletions. From 1 to 1 000 000.
    public var importSize = 5_000 { didSet { importSize = Self.suitable(importSize) } }
    /// Whose values the records have that both the model and the document have when they meet for the first
    /// time, or again: after the model was put back to an earlier state, or had another mirror.
    public var preference = MergedRows.Preference.document
    /// How long a call waits while another mirror of the store is at work, before it throws `storeInUse`. The
    /// manager waits for others as long, or longer: see ``/DocumentSync/SyncEnvironment/storeInUseTimeLimit``.
    public var storeInUseTimeLimit = Duration.seconds(10)

    /// Creates options with the defaults.
    public init(manager: DocumentSyncManager.Options = .init()) { self.manager = manager }

    private static func suitable(_ size: Int) -> Int { min(max(size, 1), 1_000_000) }
  }

  /// The manager of the mirror's store: its status, its conflicts, its events.
  public nonisolated let manager: DocumentSyncManager
  let schema: ModelSchema
  let adapter: any ModelAdapter
  let options: Options
  let database: DatabaseQueue
  /// Whether the manager is the mirror's own, and no other part of the application has it.
  private let ownsManager: Bool
  /// The parked records, as they were found last.
  var parked = ParkedRecords()
  private let turn = AsyncTurn()
  /// Whether the mirror was closed. Its connection must not be used any more.
  private var isClosed = false

  /// How often a synchronization takes and delivers again what the application has edited meanwhile.
  private static let rounds = 3

  /// Creates the mirror of a store that ``open(storeAt:directory:document:schema:adapter:options:)`` has made,
  /// with a manager that the application has, such as that of an engine.
  ///
  /// Throws `schemaUnsuitable` if the store is no mirror, or if its document has the types or fields in another
  /// form.
  public init(
    schema: ModelSchema, adapter: any ModelAdapter, manager: DocumentSyncManager,
    options: Options = Options()
  ) async throws {
    try await self.init(
      schema: schema, adapter: adapter, manager: manager, options: options, ownsManager: false)
  }

  private init(
    schema: ModelSchema, adapter: any ModelAdapter, manager: DocumentSyncManager,
    options: Options, ownsManager: Bool
  ) async throws {
    try schema.check()
    self.ownsManager = ownsManager
    self.schema = schema
    self.adapter = adapter
    self.manager = manager
    self.options = options
    try Self.checkFile(of: manager, operation: "open the mirror")
    database = try Self.database(at: manager.path)
    do {
      guard try await database.read(MirrorTables.areIn) else {
        throw SyncError(
          .schemaUnsuitable, operation: "open the mirror", path: manager.path,
          message: "The store is no mirror of a model.",
          remedy: "Make one with “ModelMirror.open”.")
      }
      try schema.check(against: manager.configuration)
      try await database.write { try MirrorTables.make(schema, in: $0) }
      var policies = try await manager.policies()
      let former = policies
      schema.set(&policies)
      if policies != former { try await manager.setPolicies { [policies] in $0 = policies } }
    } catch {
      throw Self.wrapping(error, operation: "open the mirror", path: manager.path)
    }
  }

  /// Opens the mirror at a path. If there is none, gets the document from the directory, or creates it.
  ///
  /// When the mirror is new, and the model has records already, each of them is taken with the next
  /// synchronization; see ``Options/preference``. Errors are those of
  /// ``/DocumentSync/DocumentSyncManager/register(storeAt:directory:document:options:onProgress:)``, and `schemaUnsuitable`.
  ///
  /// - Parameters:
  ///   - path: The path of the mirror's store. Only the mirror writes to it.
  ///   - directory: The shared directory.
  ///   - document: The identifier by which other devices find the document.
  ///   - schema: The types of the records.
  ///   - adapter: The adapter of the model.
  ///   - options: The options; each has a default.
  public static func open(
    storeAt path: String, directory: any SharedDirectory, document: String, schema: ModelSchema,
    adapter: any ModelAdapter, options: Options = Options()
  ) async throws -> ModelMirror {
    try schema.check()
    var options = options
    options.manager.configuration = schema.configuration
    options.manager.environment.storeInUseTimeLimit = max(
      options.manager.environment.storeInUseTimeLimit, options.storeInUseTimeLimit)
    // Of two calls that would make the file, one waits.
    let lock =
      try await isReady(path)
      ? nil
      : MirrorLock.take(
        store: path, timeLimit: options.storeInUseTimeLimit, operation: "open the mirror")
    defer { lock?.unlock() }
    var attempts = 0
    while true {
      do {
        try removeUnusedMirror(at: path)
        let manager = try await DocumentSyncManager.register(
          storeAt: path, directory: directory, document: document, options: options.manager)
        return try await ModelMirror(
          schema: schema, adapter: adapter, manager: manager, options: options, ownsManager: true)
      } catch let error as SyncError
        where [.documentMissing, .applicationMissing, .documentDeleted].contains(error.code)
        && !FileManager.default.fileExists(atPath: path) && attempts < 3
      {
        // If another device creates the document at the same moment, it is there the next time.
        attempts += 1
        do {
          try await make(schema, at: path)
          let manager = try await DocumentSyncManager.register(
            storeAt: path, directory: directory, document: document, options: options.manager)
          return try await ModelMirror(
            schema: schema, adapter: adapter, manager: manager, options: options, ownsManager: true)
        } catch let error as SyncError where error.code == .documentExists && attempts < 3 {
          continue
        }
      }
    }
  }

  /// Whether there is a file, and its document was created or joined.
  private static func isReady(_ path: String) throws -> Bool {
    try FileManager.default.fileExists(atPath: path)
      && DocumentSyncManager.isUnderSync(storeAt: path)
  }

  /// Makes an empty mirror, which is not under sync yet.
  private static func make(_ schema: ModelSchema, at path: String) async throws {
    do {
      let database = try database(at: path)
      try await database.write { try MirrorTables.make(schema, in: $0) }
      try database.close()
    } catch {
      throw Self.wrapping(error, operation: "make the mirror", path: path)
    }
  }

  /// Removes a mirror that was made and did not come under sync: it has no records.
  private static func removeUnusedMirror(at path: String) throws {
    guard FileManager.default.fileExists(atPath: path), try !isReady(path) else { return }
    do {
      let database = try database(at: path)
      let isUnused = try database.read { database in
        let tables = try String.fetchAll(
          database,
          sql: "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        // The process may have ended before the tables were there.
        guard !tables.isEmpty else { return true }
        return try MirrorTables.areIn(database)
          && tables.allSatisfy { table in
            try Row.fetchOne(database, sql: "SELECT 1 FROM \(MirrorTables.quoted(table))") == nil
          }
      }
      try database.close()
      guard isUnused else { return }
      for ending in ["", "-wal", "-shm", "-journal"]
      where FileManager.default.fileExists(atPath: path + ending) {
        try FileManager.default.removeItem(atPath: path + ending)
      }
    } catch {
      throw Self.wrapping(error, operation: "open the mirror", path: path)
    }
  }

  private static func database(at path: String) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.busyMode = .timeout(60)
    configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = FULL") }
    return try DatabaseQueue(path: path, configuration: configuration)
  }

  /// Takes the edits of the application, synchronizes the document, and delivers what is different.
  ///
  /// Calls wait for one another. While another mirror of the store is at work, they wait for
  /// ``Options/storeInUseTimeLimit``, and then throw `storeInUse`. If the call fails, or the process ends, at any
  /// moment, the next call continues: nothing is lost, and no edit counts twice. Edits that are made meanwhile are taken, too, and sent
  /// with the next call, except for those that an adapter keeps reporting. Throws `adapterFailed` if the
  /// adapter fails otherwise than by refusing records; `localFile` if the mirror's file was removed or replaced;
  /// `calledWithin` if the adapter calls it. A
  /// `SyncDelegate` must not call it either: the call fails with `calledWithin`, or never ends.
  ///
  /// - Parameter allowingDeletions: See ``/DocumentSync/DocumentSyncManager/synchronize(allowingDeletions:onProgress:)``.
  @discardableResult
  public func synchronize(allowingDeletions: Bool = false) async throws -> ModelReport {
    try await inTurn { mirror, report in
      // Whose values count is decided between the model and what other devices have sent by now.
      if try await !mirror.isIntroduced() { try await mirror.manager.fetchChanges() }
      try await mirror.take(&report)
      report.synchronization = try await mirror.manager.synchronize(
        allowingDeletions: allowingDeletions)
      try await mirror.deliver(&report)
    }
  }

  /// Takes the edits of the application into the mirror, and neither sends nor delivers anything: for an
  /// application whose ``/DocumentSync/SyncEngine`` synchronizes the mirror when it changes.
  @discardableResult
  public func takeChanges() async throws -> ModelReport {
    try await inTurn { mirror, report in
      try await mirror.take(&report)
      try await mirror.reportWaiting(&report)
    }
  }

  /// Delivers to the model what is different in the mirror, and takes the edits of the application
  /// before: for an application whose ``/DocumentSync/SyncEngine`` synchronizes the mirror, after ``/DocumentSync/SyncEvent/rowsChanged(_:)``.
  @discardableResult
  public func deliverChanges() async throws -> ModelReport {
    try await inTurn { mirror, report in
      try await mirror.deliver(&report)
    }
  }

  /// Closes the mirror, after the calls that were begun. Closes the manager as well, unless the application has given
  /// it to the mirror. Does nothing if the mirror is closed; other calls then throw `storeClosed`.
  public func close() async throws {
    try await inTurn(closes: true) { mirror, _ in
      guard !mirror.isClosed else { return }
      if mirror.ownsManager { try await mirror.manager.close() }
      try mirror.database.close()
      mirror.isClosed = true
    }
  }

  /// Throws `localFile` if the file that a manager has open is not at its path any more.
  private static func checkFile(of manager: DocumentSyncManager, operation: String) throws {
    guard !manager.isFileInPlace else { return }
    throw SyncError(
      .localFile, operation: operation, path: manager.path,
      message: "The mirror's file was removed, or another one has taken its place.",
      remedy: "Close the mirror and its manager, and open them again.")
  }

  private func deliver(_ report: inout ModelReport) async throws {
    var round = 1
    while true {
      // The model may have been put back meanwhile.
      try await take(&report)
      let isComplete = try await deliverOnce(&report)
      if isComplete || round == Self.rounds { break }
      round += 1
    }
    try await reportWaiting(&report)
  }

  private func take(_ report: inout ModelReport) async throws {
    try await settle(&report)
    try await takeEdits(&report)
  }

  @discardableResult
  private func inTurn(
    closes: Bool = false, _ body: (isolated ModelMirror, inout ModelReport) async throws -> Void
  ) async throws -> ModelReport {
    guard !turn.isHeld else {
      throw SyncError(
        .calledWithin, operation: "synchronize the model", path: manager.path,
        message: "The adapter called its mirror, which waits for the adapter.",
        remedy: "Call the mirror in a detached task, and do not wait for it in the adapter.")
    }
    do {
      return try await turn.take {
        var report = ModelReport()
        guard !closes else {
          try await body(self, &report)
          return report
        }
        guard !isClosed else {
          throw SyncError(
            .storeClosed, operation: "synchronize the model", path: manager.path,
            message: "The mirror is closed.", remedy: "Open it again.")
        }
        let lock = try await MirrorLock.take(
          store: manager.path, timeLimit: options.storeInUseTimeLimit,
          operation: "synchronize the model")
        defer { lock.unlock() }
        try Self.checkFile(of: manager, operation: "synchronize the model")
        // Those of calls that have failed.
        for problem in try await problems() { report.add(problem) }
        try await body(self, &report)
        try await forgetProblems()
        return report
      }
    } catch {
      throw Self.wrapping(error, operation: "synchronize the model", path: manager.path)
    }
  }

  /// Returns the error of a call. The mirror's own connection fails as a store does.
  private static func wrapping(
    _ error: any Error, operation: String, path: String
  ) -> SyncError {
    guard let error = error as? DatabaseError else {
      return SyncError.wrapping(error, operation: operation, path: path)
    }
    return SyncError.wrapping(StoreError(error, path: path), operation: operation, path: path)
  }

  /// The problems that no call has returned.
  private func problems() async throws -> [ModelReport.Problem] {
    let schema = schema
    return try await database.read { database in
      try MirrorRecords(database: database, schema: schema).problems()
    }
  }

  private func forgetProblems() async throws {
    guard try await !problems().isEmpty else { return }
    let schema = schema
    try await database.write { database in
      try MirrorRecords(database: database, schema: schema).clear(MirrorTables.problems)
    }
  }

  private func reportWaiting(_ report: inout ModelReport) async throws {
    let schema = schema
    let waiting = try await database.read { database in
      var taking = RecordTaking(
        MirrorRecords(database: database, schema: schema), preference: nil)
      try taking.reportWaiting()
      return taking.report
    }
    for problem in waiting.problems { report.add(problem) }
  }

  /// Calls the adapter. Its errors become `adapterFailed`.
  func ask<Output: Sendable>(
    _ requirement: String,
    _ call: (any ModelAdapter) async throws -> Output
  ) async throws -> Output {
    try Task.checkCancellation()
    do {
      return try await call(adapter)
    } catch let error as CancellationError {
      throw error
    } catch {
      throw SyncError(
        .adapterFailed, operation: "synchronize the model", path: manager.path,
        message: "The application's model could not be read or written: “\(requirement)” failed.",
        remedy: "Nothing is lost. The next synchronization tries again.", detail: "\(error)",
        underlying: error)
    }
  }
}
