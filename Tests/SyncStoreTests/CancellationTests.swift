import SyncModel
import Testing

@testable import SyncStore

/// Sealing and applying that are cancelled half-way.
@Suite struct CancellationTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Throws when it is asked for the given time, and counts.
  private final class Check {
    private(set) var count = 0
    let last: Int

    init(last: Int) { self.last = last }

    func callAsFunction() throws {
      count += 1
      if count == last { throw CancellationError() }
    }
  }

  private func devices() throws -> [Device] {
    var options = LocalStore.Options()
    options.bytesPerChangeSet = 1000
    let devices = try scratch.devices(
      2, "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)", options: options)
    try devices[0].run(
      """
      WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 200)
      INSERT INTO notes (body) SELECT 'some words for note number ' || n FROM i
      """)
    return devices
  }

  @Test func sealingThatIsCancelledBetweenBatchesSealsNothing() throws {
    let device = try devices()[0]
    let check = Check(last: 3)
    #expect(throws: CancellationError.self) {
      try device.store.seal(checkCancellation: { try check() })
    }
    #expect(check.count == 3)
    #expect(try device.store.sealedChangeSets().isEmpty)
    #expect(try device.store.seal().changeSets.reduce(0) { $0 + $1.rowCount } == 200)
  }

  @Test func applyingThatIsCancelledBetweenChangeSetsIsRolledBackAndCanBeRepeated() throws {
    let devices = try devices()
    let received = try devices[0].outgoing()
    try #require(received.count > 3)
    let check = Check(last: 3)
    var applied: [UInt64] = []
    #expect(throws: CancellationError.self) {
      try devices[1].store.apply(received, checkCancellation: { try check() }) {
        applied.append($0.number)
      }
    }
    #expect(applied == [1, 2])
    #expect(try devices[1].rows("SELECT count(*) FROM notes") == ["0"])
    #expect(try devices[1].store.appliedVector().entries.isEmpty)
    let report = try devices[1].store.apply(received)
    #expect(report.applied.count == received.count)
    #expect(try devices[1].rows("SELECT count(*) FROM notes") == ["200"])
  }
}
