import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// The file beside a store to which the oldest conflicts go.
@Suite struct ConflictArchiveTests {
  @Test func whatLeavesTheTableIsInTheFileBesideTheStore() throws {
    let pair = try Disagreement(8)
    let store = pair.one.store
    #expect(try store.conflicts().map(\.number) == [8, 7, 6])
    let all = try store.allConflicts()
    #expect(all.map(\.number) == [8, 7, 6, 5, 4, 3, 2, 1])
    #expect(all.map(\.isArchived) == [false, false, false, true, true, true, true, true])
    let oldest = try #require(all.last)
    #expect(oldest.local.cells == [Conflict.Cell(column: "a", value: .text(Array("one 0".utf8)))])
    #expect(oldest.key == [Conflict.Cell(column: "id", value: .text(Array("x".utf8)))])
    #expect(oldest.status == .superseded && oldest.now?.outcome == .other)
    #expect(oldest.remote.stamp?.client != oldest.local.stamp?.client)
    #expect(try store.conflict(2) == all[6])
    let places = try store.conflictPlaces()
    #expect(places.inTable == 3 && places.inArchive == 5 && places.dropped.count == 0)
    #expect(places.unreadable == 0 && places.problem == nil)
    #expect(StoreFileMode(of: store.path) == StoreFileMode(of: pair.archive.path))
    #expect(try conflictFindings(pair) == [])
  }

  @Test func aSynchronizationWithoutConflictsDoesNotOpenTheFile() throws {
    let pair = try Disagreement(6)
    let before = pair.steps.all.count
    #expect(before > 0)
    try pair.two.run("UPDATE note SET b = 2")
    try pair.one.receive(from: pair.two)
    #expect(try pair.one.store.settleConflictArchive() == [])
    #expect(pair.steps.all.count == before)
  }

  @Test func anArchivedValueIsPutBackOnceAndExactly() throws {
    let pair = try Disagreement(6)
    let (one, store) = (pair.one, pair.one.store)
    try store.restoreConflict(2, side: .local)
    #expect(try one.rows("SELECT a FROM note WHERE id = 'x'") == ["one 1"])
    #expect(try store.conflict(2).status == .restored)
    #expect(try store.conflictPlaces().inArchive == 3)
    #expect(try pair.numbers() == [6, 5, 4, 3, 2, 1])
    #expect(try store.conflictPlaces().dropped.count == 0)
    let again = #expect(throws: StoreError.self) { try store.restoreConflict(2) }
    #expect(again?.code == .conflictNotOpen)
    try converge([one, pair.two], "SELECT a FROM note WHERE id = 'x'", ["one 1"])
    try one.program.run("ALTER TABLE note RENAME COLUMN a TO c")
    let renamed = #expect(throws: StoreError.self) { try store.restoreConflict(1, side: .local) }
    #expect(renamed?.code == .editRefused)
    #expect(try store.conflict(1).now == nil)
    #expect(try conflictFindings(pair) == [])
  }

  @Test func archivedValuesAreExact() throws {
    let pair = try Disagreement(
      0, keeping: 0,
      "CREATE TABLE v (k INTEGER PRIMARY KEY, v, r INTEGER REFERENCES v); INSERT INTO v (k, v) "
        + "VALUES " + (0..<12).map { "(\($0 + 1), 'old')" }.joined(separator: ", ") + ";")
    let (one, two) = (pair.one, pair.two)
    let literals = [
      "9223372036854775807", "-9223372036854775808", "9e999", "-9e999", "NULL", "''", "x''",
      "CAST(x'610062' AS TEXT)", "CAST(x'ff61' AS TEXT)", "x'00ff'", "-0.0", "1.0",
    ]
    for (index, literal) in literals.enumerated() {
      try one.run("UPDATE v SET v = \(literal), r = 2 WHERE k = \(index + 1)")
    }
    let before = try one.rows("SELECT k, typeof(v), hex(v), v, r FROM v")
    try two.run("UPDATE v SET v = 'two', r = 3")
    try one.receive(from: two)
    let lost = try one.store.allConflicts()
    #expect(lost.count == 2 * literals.count && lost.count { $0.isArchived } > 20)
    for conflict in lost { try one.store.restoreConflict(conflict.number) }
    #expect(try one.rows("SELECT k, typeof(v), hex(v), v, r FROM v") == before)
    try converge([one, two], "SELECT k, typeof(v), hex(v), v, r FROM v", before)
    #expect(try one.store.allConflicts().count == lost.count)
  }

