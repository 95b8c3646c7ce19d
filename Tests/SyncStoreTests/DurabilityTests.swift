import GRDB
import Testing

@testable import SyncStore

/// What a store commits is on the disk.
struct DurabilityTests {
  /// In rollback mode the folder is flushed as well once the journal is gone: a
  /// journal that came back would take back what others have by now.
  @Test func commitsAreFlushedWithTheirFolder() throws {
    let scratch = try Scratch()
    let devices = try scratch.devices(1, "CREATE TABLE note (id TEXT PRIMARY KEY, body)")
    let level = try devices[0].store.connection.queue.read {
      try Int.fetchOne($0, sql: "PRAGMA synchronous")
    }
    #expect(level == 3)
  }
}
