import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Edits that no change set can carry. The caps are small here: 32 KiB.
@Suite struct HeldEditsTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE photo (k TEXT PRIMARY KEY, name TEXT, data BLOB, thumb BLOB);
    CREATE TABLE remark (id INTEGER PRIMARY KEY, photo TEXT REFERENCES photo ON DELETE CASCADE, b);
    INSERT INTO photo VALUES ('a', 'Ann', x'01', NULL), ('b', 'Bob', x'02', NULL);
    """

  private func devices(_ count: Int = 3) throws -> [Device] {
    var options = StoreOptions.patient
    options.limits.memoryBytes = 64 << 10
    return try scratch.devices(count, Self.schema, options: options)
  }

  private func held(_ device: Device) throws -> [String] {
    try device.store.status().heldEdits.map {
      "\($0.kind) \($0.table) \($0.row) \($0.columns.map(\.text))"
    }
  }

  /// Hundreds of small rows are divided into change sets, however small the caps are. Their keys are numbers: text and
  /// identities of 16 bytes would be noticed earlier.
  @Test func manySmallRowsAreExchangedWithSmallCaps() throws {
    var options = StoreOptions.patient
    options.limits.memoryBytes = 16 << 10
    let devices = try scratch.devices(
      2, "CREATE TABLE number (k INT PRIMARY KEY, a, b, c)", options: options)
    try devices[0].run(
      """
      WITH RECURSIVE row(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM row WHERE k < 250)
      INSERT INTO number SELECT k, k, k, k FROM row
      """)
    try converge(devices, "SELECT count(*) FROM number", ["250"])
  }

  @Test func aValueThatIsTooLargeStaysAndEverythingElseIsExchanged() throws {
    let devices = try devices()
    try devices[0].run(
      """
      UPDATE photo SET data = randomblob(40000), name = 'Anna' WHERE k = 'a';
      UPDATE photo SET name = 'Bert' WHERE k = 'b'
      """)
    try devices[1].run("INSERT INTO photo VALUES ('c', 'Cid', NULL, NULL)")
    try exchange(devices)
    let query = "SELECT name, coalesce(length(data), 0) FROM photo ORDER BY k"
    #expect(try devices[1].rows(query) == ["Anna|1", "Bert|1", "Cid|0"])
    #expect(try devices[0].rows(query) == ["Anna|40000", "Bert|1", "Cid|0"])
    #expect(try held(devices[0]) == [#"update photo “a” ["data"]"#])
    #expect(try devices[0].sealsNothing())
    let report = try LocalStore.verify(at: devices[0].path).report
    #expect(report.findings.map(\.kind) == [.editTooLarge])
    #expect(throws: StoreError.self) {
      try devices[0].store.snapshot(to: scratch.path + "/refused.db")
    }
    // Other columns are sent.
    try devices[0].run("UPDATE photo SET thumb = x'07' WHERE k = 'a'")
    try exchange(devices)
    #expect(
      try devices[2].rows("SELECT hex(data), hex(thumb) FROM photo WHERE k = 'a'") == ["01|07"])
    #expect(try held(devices[0]).count == 1)
    try devices[0].run("UPDATE photo SET data = x'05' WHERE k = 'a'")
    try converge(devices, "SELECT hex(data) FROM photo WHERE k = 'a'", ["05"])
    #expect(try held(devices[0]) == [])
    _ = try devices[0].store.snapshot(to: scratch.path + "/allowed.db")
  }

  @Test func aRowThatIsTooLargeIsUnknownElsewhereUntilItFits() throws {
    let devices = try devices()
    try devices[0].run(
      """
      INSERT INTO photo VALUES ('big', 'Big', randomblob(40000), NULL), ('s', 'Small', x'03', NULL);
      INSERT INTO remark VALUES (1, 'big', 1), (2, 's', 2)
      """)
    try exchange(devices)
    #expect(try devices[1].rows("SELECT k FROM photo ORDER BY k") == ["a", "b", "s"])
    #expect(try devices[1].rows("SELECT photo FROM remark") == ["s"])
    #expect(try devices[0].rows("SELECT count(*) FROM remark") == ["2"])
    #expect(try held(devices[0]) == [#"insertion photo “big” ["data"]"#])
    // Another column does not make it fit.
    try devices[0].run("UPDATE photo SET name = 'Huge' WHERE k = 'big'")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT count(*) FROM photo") == ["3"])
    for device in devices { try device.checkIntegrity() }
    try devices[0].run("UPDATE photo SET data = x'09' WHERE k = 'big'")
    try converge(devices, "SELECT name, hex(data) FROM photo WHERE k = 'big'", ["Huge|09"])
    #expect(try devices[2].rows("SELECT photo FROM remark ORDER BY 1") == ["big", "s"])
    #expect(try held(devices[0]) == [])
  }

  @Test func aRowThatIsTooLargeIsDeletedWithItsChildren() throws {
    let devices = try devices()
    try devices[0].run(
      """
      INSERT INTO photo VALUES ('big', 'Big', randomblob(40000), NULL);
      INSERT INTO remark VALUES (1, 'big', 1)
      """)
    try exchange(devices)
    #expect(try devices[1].store.status().parked.count == 1)
    try devices[0].run("DELETE FROM photo WHERE k = 'big'")
    try converge(devices, "SELECT count(*) FROM remark", ["0"])
    #expect(try devices[1].store.status().parked.count == 0)
    #expect(try held(devices[0]) == [])
    #expect(try LocalStore.verify(at: devices[0].path).report.findings == [])
    // Written and deleted between two synchronizations, too.
    try devices[0].run(
      """
      UPDATE photo SET data = randomblob(40000) WHERE k = 'a'; DELETE FROM photo WHERE k = 'a';
      INSERT INTO photo VALUES ('x', '', randomblob(40000), NULL); DELETE FROM photo WHERE k = 'x'
      """)
    try converge(devices, "SELECT k FROM photo", ["b"])
  }

  @Test func cellsThatFitByThemselvesAreSentByThemselves() throws {
    let devices = try devices()
    try devices[0].run(
      "UPDATE photo SET data = randomblob(20000), thumb = randomblob(25000) WHERE k = 'a'")
    try converge(
      devices, "SELECT length(data), length(thumb) FROM photo WHERE k = 'a'", ["20000|25000"])
    #expect(try held(devices[0]) == [])
  }

  @Test func anEditElsewhereThatWinsIsShownAndTheValueIsInTheJournal() throws {
    let devices = try devices()
    let base = Date()
    try devices[0].setClock(offset: 10, from: base)
    try devices[0].run("UPDATE photo SET data = randomblob(40000) WHERE k = 'a'")
    try exchange(devices)
    // What is older than the value that stays does not replace it here.
    try devices[1].setClock(offset: 5, from: base)
    try devices[1].run("UPDATE photo SET data = x'0A' WHERE k = 'a'")
    try exchange(devices)
    #expect(try devices[0].rows("SELECT length(data) FROM photo WHERE k = 'a'") == ["40000"])
    #expect(try held(devices[0]).count == 1)
    try devices[1].setClock(offset: 20, from: base)
    try devices[1].run("UPDATE photo SET data = x'0B' WHERE k = 'a'")
    try converge(devices, "SELECT hex(data) FROM photo WHERE k = 'a'", ["0B"])
    let number = try #require(try devices[0].store.conflicts().map(\.number).max())
    // The journal gives it back, and it stays here again.
    try devices[0].setClock(offset: 30, from: base)
    try devices[0].store.restoreConflict(number)
    try exchange(devices)
    #expect(try devices[0].rows("SELECT length(data) FROM photo WHERE k = 'a'") == ["40000"])
    #expect(try held(devices[0]).count == 1)
    #expect(try devices[1].rows("SELECT hex(data) FROM photo WHERE k = 'a'") == ["0B"])
  }

  @Test func aStoreThatTakesOverAWholeStoreKeepsThem() throws {
    let devices = try devices()
    try devices[0].run(
      """
      UPDATE photo SET data = randomblob(40000) WHERE k = 'a';
      INSERT INTO photo VALUES ('big', 'Big', randomblob(41000), NULL)
      """)
    try exchange(devices)
    try devices[1].run("UPDATE photo SET name = 'Bea' WHERE k = 'b'")
    _ = try devices[1].outgoing()
    let path = scratch.path + "/whole.db"
    _ = try devices[1].store.snapshot(to: path)
    _ = try devices[0].store.replaceContent(withSnapshotAt: path)
    #expect(
      try devices[0].rows("SELECT k, name, length(data) FROM photo ORDER BY k")
        == ["a|Ann|40000", "b|Bea|1", "big|Big|41000"])
    #expect(try held(devices[0]).count == 2)
    try devices[0].run("UPDATE photo SET data = x'11'")
    try converge(
      devices, "SELECT k, hex(data) FROM photo ORDER BY k", ["a|11", "b|11", "big|11"])
    #expect(try held(devices[0]) == [])
  }
}
