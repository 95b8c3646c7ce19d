import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

/// A folder of its own for the stores of one test; gone when it is let go.
final class Scratch: Sendable {
  /// Returns the schema and the notes of a database.
  static func contents(of path: String) throws -> [String] {
    let queue = try DatabaseQueue(path: path)
    let contents = try queue.read { database in
      try String.fetchAll(
        database,
        sql: """
          SELECT type || name || ifnull(sql, '') FROM sqlite_schema \
          UNION ALL SELECT id || body FROM notes
          """)
    }
    try queue.close()
    return contents
  }

  let path: String

  init() throws {
    // In memory where there is such a place: stores are flushed often.
    let inMemory = "/dev/shm"
    let folder =
      FileManager.default.isWritableFile(atPath: inMemory) ? inMemory : NSTemporaryDirectory()
    path = folder + "/docsync-test-\(getpid())-" + UUID().uuidString
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    var attempts = 0
    while true {
      do {
        return try FileManager.default.removeItem(atPath: path)
      } catch let error as CocoaError where error.code == .fileNoSuchFile && attempts < 10 {
        // The last connection to a database closes on another thread, and removes its files.
        attempts += 1
      } catch {
        Issue.record("the scratch folder stayed: \(error)")
        return
      }
    }
  }

  func store(_ name: String) -> String { path + "/" + name + ".db" }

  /// A database of notes, not under sync.
  func makeNotes(_ name: String, rows: Int = 0) throws -> String {
    let path = store(name)
    let queue = try DatabaseQueue(path: path)
    try queue.write { db in
      try db.execute(sql: "CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)")
      for row in 0..<rows {
        try db.execute(
          sql: "INSERT INTO notes VALUES(?, ?)", arguments: ["seed-\(row)", "body \(row)"])
      }
    }
    try queue.close()
    return path
  }

  /// The names in the folder, in order.
  func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path).sorted()
  }
}

/// Time that goes on by a millisecond whenever someone looks, and random
/// numbers from a seed.
final class World: @unchecked Sendable {
  private let lock = NSLock()
  private var milliseconds: Int64
  private var random: SeededRandom

  init(seed: UInt64, milliseconds: Int64 = 1_700_000_000_000) {
    random = SeededRandom(seed: seed)
    self.milliseconds = milliseconds
  }

  func now() -> Int64 {
    lock.withLock {
      milliseconds += 1
      return milliseconds
    }
  }

  /// Lets time pass.
  func advance(_ elapsed: Int64) { lock.withLock { milliseconds += elapsed } }

  func word() -> UInt64 { lock.withLock { random.next() } }

  /// An environment of this world, in which nothing is tried twice. Its limits in real time are a
  /// day: they work as users have them, and are never over, however long a test waits for a
  /// processor.
  var environment: SyncEnvironment {
    var environment = SyncEnvironment()
    environment.now = { self.now() }
    environment.random = { self.word() }
    environment.retries = .none
    environment.store.places = nil
    environment.directoryTimeLimit = .seconds(86_400)
    environment.decisionTimeLimit = .seconds(86_400)
    environment.storeTransactionTime = .seconds(86_400)
    return environment
  }
}

extension DocumentSyncManager {
  /// Runs SQL on the store through a connection of its own, as a program
  /// would that knows nothing of syncing.
  func edit(_ sql: String, _ arguments: StatementArguments = []) throws {
    var configuration = Configuration()
    // An engine may read at that moment.
    configuration.busyMode = .timeout(60)
    let queue = try DatabaseQueue(path: store.path, configuration: configuration)
    try queue.write { try $0.execute(sql: sql, arguments: arguments) }
    try queue.close()
  }

  /// Inserts or replaces one note.
  func put(_ id: String, _ body: String) throws {
    try edit(
      "INSERT INTO notes VALUES(?, ?) ON CONFLICT(id) DO UPDATE SET body = excluded.body",
      [id, body])
  }

  /// The notes as text.
  func notes() throws -> [String] {
    var configuration = Configuration()
    configuration.busyMode = .timeout(60)
    let queue = try DatabaseQueue(path: store.path, configuration: configuration)
    defer { close(queue) }
    return try queue.read { db in
      try Row.fetchAll(db, sql: "SELECT id, body FROM notes ORDER BY id").map { row in
        "\(row["id"] as String)=\(row["body"] as String? ?? "NULL")"
      }
    }
  }

  private func close(_ queue: DatabaseQueue) {
    do {
      try queue.close()
    } catch {
      Issue.record(error)
    }
  }
}

/// The error of a failing call; records an issue if it succeeds or fails
/// with anything else.
func syncError(
  _ body: () async throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
) async -> SyncError? {
  do {
    try await body()
    Issue.record("nothing was thrown", sourceLocation: sourceLocation)
  } catch let error as SyncError {
    return error
  } catch {
    Issue.record(error, sourceLocation: sourceLocation)
  }
  return nil
}
