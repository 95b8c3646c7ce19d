import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncModel
import Testing

@testable import DocumentSync

/// A store of two devices with a busy history, and its shared directory, both
/// to be damaged by hand.
struct DamagedStore {
  /// What such a store begins with.
  struct Original: Sendable {
    var files: [String: Data]
    var items: [RelativePath: MemoryDirectory.Item]
    var binding: StoreBindingValues
  }

  /// What of the binding tests need.
  struct StoreBindingValues: Sendable {
    var client: ClientIdentifier
    var other: ClientIdentifier
    var layout: DirectoryLayout.Generation
  }

  /// The schema has what makes merging difficult: keys that differ from
  /// device to device, unique values, references.
  static let schema = """
    CREATE TABLE folder (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
    CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT, \
    folder INTEGER REFERENCES folder ON DELETE SET NULL);
    CREATE TABLE tag (id TEXT PRIMARY KEY, label TEXT CHECK (label <> ''));
    """

  /// Two devices: one row parked, one shown without its parent, conflicts,
  /// change sets of both.
  static let original = Task {
    let scratch = try Scratch()
    let memory = MemoryDirectory(seed: 5)
    let world = World(seed: 5)
    try run(schema, at: scratch.store("0"))
    let first = try await DocumentSyncManager.create(
      storeAt: scratch.store("0"), directory: memory, document: "main",
      options: .init(client: "0", environment: world.environment))
    try first.edit("INSERT INTO folder VALUES (1, 'inbox'), (2, 'old'), (3, 'work')")
    try first.edit("INSERT INTO note VALUES (1, 'one', 1), (2, 'two', 3)")
    try await first.synchronize()
    let second = try await DocumentSyncManager.join(
      storeAt: scratch.store("1"), directory: memory,
      options: .init(client: "1", environment: world.environment))
    try first.edit("INSERT INTO folder VALUES (4, 'same'); DELETE FROM folder WHERE id = 2")
    try second.edit("INSERT INTO folder VALUES (4, 'same')")
    try second.edit("INSERT INTO note VALUES (3, 'three', 2)")
    try first.edit("UPDATE note SET text = 'by first' WHERE id = 1")
    try second.edit("UPDATE note SET text = 'by second' WHERE id = 1")
    for round in 0..<3 {
      try first.edit("INSERT INTO tag VALUES ('a\(round)', 'first')")
      try second.edit("INSERT INTO tag VALUES ('b\(round)', 'second')")
      if round == 2 { try first.edit("DELETE FROM tag WHERE id = 'b0'") }
      for manager in [first, second, first, second] { try await manager.synchronize() }
    }
    let binding = first.binding
    let values = StoreBindingValues(
      client: binding.client, other: second.binding.client,
      layout: DirectoryLayout.Document(binding.document).generation(binding.generation))
    try await first.close()
    try await second.close()
    var files: [String: Data] = [:]
    for name in try scratch.names() where name.hasPrefix("0.db") {
      files[name] = try Data(contentsOf: URL(fileURLWithPath: scratch.path + "/" + name))
    }
    return Original(files: files, items: memory.items, binding: values)
  }

  let original: Original
  let scratch: Scratch
  let memory: MemoryDirectory

  init() async throws {
    original = try await Self.original.value
    scratch = try Scratch()
    memory = MemoryDirectory(seed: 3)
    memory.takeOver(original.items)
    for (name, content) in original.files {
      try content.write(to: URL(fileURLWithPath: scratch.path + "/" + name))
    }
  }

  var path: String { scratch.store("0") }

  /// Runs SQL as a program would, with foreign keys off.
  func sql(_ statements: String) throws { try Self.run(statements, at: path) }

  private static func run(_ statements: String, at path: String) throws {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    try queue.writeWithoutTransaction { try $0.execute(sql: statements) }
    try queue.close()
  }

  /// Runs SQL while nothing is captured.
  func uncaptured(_ statements: String) throws {
    let queue = try DatabaseQueue(path: path)
    try queue.write { database in
      let triggers = try Row.fetchAll(
        database, sql: "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
      for trigger in triggers {
        try database.execute(sql: "DROP TRIGGER \(trigger["name"] as String)")
      }
      try database.execute(sql: statements)
      for trigger in triggers { try database.execute(sql: trigger["sql"]) }
    }
    try queue.close()
  }

  /// The first value of a query.
  func value<Value: DatabaseValueConvertible>(_ sql: String) throws -> Value {
    let queue = try DatabaseQueue(path: path)
    let found = try queue.read { try Value.fetchOne($0, sql: sql) }
    try queue.close()
    return try #require(found)
  }

  /// All bytes of the store and of what is beside it, by name.
  func files() throws -> [String: Data] {
    var files: [String: Data] = [:]
    for name in try scratch.names() {
      files[name] = try Data(contentsOf: URL(fileURLWithPath: scratch.path + "/" + name))
    }
    return files
  }

  var environment: SyncEnvironment {
    var environment = SyncEnvironment()
    environment.retries = .none
    environment.store.places = nil
    environment.store.busyTimeout = 1
    return environment
  }

  func verify(_ environment: SyncEnvironment? = nil) async throws -> VerifyReport {
    try await DocumentSyncManager.verify(
      storeAt: path, directory: memory, environment: environment ?? self.environment)
  }
}
