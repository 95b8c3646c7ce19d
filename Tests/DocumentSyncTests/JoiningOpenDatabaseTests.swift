import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncStore
import Synchronization
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
    #expect(error?.path == scratch.store("b"))
    // Nor is the device known to others.
    #expect(
      directory.items.keys.count {
        $0.components.first == "ClientDevices" && $0.components.count == 2
      } == 1)
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

  /// What a program edits after the store was examined, and before its state is noted.
  @Test func editsWhileAStoreIsExaminedAreSent() async throws {
    let first = try await create()
    let second = try await join(.refuse)
    try await second.close()
    let program = try DatabasePool(path: scratch.store("b"))
    try await program.write { try $0.execute(sql: "INSERT INTO notes VALUES ('before', '1')") }
    let isWritten = Mutex(false)
    var environment = world.environment
    environment.store.onStatement = { sql in
      let isExamined = sql.contains("docsync_record") && sql.contains("'replaced'")
      let isFirst = isWritten.withLock { written in
        defer { written = written || isExamined }
        return isExamined && !written
      }
      guard isFirst else { return }
      do {
        try program.write { try $0.execute(sql: "INSERT INTO notes VALUES ('while', '1')") }
      } catch {
        Issue.record(error)
      }
    }
    let joined = try await DocumentSyncManager.join(
      storeAt: scratch.store("b"), directory: directory, existing: .replaceKeepingBackup,
      options: .init(client: "b2", environment: environment))
    #expect(isWritten.withLock { $0 })
    for _ in 0..<3 { for device in [joined, first] { try await device.synchronize() } }
    #expect(try Set(first.notes()).isSuperset(of: ["before=1", "while=1"]))
    #expect(try joined.notes() == first.notes())
  }

  /// A manager that was opened for the former store goes on with the new one.
  @Test(arguments: [true, false])
  func openManagerGoesOnAsTheNewClient(isSameDocument: Bool) async throws {
    let first = try await create()
    var environment = world.environment
    environment.store.places = StorePlaces(machine: "m", folder: scratch.path + "/tokens")
    let elsewhere = isSameDocument ? directory : MemoryDirectory(seed: 7)
    let former =
      isSameDocument
      ? try await DocumentSyncManager.join(
        storeAt: scratch.store("b"), directory: directory,
        options: .init(client: "b", environment: environment))
      : try await DocumentSyncManager.create(
        storeAt: try scratch.makeNotes("b", rows: 1), directory: elsewhere, document: "other",
        options: .init(client: "b", environment: environment))
    try await former.synchronize()
    let joined = try await DocumentSyncManager.join(
      storeAt: scratch.store("b"), directory: directory, existing: .replaceKeepingBackup,
      options: .init(client: "b2", environment: environment))
    if isSameDocument {
      try await former.synchronize()
    } else {
      // Its directory is that of another document.
      _ = await syncError { try await former.synchronize() }
    }
    #expect(former.binding.client == joined.binding.client)
    #expect(former.binding.document == first.binding.document)
    try joined.put("x", "1")
    try await joined.synchronize()
    try await first.synchronize()
    #expect(joined.binding.ancestor == nil)
    #expect(try first.notes().contains("x=1"))
    #expect(try await first.listClients().count == (isSameDocument ? 3 : 2))
  }

  /// The store keeps the mode of the file, whatever that of the document is.
  @Test(arguments: [true, false], [true, false])
  func modeOfTheJournalStays(isWAL: Bool, isDocumentWAL: Bool) async throws {
    let path = try scratch.makeNotes("a", rows: 2)
    let document = try DatabaseQueue(path: path)
    try await document.writeWithoutTransaction {
      try $0.execute(sql: "PRAGMA journal_mode = \(isDocumentWAL ? "wal" : "delete")")
    }
    try document.close()
    let first = try await DocumentSyncManager.create(
      storeAt: path, directory: directory, document: "main",
      options: .init(client: "a", environment: world.environment))
    let program = try program(isWAL: isWAL)
    let joined = try await join(.replaceKeepingBackup)
    let mode = try await program.read { try String.fetchOne($0, sql: "PRAGMA journal_mode") }
    #expect(mode == (isWAL ? "wal" : "delete"))
    #expect(try notes(program) == first.notes())
    #expect(try joined.notes() == first.notes())
  }

  @Test func emptyFileIsReplaced() async throws {
    let first = try await create()
    try Data().write(to: URL(fileURLWithPath: scratch.store("b")))
    let joined = try await join(.replaceKeepingBackup)
    #expect(try joined.notes() == first.notes())
    #expect(try backups().count == 1)
  }

  @Test func cancelledWhileThePagesAreCopied() async throws {
    _ = try await create()
    let program = try program(isWAL: true)
    let path = scratch.path + "/new.db"
    let new = try DatabaseQueue(path: path)
    try await new.write { database in
      try database.execute(sql: "CREATE TABLE long (n INTEGER PRIMARY KEY, text)")
      for _ in 0..<800 {
        try database.execute(sql: "INSERT INTO long (text) VALUES (zeroblob(9000))")
      }
    }
    try new.close()
    var options = StoreOptions()
    options.places = nil
    let replacement = try #require(
      try DatabaseReplacement(databaseAt: scratch.store("b"), options: options))
    try replacement.prepare(
      storeAt: path, backup: scratch.path + "/copy.db", checkCancellation: {})
    #expect(throws: CancellationError.self) {
      try replacement.run(byStoreAt: path) { throw CancellationError() }
    }
    #expect(!replacement.mayHaveWritten)
    try replacement.close()
    #expect(try notes(program) == ["own=of b"])
    #expect(
      try await program.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
  }

  /// It would be renamed under the program, and its rows would not be merged.
  @Test func databaseThatIsMadeMeanwhileIsLeftAsItIs() async throws {
    _ = try await create()
    let made = Mutex<(any DatabaseWriter)?>(nil)
    let hooked = HookedPublication(directory, part: "ClientDevices") {
      do {
        let program = try self.program(isWAL: false)
        made.withLock { $0 = program }
      } catch {
        Issue.record(error)
      }
    }
    let error = await syncError {
      _ = try await DocumentSyncManager.join(
        storeAt: scratch.store("b"), directory: hooked, existing: .merge(prefer: .document),
        options: .init(client: "b", environment: world.environment))
    }
    #expect(error?.code == .storeBusy)
    #expect(try notes(try #require(made.withLock { $0 })) == ["own=of b"])
    #expect(try backups() == [])
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
