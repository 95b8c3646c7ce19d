#if os(Linux)
  import Foundation
  import GRDB
  import SyncModel
  import Testing

  @testable import SyncStore

  /// Verifying a store that this process has open.
  @Suite struct VerifyingLocksTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// Returns the locks of all processes on a file.
    private func locks(on path: String) throws -> Set<Substring> {
      var information = stat()
      #expect(stat(path, &information) == 0)
      let locks = try String(contentsOfFile: "/proc/locks", encoding: .utf8).split(separator: "\n")
      return Set(
        locks.filter { $0.contains(":\(information.st_ino) ") }
          .map { $0.drop { $0 != " " } })
    }

    /// Closing a file releases all locks that the process has on it.
    @Test(arguments: ["wal", "delete"])
    func storeStaysLocked(_ mode: String) throws {
      let devices = try scratch.devices(
        1, "PRAGMA journal_mode = \(mode); CREATE TABLE t (id INTEGER PRIMARY KEY)")
      let store = devices[0].store
      try store.store.write { session in
        try session.records.write("key", to: [1])
        let before = try locks(on: devices[0].path)
        #expect(!before.isEmpty)
        _ = try LocalStore.verify(at: devices[0].path)
        #expect(try locks(on: devices[0].path) == before)
      }
      #expect(try store.record("key") == [1])
    }

    @Test func copyHasTheBytesOfTheDatabase() throws {
      let path = scratch.path + "/database"
      let queue = try DatabaseQueue(path: path)
      try queue.write {
        try $0.execute(sql: "CREATE TABLE t (b); INSERT INTO t VALUES (randomblob(3000000))")
      }
      try queue.close()
      try DatabaseFile(path).copy(to: path + ".copy")
      let files = FileManager.default
      #expect(files.contents(atPath: path) == files.contents(atPath: path + ".copy"))
      #expect(try DatabaseFile(path).read(6, at: 0) == Array("SQLite".utf8))
      #expect(try DatabaseFile(path).read(6, at: 1 << 30) == [])
      #expect(throws: CocoaError.self) { try DatabaseFile(path + ".none") }
    }
  }
#endif
