import DocumentSync
import DocumentSyncTesting
import SyncModel
import SyncStore
import Testing

/// Change sets that delete more rows than a synchronization may without being told to.
@Suite struct DeletionLimitTests {
  private func fleet(
    _ count: Int, rows: Int = 200, windowCount: Int? = nil
  ) async throws -> TestFleet {
    try await TestFleet(count, rows: rows) {
      $0.deletionLimit = 0.5
      if let windowCount {
        $0.thresholds.windowCount = windowCount
        $0.parallelReads = 1
      }
    }
  }

  /// Deletes the notes whose numbers are in a range.
  private func delete(_ numbers: Range<Int>, _ manager: DocumentSyncManager) throws {
    for number in numbers { try manager.edit("DELETE FROM notes WHERE id = 'seed-\(number)'") }
  }

  private func expectWaiting(
    _ report: SyncReport, _ sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(
      report.waiting.map(\.reason) == [.manyDeletions], "\(report.waiting)",
      sourceLocation: sourceLocation)
  }

  @Test func theyWaitAndEverythingElseIsApplied() async throws {
    var fleet = try await fleet(3)
    try fleet[0].edit("DELETE FROM notes WHERE id LIKE 'seed-1%' OR id < 'seed-5'")
    let left = try fleet[0].notes().count
    try await fleet[0].synchronize()
    try fleet[0].put("later", "value")
    try await fleet[0].synchronize()
    try fleet[2].put("other", "value")
    try await fleet[2].synchronize()
    try fleet[1].put("own", "value")
    let report = try await fleet[1].synchronize()
    expectWaiting(report)
    let wait = try #require(report.waiting.first)
    #expect(wait.client == fleet[0].binding.client && wait.number == 1 && !wait.isCommand)
    #expect(wait.message.contains("deletes \(200 - left) of 201 rows of “notes”"))
    #expect(report.sent.count == 1 && report.deletedRows == 0)
    #expect(try fleet[1].notes().count == 202)
    // Nothing but permission ends the wait: neither time, nor another process, nor other commands.
    try await fleet.reopen(1)
    expectWaiting(try await fleet[1].synchronize())
    expectWaiting(try await fleet[1].fetchChanges())
    _ = try await fleet[1].vacuum()
    _ = try await fleet[1].uploadWholeStore()
    _ = try await fleet[1].synchronizeThoroughly()
    expectWaiting(try await fleet[1].synchronize())
    #expect(try fleet[1].notes().count == 202)
    let waiting = try await fleet[1].status().waiting
    #expect(waiting.map(\.deletions.count) == [1, 0])
    let deletions = try #require(waiting.first?.deletions.first)
    #expect(deletions.table == "notes" && deletions.rowCount == 201)
    #expect(deletions.deletedCount == 200 - left)
    #expect(try await fleet[1].verify().findings.isEmpty)

    let allowed = try await fleet[1].synchronize(allowingDeletions: true)
    #expect(allowed.waiting.isEmpty && allowed.deletedRows == 200 - left)
    #expect(try await fleet[2].synchronize(allowingDeletions: true).waiting.isEmpty)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[1].notes().count == left + 3)
    #expect(try await fleet[1].status().waiting.isEmpty)
  }

