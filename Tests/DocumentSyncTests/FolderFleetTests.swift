import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import Testing

/// Several devices, tables with integer keys that refer to each other, and a
/// real folder that fails now and then.
struct FolderFleetTests {
  private static let schema = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT NOT NULL, stars INTEGER DEFAULT 0);
    CREATE TABLE tags(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE labels(
      note INTEGER NOT NULL REFERENCES notes(id) ON DELETE CASCADE,
      tag INTEGER NOT NULL REFERENCES tags(id) ON DELETE CASCADE,
      PRIMARY KEY(note, tag)) WITHOUT ROWID;
    """

  private func edit(_ path: String, _ random: inout SeededRandom) throws {
    let queue = try DatabaseQueue(path: path)
    try queue.write { db in
      for _ in 0...random.next() % 4 {
        let word = Int64(random.next() % 1000)
        switch random.next() % 7 {
        case 0, 1:
          try db.execute(sql: "INSERT INTO notes(title) VALUES(?)", arguments: ["n\(word)"])
        case 2: try db.execute(sql: "INSERT INTO tags(name) VALUES(?)", arguments: ["t\(word)"])
        case 3:
          try db.execute(
            sql: """
              INSERT OR IGNORE INTO labels
              SELECT notes.id, tags.id FROM notes, tags ORDER BY (notes.id * 7 + tags.id * ?) % 11
              LIMIT 1
              """, arguments: [word])
        case 4, 5:
          try db.execute(
            sql: "UPDATE notes SET stars = ?, title = title || '.' WHERE id % 5 = ? % 5",
            arguments: [word, word])
        default:
          try db.execute(
            sql: "DELETE FROM notes WHERE id = (SELECT id FROM notes ORDER BY id % ? LIMIT 1)",
            arguments: [word % 13 + 1])
        }
      }
    }
    try queue.close()
  }

  private func check(_ path: String) throws {
    let queue = try DatabaseQueue(path: path)
    try queue.read { db in
      let integrity = try String.fetchAll(db, sql: "PRAGMA integrity_check")
      #expect(integrity == ["ok"])
      let broken = try Row.fetchAll(db, sql: "PRAGMA foreign_key_check")
      #expect(broken.isEmpty)
    }
    try queue.close()
  }

  /// One read at a time, so that the seed decides which calls fail; and once with several.
  @Test(arguments: [(1, 1), (2, 1), (3, 1), (4, 4)] as [(UInt64, Int)])
  func devicesThatShareAFailingFolderConverge(seed: UInt64, parallelReads: Int) async throws {
    let scratch = try Scratch()
    let folder = scratch.path + "/shared"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    let world = World(seed: seed)
    var environment = world.environment
    environment.parallelReads = parallelReads
    var random = SeededRandom(seed: seed)
    let first = scratch.store("0")
    let queue = try DatabaseQueue(path: first)
    try await queue.write { try $0.execute(sql: Self.schema) }
    try queue.close()

    let directories = (0..<3).map { _ in FaultyDirectory(FolderDirectory(root: folder)) }
    var managers = [
      try await DocumentSyncManager.create(
        storeAt: first, directory: directories[0], document: "main",
        options: .init(client: "0", environment: environment))
    ]
    for index in 1..<3 {
      managers.append(
        try await DocumentSyncManager.join(
          storeAt: scratch.store("\(index)"), directory: directories[index],
          options: .init(client: "\(index)", environment: environment)))
    }
    for (index, directory) in directories.enumerated() {
      directory.failAtRandom(
        rate: 0.05, codes: [.io, .transient, .notFound], seed: seed &+ UInt64(index))
    }
    for _ in 0..<40 {
      let index = Int(random.next() % 3)
      try edit(managers[index].store.path, &random)
      guard random.next() % 3 > 0 else { continue }
      do {
        try await managers[index].synchronize()
      } catch let error as SyncError {
        #expect(error.code != .internalFault && error.code != .forkedClient, "seed \(seed)")
      }
    }
    for directory in directories { directory.failAtRandom(rate: 0, codes: [], seed: 0) }
    var round = 0
    var isIdle = false
    var waiting = 0
    // How many rounds it takes is the seed's only with one read at a time.
    let rounds = parallelReads == 1 ? 8 : 12
    while !isIdle, round < 12 {
      round += 1
      isIdle = true
      waiting = 0
      for manager in managers {
        let report = try await manager.synchronize()
        waiting += report.waiting.count
        isIdle = isIdle && report.isIdle
      }
    }
    #expect(
      isIdle && waiting == 0 && round < rounds, "seed \(seed), \(waiting) after \(round) rounds")
    let digests = try managers.map { try $0.store.digest() }
    #expect(Set(digests).count == 1, "seed \(seed)")
    #expect(digests[0].rowCount > 0)
    for manager in managers { try check(manager.store.path) }
  }
}
