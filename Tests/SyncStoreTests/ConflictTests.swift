import Foundation
import SyncModel
import Testing

@testable import SyncStore

extension Device {
  /// A conflict as a line: table, key, column, both sides, rule, outcome,
  /// status.
  func conflictLines() throws -> [String] {
    try store.conflicts().reversed().map { conflict in
      func side(_ side: Conflict.Side) -> String {
        guard let cells = side.cells else { return "-" }
        if conflict.column != nil { return cells.map { text($0.value) }.joined() }
        return cells.sorted { $0.column < $1.column }
          .map { "\($0.column):\(text($0.value))" }.joined(separator: ",")
      }
      return
        "\(conflict.kind.rawValue) \(conflict.table) \(conflict.key.map { text($0.value) }.joined()) "
        + "\(conflict.column ?? "row") \(side(conflict.local))|\(side(conflict.remote)) "
        + "\(conflict.rule.rawValue) \(conflict.outcome.rawValue) \(conflict.status.rawValue)"
    }
  }

  private func text(_ value: Value) -> String {
    switch value {
    case .null: "NULL"
    case .integer(let integer): "\(integer)"
    case .real(let real): "\(real)"
    case .text(let bytes): String(decoding: bytes, as: UTF8.self)
    case .blob(let bytes): "x\(bytes.count)"
    case .identity: "row"
    }
  }
}

