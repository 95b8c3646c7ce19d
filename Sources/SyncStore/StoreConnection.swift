import CSQLite
import Foundation
import GRDB
import SyncModel

/// The connection of a local store, set up so that nothing but what bookkeeping
/// does itself takes effect.
///
/// Foreign keys are off: their actions arrive as changes. Triggers do not
/// fire, neither the capture triggers nor the app's, apart from those of the
/// app that write only to tables that are not synchronized, such as a
/// full-text index.
final class StoreConnection: Sendable {
  let path: String
  let queue: DatabaseQueue
  private let silencer: TriggerSilencer

  /// - Parameter trustsSchema: Whether the schema is that of this device's
  ///   own store. On one that was downloaded, and not checked yet, views and
  ///   triggers may not call functions or virtual tables; a full-text index
  ///   that triggers maintain needs them.
  init(path: String, busyTimeout: Double, trustsSchema: Bool = true) throws {
    self.path = path
    silencer = TriggerSilencer()
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    configuration.busyMode = .timeout(busyTimeout)
    configuration.label = "docsync"
    configuration.prepareDatabase { [silencer] database in
      try database.execute(
        sql: """
          PRAGMA synchronous = FULL; PRAGMA cache_size = -32000; \
          PRAGMA trusted_schema = \(trustsSchema ? "ON" : "OFF"); \
          PRAGMA recursive_triggers = OFF; PRAGMA ignore_check_constraints = OFF
          """)
      if let connection = database.sqliteConnection { silencer.install(on: connection) }
    }
    queue = try DatabaseQueue(path: path, configuration: configuration)
  }

  /// Decides which of the app's triggers run.
  func silenceTriggers(for schema: StoreSchema, _ database: Database) throws {
    let triggers = try Row.fetchAll(
      database, sql: "SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger'")
    var silenced: [String] = []
    var running = 0
    for trigger in triggers {
      let name: String = trigger["name"]
      if name.lowercased().hasPrefix("docsync_")
        || Self.concernsSynchronizedTables(trigger["sql"] as String? ?? "", schema)
      {
        silenced.append(name)
      } else {
        running += 1
      }
    }
    silencer.silence(silenced)
    if let connection = database.sqliteConnection {
      csqlite_set_triggers_enabled(connection, running > 0 ? 1 : 0)
    }
  }

  /// Whether a trigger writes to a synchronized table, or can refuse a row:
  /// the device that made the edit has let it do either already.
  static func concernsSynchronizedTables(_ sql: String, _ schema: StoreSchema) -> Bool {
    let tokens = SQLTokens(sql).tokens
    guard let begin = tokens.firstIndex(where: { $0.isWord("BEGIN") }) else { return true }
    let body = tokens[begin...]
    if body.contains(where: { $0.isWord("RAISE") }) { return true }
    for (index, token) in zip(body.indices, body) {
      let next = index + 1 < tokens.count ? tokens[index + 1] : token
      guard next.kind == .word || next.kind == .quotedName else { continue }
      if token.isWord("INTO") || token.isWord("UPDATE") || token.isWord("FROM")
        || (index > 0 && tokens[index - 1].isWord("OR"))
      {
        // FROM is counted only in DELETE FROM.
        if token.isWord("FROM"), !(index > 0 && tokens[index - 1].isWord("DELETE")) { continue }
        if schema.table(named: next.text) != nil { return true }
      }
    }
    return false
  }
}

/// Has SQLite leave out the statements of some triggers, by an authorizer
/// that ignores them when a statement that would fire them is prepared.
///
/// <https://www.sqlite.org/c3ref/set_authorizer.html>
private final class TriggerSilencer: @unchecked Sendable {
  // Read and written only on the connection's queue.
  private var names: Set<String> = []

  func silence(_ names: [String]) { self.names = Set(names.map { $0.lowercased() }) }

  func install(on connection: OpaquePointer) {
    sqlite3_set_authorizer(
      connection,
      { context, action, _, _, _, trigger in
        guard action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_DELETE,
          let trigger, let context
        else { return SQLITE_OK }
        let silencer = Unmanaged<TriggerSilencer>.fromOpaque(context).takeUnretainedValue()
        return silencer.names.contains(String(cString: trigger).lowercased())
          ? SQLITE_IGNORE : SQLITE_OK
      }, Unmanaged.passUnretained(self).toOpaque())
  }
}

extension StoreError {
  /// Runs `body` and turns errors of SQLite into those of a store.
  static func mapping<Result>(_ path: String, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as DatabaseError {
      throw StoreError(error, path: path)
    } catch var error as StoreError where error.path.isEmpty {
      error.path = path
      throw error
    }
  }

  init(_ error: DatabaseError, path: String) {
    let detail = error.description
    switch error.resultCode {
    case .SQLITE_BUSY, .SQLITE_LOCKED:
      self.init(
        .busy, path: path, message: "Another program keeps the database locked.",
        remedy: "Finish or close what it is doing there, and try again.", detail: detail)
    case .SQLITE_NOTADB:
      self.init(
        .notADatabase, path: path, message: "The file is not an SQLite database.",
        remedy: "Name a database file; an encrypted one has to be decrypted first.",
        detail: detail)
    case .SQLITE_CORRUPT:
      self.init(
        .damaged, path: path, message: "The database is damaged.",
        remedy: "Check it with “PRAGMA integrity_check” and restore it from a backup.",
        detail: detail)
    case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM, .SQLITE_AUTH:
      self.init(
        .notWritable, path: path, message: "The database cannot be opened for writing.",
        remedy: "Check the permissions of the file and of its folder.", detail: detail)
    case .SQLITE_FULL:
      self.init(
        .noSpace, path: path, message: "There is no space left for the database.",
        remedy: "Free some space on its disk and try again.", detail: detail)
    default:
      self.init(
        .sqlite, path: path, message: "SQLite reported an error.",
        remedy: "Check the database with “PRAGMA integrity_check”.", detail: detail)
    }
  }
}
