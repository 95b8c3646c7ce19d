import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// A store whose bookkeeping another program has written to.
@Suite struct HostileBookkeepingTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A store of which every table of bookkeeping says something, and what
  /// comes next from another device.
  private func rich() throws -> (path: String, incoming: [ReceivedChangeSet]) {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["note": ["here"]]
    configuration.columnMergeTypes = ["note": ["stock": .counter]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE folder (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE note (id INTEGER PRIMARY KEY, folder INTEGER REFERENCES folder ON DELETE CASCADE,
        text, stock INTEGER DEFAULT 0, here);
      CREATE TABLE tag (k TEXT PRIMARY KEY, note INTEGER REFERENCES note, v);
      INSERT INTO folder VALUES (1, 'a'), (2, 'b'); INSERT INTO note VALUES (1, 1, 'x', 1, 'h');
      INSERT INTO tag VALUES ('t', 1, 1), ('u', 1, 2);
      """, configuration: configuration)
    for device in devices {
      try device.store.setPolicies { $0.document = .ask }
    }
    try devices[0].store.enqueueCommand([1, 2, 3])
    try devices[0].run(
      """
      INSERT INTO folder VALUES (3, 'same'); INSERT INTO note VALUES (2, 3, 'y', 5, 'k');
      UPDATE note SET text = 'one', stock = stock + 2 WHERE id = 1; DELETE FROM tag WHERE k = 'u'
      """)
    try devices[1].run(
      """
      CREATE TABLE more (k TEXT PRIMARY KEY, v); INSERT INTO more VALUES ('m', 1);
      INSERT INTO folder VALUES (3, 'same'), (4, 'c'); INSERT INTO note VALUES (2, 3, 'z', 6, 'l');
      UPDATE note SET text = 'two', stock = stock + 3 WHERE id = 1; UPDATE tag SET v = 3 WHERE k = 'u';
      DELETE FROM folder WHERE id = 2
      """)
    try devices[0].receive(from: devices[1])
    try devices[1].receive(from: devices[0])
    try devices[1].run("UPDATE note SET text = 'three'; INSERT INTO folder VALUES (9, 'late')")
    _ = try devices[1].store.seal()
    try devices[1].run("UPDATE note SET text = 'four'; DELETE FROM folder WHERE id = 4")
    let incoming = try devices[1].outgoing(after: 1)
    // One that has to wait.
    _ = try devices[0].store.apply(Array(incoming.dropFirst()))
    try devices[0].run("UPDATE tag SET v = 7; INSERT INTO note VALUES (7, 1, 'p', 1, 'q')")
    let path = devices[0].path
    try devices[0].run(
      """
      INSERT OR IGNORE INTO docsync_aside VALUES ('note', x'00', 'here', 1);
      INSERT OR IGNORE INTO docsync_early VALUES (2, zeroblob(16), 2, 1, 1, 1, x'0301', 1);
      INSERT OR IGNORE INTO docsync_lost VALUES ('tag', 'v');
      INSERT OR IGNORE INTO docsync_record VALUES ('kept', x'7b7d')
      """)
    try devices[0].store.close()
    return (path, incoming)
  }

  private static let values = [
    "NULL", "'text'", "-7", "9223372036854775807", "x'ff00ff'", "2.5",
  ]

  @Test func nothingThatIsWrittenToItEndsTheProcess() throws {
    let (path, incoming) = try rich()
    let program = try Program(path)
    var cases = 0
    var done: [String: Int] = [:]
    var damaged = 0
    for table in try program.rows(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'docsync_*' ORDER BY name")
    where try program.rows("SELECT 1 FROM \(table) LIMIT 1") != [] {
      for column in try program.rows("SELECT name FROM pragma_table_info('\(table)')") {
        for value in Self.values {
          let copy = scratch.path + "/copy.db"
          for ending in ["", "-wal", "-shm", "-journal"] {
            if FileManager.default.fileExists(atPath: copy + ending) {
              try FileManager.default.removeItem(atPath: copy + ending)
            }
          }
          try program.run("VACUUM INTO '\(copy)'")
          do {
            try Program(copy).run("UPDATE OR REPLACE \(table) SET \(column) = \(value)")
          } catch is Program.Failure {
            // A constraint of the table forbids it.
            continue
          }
          cases += 1
          let found = try use(copy, incoming, "\(table).\(column) = \(value)")
          for step in found.done { done[step, default: 0] += 1 }
          if found.isDamaged { damaged += 1 }
        }
      }
    }
    #expect(cases > 300)
    // Some values are refused, and each step works with others.
    #expect(damaged > 150, "\(damaged)")
    #expect(done.count == 13 && done.values.allSatisfy { $0 > 400 }, "\(done)")
  }

  /// Does all that can be done with a store. Each step works, or says which table
  /// is damaged. Returns the steps that worked, and whether one did not.
  private func use(
    _ path: String, _ incoming: [ReceivedChangeSet], _ what: String
  ) throws -> (done: Set<String>, isDamaged: Bool) {
    var done: Set<String> = []
    var isDamaged = false
    var options = StoreOptions()
    options.places = nil
    func attempt(_ step: String, _ body: () throws -> Void) {
      do {
        try body()
        done.insert(step)
      } catch let error as StoreError {
        isDamaged = true
        #expect(!error.remedy.isEmpty)
        switch error.code {
        case .damaged:
          // It may be another table than the one with the wrong value, which contradicts it.
          #expect(error.message.contains("docsync_"), "\(what), \(step): \(error)")
        case .sqlite:
          #expect(
            Self.refusedBySQLite.contains { what.hasPrefix($0) }
              && error.detail?.contains("docsync_") == true, "\(what), \(step): \(error)")
        case .unpublishedEdits:
          // A whole store waits for what could not be sealed.
          #expect(
            step == "snapshot" && !done.contains("seal"), "\(what), \(step): \(error)")
        default: Issue.record("\(what), \(step): \(error)")
        }
      } catch {
        Issue.record("\(what), \(step): \(error)")
      }
    }
    attempt("verify") { _ = try LocalStore.verify(at: path, options: options) }
    attempt("open") {
      let store = try LocalStore.open(at: path, options: options)
      attempt("status") { _ = try store.status() }
      attempt("conflicts") { _ = try store.conflicts() }
      attempt("history") { _ = try store.history(limit: 10) }
      attempt("commands") { _ = try store.queuedCommands() }
      attempt("events") { _ = try store.pendingEvents() }
      attempt("digest") { _ = try store.digest() }
      attempt("seal") {
        _ = try store.seal()
        // Else there would be no snapshot.
        for sealed in try store.sealedChangeSets() where !sealed.isPublished {
          try store.markPublished(sealed.number)
        }
      }
      attempt("sealed") { _ = try store.sealedChangeSets() }
      attempt("apply") { _ = try store.apply(incoming) }
      attempt("waiting") { _ = try store.waiting() }
      attempt("snapshot") {
        let copy = path + "-snapshot"
        _ = try store.snapshot(to: copy)
        try FileManager.default.removeItem(atPath: copy)
      }
      try store.close()
    }
    return (done, isDamaged)
  }

  /// What only SQLite notices.
  private static let refusedBySQLite = ["docsync_log_2.k0 = ", "docsync_table.id = -7"]
}
