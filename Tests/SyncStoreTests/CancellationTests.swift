import Foundation
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

  private func devices(rows: Int = 200, bytes: Int = 1000) throws -> [Device] {
    var options = StoreOptions()
    options.bytesPerChangeSet = bytes
    let devices = try scratch.devices(
      2, "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)", options: options)
    try devices[0].run(
      """
      WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < \(rows))
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
    // Each is asked for before it is applied, and before its one table is.
    let check = Check(last: 5)
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

  /// A store of many rows that has nothing to publish.
  private func published(rows: Int) throws -> Device {
    let device = try devices(rows: rows, bytes: 1 << 20)[0]
    for changeSet in try device.store.seal().changeSets {
      try device.store.markPublished(changeSet.number)
    }
    return device
  }

  @Test func snapshotThatIsCancelledWithinAStatementLeavesNoFile() throws {
    let device = try published(rows: 20_000)
    let path = scratch.path + "/copy.db"
    var last = 0
    while true {
      last += 1
      let check = Check(last: last)
      do {
        _ = try device.store.snapshot(to: path, checkCancellation: { try check() })
        #expect(check.count < last)
        break
      } catch is CancellationError {
        // So soon, and not at the end of a statement.
        #expect(check.count == last)
      }
      let left = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
      #expect(left.allSatisfy { !$0.hasPrefix("copy.db") })
      #expect(try device.rows("SELECT count(*) FROM notes") == ["20000"])
    }
    #expect(last > 20)
    #expect(
      try LocalStore.adopt(snapshotAt: path, binding: scratch.binding("b")).digest().visible
        == device.store.digest().visible)
  }

  @Test func adoptionThatIsCancelledWithinItsCheckLeavesNoStore() throws {
    let device = try published(rows: 20_000)
    let path = scratch.path + "/copy.db"
    var last = 0
    while true {
      last += 1
      _ = try device.store.snapshot(to: path)
      let check = Check(last: last)
      do {
        let store = try LocalStore.adopt(
          snapshotAt: path, binding: scratch.binding("b"), checkCancellation: { try check() })
        #expect(try store.digest().visible == device.store.digest().visible)
        try store.close()
        break
      } catch is CancellationError {
        #expect(check.count == last)
      }
      // It is still a whole store, which has no binding.
      #expect(
        try Program(path).rows("SELECT count(*) FROM docsync_meta WHERE key = 'binding'") == ["0"])
      try FileManager.default.removeItem(atPath: path)
    }
    #expect(last > 3)
  }

  @Test func exchangeThatIsCancelledWithinACheckOrACopyLeavesTheStoreAsItWas() throws {
    let device = try published(rows: 20_000)
    let path = scratch.path + "/copy.db"
    _ = try device.store.snapshot(to: path)
    try device.run("UPDATE notes SET body = 'not sent' WHERE id = 1")
    let before = try device.store.digest()
    var last = 0
    while true {
      last += 1
      let check = Check(last: last)
      do {
        _ = try device.store.replaceContent(
          withSnapshotAt: path, checkCancellation: { try check() })
        break
      } catch is CancellationError {
        #expect(check.count == last)
      }
      let left = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
      #expect(left.allSatisfy { !$0.contains(".before-") })
      #expect(try device.store.digest() == before)
    }
    #expect(last > 10)
    #expect(try device.rows("SELECT body FROM notes WHERE id = 1") == ["not sent"])
  }

  @Test func workIsToldOfFromNothingToItsEnd() throws {
    let device = try devices(rows: 20_000, bytes: 20_000)[0]
    func expectWhole(_ told: [(done: Int, total: Int)]) {
      #expect(told.first?.done == 0 && told.last.map { $0.done == $0.total } == true)
      #expect(Set(told.map(\.total)).count == 1)
      #expect(zip(told, told.dropFirst()).allSatisfy { $0.done < $1.done })
    }
    var sealing: [(done: Int, total: Int)] = []
    let sealed = try device.store.seal(onProgress: { sealing.append(($0, $1)) })
    expectWhole(sealing)
    #expect(sealing.last?.total == 20_000 && sealing.count > 3)
    for changeSet in sealed.changeSets { try device.store.markPublished(changeSet.number) }
    var copying: [(done: Int, total: Int)] = []
    let path = scratch.path + "/copy.db"
    _ = try device.store.snapshot(to: path, onProgress: { copying.append(($0, $1)) })
    expectWhole(copying)
    // A file of this size grows in memory, until it is there; the cleaning is
    // the other half.
    let half = (copying.last?.total ?? 0) / 2
    #expect(copying.contains { $0.done == half })
    #expect(copying.filter { $0.done > half && $0.done < 2 * half }.count > 3)
    var exchanging: [(done: Int, total: Int)] = []
    _ = try device.store.replaceContent(
      withSnapshotAt: path, onProgress: { exchanging.append(($0, $1)) })
    expectWhole(exchanging)
    #expect(exchanging.last?.total == 3)
  }
}
