import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// A store whose own change sets wait for those of other devices, since its content was exchanged
/// for that of an older whole store, and that seals edits or becomes a new client meanwhile.
@Suite struct WaitingIncarnationTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let rows = "SELECT name || stock FROM article ORDER BY name"

  /// Three devices. The last one has sealed four change sets: the first counts as applied, the
  /// second and the third wait for change sets of another device, and the fourth was sealed while
  /// they waited.
  private func devices() throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.columnMergeTypes = ["article": ["stock": .counter]]
    let devices = try scratch.devices(
      3,
      """
      CREATE TABLE article (name TEXT PRIMARY KEY, stock INTEGER, note TEXT);
      INSERT INTO article (name, stock) VALUES ('a', 1000), ('b', 1000);
      """, configuration: configuration)
    let whole = scratch.path + "/whole.db"
    _ = try devices[0].store.snapshot(to: whole)
    try devices[1].run("INSERT INTO article (name, stock) VALUES ('c', 0)")
    try devices[2].run("UPDATE article SET stock = stock + 1 WHERE name = 'a'")
    _ = try devices[2].store.seal()
    try devices[2].receive(from: devices[1])
    try devices[2].run(
      """
      UPDATE article SET stock = stock + 2 WHERE name = 'a';
      INSERT INTO article (name, stock) VALUES ('d', 0)
      """)
    _ = try devices[2].store.seal()
    try devices[2].run("UPDATE article SET stock = stock + 4 WHERE name <> 'b'")
    let exchanged = try devices[2].store.replaceContent(withSnapshotAt: whole)
    #expect(exchanged.reapplied.map(\.number) == [1])
    #expect(exchanged.waiting.map(\.number) == [2, 3])
    try devices[2].run("UPDATE article SET stock = stock + 8 WHERE name = 'b'")
    #expect(try devices[2].store.seal().changeSets.map(\.number) == [4])
    return devices
  }

  private static let all = ["a1007", "b1008", "c4", "d4"]

  /// Checks that all devices get everything, and that the store finds no fault in its bookkeeping.
  private func expectAll(
    _ devices: [Device], _ others: [Device], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    try converge(others + devices, Self.rows, Self.all, sourceLocation: sourceLocation)
    for device in devices + others {
      #expect(
        try LocalStore.verify(at: device.path).report.findings == [],
        sourceLocation: sourceLocation)
      #expect(try device.store.status().parked == [], sourceLocation: sourceLocation)
    }
    // From then on, everything counts.
    for device in devices + others { try device.run("UPDATE article SET stock = stock + 1") }
    let total = devices.count + others.count
    try converge(
      others + devices, Self.rows,
      ["a\(1_007 + total)", "b\(1_008 + total)", "c\(4 + total)", "d\(4 + total)"],
      sourceLocation: sourceLocation)
  }

  /// The change sets up to the cut, which the former client had published, come as those of any
  /// client.
  @Test(arguments: [0, 1, 2, 3, 4] as [UInt64])
  func changeSetsBeyondTheCutWaitAsThoseOfTheNewClient(cut: UInt64) throws {
    let devices = try devices()
    let store = devices[2].store
    let published = try devices[2].outgoing().filter { $0.changeSet.header.number <= cut }
    try store.beginIncarnation(.retired) { $0.number > cut ? .known : .common }
    #expect(try store.sealedChangeSets().count == 4 - Int(cut))
    let applied = try store.vector().number(of: store.binding.client)
    #expect(applied == (cut == 0 || cut == 3 ? 1 : 0))
    #expect(try store.waiting().count == 2)
    // Both names of what the store has made, in any order.
    try devices[0].receive(from: devices[2])
    _ = try devices[0].store.apply(published)
    try devices[0].receive(from: devices[1])
    _ = try devices[1].store.apply(published)
    _ = try store.apply(published)
    #expect(try devices[2].receive(from: devices[1]).waiting == [])
    #expect(try store.head() == store.vector()[store.binding.client])
    let numbers = try store.history(limit: 99).filter { $0.client == store.binding.client }
    #expect(Set(numbers.map(\.number)).count == numbers.count)
    try expectAll([devices[2]], [devices[0], devices[1]])
  }

  /// The table does not contain the increments that wait, and the store adds to the counter.
  @Test(arguments: [false, true])
  func incrementsThatAreSealedMeanwhileCountBesideThoseThatWait(inPortions: Bool) throws {
    var devices = try devices()
    if inPortions {
      var options = devices[2].store.options
      options.rowsPerChangeSet = 1
      options.bytesPerChangeSet = 1
      try devices[2].store.close()
      devices[2] = try Device(
        store: try LocalStore.open(at: devices[2].path, options: options), path: devices[2].path)
    }
    try devices[2].run(
      """
      UPDATE article SET stock = stock + 16, note = 'x' WHERE name = 'a';
      UPDATE article SET stock = stock + 1, note = 'x' WHERE name = 'b';
      UPDATE article SET stock = stock + 32, note = 'y' WHERE name = 'a';
      """)
    let sealed = try devices[2].store.seal().changeSets
    #expect(inPortions ? sealed.count > 2 : sealed.map(\.number) == [5])
    // The sum that the store has sealed includes them.
    #expect(try devices[2].rows(Self.rows) == ["a1055", "b1009"])
    try devices[2].run("UPDATE article SET stock = stock - 48 WHERE name = 'a'")
    try devices[2].run("UPDATE article SET stock = stock - 1 WHERE name = 'b'")
    _ = try devices[2].store.seal()
    #expect(try devices[2].rows(Self.rows) == ["a1007", "b1008"])
    try expectAll([devices[2]], [devices[0], devices[1]])
  }

  /// The sum of a new client does not contain the increments that wait.
  @Test func incrementsOfANewClientCountBesideThoseThatWait() throws {
    let devices = try devices()
    let store = devices[2].store
    try devices[2].run("UPDATE article SET stock = stock + 16 WHERE name = 'a'")
    _ = try store.seal()
    let published = try devices[2].outgoing().filter { $0.changeSet.header.number <= 3 }
    try store.beginIncarnation(.forked) { $0.number > 3 ? .unknown : .common }
    try devices[2].run("UPDATE article SET stock = stock - 16 WHERE name = 'a'")
    for device in devices { _ = try device.store.apply(published) }
    try expectAll([devices[2]], [devices[0], devices[1]])
  }

  /// Increments that wait become a sum of the new client, as those in the tables do.
  @Test(arguments: [0, 1] as [UInt64])
  func incrementsOfABranchCountBesideThoseOfTheOtherState(common: UInt64) throws {
    let devices = try devices()
    let store = devices[2].store
    try store.beginIncarnation(.forked) { $0.number > common ? .unknown : .common }
    #expect(try store.waiting().map(\.client) == [store.binding.client, store.binding.client])
    try devices[2].receive(from: devices[1])
    if common > 0 {
      let first = try #require(try store.ancestralChangeSets().first)
      let bytes = try store.sealedBytes(1, of: first.client)
      let received = ReceivedChangeSet(
        changeSet: try ChangeSetCodec.decode(bytes), hash: first.hash, bytes: bytes)
      for device in devices { _ = try device.store.apply([received]) }
    }
    try expectAll([devices[2]], [devices[0], devices[1]])
  }
}
