import DocumentSyncTesting
import Foundation
import GRDB
import Testing

@testable import DocumentSync

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The lock of a store, in a process that starts others.
@Suite struct StoreLockTests {
  /// A child has copies of all descriptors until its program runs.
  @Test func aCopyOfTheDescriptorDoesNotHoldTheLock() throws {
    let scratch = try Scratch()
    try Data().write(to: URL(fileURLWithPath: scratch.store("0")))
    let lock = try StoreLock(store: scratch.store("0"), operation: "test")
    let descriptor = try #require(try Self.descriptor(of: StoreLock.path(for: scratch.store("0"))))
    // The program of the child does not get it.
    #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
    let copy = dup(descriptor)
    defer { close(copy) }
    #expect(throws: SyncError.self) {
      try StoreLock(store: scratch.store("0"), operation: "test")
    }
    lock.unlock()
    try StoreLock(store: scratch.store("0"), operation: "test").unlock()
    #expect(fcntl(copy, F_GETFD) >= 0)
  }

  /// SQLite works on the file to which a link leads, whichever of the two is opened.
  @Test func aLinkToTheStoreHasTheLockOfTheStore() throws {
    let scratch = try Scratch()
    try Data().write(to: URL(fileURLWithPath: scratch.store("0")))
    for (link, target) in [("1", "0.db"), ("2", scratch.store("1"))] {
      try FileManager.default.createSymbolicLink(
        atPath: scratch.store(link), withDestinationPath: target)
      let lock = try StoreLock(store: scratch.store("0"), operation: "test")
      #expect(throws: SyncError.self) {
        try StoreLock(store: scratch.store(link), operation: "test")
      }
      #expect(throws: SyncError.self) {
        try StoreLock(reading: scratch.store(link), operation: "test")
      }
      lock.unlock()
    }
    #expect(try scratch.names().filter { $0.hasSuffix("-lock") } == ["0.db-docsync-lock"])
  }

  @Test func anOperationWaitsForAnotherProcess() async throws {
    let scratch = try Scratch()
    let store = scratch.store("0")
    let queue = try DatabaseQueue(path: store)
    try await queue.write { try $0.execute(sql: "CREATE TABLE notes (id INTEGER PRIMARY KEY)") }
    try queue.close()
    let directory = MemoryDirectory()
    try await DocumentSyncManager.create(storeAt: store, directory: directory, document: "d")
      .close()

    func synchronize(waiting limit: Duration) async throws {
      var environment = SyncEnvironment()
      environment.storeInUseTimeLimit = limit
      let manager = try await DocumentSyncManager.open(
        storeAt: store, directory: directory, options: .init(environment: environment))
      let result = await Task { try await manager.synchronize() }.result
      try await manager.close()
      _ = try result.get()
    }

    let lock = try StoreLock(store: store, operation: "test")
    let hurried = try await #require(throws: SyncError.self) {
      try await synchronize(waiting: .zero)
    }
    #expect(hurried.code == .storeInUse)
    #expect(!hurried.message.contains("Waited"))
    let late = try await #require(throws: SyncError.self) {
      try await synchronize(waiting: .milliseconds(1100))
    }
    #expect(late.code == .storeInUse)
    #expect(late.message.contains("Waited for 1 s"))
    // The limit is so long that only the release of the lock can end the wait.
    async let waiting: Void = synchronize(waiting: .seconds(3600))
    try await Task.sleep(for: .milliseconds(200))
    lock.unlock()
    try await waiting
  }

  /// Returns the descriptor by which this process has a file open.
  private static func descriptor(of path: String) throws -> Int32? {
    var wanted = stat()
    #expect(stat(path, &wanted) == 0)
    return (0..<Int32(getdtablesize())).first { descriptor in
      var found = stat()
      return fstat(descriptor, &found) == 0 && found.st_ino == wanted.st_ino
        && found.st_dev == wanted.st_dev
    }
  }
}
