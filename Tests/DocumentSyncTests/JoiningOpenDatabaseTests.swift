import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncStore
import Testing

/// Joining where a program has the database open: it goes on with the store.
struct JoiningOpenDatabaseTests {
  private let scratch: Scratch
  private let directory = MemoryDirectory(seed: 1)
  private let world = World(seed: 1)

  init() throws { scratch = try Scratch() }

  private static let answers: [ExistingFile] = [.replaceKeepingBackup, .merge(prefer: .document)]

  private func create() async throws -> DocumentSyncManager {
    try await DocumentSyncManager.create(
      storeAt: try scratch.makeNotes("a", rows: 2), directory: directory, document: "main",
      options: .init(client: "a", environment: world.environment))
  }

  private func join(_ existing: ExistingFile) async throws -> DocumentSyncManager {
    try await DocumentSyncManager.join(
      storeAt: scratch.store("b"), directory: directory, existing: existing,
      options: .init(client: "b", environment: world.environment))
  }

  /// A program's connections to a database with one note, which has read it.
  private func program(isWAL: Bool, pageSize: Int = 4096) throws -> any DatabaseWriter {
    let path = scratch.store("b")
    var configuration = Configuration()
    configuration.prepareDatabase { try $0.execute(sql: "PRAGMA page_size = \(pageSize)") }
    let program: any DatabaseWriter =
      isWAL
      ? try DatabasePool(path: path, configuration: configuration)
      : try DatabaseQueue(path: path, configuration: configuration)
    try program.write { database in
      try database.execute(
        sql: "CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT); "
          + "INSERT INTO notes VALUES ('own', 'of b')")
    }
    #expect(try notes(program) == ["own=of b"])
    return program
  }

  private func notes(_ program: any DatabaseReader) throws -> [String] {
    try program.read {
      try String.fetchAll($0, sql: "SELECT id || '=' || body FROM notes ORDER BY id")
    }
  }

  private func backups() throws -> [String] {
    try scratch.names().filter { $0.contains(".backup-") || $0.contains("-tmp.") }
  }

  @Test(arguments: answers, [true, false])
  func openProgramGoesOnWithTheStore(existing: ExistingFile, isWAL: Bool) async throws {
    let first = try await create()
    let program = try program(isWAL: isWAL)
    let joined = try await join(existing)
    let rows = existing == .replaceKeepingBackup ? [] : ["own=of b"]
    let document = ["seed-0=body 0", "seed-1=body 1"]
    #expect(try notes(program) == rows + document)
    try await program.write { try $0.execute(sql: "INSERT INTO notes VALUES ('later', 'of b')") }
    try await joined.synchronize()
    try await first.synchronize()
    #expect(try first.notes() == ["later=of b"] + rows + document)
    let backup = try DatabaseQueue(path: try #require(joined.backup))
    #expect(try notes(backup) == ["own=of b"])
    #expect(
      try await backup.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
    #expect(try backups().count == 1)
    #expect(try await joined.verify().findings.filter { $0.severity != .note } == [])
  }

  /// SQLite never changes the size of the pages of a database in WAL mode.
  @Test func pagesOfAnotherSizeAreNoHindrance() async throws {
    let first = try await create()
    let program = try program(isWAL: true, pageSize: 8192)
    _ = try await join(.replaceKeepingBackup)
    #expect(try notes(program) == first.notes())
    #expect(try await program.read { try Int.fetchOne($0, sql: "PRAGMA page_size") } == 8192)
  }

  @Test(arguments: answers, [true, false])
  func databaseInATransactionIsLeftAsItIs(existing: ExistingFile, isWAL: Bool) async throws {
    _ = try await create()
    let program = try program(isWAL: isWAL)
    var environment = world.environment
    environment.store.busyTimeout = 0.01
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let locking = try DatabaseQueue(path: scratch.store("b"), configuration: configuration)
    try await locking.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
    let error = await syncError {
      _ = try await DocumentSyncManager.join(
        storeAt: scratch.store("b"), directory: directory, existing: existing,
        options: .init(client: "b", environment: environment))
    }
    #expect(error?.code == .storeBusy)
    try await locking.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
    #expect(try notes(program) == ["own=of b"])
    #expect(try backups() == [])
  }

  /// The store knows that it is in its place, so it stays the client that it is.
  @Test func placeOfTheStoreIsThatOfTheFile() async throws {
    _ = try await create()
    let program = try program(isWAL: true)
    var environment = world.environment
    environment.store.places = StorePlaces(machine: "m", folder: scratch.path + "/tokens")
    let joined = try await DocumentSyncManager.join(
      storeAt: scratch.store("b"), directory: directory, existing: .replaceKeepingBackup,
      options: .init(client: "b", environment: environment))
    #expect(joined.binding.ancestor == nil)
    #expect(try await joined.listClients().count == 2)
    try program.close()
  }

  @Test func fileThatIsNoDatabaseIsMovedAway() async throws {
    let first = try await create()
    let text = Data("no database".utf8)
    try text.write(to: URL(fileURLWithPath: scratch.store("b")))
    let joined = try await join(.replaceKeepingBackup)
    #expect(try joined.notes() == first.notes())
    #expect(try Data(contentsOf: URL(fileURLWithPath: try #require(joined.backup))) == text)
  }

  /// A row for each page, so that a page can be damaged that only one row needs.
  @Test func damagedDatabaseIsReplacedAndKept() async throws {
    let first = try await create()
    let program = try program(isWAL: false)
    try await program.write { database in
      try database.execute(sql: "CREATE TABLE long (n INTEGER PRIMARY KEY, text)")
      for _ in 0..<20 {
        try database.execute(sql: "INSERT INTO long (text) VALUES (zeroblob(9000))")
      }
    }
    try program.close()
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: scratch.store("b")))
    try file.seek(toOffset: 4096 * 4)
    try file.write(contentsOf: Data(repeating: 0xFF, count: 4096 * 8))
    try file.close()
    let joined = try await join(.replaceKeepingBackup)
    #expect(try joined.notes() == first.notes())
    let backup = try DatabaseQueue(path: try #require(joined.backup))
    #expect(try notes(backup) == ["own=of b"])
  }
}
