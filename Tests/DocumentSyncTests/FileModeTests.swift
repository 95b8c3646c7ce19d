import DocumentSyncTesting
import Foundation
import SyncStore
import Testing

@testable import DocumentSync

/// Who may read, and so hold, what a synchronization makes beside a store. A umask is that
/// of a whole process: each case has a process of its own.
@Suite struct FileModeTests {
  @Test(arguments: [0o600, 0o640, 0o664], [0, 0o022] as [mode_t])
  func lockHasTheModeOfItsStore(mode: Int, mask: mode_t) async {
    await #expect(processExitsWith: .success) { [mode, mask] in
      umask(mask)
      try Self.checkLock(mode: mode)
    }
  }

  @Test(arguments: [0o600, 0o640, 0o664], [0, 0o022] as [mode_t])
  func temporaryFileIsForItsOwnerAlone(mode: Int, mask: mode_t) async {
    await #expect(processExitsWith: .success) { [mode, mask] in
      umask(mask)
      try Self.checkTemporaryFiles(mode: mode)
    }
  }

  private static func checkLock(mode: Int) throws {
    let store = try database(mode)
    defer { remove(store) }
    try StoreLock(store: store, operation: "test").unlock()
    #expect(try permissions(StoreLock.path(for: store)) == mode)
    // One that an earlier version made for others is mended.
    for other in [0o644, 0o666] {
      try FileManager.default.setAttributes(
        [.posixPermissions: other], ofItemAtPath: StoreLock.path(for: store))
      try StoreLock(store: store, operation: "test").unlock()
      #expect(try permissions(StoreLock.path(for: store)) == mode)
    }
  }

  private static func checkTemporaryFiles(mode: Int) throws {
    let store = try database(mode)
    defer { remove(store) }
    _ = try LocalFileHandle(creating: store + "-own", operation: "test")
    _ = try LocalFileHandle(creating: store + "-same", like: store, operation: "test")
    #expect(try permissions(store + "-own") == 0o600)
    #expect(try permissions(store + "-same") == mode)
  }

  private static func database(_ mode: Int) throws -> String {
    let folder = NSTemporaryDirectory() + "docsync-modes-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let path = folder + "/store.db"
    try Data().write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    return path
  }

  private static func remove(_ store: String) {
    do {
      try FileManager.default.removeItem(
        atPath: (store as NSString).deletingLastPathComponent)
    } catch {
      Issue.record(error)
    }
  }

  private static func permissions(_ path: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return try #require((attributes[.posixPermissions] as? NSNumber)?.intValue)
  }
}