  @Test(arguments: ["", "; DELETE FROM note WHERE id = 'x'"])
  func ofManyConflictsAtOnceTheNewestStayAndTheOthersAreInTheFile(deletion: String) throws {
    let pair = try Disagreement(4, keeping: 10, archiveBytes: 1 << 20)
    let (one, two) = (pair.one, pair.two)
    try one.run(
      "WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
        + "INSERT INTO note (id, a) SELECT 'n' || i, '' FROM n")
    try exchange([one, two])
    try one.run("UPDATE note SET a = 'one'")
    try two.run("UPDATE note SET a = 'two'" + deletion)
    try exchange([one, two])
    for store in [one.store, two.store] {
      let numbers = try store.conflicts().map(\.number)
      let last = try #require(numbers.first)
      #expect(numbers == Array(stride(from: last, to: last - Int64(numbers.count), by: -1)))
      #expect(9...10 ~= numbers.count && last > 3000)
      #expect(try store.conflictPlaces().inArchive == Int(last) - numbers.count)
      #expect(try store.allConflicts().map(\.number) == Array((1...last).reversed()))
    }
  }

  @Test func whatHasToLeaveTogetherWithEarlierConflictsLeavesOnce() throws {
    let pair = try Disagreement(2)
    try pair.one.run(
      "INSERT INTO note VALUES " + (1...9).map { "('\($0)', 1, 1)" }.joined(separator: ", "))
    try exchange([pair.one, pair.two])
    try pair.one.run("UPDATE note SET a = 'one'")
    try pair.two.run("UPDATE note SET a = 'two'")
    try exchange([pair.one, pair.two])
    #expect(try pair.numbers() == (1...12).reversed())
    let places = try pair.one.store.conflictPlaces()
    #expect(places.inTable == 3 && places.inArchive == 9 && places.unreadable == 0)
  }

  @Test func pagesOfAnyLength() throws {
    let pair = try Disagreement(6)
    let store = pair.one.store
    let all = try store.conflicts(before: nil, limit: .max)
    #expect(all.conflicts.map(\.number) == [6, 5, 4, 3, 2, 1] && all.next == nil)
    for number in [Int64.min, 0, 1] {
      #expect(try store.conflicts(before: number, limit: 3).conflicts == [])
    }
    #expect(try store.conflicts(before: nil, limit: .min).conflicts == [])
  }