  /// What is deleted in many small change sets counts together, in whatever portions they are read,
  /// and the rest does not go by and by with later synchronizations.
  @Test(arguments: [1, 3, 256]) func smallDeletionsCountTogether(windowCount: Int) async throws {
    let fleet = try await fleet(2, windowCount: windowCount)
    for step in 0..<10 {
      try delete(step * 15..<step * 15 + 15, fleet[0])
      try await fleet[0].synchronize()
    }
    expectWaiting(try await fleet[1].synchronize())
    let left = try fleet[1].notes().count
    #expect(left >= 100)
    for _ in 0..<5 { expectWaiting(try await fleet[1].synchronize()) }
    #expect(try fleet[1].notes().count == left)
    try await fleet[1].synchronize(allowingDeletions: true)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[1].notes().count == 50)
  }

  @Test func halfOfATableMayGo() async throws {
    let fleet = try await fleet(2)
    try delete(0..<100, fleet[0])
    try await fleet[0].synchronize()
    let report = try await fleet[1].synchronize()
    #expect(report.waiting.isEmpty && report.deletedRows == 100)
  }

  @Test func smallTablesHaveNoLimit() async throws {
    let fleet = try await fleet(2, rows: 99)
    try fleet[0].edit("DELETE FROM notes")
    try await fleet[0].synchronize()
    let report = try await fleet[1].synchronize()
    #expect(report.waiting.isEmpty && report.deletedRows == 99)
  }

  @Test func newKeysDoNotCount() async throws {
    let fleet = try await fleet(2)
    try fleet[0].edit("UPDATE notes SET id = 'new-' || id")
    try await fleet[0].synchronize()
    #expect(try await fleet[1].synchronize().waiting.isEmpty)
    try await fleet.settle()
    try fleet.expectEqual()
  }

  /// Both devices delete 250 of 400 rows, so that each has no more of them to delete.
  @Test func rowsThatAreGoneAlreadyDoNotCount() async throws {
    let fleet = try await fleet(2, rows: 400)
    for device in 0..<2 {
      try fleet[device].edit(
        "DELETE FROM notes WHERE CAST(substr(id, 6) AS INTEGER) < 250")
    }
    try await fleet[0].synchronize()
    #expect(try await fleet[1].synchronize().waiting.isEmpty)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[1].notes().count == 150)
  }

  /// Tables whose rows have identities of their own, and references that delete with them.
  @Test func rowsOfAllTablesCount() async throws {
    let fleet = try await fleet(2)
    for device in 0..<2 {
      try fleet[device].edit(
        """
        CREATE TABLE lists(id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE items(
          id INTEGER PRIMARY KEY, list INTEGER REFERENCES lists ON DELETE CASCADE, name TEXT);
        """)
    }
    try fleet[0].edit(
      """
      INSERT INTO lists VALUES (1, 'one'), (2, 'two');
      WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 120)
      INSERT INTO items SELECT n, 1, 'item ' || n FROM i;
      """)
    try await fleet.settle()
    try fleet[0].edit("PRAGMA foreign_keys = ON; DELETE FROM lists WHERE id = 1")
    try await fleet[0].synchronize()
    let report = try await fleet[1].synchronize()
    expectWaiting(report)
    #expect(report.waiting[0].message.contains("120 of 120 rows of “items”"), "\(report.waiting)")
    try await fleet[1].synchronize(allowingDeletions: true)
    try await fleet.settle()
    try fleet.expectEqual()
  }

  /// A store that was copied goes on as another client, and has the rows.
  @Test func aStoreThatGoesOnAsAnotherClientKeepsWaiting() async throws {
    let fleet = try await fleet(2)
    try fleet[0].edit("DELETE FROM notes WHERE id < 'seed-9'")
    try await fleet[0].synchronize()
    expectWaiting(try await fleet[1].synchronize())
    try fleet[1].store.beginIncarnation(.copied)
    expectWaiting(try await fleet[1].synchronize())
    #expect(try fleet[1].notes().count == 200)
  }

  /// A share that is no number does not end the process: it allows nothing.
  @Test(arguments: [Double.nan, -Double.infinity, -1]) func aShareThatIsNoneAllowsNothing(
    share: Double
  ) async throws {
    let fleet = try await TestFleet(2, rows: 200) { $0.deletionLimit = share }
    try fleet[0].edit("DELETE FROM notes WHERE id = 'seed-9'")
    try await fleet[0].synchronize()
    expectWaiting(try await fleet[1].synchronize())
  }

  /// A new device gets what is there now; it has had none of the rows.
  @Test func aDeviceThatJoinsIsNotAsked() async throws {
    let fleet = try await fleet(1)
    try fleet[0].edit("DELETE FROM notes WHERE id < 'seed-9'")
    try await fleet[0].synchronize()
    let joined = try await DocumentSyncManager.join(
      storeAt: fleet.scratch.store("late"), directory: fleet.memory,
      options: .init(client: "late", environment: fleet.environment))
    #expect(try await joined.synchronize().waiting.isEmpty)
    #expect(try joined.notes() == fleet[0].notes())
  }

  /// A user who resets the document to keep what another device has deleted keeps it, until
  /// permission comes.
  @Test func aResetKeepsWhatWaits() async throws {
    let fleet = try await fleet(3)
    try delete(0..<150, fleet[1])
    try fleet[1].put("later", "value")
    try await fleet[1].synchronize()
    expectWaiting(try await fleet[0].synchronize())
    try await fleet[0].reset()
    #expect(try fleet[0].notes().count == 200)
    for _ in 0..<4 { expectWaiting(try await fleet[0].synchronize()) }
    // The device goes over with what it has sent, too.
    try await fleet[1].synchronize()
    for _ in 0..<3 {
      for index in [0, 2] {
        let waits = try await fleet[index].synchronize().waiting
        #expect(waits.contains { $0.reason == .manyDeletions }, "\(waits)")
        #expect(try fleet[index].notes().count == 200)
      }
    }
    for index in [0, 2, 1, 0, 2] {
      #expect(try await fleet[index].synchronize(allowingDeletions: true).waiting.isEmpty)
    }
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try fleet[0].notes().count == 51)
  }

  /// A store that takes its place waits as well.
  @Test func aStoreThatReplacesOneAfterAResetKeepsWhatWaits() async throws {
    var fleet = try await fleet(2)
    try delete(0..<150, fleet[1])
    try await fleet[1].synchronize()
    expectWaiting(try await fleet[0].synchronize())
    try await fleet[0].reset()
    expectWaiting(try await fleet[0].synchronize())
    try await fleet[0].close()
    fleet.replace(
      0,
      with: try await DocumentSyncManager.join(
        storeAt: fleet.scratch.store("0"), directory: fleet.directories[0],
        existing: .replaceKeepingBackup,
        options: .init(client: "again", environment: fleet.environment)))
    for _ in 0..<3 { expectWaiting(try await fleet[0].synchronize()) }
    #expect(try fleet[0].notes().count == 200)
    #expect(try await fleet[0].synchronize(allowingDeletions: true).waiting.isEmpty)
    #expect(try fleet[0].notes().count == 50)
  }
}
