import DocumentSyncTesting
import Foundation
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