/// What is a conflict, and what the journal says of it.
@Suite struct ConflictTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func pair(
    _ more: String = "", options: StoreOptions = StoreOptions()
  ) throws -> (Device, Device) {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE note (id TEXT PRIMARY KEY, a, b);
      INSERT INTO note VALUES ('x', 1, 1), ('y', 1, 1);
      """ + more, options: options)
    try devices[0].setClock(offset: -100)
    try devices[1].setClock(offset: -50)
    return (devices[0], devices[1])
  }

  @Test func twoValuesForOneCellAreEnteredOnBothDevices() throws {
    let (one, two) = try pair()
    try one.run("UPDATE note SET a = 'one' WHERE id = 'x'")
    try two.run("UPDATE note SET a = 'two' WHERE id = 'x'")
    #expect(try one.receive(from: two).conflicts == 1)
    #expect(try two.receive(from: one).conflicts == 1)
    #expect(try one.conflictLines() == ["cell note x a one|two latestWins remote settled"])
    #expect(try two.conflictLines() == ["cell note x a two|one latestWins local settled"])
    let conflict = try one.store.conflict(1)
    #expect(conflict.local.stamp?.client == one.store.binding.client)
    #expect(conflict.remote.stamp?.client == two.store.binding.client)
    try converge([one, two], "SELECT a FROM note WHERE id = 'x'", ["two"])
  }

  @Test func differentColumnsAndEqualValuesAreNoConflict() throws {
    let (one, two) = try pair()
    try one.run("UPDATE note SET a = 2 WHERE id = 'x'; UPDATE note SET a = 5 WHERE id = 'y'")
    try two.run("UPDATE note SET b = 3 WHERE id = 'x'; UPDATE note SET a = 5 WHERE id = 'y'")
    try converge([one, two])
    #expect(try one.conflictLines() + two.conflictLines() == [])
  }

  @Test func anEditInKnowledgeOfTheOtherIsNoConflict() throws {
    let (one, two) = try pair()
    try one.run("UPDATE note SET a = 2 WHERE id = 'x'")
    try two.receive(from: one)
    // Its clock is behind, and its edit is later all the same.
    try two.setClock(offset: -10_000)
    try two.run("UPDATE note SET a = 3 WHERE id = 'x'")
    try converge([one, two], "SELECT a FROM note WHERE id = 'x'", ["3"])
    #expect(try one.conflictLines() + two.conflictLines() == [])
  }

  @Test func anEditOfWhatWasSeenIsNoConflictThoughMoreWasNotSeen() throws {
    let (one, two) = try pair()
    try two.run("UPDATE note SET a = 2 WHERE id = 'x'")
    try one.receive(from: two)
    try two.setClock(offset: -40)
    try two.run("UPDATE note SET a = 2 WHERE id = 'y'")
    _ = try two.store.seal()
    try one.run("UPDATE note SET a = 3 WHERE id = 'x'")
    try two.receive(from: one)
    #expect(try two.conflictLines() == [])
    try converge([one, two], "SELECT a FROM note ORDER BY id", ["3", "2"])
  }

  @Test func aClockThatWentBackMayMakeAConflictTooManyAndNeverOneTooFew() throws {
    let (one, two) = try pair()
    let base = Date()
    try two.setClock(offset: -40, from: base)
    try two.run("UPDATE note SET a = 2 WHERE id = 'x'")
    try one.receive(from: two)
    // Within one change set before and after what was seen.
    try two.setClock(offset: -60, from: base)
    try two.run("UPDATE note SET a = 2 WHERE id = 'y'")
    try two.setClock(offset: -20, from: base)
    try two.run("UPDATE note SET b = 2 WHERE id = 'y'")
    _ = try two.store.seal()
    try one.run("UPDATE note SET a = 3 WHERE id = 'x'; UPDATE note SET b = 3 WHERE id = 'y'")
    try two.receive(from: one)
    #expect(
      try two.conflictLines() == [
        "cell note x a 2|3 latestWins remote settled", "cell note y b 2|3 latestWins local settled",
      ])
    try converge([one, two], "SELECT a, b FROM note ORDER BY id", ["3|1", "2|2"])
  }

  @Test func aThirdDevicesChangeThatOneSideHasSeenIsNoConflict() throws {
    let devices = try scratch.devices(
      3, "CREATE TABLE note (id TEXT PRIMARY KEY, a); INSERT INTO note VALUES ('x', 1)")
    let base = Date()
    for (index, device) in devices.enumerated() {
      try device.setClock(offset: Double(index) - 100, from: base)
    }
    try devices[0].run("UPDATE note SET a = 'zero'")
    try devices[1].receive(from: devices[0])
    try devices[1].run("UPDATE note SET a = 'one'")
    try devices[2].run("UPDATE note SET a = 'two'")
    try devices[2].receive(from: devices[0])
    #expect(try devices[2].conflictLines().count == 1)
    try devices[2].receive(from: devices[1])
    // The new value of device 1 replaces one that it had seen; against the
    // own, which won, it is a conflict of its own.
    #expect(
      try devices[2].conflictLines() == [
        "cell note x a two|zero latestWins local settled",
        "cell note x a two|one latestWins local settled",
      ])
  }

  @Test(arguments: ["", "CREATE TABLE c (id INTEGER PRIMARY KEY, n TEXT REFERENCES note);"])
  func anEditMeetsADeletionAndIsKeptWhole(more: String) throws {
    let (one, two) = try pair(more)
    try one.run("DELETE FROM note WHERE id = 'x'")
    try two.run("UPDATE note SET a = 'new' WHERE id = 'x'")
    let there = try one.receive(from: two)
    let here = try two.receive(from: one)
    try converge([one, two], "SELECT count(*) FROM note", ["1"])
    #expect(
      try two.conflictLines() == [
        "existence note x row a:new,b:1,id:x|- deleteWins remote settled"
      ])
    #expect(try one.conflictLines().count == 1)
    #expect(try one.conflictLines()[0].contains("existence note x row -|a:new"))
    #expect(there.warnings.map(\.code) == [.editOfDeletedRow])
    #expect(there.warnings[0].names == ["a"] && there.warnings[0].table == "note")
    #expect(here.warnings.map(\.code) == [.deletionOfEditedRow])
    try two.store.restoreConflict(1)
    try converge([one, two], "SELECT a, b FROM note WHERE id = 'x'", ["new|1"])
  }

  /// A row that is shown although it was deleted, since another row refers to it.
  @Test func aDeletedRowThatIsShownIsNoConflict() throws {
    let (one, two) = try pair(
      "CREATE TABLE street (id TEXT PRIMARY KEY, note TEXT REFERENCES note);")
    try one.run("DELETE FROM note WHERE id = 'x'")
    try two.run(
      "UPDATE note SET a = 'new' WHERE id = 'x'; INSERT INTO street VALUES ('s', 'x')")
    let reports = [try one.receive(from: two), try two.receive(from: one)]
    try converge([one, two], "SELECT a FROM note WHERE id = 'x'", ["new"])
    for report in reports { #expect(report.warnings.isEmpty && report.conflicts == 0) }
    for device in [one, two] { #expect(try device.conflictLines() == []) }
  }

  /// With `editWins` the journal has an entry, and nothing to warn of.
  @Test func anEditThatBringsARowBackIsNotSaidToBeLost() throws {
    var configuration = StoreConfiguration()
    configuration.tableMergeTypes = ["note": .editWins]
    let devices = try scratch.devices(
      2, "CREATE TABLE note (id TEXT PRIMARY KEY, a); INSERT INTO note VALUES ('x', 'base');",
      configuration: configuration)
    try devices[0].run("DELETE FROM note")
    usleep(2_000)
    try devices[1].run("UPDATE note SET a = 'new'")
    let reports = [
      try devices[0].receive(from: devices[1]), try devices[1].receive(from: devices[0]),
    ]
    try converge(devices, "SELECT a FROM note", ["new"])
    for report in reports { #expect(report.warnings.isEmpty && report.conflicts == 1) }
    #expect(try devices[0].conflictLines().count == 1)
  }

  @Test func referencesAreWarnedOfApart() throws {
    let (one, two) = try pair(
      """
      CREATE TABLE tag (id INTEGER PRIMARY KEY, note TEXT REFERENCES note, word TEXT);
      INSERT INTO tag VALUES (1, 'x', 'w');
      """)
    try one.run("UPDATE tag SET note = 'y'")
    try two.run("DELETE FROM tag")
    #expect(try one.receive(from: two).warnings.map(\.code) == [.deletionOfReferringRow])
    let report = try two.receive(from: one)
    #expect(report.warnings.map(\.code) == [.referenceOfDeletedRow])
    #expect(report.warnings[0].names == ["note"])
  }

  @Test func aDeletionThatWasMadeInKnowledgeOfTheEditIsNoConflict() throws {
    let (one, two) = try pair()
    try one.run("UPDATE note SET a = 2 WHERE id = 'x'")
    try two.receive(from: one)
    try two.run("DELETE FROM note WHERE id = 'x'")
    try converge([one, two])
    #expect(try one.conflictLines() + two.conflictLines() == [])
  }

  @Test func twoRowsWithOneUniqueValueAreEntered() throws {
    let (one, two) = try pair("CREATE TABLE p (id INTEGER PRIMARY KEY, mail TEXT UNIQUE, n);")
    try one.run("INSERT INTO p (mail, n) VALUES ('m', 'one')")
    try two.run("INSERT INTO p (mail, n) VALUES ('m', 'two')")
    let report = try one.receive(from: two)
    #expect(report.warnings.map(\.code) == [.parked])
    #expect(report.warnings[0].reason == "uniqueValueTaken" && report.warnings[0].count == 1)
    try two.receive(from: one)
    #expect(
      try one.conflictLines() == ["uniqueValue p 1 row mail:m,n:one|- uniqueValue remote settled"])
    #expect(
      try two.conflictLines().map { $0.split(separator: " ").dropFirst(3).joined(separator: " ") }
        == ["row -|mail:m,n:one uniqueValue local settled"])
    // As long as the value is taken it cannot come back.
    let refused = #expect(throws: StoreError.self) { try one.store.restoreConflict(1) }
    #expect(refused?.code == .editRefused)
    #expect(
      refused?.message == "Conflict 1 cannot be decided that way. "
        + "Another row already has this value, which must be unique: p.mail.")
    try two.run("UPDATE p SET mail = 'other'")
    try converge([one, two], "SELECT n FROM p ORDER BY n", ["one", "two"])
    #expect(try one.store.conflict(1).outcome == .both)
  }

  @Test func aRowThatGoesWithItsParentIsEnteredAndOneThatOnlyWaitedIsNot() throws {
    let (one, two) = try pair(
      "CREATE TABLE c (id INTEGER PRIMARY KEY, note TEXT REFERENCES note ON DELETE CASCADE, t);")
    try one.run("DELETE FROM note WHERE id = 'x'")
    try two.run("INSERT INTO c (note, t) VALUES ('x', 'text')")
    try exchange([one, two])
    #expect(try two.conflictLines().contains { $0.contains("reference c") })
    #expect(try two.conflictLines().contains { $0.contains("t:text") })
    let other = try ConflictTests()
    let (third, fourth) = try other.pair(
      "CREATE TABLE c (id INTEGER PRIMARY KEY, up INTEGER REFERENCES c);")
    try third.program.run("PRAGMA foreign_keys = OFF; INSERT INTO c VALUES (1, 2), (2, NULL)")
    try converge([third, fourth])
    #expect(try third.conflictLines() + fourth.conflictLines() == [])
  }

  @Test func everyKindOfValueIsKeptExactly() throws {
    let (one, two) = try pair(
      "CREATE TABLE v (k INTEGER PRIMARY KEY, v); INSERT INTO v VALUES "
        + (0..<12).map { "(\($0 + 1), 'old')" }.joined(separator: ", ") + ";")
    let literals = [
      "9223372036854775807", "-9223372036854775808", "9e999", "-9e999", "NULL", "''", "x''",
      "CAST(x'610062' AS TEXT)", "CAST(x'ff61' AS TEXT)", "x'00ff'", "-0.0", "1.0",
    ]
    for (index, literal) in literals.enumerated() {
      try one.run("UPDATE v SET v = \(literal) WHERE k = \(index + 1)")
    }
    let before = try one.rows("SELECT k, typeof(v), hex(v), v FROM v")
    try two.run("UPDATE v SET v = 'two'")
    try one.receive(from: two)
    let lost = try one.store.conflicts()
    #expect(lost.count == literals.count)
    for conflict in lost { try one.store.restoreConflict(conflict.number) }
    #expect(try one.rows("SELECT k, typeof(v), hex(v), v FROM v") == before)
    try converge([one, two], "SELECT k, typeof(v), hex(v), v FROM v", before)
  }

  /// The restaurant of one place is shown as that of the place that stands in for it, where another
  /// one was deleted.
  @Test func anEditOfADeletedRowIsEnteredWhereAnotherIsShownInItsPlace() throws {
    let (one, two) = try pair(
      """
      CREATE TABLE place (id INTEGER PRIMARY KEY, name UNIQUE);
      CREATE TABLE restaurant (id INTEGER PRIMARY KEY REFERENCES place, a);
      INSERT INTO place VALUES (1, 'one'), (2, 'two'); INSERT INTO restaurant VALUES (1, 1), (2, 2);
      """)
    try one.run("UPDATE place SET name = 'same' WHERE id = 1; DELETE FROM restaurant WHERE id = 2")
    try two.run("UPDATE place SET name = 'same' WHERE id = 2")
    _ = try one.receive(from: two)
    #expect(try one.rows("SELECT id, a FROM restaurant") == ["2|1"])
    try two.run("UPDATE restaurant SET a = 'edited' WHERE id = 2")
    _ = try one.receive(from: two)
    let entered = try one.conflictLines().filter { $0.contains("restaurant") }
    #expect(entered == ["existence restaurant row row -|a:edited,id:row deleteWins local settled"])
    try converge([one, two], "SELECT id, a FROM restaurant", ["2|1"])
  }

  /// Who edits a row that is shown although it was deleted inserts it again: that is no version that
  /// lives on.
  @Test func anEditOfARowThatLivesAgainIsEnteredWhereBothVersionsAreKept() throws {
    var configuration = StoreConfiguration()
    configuration.tableMergeTypes = ["part": .keepBoth]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE part (id INTEGER PRIMARY KEY, a, whole INTEGER REFERENCES part);
      INSERT INTO part VALUES (5, 1, NULL);
      """, configuration: configuration)
    let (one, two) = (devices[0], devices[1])
    try one.run("INSERT INTO part VALUES (6, 1, 5)")
    try two.run("DELETE FROM part WHERE id = 5")
    _ = try two.receive(from: one)
    try two.run("UPDATE part SET a = 'edited' WHERE id = 5")
    try one.setClock(offset: 1000)
    try one.run("DELETE FROM part")
    _ = try one.receive(from: two)
    let entered = try one.conflictLines().filter { $0.contains("edited") }
    #expect(entered.count == 1)
    try converge(devices, "SELECT count(*) FROM part", ["0"])
  }

  @Test func restoringIsAnOrdinaryEditAndHappensOnce() throws {
    let (one, two) = try pair()
    try one.run("UPDATE note SET a = 'one' WHERE id = 'x'")
    try two.run("UPDATE note SET a = 'two' WHERE id = 'x'")
    try exchange([one, two])
    try one.store.restoreConflict(1)
    #expect(try one.store.conflict(1).status == .restored)
    try converge([one, two], "SELECT a FROM note WHERE id = 'x'", ["one"])
    let again = #expect(throws: StoreError.self) { try one.store.restoreConflict(1) }
    #expect(again?.code == .conflictNotOpen)
    let none = #expect(throws: StoreError.self) { try one.store.restoreConflict(99) }
    #expect(none?.code == .noSuchConflict)
    let closed = #expect(throws: StoreError.self) {
      try one.store.resolveConflict(1, by: .local)
    }
    #expect(closed?.code == .conflictNotOpen)
  }

  /// The value of a conflict's cell, which side that is, and the status.
  private func now(_ number: Int64, on device: Device) throws -> String {
    let conflict = try device.store.conflict(number)
    let listed = try device.store.conflicts().first { $0.number == number }
    #expect(listed == conflict)
    let now = try #require(conflict.now)
    let value: String? =
      switch now.value {
      case .text(let bytes): String(decoding: bytes, as: UTF8.self)
      case nil: now.isShown ? "shown" : "hidden"
      default: nil
      }
    return "\(value ?? "?") \(now.outcome?.rawValue ?? "-") \(conflict.status.rawValue)"
  }

  @Test func theJournalNamesTheSideThatIsShownSinceAndRestoresTheOtherOne() throws {
    let (one, two) = try pair()
    try one.run("UPDATE note SET a = 'one' WHERE id = 'x'")
    try two.run("UPDATE note SET a = 'two' WHERE id = 'x'")
    try exchange([one, two])
    #expect(try now(1, on: one) == "two remote settled")
    #expect(try now(1, on: two) == "two local settled")
    try two.store.restoreConflict(1)
    #expect(try now(1, on: two) == "one remote restored")
    try exchange([one, two])
    #expect(try now(1, on: one) == "one local superseded")
    // The stored outcome is what the rule decided.
    #expect(try one.store.conflict(1).outcome == .remote)
    try one.store.restoreConflict(1)
    try converge([one, two], "SELECT a FROM note WHERE id = 'x'", ["two"])
  }

  @Test func aLaterEditSupersedesWhatARuleDecided() throws {
    let (one, two) = try pair()
    try one.run("UPDATE note SET a = 'one' WHERE id = 'x'")
    try two.run("UPDATE note SET a = 'two' WHERE id = 'x'")
    try exchange([one, two])
    // The edit is not sealed yet.
    try one.run("UPDATE note SET a = 'later' WHERE id = 'x'")
    #expect(try now(1, on: one) == "later other superseded")
    try exchange([one, two])
    #expect(try now(1, on: two) == "later other superseded")
    let unnamed = #expect(throws: StoreError.self) { try two.store.restoreConflict(1) }
    #expect(unnamed?.code == .editRefused)
    try two.store.restoreConflict(1, side: .remote)
    #expect(try now(1, on: two) == "one remote restored")
    // The same value, but by a later edit.
    try exchange([one, two])
    try one.run("UPDATE note SET a = 'two' WHERE id = 'x'")
    try exchange([one, two])
    #expect(try now(1, on: one) == "two remote superseded")
  }

  @Test func theDecisionOfAPolicyIsNoLaterEdit() throws {
    let (one, two) = try pair()
    try one.store.setPolicies { $0.set(.localWins, table: "note", column: nil) }
    try one.run("UPDATE note SET a = 'one' WHERE id = 'x'")
    try two.run("UPDATE note SET a = 'two' WHERE id = 'x'")
    try one.receive(from: two)
    #expect(try now(1, on: one) == "one local settled")
    try one.run("UPDATE note SET a = 'two' WHERE id = 'x'")
    #expect(try now(1, on: one) == "two remote superseded")
  }

  @Test func theJournalSaysWhetherARowIsShownNow() throws {
    let (one, two) = try pair("CREATE TABLE p (id INTEGER PRIMARY KEY, mail TEXT UNIQUE, n);")
    try one.run("DELETE FROM note WHERE id = 'x'; INSERT INTO p (mail) VALUES ('m')")
    try two.run("UPDATE note SET a = 'new' WHERE id = 'x'; INSERT INTO p (mail) VALUES ('m')")
    try exchange([one, two])
    #expect(try two.store.conflicts().map(\.kind) == [.uniqueValue, .existence])
    #expect(try now(1, on: two) == "hidden remote settled")
    #expect(try now(2, on: two) == "hidden local settled")
    try one.run("INSERT INTO note VALUES ('x', 5, 5); DELETE FROM p")
    try exchange([one, two])
    #expect(try now(1, on: two) == "shown local superseded")
    try two.run("UPDATE p SET mail = 'other'")
    try exchange([one, two])
    let refused = #expect(throws: StoreError.self) { try two.store.restoreConflict(1) }
    #expect(refused?.code == .editRefused)
  }

  @Test func ofATableThatIsGoneNothingIsShown() throws {
    let (one, two) = try pair()
    try one.run("UPDATE note SET a = 'one' WHERE id = 'x'")
    try two.run("UPDATE note SET a = 'two' WHERE id = 'x'")
    try exchange([one, two])
    try one.program.run("DROP TABLE note")
    let gone = try one.store.conflicts()
    #expect(gone.map(\.now) == [nil] && gone.map(\.status) == [.settled])
  }

  @Test func restoringWhatAConstraintRefusesChangesNothing() throws {
    let (one, two) = try pair("CREATE TABLE k (id TEXT PRIMARY KEY, p TEXT REFERENCES note);")
    try one.run("INSERT INTO k VALUES ('1', 'x')")
    try converge([one, two])
    try one.run("UPDATE k SET p = 'y'")
    try two.run("UPDATE k SET p = NULL")
    try exchange([one, two])
    try one.run("DELETE FROM note WHERE id = 'y'")
    let error = #expect(throws: StoreError.self) { try one.store.restoreConflict(1) }
    #expect(error?.code == .editRefused)
    #expect(error?.message.contains("does not exist") == true)
    #expect(try one.rows("SELECT p FROM k") == ["NULL"])
    #expect(try one.store.conflict(1).status == .settled)
  }

  @Test func largeValuesMakeTheJournalKeepFewer() throws {
    var options = StoreOptions()
    options.conflictBytes = 5_000
    let (one, two) = try pair(options: options)
    try one.run(
      "WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) "
        + "INSERT INTO note (id, a) SELECT 'n' || i, '' FROM n")
    try exchange([one, two])
    try one.run("UPDATE note SET a = zeroblob(1000)")
    try two.run("UPDATE note SET a = 'two'")
    try exchange([one, two])
    #expect(try one.store.conflicts().count == 4)
    #expect(try one.store.conflictPlaces().inArchive == 7)
  }

  /// Open questions are beyond the bound, but not once they are closed.
  @Test(arguments: ["sealed", "arrived", "answered", "dropped"])
  func questionsThatAreClosedCountAgain(how: String) throws {
    var options = StoreOptions()
    options.conflictEntries = 0
    let (one, two) = try pair(options: options)
    try one.store.setPolicies { policies in
      for column: SQLName in ["a", "b"] { policies.set(.ask, table: "note", column: column) }
    }
    try one.run("UPDATE note SET a = 'one', b = 'one' WHERE id = 'x'")
    try two.run("UPDATE note SET a = 'two', b = 'two' WHERE id = 'x'")
    try one.receive(from: two)
    let open = try one.store.conflicts(onlyOpen: true).map(\.number)
    #expect(open.count == 2)
    switch how {
    case "sealed":
      try one.run("DELETE FROM note")
      _ = try one.store.seal()
    case "arrived":
      try two.receive(from: one)
      try two.run("DELETE FROM note")
      try one.receive(from: two)
    case "answered":
      for number in open { try one.store.resolveConflict(number, by: .local) }
    default:
      try one.run("ALTER TABLE note DROP COLUMN a; ALTER TABLE note DROP COLUMN b")
      _ = try one.store.status()
    }
    #expect(try one.store.openConflictCount() == 0)
    #expect(try one.store.conflicts().map(\.number) == [2])
    #expect(try one.store.allConflicts().map(\.number) == [2, 1])
  }

  @Test func openQuestionsAreNotDropped() throws {
    var options = StoreOptions()
    options.conflictEntries = 2
    let (one, two) = try pair(options: options)
    try one.store.setPolicies { $0.set(.ask, table: "note", column: "b") }
    try one.run("UPDATE note SET b = 'one'")
    try two.run("UPDATE note SET b = 'two'")
    try exchange([one, two])
    for round in 0..<4 {
      try one.run("UPDATE note SET a = 'one \(round)' WHERE id = 'x'")
      try two.run("UPDATE note SET a = 'two \(round)' WHERE id = 'x'")
      try exchange([one, two])
    }
    #expect(try one.store.openConflictCount() == 2)
    #expect(try one.store.conflicts().map(\.number) == [6, 2, 1])
  }

  @Test func aSnapshotHasNoJournalAndKnowsWhatIsConcurrent() throws {
    let (one, two) = try pair()
    try one.run("UPDATE note SET a = 'one' WHERE id = 'x'")
    try two.run("UPDATE note SET a = 'two' WHERE id = 'x'; UPDATE note SET b = 7 WHERE id = 'y'")
    try one.receive(from: two)
    let path = scratch.path + "/joined.db"
    for sealed in try one.store.sealedChangeSets() { try one.store.markPublished(sealed.number) }
    _ = try one.store.snapshot(to: path)
    let joined = try Device(
      store: try LocalStore.adopt(snapshotAt: path, binding: scratch.binding("joined")),
      path: path)
    #expect(try joined.store.conflicts() == [])
    #expect(try joined.store.droppedConflicts().count == 0)
    // Device 2 has not seen device 1's change, which the snapshot contains.
    try two.run("UPDATE note SET a = 'again' WHERE id = 'x'; UPDATE note SET b = 8 WHERE id = 'y'")
    try joined.receive(from: one, two)
    #expect(try joined.conflictLines().isEmpty)
    try one.run("UPDATE note SET b = 9 WHERE id = 'y'")
    try joined.receive(from: one, two)
    #expect(try joined.conflictLines().count == 1)
  }

  @Test func aClockThatIsFarAheadIsWarnedOf() throws {
    let (one, two) = try pair()
    try two.setClock(offset: 3 * 86_400)
    try two.run("UPDATE note SET a = 2 WHERE id = 'x'")
    let report = try one.receive(from: two)
    #expect(report.warnings.map(\.code) == [.clockAhead])
    #expect(report.warnings[0].client == two.store.binding.client)
    let days = Double(report.warnings[0].milliseconds ?? 0) / 86_400_000
    #expect(days > 2.9 && days < 3.1)
  }

  @Test func changesToRowsThatWereNeverSeenAreWarnedOf() throws {
    let (one, two) = try pair()
    try two.program.run("UPDATE note SET a = 2 WHERE id = 'x'; DELETE FROM note WHERE id = 'y'")
    let sets = try two.outgoing()
    // As if this device had lost the rows without a word.
    try one.store.write { session in
      try session.database.execute(sql: "DELETE FROM note")
    }
    let report = try one.store.apply(sets)
    #expect(Set(report.warnings.map(\.code)).isSuperset(of: [.rowMissingForDelete]))
    #expect(Set(report.warnings.map(\.code)).isSuperset(of: [.rowMissingForUpdate]))
  }

  @Test func aSchemaThatIsAheadIsWarnedOf() throws {
    let (one, two) = try pair()
    try two.program.run("ALTER TABLE note ADD COLUMN c; UPDATE note SET c = 1 WHERE id = 'x'")
    let report = try one.receive(from: two)
    #expect(report.warnings.map(\.code) == [.schemaAhead])
    #expect(report.warnings[0].names == ["note.c"])
  }

  /// A deleted row is held by another row and shown under the identity of a third, since its tag has
  /// a stand-in. Each of the endings ends that.
  @Test(
    arguments: [
      "DELETE FROM mark", "DELETE FROM mark; DELETE FROM note_tag",
      "UPDATE note_tag SET text = 'c'", "UPDATE note_tag SET note = 'o'; DELETE FROM mark",
    ], 0..<3)
  func aDeletedRowThatIsShownUnderAnotherIdentityIsEnteredWhenThatEnds(
    ending: String, on ender: Int
  ) throws {
    let devices = try scratch.devices(
      3,
      """
      CREATE TABLE tag (id TEXT PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE note_tag (note TEXT, tag TEXT REFERENCES tag, text TEXT,
        PRIMARY KEY (note, tag));
      CREATE TABLE mark (id TEXT PRIMARY KEY, note TEXT, tag TEXT,
        FOREIGN KEY (note, tag) REFERENCES note_tag ON UPDATE CASCADE);
      """)
    for (index, device) in devices.enumerated() {
      try device.setClock(offset: -100 + 10 * Double(index))
    }
    try devices[0].run(
      "INSERT INTO tag VALUES ('t', 'red'); INSERT INTO note_tag VALUES ('n', 't', 'a')")
    try devices[1].receive(from: devices[0])
    try devices[1].run(
      "UPDATE note_tag SET text = 'b'; INSERT INTO mark VALUES ('m', 'n', 't')")
    try devices[0].run("DELETE FROM note_tag")
    try devices[2].run("INSERT INTO tag VALUES ('u', 'red')")
    try converge(devices, "SELECT note, tag, text FROM note_tag", ["n|u|b"])
    func entries(_ device: Device) throws -> [String] {
      try device.conflictLines().filter { $0.hasPrefix("existence note_tag") }
    }
    for device in devices { #expect(try entries(device) == []) }
    try devices[ender].run(ending)
    try converge(devices)
    for device in devices {
      #expect(
        try entries(device)
          == ["existence note_tag nt row note:n,tag:t,text:b|- deleteWins remote settled"])
    }
  }
}

/// How the store knows what an author had not seen.
@Suite struct ConcurrencyTests {
  @Test func oldRangesAreJoinedAndStillSayEnough() throws {
    let scratch = try Scratch()
    let device = try scratch.devices(1, "CREATE TABLE t (id TEXT PRIMARY KEY)")[0]
    try device.store.write { session in
      for number: UInt64 in 1...3000 {
        let time = HybridTime(rawValue: number * 10)
        try session.ranges.record(client: 7, number: number, time...time)
      }
      let rows = try SQLStatement("SELECT count(*) FROM docsync_range", on: session.database)
      #expect(try rows.step() && rows.integer(at: 0) < 1400)
      rows.reset()
      #expect(try session.ranges.times(of: 7, after: 2990, through: 3000).count == 10)
      let old = try session.ranges.times(of: 7, after: 100, through: 3000)
      for number: UInt64 in 101...3000 {
        #expect(old.contains { $0.contains(number * 10) })
      }
      // One that is not known could be of any time.
      #expect(try session.ranges.times(of: 7, after: 2990, through: 3001) == [0...UInt64.max])
      #expect(try session.ranges.times(of: 8, after: 0, through: 1) == [0...UInt64.max])
    }
  }
}
