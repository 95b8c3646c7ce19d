import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Numbers that led to no row for their author, where a device on which a row has that number
/// decides for them: by a policy, an answer or the journal.
@Suite struct PlainDecisionTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// The columns that hold such a number: a declared reference, and a foreign key.
  enum Column: String, CaseIterable {
    case declared = "kind INTEGER"
    case enforced = "kind INTEGER REFERENCES kind"
  }

  private static let query =
    "SELECT note.id, name FROM note LEFT JOIN kind ON kind.id = kind ORDER BY 1"

  /// Three devices with a note, and kinds.
  private func devices(_ column: Column) throws -> [Device] {
    var configuration = StoreConfiguration()
    if column == .declared { configuration.references = ["note": ["kind": "kind"]] }
    let devices = try scratch.devices(
      3,
      """
      CREATE TABLE kind (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE note (id TEXT PRIMARY KEY, \(column.rawValue));
      INSERT INTO kind VALUES (1, 'one'), (2, 'two');
      INSERT INTO note VALUES ('n', 1);
      """, configuration: configuration)
    try devices[0].setClock(offset: -100)
    try devices[1].setClock(offset: -50)
    return devices
  }

  /// The first device writes a number of its own, and the second one, on which a kind has that
  /// number, another kind. It decides when it hears of the first one.
  private func disagree(_ devices: [Device]) throws {
    try devices[0].run("PRAGMA foreign_keys = OFF; UPDATE note SET kind = 7")
    try devices[1].run("INSERT INTO kind VALUES (7, 'seven'); UPDATE note SET kind = 2")
    try devices[1].receive(from: devices[0])
  }

  /// Checks to which kind the note refers on the devices on which no kind has the plain value as its
  /// number.
  private func check(
    _ devices: [Device], _ rows: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    try converge(devices, sourceLocation: sourceLocation)
    for device in [devices[0], devices[2]] {
      #expect(try device.rows(Self.query) == rows, sourceLocation: sourceLocation)
    }
    for device in devices {
      #expect(
        try LocalStore.verify(at: device.path).report.findings == [],
        sourceLocation: sourceLocation)
      #expect(try device.sealsNothing(), sourceLocation: sourceLocation)
    }
  }

  private func checkPlain(
    _ devices: [Device], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    #expect(try devices[1].rows("SELECT kind FROM note") == ["7"], sourceLocation: sourceLocation)
    try check(devices, ["n|NULL"], sourceLocation: sourceLocation)
    // The kind gets another number, and the plain value stays.
    try devices[1].run("UPDATE kind SET id = 9 WHERE id = 7")
    try converge(devices, "SELECT kind FROM note", ["7"], sourceLocation: sourceLocation)
  }

  // MARK: - Policies

  @Test func aPolicyThatTakesAPlainValueLeavesItPlain() throws {
    let devices = try devices(.declared)
    try devices[1].setPolicy(.remoteWins)
    try disagree(devices)
    #expect(try devices[1].store.conflict(1).outcome == .remote)
    try checkPlain(devices)
  }

  /// With a foreign key the number refers to no row, as where no row has it.
  @Test func aPolicyCannotTakeAPlainValueForAForeignKey() throws {
    let devices = try devices(.enforced)
    try devices[1].setPolicy(.remoteWins)
    try disagree(devices)
    #expect(try devices[1].store.conflict(1).status == .open)
    try check(devices, ["n|two"])
  }

  /// A kind gets the number after the device has sealed it as a plain value.
  @Test func aPolicyThatKeepsAPlainValueLeavesItPlain() throws {
    let devices = try devices(.declared)
    try devices[1].setPolicy(.localWins)
    try devices[1].setClock(offset: -150)
    try devices[1].run("UPDATE note SET kind = 7")
    _ = try devices[1].store.seal()
    try devices[1].run("INSERT INTO kind VALUES (7, 'seven')")
    try devices[0].run("UPDATE note SET kind = 2")
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].store.conflict(1).outcome == .local)
    try checkPlain(devices)
  }

  /// A function returns what one side wrote, or a number of its own, which names a row here.
  @Test(arguments: [true, false])
  func aNumberThatAFunctionReturnsIsPlainIfASideWroteIt(isRemote: Bool) throws {
    let devices = try devices(.declared)
    try devices[1].setPolicy(.resolve("choose"))
    devices[1].store.setResolver("choose") { isRemote ? $0.remote : .integer(8) }
    try devices[1].run("INSERT INTO kind VALUES (8, 'eight')")
    try disagree(devices)
    #expect(try devices[1].store.conflict(1).outcome == (isRemote ? .remote : .other))
    if isRemote { try checkPlain(devices) } else { try check(devices, ["n|eight"]) }
  }

  /// The function is refused since it changes the kind of a value, and what it wrote is undone.
  @Test func aRefusedPolicyLeavesNoPlainValue() throws {
    let devices = try scratch.devices(
      3,
      """
      CREATE TABLE kind (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE note (id TEXT PRIMARY KEY, kind INTEGER, a INTEGER, b INTEGER,
        CHECK (kind IS NULL OR a >= 0));
      INSERT INTO kind VALUES (1, 'one'), (2, 'two');
      INSERT INTO note VALUES ('n', 1, 1, 1);
      """,
      configuration: {
        var configuration = StoreConfiguration()
        configuration.references = ["note": ["kind": "kind"]]
        return configuration
      }())
    try devices[0].setClock(offset: -100)
    try devices[1].setClock(offset: -50)
    try devices[1].setPolicy(.remoteWins)
    try devices[1].setPolicy(.resolve("text"), table: "note", column: "a")
    devices[1].store.setResolver("text") { _ in .text(Array("no number".utf8)) }
    try devices[0].run("UPDATE note SET kind = 7, a = 2, b = 2")
    try devices[1].run(
      "INSERT INTO kind VALUES (7, 'seven'); UPDATE note SET kind = 7, a = 3, b = 3")
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].store.conflicts(onlyOpen: true).count == 2)
    // Another column of the row is decided, and sealed.
    #expect(try devices[1].rows("SELECT kind, a, b FROM note") == ["7|3|2"])
    try check(devices, ["n|seven"])
  }

  // MARK: - Answers

  @Test func anAnswerThatTakesAPlainValueLeavesItPlain() throws {
    let devices = try devices(.declared)
    try devices[1].setPolicy(.ask)
    try disagree(devices)
    try devices[1].store.resolveConflict(1, by: .remote)
    try checkPlain(devices)
  }

  @Test func anAnswerCannotTakeAPlainValueForAForeignKey() throws {
    let devices = try devices(.enforced)
    try devices[1].setPolicy(.ask)
    try disagree(devices)
    #expect(throws: StoreError.self) { try devices[1].store.resolveConflict(1, by: .remote) }
    try check(devices, ["n|two"])
  }

  /// If a user types a number, it names the row that has it on this device.
  @Test(arguments: Column.allCases)
  func aNumberThatIsTypedNamesARowOfTheDevice(column: Column) throws {
    let devices = try devices(column)
    try devices[1].setPolicy(.ask)
    try disagree(devices)
    try devices[1].store.resolveConflict(1, by: .value(.integer(7)))
    try check(devices, ["n|seven"])
  }

  /// The note shows the plain number already, and the answer is the row with that number.
  @Test func anAnswerTakesTheRowThatAPlainValueSeemedToBe() throws {
    let devices = try devices(.declared)
    try devices[1].setPolicy(.ask)
    try devices[1].setClock(offset: -150)
    try devices[1].run("INSERT INTO kind VALUES (7, 'seven'); UPDATE note SET kind = 7")
    try devices[0].run("UPDATE note SET kind = 7")
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].rows("SELECT kind FROM note") == ["7"])
    try devices[1].store.resolveConflict(1, by: .local)
    try check(devices, ["n|seven"])
  }

  // MARK: - The journal

  @Test func aPlainValueThatIsRestoredStaysPlain() throws {
    let devices = try devices(.declared)
    try disagree(devices)
    try devices[1].store.restoreConflict(1)
    try checkPlain(devices)
  }

  @Test func aPlainValueOfAForeignKeyIsNotRestored() throws {
    let devices = try devices(.enforced)
    try disagree(devices)
    #expect(throws: StoreError.self) { try devices[1].store.restoreConflict(1) }
    #expect(try devices[1].rows("SELECT kind FROM note") == ["2"])
    try check(devices, ["n|two"])
  }

  /// A note was deleted before the plain value arrived.
  @Test func aRowThatIsRestoredHasItsPlainValue() throws {
    let devices = try devices(.declared)
    try deleteBeforeEdit(devices)
    try devices[1].store.restoreConflict(1)
    try checkPlain(devices)
  }

  @Test func aRowWithAPlainValueOfAForeignKeyIsNotRestored() throws {
    let devices = try devices(.enforced)
    try deleteBeforeEdit(devices)
    #expect(throws: StoreError.self) { try devices[1].store.restoreConflict(1) }
    try check(devices, [])
  }

  private func deleteBeforeEdit(_ devices: [Device]) throws {
    try devices[0].run("PRAGMA foreign_keys = OFF; UPDATE note SET kind = 7")
    try devices[1].run("INSERT INTO kind VALUES (7, 'seven'); DELETE FROM note")
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].rows("SELECT * FROM note") == [])
  }

  /// A row that refers to nothing is hidden, and its number is free for plain values. When the row that it refers
  /// to besides is deleted, it goes with that row.
  @Test(arguments: ["CASCADE", "RESTRICT", "SET NULL"])
  func aPlainNumberStaysWhenTheHiddenRowThatHadItGoes(rule: String) throws {
    var configuration = StoreConfiguration()
    configuration.references = ["t": ["n": "t"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, a INTEGER REFERENCES t ON DELETE \(rule),
        b INTEGER REFERENCES t);
      INSERT INTO t VALUES (1, NULL, 2, NULL), (2, NULL, NULL, NULL);
      """, configuration: configuration)
    try devices[0].run("PRAGMA foreign_keys = OFF; UPDATE t SET b = 99 WHERE id = 1")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT id FROM t") == ["2"])
    try devices[1].run("INSERT INTO t (id, n) VALUES (100, 1)")
    try converge(devices, "SELECT n FROM t ORDER BY n", ["NULL", "1"])
    try devices[1].run("PRAGMA foreign_keys = OFF; DELETE FROM t WHERE id = 2")
    try converge(devices, "SELECT n FROM t", ["1"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings.isEmpty)
    }
  }

  /// A row that was inserted and deleted between two synchronizations leaves no number for which a note
  /// would be needed.
  @Test func aPlainNumberNeedsNoNoteWhenTheRowThatHadItCameAndWent() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE p (id INTEGER PRIMARY KEY);
      CREATE TABLE c (l INTEGER REFERENCES p, k INTEGER, PRIMARY KEY (l, k));
      CREATE TABLE r (s INTEGER, k INTEGER, PRIMARY KEY (s, k));
      CREATE TABLE d (id INTEGER PRIMARY KEY, a INTEGER, x INTEGER, y INTEGER,
        FOREIGN KEY (a, x) REFERENCES c (l, k), FOREIGN KEY (a, y) REFERENCES r (s, k));
      """)
    try devices[0].run("INSERT INTO p VALUES (6)")
    try devices[0].run("DELETE FROM p")
    try devices[0].run(
      "PRAGMA foreign_keys = OFF; INSERT INTO d (a, x, y) VALUES (6, NULL, NULL), (3, 3, 5)")
    try converge(devices, "SELECT a, x, y FROM d", ["6|NULL|NULL"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings.isEmpty)
    }
  }
}
