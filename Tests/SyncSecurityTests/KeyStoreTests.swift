import Foundation
import SyncModel
import Testing

@testable import SyncSecurity

/// Files of keys: private, atomic, and for two processes at once.
@Suite struct KeyStoreTests {
  /// A folder that is removed at the end of a test.
  private final class Scratch {
    let path = NSTemporaryDirectory() + "docsync-test-\(getpid())-keys-\(UUID().uuidString)"
    var store: FileKeyStore { FileKeyStore(folder: path + "/docsync/keys") }
    func file(_ root: RootIdentifier) throws -> String {
      let folder = path + "/docsync/keys"
      let names = try FileManager.default.contentsOfDirectory(atPath: folder)
      return folder + "/" + (try #require(names.first { $0.hasSuffix(".keys") }))
    }
    deinit {
      do {
        try FileManager.default.removeItem(atPath: path)
      } catch {
        print(error)
      }
    }
  }

  private static func mode(_ path: String) throws -> Int {
    try #require(
      FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
  }

  private static func full(_ world: inout TestWorld) throws -> StoredKeys {
    var owner = try world.owner()
    let epoch = try world.makeEpoch(by: &owner)
    var keys = StoredKeys(device: owner.keys)
    keys.nameKey = world.secret.nameKey
    keys.epochs[epoch] = world.keyRing.key(of: epoch)
    keys.lastInvitation = 2
    let invitation = Invitation(
      root: world.root, inviter: owner.device, document: world.document,
      generation: world.generation, number: 1, using: &world.generator)
    let guest = try world.device()
    keys.invitations = [
      PendingInvitation(invitation, role: .writer, expiresMilliseconds: 17),
      PendingInvitation(
        state: .answered(
          .init(
            keys: guest.keys.publicKeys, person: "Zoë", document: world.document, number: 2)),
        role: .reader, expiresMilliseconds: nil),
    ]
    return keys
  }

  @Test func keysAreReadAsTheyWereStored() throws {
    var world = try TestWorld()
    let keys = try Self.full(&world)
    #expect(try StoredKeys(decoding: keys.encoded()) == keys)
    let scratch = Scratch()
    let stores: [any KeyStore] = [scratch.store, InMemoryKeyStore()]
    for store in stores {
      #expect(try store.keys(for: world.root) == nil)
      try store.update(world.root) { $0 = keys }
      #expect(try store.keys(for: world.root) == keys)
      #expect(try store.deviceKeys(for: world.root) == keys.device)
      try store.update(world.root) { $0 = nil }
      #expect(try store.keys(for: world.root) == nil)
    }
  }

  @Test func everyChangedByteIsNoticed() throws {
    var world = try TestWorld()
    let bytes = try Self.full(&world).encoded()
    for position in bytes.indices where position < 200 || position % 31 == 0 {
      var changed = bytes
      changed[position] ^= 1
      #expect(throws: CodecError.self) { try StoredKeys(decoding: changed) }
    }
  }

  @Test func filesArePrivateWhateverTheMask() throws {
    let world = try TestWorld()
    let scratch = Scratch()
    let before = umask(0)
    defer { umask(before) }
    _ = try scratch.store.deviceKeys(for: world.root)
    let file = try scratch.file(world.root)
    #expect(try Self.mode(file) == 0o600)
    #expect(try Self.mode(scratch.path + "/docsync/keys") == 0o700)
    #expect(try Self.mode(scratch.path + "/docsync") == 0o700)
    let names = try FileManager.default.contentsOfDirectory(
      atPath: scratch.path + "/docsync/keys")
    #expect(names.count == 2 && !names.contains { $0.hasSuffix(".new") })
  }

  @Test(arguments: [0o640, 0o604, 0o620, 0o601])
  func fileOfAWiderModeIsRefused(mode: Int) throws {
    let world = try TestWorld()
    let scratch = Scratch()
    let device = try scratch.store.deviceKeys(for: world.root)
    let file = try scratch.file(world.root)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
    let error = #expect(throws: SecurityError.self) { try scratch.store.keys(for: world.root) }
    #expect(error?.code == .keysExposed)
    #expect(error?.path == file)
    #expect(error?.remedy.contains("chmod 600") == true)
    #expect(throws: SecurityError.self) { try scratch.store.update(world.root) { $0 = nil } }
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
    #expect(try scratch.store.keys(for: world.root)?.device == device)
  }

