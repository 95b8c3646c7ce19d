import Foundation
import SyncModel
import Synchronization
import Testing

@testable import SyncStore

/// The file with older conflicts when something goes wrong: no conflict is lost, and no
/// synchronization ends.
@Suite struct ConflictArchiveFaultTests {
  private struct Stop: Error {}

  // MARK: - Transactions

  @Test func aRolledBackTransactionLeavesNothingInTheFile() throws {
    let pair = try Disagreement(6)
    let before = try Data(contentsOf: pair.archive)
    #expect(throws: Stop.self) {
      try pair.one.store.write { session in
        for _ in 0..<5 {
          try session.conflicts.journal.addSettled(
            ConflictJournal.Entry(
              kind: .cell, row: RowKey(table: 1, identity: RowIdentity(bytes: [1])),
              rule: .latestWins, outcome: .local))
        }
        try session.conflicts.journal.finish()
        throw Stop()
      }
    }
    #expect(try Data(contentsOf: pair.archive).count > before.count)
    #expect(try pair.one.store.conflictPlaces().inArchive == 3)
    #expect(try pair.numbers() == [6, 5, 4, 3, 2, 1])
    #expect(try findings(pair) == [])
    try pair.disagree(6)
    #expect(try pair.numbers() == [7, 6, 5, 4, 3, 2, 1])
    #expect(try pair.one.store.conflictPlaces().inArchive == 4)
  }

  @Test func aRestorationThatIsRolledBackIsUndoneInTheFileToo() throws {
    let pair = try Disagreement(6)
    let store = pair.one.store
    let before = try store.conflict(2)
    #expect(throws: Stop.self) {
      try store.write { session in
        try ConflictAnswers(session: session, path: store.path).restore(2, side: .local)
        // The restored entry is the oldest one, and goes to the file again.
        try session.conflicts.journal.finish()
        throw Stop()
      }
    }
    #expect(try store.conflict(2) == before)
    #expect(try pair.numbers() == [6, 5, 4, 3, 2, 1])
    try store.restoreConflict(2, side: .local)
    #expect(try store.conflict(2).status == .restored)
    #expect(try pair.one.rows("SELECT a FROM note WHERE id = 'x'") == ["one 1"])
    #expect(try pair.numbers() == [6, 5, 4, 3, 2, 1])
    #expect(try findings(pair) == [])
  }

  /// The process ends at a step, or the step fails; then all goes on.
  @Test(arguments: ConflictArchiveStep.allCases)
  func whateverStepIsTheLastNoConflictIsLostAndNoneIsThereTwice(step: ConflictArchiveStep) throws {
    let pair = try Disagreement(9, archiveBytes: 4_000)
    let folder = pair.scratch.path
    let path = pair.one.store.path
    let copies = Mutex<[String]>([])
    pair.steps.at { seen in
      guard seen == step else { return }
      try copies.withLock { copies in
        let copy = "\(folder)/killed-\(copies.count).db"
        for suffix in ["", "-wal", "-journal", LocalStore.archiveSuffix]
        where FileManager.default.fileExists(atPath: path + suffix) {
          try FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
        }
        copies.append(copy)
      }
    }
    for round in 9..<30 {
      if step == .cut { try rollBack(pair) }
      try pair.disagree(round)
    }
    pair.steps.at(nil)
    let killed = copies.withLock { $0 }
    #expect(!killed.isEmpty, "the step was never reached")
    for copy in killed {
      let store = try LocalStore.open(at: copy, options: pair.two.store.options)
      try checkComplete(store)
      #expect(
        try LocalStore.verify(at: copy).report.findings.filter {
          $0.kind == .conflictFileUnusable
        } == [])
      // It goes on where it was.
      let applied = try store.appliedVector().number(of: pair.two.store.binding.client)
      _ = try store.apply(pair.two.outgoing(after: applied))
      try checkComplete(store)
      try store.close()
    }
  }

  @Test(arguments: ConflictArchiveStep.allCases)
  func aStepThatFailsLeavesTheConflictsInTheStoreAndIsWarnedOf(step: ConflictArchiveStep) throws {
    let pair = try Disagreement(9, archiveBytes: 4_000)
    let store = pair.one.store
    pair.steps.at { if $0 == step { throw POSIXError(.ENOSPC) } }
    var round = 9
    while try store.status().conflictArchiveProblem == nil, round < 30 {
      if step == .cut { try rollBack(pair) }
      try pair.disagree(round)
      round += 1
    }
    try checkComplete(store)
    #expect(try store.status().conflictArchiveProblem?.contains("no space") == true)
    for next in round..<round + 3 { try pair.disagree(next) }
    try checkComplete(store)
    // These steps are not taken again.
    guard step != .cut, step != .renamed else { return }
    let places = try store.conflictPlaces()
    #expect(places.inTable > 3 && places.problem?.contains("no space") == true)
    let warnings = try store.settleConflictArchive()
    #expect(warnings.map(\.code) == [.conflictArchive] && warnings.map(\.reason) == ["noSpace"])
    #expect(warnings.first?.message.contains(pair.archive.path) == true)
    #expect(try findings(pair).count == 1)
    pair.steps.at(nil)
    // The next synchronization tries again.
    #expect(try store.settleConflictArchive() == [])
    #expect(try store.conflictPlaces().inTable == 3)
    #expect(try store.status().conflictArchiveProblem == nil)
    #expect(try findings(pair) == [])
    try checkComplete(store)
  }

  @Test func manyConflictsAtOnceStayInTheStoreIfTheFileCannotBeWritten() throws {
    let pair = try Disagreement(4, keeping: 10, archiveBytes: 1 << 20)
    let (one, two) = (pair.one, pair.two)
    try one.run(
      "WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
        + "INSERT INTO note (id, a) SELECT 'n' || i, '' FROM n")
    try exchange([one, two])
    try one.run("UPDATE note SET a = 'one'")
    try two.run("UPDATE note SET a = 'two'")
    let count = Mutex(0)
    // The third block fails.
    pair.steps.at { step in
      guard step == .written else { return }
      if count.withLock({
        $0 += 1; return $0 == 3
      }) {
        throw POSIXError(.EIO)
      }
    }
    try exchange([one, two])
    let places = try one.store.conflictPlaces()
    #expect(places.inTable > 10 && places.inArchive > 10 && places.problem != nil)
    try checkComplete(one.store)
    pair.steps.at(nil)
    #expect(try one.store.settleConflictArchive() == [])
    #expect(try one.store.conflictPlaces().inTable <= 10)
    try checkComplete(one.store)
  }

  // MARK: - Files

  @Test func aFolderInItsPlaceIsWarnedOf() throws {
    let pair = try Disagreement(3)
    let store = pair.one.store
    try FileManager.default.createDirectory(
      at: pair.archive, withIntermediateDirectories: false)
    try pair.disagree(3)
    #expect(try pair.numbers() == [4, 3, 2, 1])
    #expect(try store.settleConflictArchive().map(\.reason) == ["notAFile"])
    #expect(try store.status().conflictArchiveProblem?.contains("Move it away") == true)
    #expect(try findings(pair).count == 1)
    try FileManager.default.removeItem(at: pair.archive)
    #expect(try store.settleConflictArchive() == [])
    #expect(try store.conflictPlaces().inArchive == 1)
    #expect(try pair.numbers() == [4, 3, 2, 1])
  }

  @Test(arguments: [1, 20, 60, 400])
  func aTornBlockAtTheEndIsFoundAndNothingMoreIsLost(count: Int) throws {
    let pair = try Disagreement(6)
    let whole = try Data(contentsOf: pair.archive)
    // The file is filled up with zeros: if nothing else were missing, the block would be whole again.
    let zeros = whole.reversed().prefix { $0 == 0 }.count
    try whole.dropLast(max(min(count, 200), zeros + 1)).write(to: pair.archive)
    // The last block had one entry.
    #expect(try pair.numbers() == [6, 5, 4, 2, 1])
    let places = try pair.one.store.conflictPlaces()
    #expect(places.inArchive == 2 && places.unreadable == 1 && places.dropped.count == 0)
    #expect(try findings(pair).first?.contains("1 of 3 older conflicts") == true)
    try pair.disagree(6)
    #expect(try pair.numbers() == [7, 6, 5, 4, 2, 1])
    // What may be the rest of it is still there.
    #expect(try Data(contentsOf: pair.archive).starts(with: whole.dropLast(200)))
    #expect(try findings(pair).first?.contains("1 of 4 older conflicts") == true)
    try pair.disagree(7)
    #expect(try pair.numbers() == [8, 7, 6, 5, 4, 2, 1])
    #expect(try findings(pair).first?.contains("1 of 5 older conflicts") == true)
  }

  @Test func whatADamagedFileHasIsReadAndItGoesOn() throws {
    let pair = try Disagreement(8)
    var bytes = try Data(contentsOf: pair.archive)
    // The second block's content, and the third one's header.
    let starts = bytes.indices.filter { bytes[$0...].starts(with: Array("dsc\u{1}".utf8)) }
    #expect(starts.count == 5)
    bytes[starts[2] - 5] ^= 1
    bytes[starts[2] + 5] ^= 1
    try bytes.write(to: pair.archive)
    #expect(try pair.numbers() == [8, 7, 6, 5, 4, 1])
    #expect(try findings(pair).first?.contains("2 of 5 older conflicts") == true)
    try pair.one.store.restoreConflict(1, side: .local)
    try pair.disagree(8)
    let last = try #require(try pair.one.store.conflicts().first?.number)
    #expect(try pair.numbers() == (1...last).reversed().filter { $0 != 2 && $0 != 3 })
  }

  @Test func aMissingFileIsFoundAndWarnedOfWhenTheNextOneBegins() throws {
    let pair = try Disagreement(6)
    let store = pair.one.store
    try FileManager.default.removeItem(at: pair.archive)
    #expect(try pair.numbers() == [6, 5, 4])
    #expect(try store.conflictPlaces().unreadable == 3)
    #expect(try findings(pair).first?.contains("is missing") == true)
    try pair.disagree(6)
    #expect(try pair.numbers() == [7, 6, 5, 4])
    #expect(try store.conflictPlaces().dropped.count == 3)
    #expect(try store.settleConflictArchive().map(\.reason) == ["missing"])
    #expect(try store.settleConflictArchive() == [])
    #expect(try findings(pair) == [])
  }

  @Test(arguments: ["other", "text", "empty"])
  func anotherFileInItsPlaceIsMovedAside(kind: String) throws {
    let pair = try Disagreement(6)
    let other = try Disagreement(8)
    let content =
      kind == "other"
      ? try Data(contentsOf: other.archive) : Data((kind == "text" ? "something else" : "").utf8)
    try content.write(to: pair.archive)
    #expect(try pair.numbers() == [6, 5, 4])
    #expect(try findings(pair).count == 1)
    try pair.disagree(6)
    #expect(try pair.numbers() == [7, 6, 5, 4])
    #expect(try pair.one.store.conflictPlaces().dropped.count == 3)
    let warnings = try pair.one.store.settleConflictArchive()
    guard kind != "empty" else {
      #expect(warnings.map(\.reason) == ["missing"])
      return
    }
    #expect(warnings.map(\.reason) == ["movedAside"])
    let aside = URL(fileURLWithPath: pair.archive.path + ".old-1")
    #expect(try Data(contentsOf: aside) == content)
  }

  @Test func theFileOfALaterVersionStaysAsItIs() throws {
    let pair = try Disagreement(6)
    var bytes = try Data(contentsOf: pair.archive)
    bytes[3] = 2
    try bytes.write(to: pair.archive)
    try pair.disagree(6)
    #expect(try pair.numbers() == [7, 6, 5, 4])
    #expect(try Data(contentsOf: pair.archive) == bytes)
    #expect(try pair.one.store.settleConflictArchive().map(\.reason) == ["laterVersion"])
    #expect(try findings(pair).count == 2)
    let error = #expect(throws: StoreError.self) { try pair.one.store.conflict(1) }
    #expect(error?.code == .newerFormat)
    bytes[3] = 1
    try bytes.write(to: pair.archive)
    #expect(try pair.one.store.settleConflictArchive() == [])
    try checkComplete(pair.one.store)
  }

  // MARK: - Helpers

  /// A transaction that wrote a block and was rolled back.
  private func rollBack(_ pair: Disagreement) throws {
    #expect(throws: Stop.self) {
      try pair.one.store.write { session in
        for _ in 0..<5 {
          try session.conflicts.journal.addSettled(
            ConflictJournal.Entry(
              kind: .cell, row: RowKey(table: 1, identity: RowIdentity(bytes: [1])),
              rule: .latestWins, outcome: .local))
        }
        try session.conflicts.journal.finish()
        throw Stop()
      }
    }
  }

  /// Checks that each conflict of a store is in one place, or was dropped with the oldest ones.
  private func checkComplete(
    _ store: LocalStore, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let places = try store.conflictPlaces()
    let numbers = try store.allConflicts().map(\.number)
    let last = try store.read { try $0.conflicts.journal.summary().last }
    let first = Int64(places.dropped.count) + 1
    #expect(numbers == Array((first...last).reversed()), sourceLocation: sourceLocation)
    #expect(places.unreadable == 0, sourceLocation: sourceLocation)
    #expect(numbers.count == places.inTable + places.inArchive, sourceLocation: sourceLocation)
  }

  private func findings(_ pair: Disagreement) throws -> [String] {
    try LocalStore.verify(at: pair.one.store.path).report.findings
      .filter { $0.kind == .conflictFileUnusable }.map(\.message)
  }
}
