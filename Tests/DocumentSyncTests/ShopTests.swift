import DocumentSync
import DocumentSyncTesting
import Foundation
import GRDB
import SyncDirectory
import SyncStore
import Testing

/// A database that a script wrote which does not know our code, on three
/// devices, edited by plain SQL and synchronized at random.
struct ShopTests {
  /// Tables without surrogate keys of their own or of a parent: their rows
  /// are the same on every device, value by value.
  private static let naturalTables = ["country", "memo", "tag", "memo_tag"]

  /// One always, and another one if it is named.
  private static let seeds: [UInt64] = {
    let environment = ProcessInfo.processInfo.environment
    return [2026] + (environment["DOCSYNC_SEED"].flatMap(UInt64.init).map { [$0] } ?? [])
  }()

  private func makeShop(_ path: String, seed: UInt64) throws {
    let script = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "Shop/make_shop.py").path
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["python3", script, path, "\(seed)"]
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0, "make_shop.py failed")
  }

  private func connect(_ path: String, foreignKeys: Bool) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = foreignKeys
    configuration.busyMode = .timeout(10)
    return try DatabaseQueue(path: path, configuration: configuration)
  }

  @Test(arguments: seeds)
  func aShopOfFiftyThousandRowsSurvivesTwoHundredRoundsOnThreeDevices(
    seed: UInt64
  ) async throws {
    print("seed \(seed) (set DOCSYNC_SEED for another one besides)")
    let scratch = try Scratch()
    let folder = scratch.path + "/shared"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    try makeShop(scratch.store("0"), seed: seed)

    var managers = [
      try await DocumentSyncManager.create(
        storeAt: scratch.store("0"), directory: FolderDirectory(root: folder), document: "shop",
        options: .init(client: "0"))
    ]
    for index in 1..<3 {
      managers.append(
        try await DocumentSyncManager.join(
          storeAt: scratch.store("\(index)"), directory: FolderDirectory(root: folder),
          document: "shop", options: .init(client: "\(index)")))
    }
    #expect(try managers[0].store.digest().rowCount > 50_000)

    var edits = ShopEdits(seed: seed)
    var accepted = 0
    for _ in 0..<200 {
      let index = edits.below(3)
      // Most programs leave foreign keys off, as SQLite does by itself.
      let program = try connect(managers[index].store.path, foreignKeys: edits.below(3) > 0)
      for _ in 0...edits.below(12) {
        let statement = edits.statement()
        do {
          try await program.write { try $0.execute(sql: statement) }
          accepted += 1
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
          continue
        }
      }
      try program.close()
      if edits.below(2) == 0 { try await managers[edits.below(3)].synchronize() }
    }
    #expect(accepted > 500, "seed \(seed)")

    var rounds = 0
    var isAtRest = false
    while !isAtRest, rounds < 12 {
      rounds += 1
      isAtRest = true
      for manager in managers {
        let report = try await manager.synchronize()
        if !report.applied.isEmpty || !report.sent.isEmpty { isAtRest = false }
      }
    }
    #expect(isAtRest, "seed \(seed)")
    try await check(managers, seed: seed)
    for manager in managers { try await manager.close() }
  }

  private func check(_ managers: [DocumentSyncManager], seed: UInt64) async throws {
    let digest = try managers[0].store.digest()
    var contents: [[String: [Row]]] = []
    for manager in managers {
      let other = try manager.store.digest()
      #expect(other.visible == digest.visible, "seed \(seed)")
      #expect(other.logical == digest.logical, "seed \(seed)")
      #expect(try manager.store.status().waiting.isEmpty, "seed \(seed)")
      let program = try connect(manager.store.path, foreignKeys: false)
      contents.append(
        try program.read { database in
          #expect(try String.fetchAll(database, sql: "PRAGMA integrity_check") == ["ok"])
          let broken = try Row.fetchAll(database, sql: "PRAGMA foreign_key_check")
          #expect(broken == [], "seed \(seed)")
          return try Dictionary(
            uniqueKeysWithValues: Self.naturalTables.map { table in
              (table, try Row.fetchAll(database, sql: "SELECT * FROM \(table) ORDER BY 1, 2"))
            })
        })
      try program.close()
    }
    for table in Self.naturalTables {
      let rows = contents.map { $0[table] ?? [] }
      #expect(
        !rows[0].isEmpty && rows[1] == rows[0] && rows[2] == rows[0], "\(table), seed \(seed)")
    }
  }
}
