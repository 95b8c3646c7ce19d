import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Who may read what a store makes beside itself, and in the user's folder of
/// tokens. A umask is that of a whole process: each case has a process of its own.
@Suite struct FileModeTests {
  @Test(arguments: [0o600, 0o640, 0o664], [0, 0o022] as [mode_t])
  func filesBesideAStoreAreForItsUsers(mode: Int, mask: mode_t) async {
    await #expect(processExitsWith: .success) { [mode, mask] in
      umask(mask)
      try Self.checkFilesBesideAStore(mode: mode)
    }
  }

  private static func checkFilesBesideAStore(mode: Int) throws {
    let scratch = try Scratch()
    let path = scratch.path + "/store.db"
    try Program(path).run("PRAGMA journal_mode = WAL; CREATE TABLE t (k TEXT PRIMARY KEY)")
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    var options = StoreOptions()
    let tokens = scratch.path + "/state/docsync"
    try FileManager.default.createDirectory(
      atPath: tokens, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    options.places = StorePlaces(machine: "this", folder: tokens)
    let store = try LocalStore.create(
      at: path, binding: scratch.binding("one"), configuration: StoreConfiguration(),
      options: options)
    try Program(path).run("INSERT INTO t VALUES ('a')")
    _ = try store.seal()
    try store.markPublished(1)
    _ = try store.snapshot(to: path + "-copy")
    _ = try StoreBackup.make(of: store.connection, at: 0) {}
    let files = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
      .filter { $0.hasPrefix("store.db") }
    #expect(files.count >= 5)
    for file in files { #expect(try permissions(scratch.path + "/" + file) == mode, "\(file)") }
    #expect(try permissions(tokens) == 0o700)
    let kept = try FileManager.default.contentsOfDirectory(atPath: tokens)
    #expect(kept.count == 1)
    for file in kept { #expect(try permissions(tokens + "/" + file) == 0o600) }
    try store.close()
  }

  private static func permissions(_ path: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return try #require((attributes[.posixPermissions] as? NSNumber)?.intValue)
  }
}