  @Test func folderOfAWiderModeIsRefused() throws {
    let world = try TestWorld()
    let scratch = Scratch()
    _ = try scratch.store.deviceKeys(for: world.root)
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o750], ofItemAtPath: scratch.store.folder)
    let error = #expect(throws: SecurityError.self) { try scratch.store.keys(for: world.root) }
    #expect(error?.code == .keysExposed)
    #expect(error?.remedy.contains("chmod 700") == true)
  }

  @Test func fileOfAnotherUserIsRefused() throws {
    let error = #expect(throws: SecurityError.self) {
      try KeyFolder.check(owner: 1, mode: 0o600, user: 2, path: "x", isFolder: false)
    }
    #expect(error?.code == .keysExposed)
    #expect(error?.remedy.contains("number 1") == true)
    #expect(throws: Never.self) {
      try KeyFolder.check(owner: 2, mode: 0o600, user: 2, path: "x", isFolder: false)
    }
  }

  @Test func linksAndFoldersInPlaceOfTheFileAreRefused() throws {
    let world = try TestWorld()
    let scratch = Scratch()
    _ = try scratch.store.deviceKeys(for: world.root)
    let file = try scratch.file(world.root)
    try FileManager.default.moveItem(atPath: file, toPath: file + ".moved")
    try FileManager.default.createSymbolicLink(
      atPath: file, withDestinationPath: file + ".moved")
    let link = #expect(throws: SecurityError.self) { try scratch.store.keys(for: world.root) }
    #expect(link?.code == .keysUnavailable)
    try FileManager.default.removeItem(atPath: file)
    try FileManager.default.createDirectory(
      atPath: file, withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o700])
    #expect(throws: SecurityError.self) { try scratch.store.keys(for: world.root) }
  }

  @Test func damagedFileIsNotReplacedByNewKeys() throws {
    let world = try TestWorld()
    let scratch = Scratch()
    _ = try scratch.store.deviceKeys(for: world.root)
    let file = try scratch.file(world.root)
    var bytes = try Data(contentsOf: URL(filePath: file))
    bytes[40] ^= 1
    try bytes.write(to: URL(filePath: file))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
    let error = #expect(throws: SecurityError.self) {
      try scratch.store.deviceKeys(for: world.root)
    }
    #expect(error?.code == .keysDamaged)
    #expect(try Data(contentsOf: URL(filePath: file)) == bytes)
  }

  @Test func changeThatThrowsLeavesTheKeys() throws {
    struct Stop: Error {}
    let world = try TestWorld()
    let scratch = Scratch()
    let device = try scratch.store.deviceKeys(for: world.root)
    #expect(throws: Stop.self) {
      try scratch.store.update(world.root) { keys in
        keys = nil
        throw Stop()
      }
    }
    #expect(try scratch.store.keys(for: world.root)?.device == device)
  }

  @Test func unfinishedFileOfAnEndedProcessIsReplaced() throws {
    let world = try TestWorld()
    let scratch = Scratch()
    _ = try scratch.store.deviceKeys(for: world.root)
    let file = try scratch.file(world.root)
    try Data([1]).write(to: URL(filePath: file + ".new"))
    try scratch.store.update(world.root) { $0?.lastInvitation = 9 }
    #expect(try scratch.store.keys(for: world.root)?.lastInvitation == 9)
    #expect(!FileManager.default.fileExists(atPath: file + ".new"))
  }

  @Test func manyAtOnceLoseNothing() async throws {
    let world = try TestWorld()
    let scratch = Scratch()
    let folder = scratch.store.folder
    // Each has a descriptor of its own, as another process has.
    let devices = try await withThrowingTaskGroup(of: DeviceIdentifier.self) { group in
      for _ in 0..<8 {
        group.addTask {
          let store = FileKeyStore(folder: folder)
          let device = try store.deviceKeys(for: world.root).device
          for _ in 0..<10 {
            try store.update(world.root) { $0?.lastInvitation += 1 }
          }
          return device
        }
      }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(devices.count == 1)
    #expect(try scratch.store.keys(for: world.root)?.lastInvitation == 80)
  }

  @Test func machinesThatShareAHomeHaveKeysOfTheirOwn() throws {
    let world = try TestWorld()
    let scratch = Scratch()
    let one = FileKeyStore(folder: scratch.store.folder, machine: [1])
    let two = FileKeyStore(folder: scratch.store.folder, machine: [2])
    #expect(try one.deviceKeys(for: world.root) != two.deviceKeys(for: world.root))
  }

  @Test func folderIsBelowTheUsersDataFolder() {
    #if !canImport(Darwin)
      #expect(
        FileKeyStore.defaultFolder(environment: ["XDG_DATA_HOME": "/d", "HOME": "/h"])
          == "/d/docsync/keys")
      #expect(
        FileKeyStore.defaultFolder(environment: ["XDG_DATA_HOME": "d", "HOME": "/h"])
          == "/h/.local/share/docsync/keys")
    #endif
    #expect(FileKeyStore.defaultFolder(environment: [:]) == nil)
  }
}