  /// Verifying finds the damage.
  @Test(arguments: ["x'7b'", #"CAST('{"last":-1}' AS BLOB)"#])
  func aDamagedRecordOfTheJournalStopsNeitherStatusNorLeaving(record: String) throws {
    let pair = try Disagreement(6)
    let store = pair.one.store
    try pair.one.program.run(
      "UPDATE docsync_meta SET value = \(record) WHERE key = 'conflictJournal'")
    #expect(try store.status().conflictArchiveProblem == nil)
    #expect(try LocalStore.verify(at: store.path).report.findings.isEmpty == false)
    try store.removeBookkeeping { #expect($0.conflicts == 3) }
  }

  /// A value that would have to be in memory several times is not read.
  @Test func aVeryLargeValueIsNoLongerKept() throws {
    let pair = try Disagreement(2, archiveBytes: 1 << 16)
    let bytes = (1 << 15) + 1
    try pair.one.run("UPDATE note SET a = zeroblob(\(bytes)) WHERE id = 'x'")
    try pair.two.run("UPDATE note SET a = 'two' WHERE id = 'x'")
    try exchange([pair.one, pair.two])
    let places = try pair.one.store.conflictPlaces()
    #expect(places.dropped.count == 0)
    for number in 0..<4 {
      try pair.one.run("UPDATE note SET a = 'one \(number)' WHERE id = 'x'")
      try pair.two.run("UPDATE note SET a = 'two \(number)' WHERE id = 'x'")
      try exchange([pair.one, pair.two])
    }
    #expect(try pair.one.store.conflictPlaces().dropped.count == 1)
    #expect(try pair.one.store.allConflicts().count == 6)
  }

  /// The file of a store that takes the place of another one is added to that one's.
  @Test(arguments: [true, false], [true, false])
  func theFilesOfAStoreAndOfTheOneThatItReplacesAreOne(hasNew: Bool, hasFormer: Bool) throws {
    let (former, new) = (try Disagreement(6), try Disagreement(7))
    for (pair, isThere) in [(former, hasFormer), (new, hasNew)] where !isThere {
      try FileManager.default.removeItem(atPath: pair.archive.path)
    }
    let expected = try [former, new].map { try $0.one.store.allConflicts() }
    try ConflictArchive.add(fileOf: new.one.store.path, to: former.one.store.path)
    #expect(try former.one.store.allConflicts() == expected[0])
    try ConflictArchive.copy(from: former.one.store.path, to: new.one.store.path)
    #expect(try new.one.store.allConflicts() == expected[1])
    // The next conflicts are added to both.
    for pair in [former, new] {
      let before = try pair.one.store.allConflicts().count
      for number in 0..<3 {
        try pair.one.run("UPDATE note SET a = 'one \(number)' WHERE id = 'x'")
        try pair.two.run("UPDATE note SET a = 'two \(number)' WHERE id = 'x'")
        try exchange([pair.one, pair.two])
      }
      guard pair.one === former.one ? hasFormer : hasNew else { continue }
      #expect(try pair.one.store.allConflicts().count == before + 3)
    }
  }

  @Test func theFileStaysWithinItsBoundAndItsOldestEntriesGo() throws {
    let pair = try Disagreement(40, archiveBytes: 4_000)
    let places = try pair.one.store.conflictPlaces()
    #expect(try Data(contentsOf: pair.archive).count <= 4_000)
    #expect(places.inArchive > 2 && places.dropped.count > 2 && places.unreadable == 0)
    #expect(places.inTable + places.inArchive + places.dropped.count == 40)
    let numbers = try pair.numbers()
    #expect(numbers == Array((41 - Int64(places.inTable + places.inArchive)...40).reversed()))
    #expect(places.dropped.firstMilliseconds != nil && places.dropped.lastMilliseconds != nil)
    #expect(pair.steps.all.contains(.renamed))
    #expect(try conflictFindings(pair) == [])
    let error = #expect(throws: StoreError.self) { try pair.one.store.conflict(1) }
    #expect(error?.code == .noSuchConflict)
  }

  /// An entry that came back counts once, wherever its old state is.
  @Test func entriesThatCameBackAreCountedOnceWhenTheFileIsTrimmed() throws {
    let pair = try Disagreement(6, archiveBytes: 4_000)
    for number: Int64 in 1...3 { try pair.one.store.restoreConflict(number, side: .local) }
    for round in 6..<40 { try pair.disagree(round) }
    let places = try pair.one.store.conflictPlaces()
    let last = try #require(try pair.one.store.conflicts().first?.number)
    #expect(places.inTable + places.inArchive + places.dropped.count == Int(last))
    #expect(places.unreadable == 0)
    #expect(try pair.numbers().count == places.inTable + places.inArchive)
  }

  @Test func leavingRemovesTheFileAndLeavesAnotherStoresAlone() throws {
    let pair = try Disagreement(6)
    try pair.one.store.removeBookkeeping { #expect($0.conflicts == 6) }
    #expect(!FileManager.default.fileExists(atPath: pair.archive.path))
    let other = try Disagreement(6)
    let archive = Disagreement.archive(of: pair.two.store.path)
    try FileManager.default.removeItem(at: archive)
    try FileManager.default.copyItem(at: other.archive, to: archive)
    try pair.two.store.removeBookkeeping { #expect($0.conflicts == 6) }
    #expect(FileManager.default.fileExists(atPath: archive.path))
    let path = other.one.store.path
    try other.one.store.close()
    try LocalStore.removeBookkeeping(at: path, of: nil)
    #expect(!FileManager.default.fileExists(atPath: other.archive.path))
  }

  @Test func aCopyOfBothFilesHasAllAndGoesOnAlone() throws {
    let pair = try Disagreement(6)
    let options = pair.two.store.options
    try pair.one.store.close()
    let copy = pair.scratch.path + "/copy.db"
    for suffix in ["", LocalStore.archiveSuffix] {
      try FileManager.default.copyItem(
        atPath: pair.one.store.path + suffix, toPath: copy + suffix)
    }
    let store = try LocalStore.open(at: copy, options: options)
    #expect(try store.allConflicts().count == 6)
    try store.restoreConflict(1, side: .local)
    try store.close()
    let original = try LocalStore.open(at: pair.one.store.path, options: options)
    #expect(try original.allConflicts().count == 6)
    #expect(try original.conflict(1).status != .restored)
    try original.close()
  }

  @Test func aLinkToTheStoreHasTheFileOfTheStore() throws {
    let pair = try Disagreement(6)
    let (path, options) = (pair.one.store.path, pair.two.store.options)
    try pair.one.store.close()
    let link = pair.scratch.path + "/link.db"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
    let store = try LocalStore.open(at: link, options: options)
    #expect(try store.allConflicts().count == 6)
    try store.close()
  }

  /// What verifying finds of the file.
  private func conflictFindings(_ pair: Disagreement) throws -> [String] {
    try LocalStore.verify(at: pair.one.store.path).report.findings
      .filter { $0.kind == .conflictFileUnusable }.map(\.message)
  }
}
