import SyncModel
import Testing

@testable import SyncStore

/// Entries of the inbox to which another program has written.
@Suite struct InvalidInboxTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Two devices; a change set of the second waits at the first.
  private func waiting() throws -> (devices: [Device], changeSets: [ReceivedChangeSet]) {
    let devices = try scratch.devices(2, "CREATE TABLE t (k TEXT PRIMARY KEY)")
    var changeSets: [ReceivedChangeSet] = []
    for key in ["a", "b"] {
      try devices[1].run("INSERT INTO t VALUES ('\(key)')")
      changeSets = try devices[1].outgoing()
    }
    _ = try devices[0].store.apply([changeSets[1]])
    #expect(try devices[0].store.waiting().map(\.number) == [2])
    return (devices, changeSets)
  }

  @Test(arguments: ["client", "hash"])
  func whatIsInvalidIsFetchedAgain(column: String) throws {
    let (devices, changeSets) = try waiting()
    try devices[0].run("UPDATE docsync_inbox SET \(column) = x'00'")
    // Its change set counts as one that has to be fetched.
    #expect(try devices[0].store.waiting() == [])
    #expect(try devices[0].rows("SELECT count(*) FROM docsync_inbox") == ["0"])
    _ = try devices[0].store.apply([changeSets[1]])
    #expect(try devices[0].store.waiting().map(\.number) == [2])
    _ = try devices[0].store.apply([changeSets[0]])
    #expect(try devices[0].rows("SELECT k FROM t ORDER BY k") == ["a", "b"])
  }

  /// A device does not fetch its own change sets.
  @Test func anInvalidOwnChangeSetIsDamage() throws {
    let (devices, _) = try waiting()
    let own = devices[0].store.binding.client.bits.bytes.map {
      ($0 < 16 ? "0" : "") + String($0, radix: 16)
    }.joined()
    try devices[0].run("INSERT INTO docsync_inbox VALUES (x'\(own)', 1, x'00', x'00')")
    #expect {
      try devices[0].store.waiting()
    } throws: {
      ($0 as? StoreError)?.code == .damaged
    }
  }
}
