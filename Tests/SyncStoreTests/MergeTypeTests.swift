import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Merge types that are part of the document.
@Suite struct MergeTypeTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static func configuration(_ type: TableMergeType) -> StoreConfiguration {
    var configuration = StoreConfiguration()
    configuration.tableMergeTypes = ["note": type]
    return configuration
  }

  private static let schemas = [
    "CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, body TEXT); "
      + "INSERT INTO note VALUES (1, 't', 'b')",
    "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, body TEXT); "
      + "INSERT INTO note VALUES ('1', 't', 'b')",
  ]

  // MARK: - editWins

  @Test(arguments: schemas, [-60.0, 60.0])
  func anEditWinsOverADeletionWhateverTheClocksSay(schema: String, offset: Double) throws {
    let devices = try scratch.devices(
      3, schema, configuration: Self.configuration(.editWins))
    try devices[0].setClock(offset: 0)
    try devices[1].setClock(offset: offset)
    try devices[0].run("DELETE FROM note")
    try devices[1].run("UPDATE note SET title = 'edited'")
    try converge(devices, "SELECT title, body FROM note", ["edited|b"])
    #expect(try devices.allSatisfy { try $0.sealsNothing() })
    // Who knows of the edit deletes it.
    try devices[2].run("DELETE FROM note")
    try converge(devices, "SELECT count(*) FROM note", ["0"])
  }

  // MARK: - wholeRow

  @Test func theLaterRowWinsAsAWhole() throws {
    let devices = try scratch.devices(
      2, Self.schemas[0], configuration: Self.configuration(.wholeRow))
    try devices[0].setClock(offset: 10)
    try devices[1].setClock(offset: 20)
    try devices[0].run("UPDATE note SET title = 'left'")
    try devices[1].run("UPDATE note SET body = 'right'")
    try converge(devices, "SELECT title, body FROM note", ["t|right"])
  }

  // MARK: - Columns that not all devices have

  /// Makes the table again without its title.
  private static let withoutTitle = """
    CREATE TABLE fresh (id INTEGER PRIMARY KEY, body TEXT); INSERT INTO fresh SELECT id, body FROM note;
    DROP TABLE note; ALTER TABLE fresh RENAME TO note;
    """

  @Test(arguments: [TableMergeType.wholeRow, .keepBoth])
  func aRowKeepsWhatTheAuthorOfItsVersionDoesNotHave(type: TableMergeType) throws {
    var devices = try scratch.devices(
      2, Self.schemas[0], configuration: Self.configuration(type))
    devices[0] = try devices[0].changed(isOpen: false) {
      try $0.run("ALTER TABLE note ADD COLUMN colour TEXT DEFAULT 'red'")
    }
    try devices[0].run("UPDATE note SET colour = 'blue'")
    try devices[1].receive(from: devices[0])
    try devices[1].run("UPDATE note SET title = 'old'")
    try exchange(devices)
    #expect(
      try devices[0].rows("SELECT title, body, colour FROM note") == ["old|b|blue"])
    devices[1] = try devices[1].changed(isOpen: false) {
      try $0.run("ALTER TABLE note ADD COLUMN colour TEXT DEFAULT 'red'")
    }
    try converge(devices, "SELECT title, body, colour FROM note", ["old|b|blue"])
    try devices[1].run("UPDATE note SET body = 'both'")
    try converge(devices, "SELECT title, body, colour FROM note", ["old|both|blue"])
    #expect(try devices.allSatisfy { try $0.sealsNothing() })
  }

  /// Both devices know the version of a row, though one lacks the column that comes first.
  @Test func versionsAreKnownWithoutTheFirstColumn() throws {
    var devices = try scratch.devices(
      2, Self.schemas[0], configuration: Self.configuration(.keepBoth))
    let base = Date()
    for (number, device) in devices.enumerated() {
      try device.setClock(offset: Double(number), from: base)
    }
    devices[1] = try devices[1].changed(isOpen: false) { try $0.run(Self.withoutTitle) }
    try exchange(devices)
    for number in [1, 0, 1, 0] {
      try devices[number].run("UPDATE note SET body = body || '\(number)'")
      try exchange(devices)
    }
    for device in devices { #expect(try device.rows("SELECT body FROM note") == ["b1010"]) }
    try devices[0].run("UPDATE note SET title = 'one', body = 'one'")
    try devices[1].run("UPDATE note SET body = 'two'")
    try devices[0].receive(from: devices[1])
    #expect(try devices[0].rows("SELECT body FROM note ORDER BY body") == ["one", "two"])
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT body FROM note ORDER BY body") == ["one", "two"])
      #expect(try device.sealsNothing())
    }
  }

  /// The version of a device that lacks a column loses: the row in which it lives on has in that column
  /// what the row would show if the version had stayed.
  @Test(arguments: [0, 1])
  func aVersionThatLivesOnHasTheRowsValueInAColumnThatItsAuthorLacks(later: Int) throws {
    var devices = try scratch.devices(
      2, Self.schemas[0], configuration: Self.configuration(.keepBoth))
    for (number, device) in devices.enumerated() {
      try device.setClock(offset: number == later ? 1 : 0)
    }
    devices[0] = try devices[0].changed(isOpen: false) {
      try $0.run("ALTER TABLE note ADD COLUMN colour TEXT DEFAULT 'red'")
    }
    try devices[0].run("UPDATE note SET title = 'new', colour = 'blue'")
    try devices[1].run("UPDATE note SET title = 'old'")
    _ = try devices[1].store.seal()
    // The device that has the column finds the two.
    try devices[0].receive(from: devices[1])
    try exchange(devices)
    #expect(
      try devices[0].rows("SELECT title, colour FROM note ORDER BY title")
        == ["new|blue", "old|blue"])
    devices[1] = try devices[1].changed(isOpen: false) {
      try $0.run("ALTER TABLE note ADD COLUMN colour TEXT DEFAULT 'red'")
    }
    try converge(
      devices, "SELECT title, colour FROM note ORDER BY title", ["new|blue", "old|blue"])
  }

  // MARK: - keepBoth

  /// A row that is deleted and shown all the same lives again by an edit, and loses to another
  /// device's deletion. The edit is in the journal of the device that deleted the row: no version
  /// became this row.
  @Test func anEditThatLosesToADeletionIsInTheJournal() throws {
    let devices = try scratch.devices(
      3,
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT);
      CREATE TABLE child (id INTEGER PRIMARY KEY, note INTEGER REFERENCES note);
      """, configuration: Self.configuration(.keepBoth))
    try devices[0].setClock(offset: -100)
    try devices[0].run("INSERT INTO note VALUES (1, 'first')")
    try converge(devices)
    try devices[2].setClock(offset: -80)
    try devices[2].run("DELETE FROM note")
    try devices[0].run("INSERT INTO child VALUES (1, 1)")
    try devices[1].receive(from: devices[0])
    try devices[0].receive(from: devices[2])
    try devices[0].setClock(offset: -60)
    try devices[0].run("UPDATE note SET title = 'edited'; DELETE FROM child")
    #expect(try devices[0].changes(after: 2).map(\.letters).contains("i"))
    try devices[1].setClock(offset: -40)
    try devices[1].run("DELETE FROM child; DELETE FROM note")
    try converge(devices, "SELECT count(*) FROM note", ["0"])
    let lost = try devices[1].store.conflicts().filter { $0.kind == .existence }
    #expect(
      lost.compactMap { $0.remote.cells?.first { $0.column == "title" }?.value }
        == [.text(Array("edited".utf8))])
  }

  @Test(arguments: schemas)
  func theVersionThatLosesLivesOnAsARow(schema: String) throws {
    let devices = try scratch.devices(
      3, schema, configuration: Self.configuration(.keepBoth))
    let base = Date()
    for (number, device) in devices.enumerated() {
      try device.setClock(offset: Double(number), from: base)
    }
    try devices[0].run("UPDATE note SET title = 'one'")
    try devices[1].run("UPDATE note SET body = 'two'")
    try devices[2].run("UPDATE note SET title = 'three'")
    // In different orders on each.
    try devices[0].receive(from: devices[2])
    try devices[0].receive(from: devices[1])
    try devices[1].receive(from: devices[0])
    try devices[2].receive(from: devices[1])
    try converge(
      devices, "SELECT title, body FROM note ORDER BY title", ["one|b", "t|two", "three|b"])
    #expect(try devices.allSatisfy { try $0.sealsNothing() })
  }

  /// A version has a number that leads to no row for its author, and is the key of a row on a device
  /// that finds it. The row in which it lives on has the plain number everywhere; with a foreign key
  /// there is no such row.
  @Test(arguments: [("kind INTEGER", ["one", "two"]), ("kind INTEGER REFERENCES kind", ["two"])])
  func aPlainValueOfAVersionStaysPlain(column: String, titles: [String]) throws {
    var configuration = Self.configuration(.keepBoth)
    if !column.contains("REFERENCES") { configuration.references = ["note": ["kind": "kind"]] }
    let devices = try scratch.devices(
      3,
      """
      CREATE TABLE kind (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, \(column));
      INSERT INTO note VALUES (1, 't', NULL)
      """, configuration: configuration)
    let base = Date()
    for (number, device) in devices.enumerated() {
      try device.setClock(offset: Double(number), from: base)
    }
    try devices[0].run("PRAGMA foreign_keys = OFF; UPDATE note SET title = 'one', kind = 7")
    try devices[1].run("UPDATE note SET title = 'two'")
    try devices[2].run("INSERT INTO kind VALUES (7, 'seven')")
    try devices[2].receive(from: devices[0])
    try devices[2].receive(from: devices[1])
    #expect(try devices[2].rows("SELECT title FROM note ORDER BY 1") == titles)
    let made = try devices[2].changes().filter { $0.table == "note" }
    #expect(made.map(\.letters).joined() == String(repeating: "i", count: titles.count - 1))
    for cells in made.flatMap(\.cells) {
      #expect((0..<cells.count).allSatisfy { cells[$0].kind != .identity })
    }
    try converge(devices, "SELECT title FROM note ORDER BY 1", titles)
    #expect(try devices[0].rows("SELECT name FROM note JOIN kind ON kind.id = note.kind") == [])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
  }

  @Test(arguments: [1, 2])
  func aVersionThatItsAuthorReplacedIsNoVersion(first: Int) throws {
    let devices = try scratch.devices(
      3, Self.schemas[0], configuration: Self.configuration(.keepBoth))
    let base = Date()
    for (number, device) in devices.enumerated() {
      try device.setClock(offset: Double(number), from: base)
    }
    try devices[0].run("UPDATE note SET title = 'one'")
    _ = try devices[0].store.seal()
    try devices[1].run("UPDATE note SET title = 'two'")
    // The third has a copy of “one” before it hears that it was replaced.
    try devices[2].receive(from: devices[first == 1 ? 0 : 1])
    try devices[2].receive(from: devices[first == 1 ? 1 : 0])
    #expect(try devices[2].rows("SELECT count(*) FROM note") == ["2"])
    try devices[0].setClock(offset: 5)
    try devices[0].run("UPDATE note SET title = 'newer'")
    try converge(devices, "SELECT title FROM note ORDER BY title", ["newer", "two"])
  }

  @Test func equalVersionsAreNotKeptTwice() throws {
    let devices = try scratch.devices(
      2, Self.schemas[0], configuration: Self.configuration(.keepBoth))
    for device in devices { try device.run("UPDATE note SET title = 'same'") }
    try converge(devices, "SELECT title, body FROM note", ["same|b"])
  }

  /// Two edits that agree, one that follows one of them, and a third one, heard
  /// of in every order.
  @Test(arguments: schemas, 0..<24)
  func devicesEndTheSameInWhateverOrderTheyHearOfVersions(schema: String, order: Int) throws {
    let devices = try scratch.devices(
      4, schema, configuration: Self.configuration(.keepBoth))
    let base = Date()
    for (number, device) in devices.enumerated() {
      try device.setClock(offset: Double(number), from: base)
    }
    try devices[0].run("UPDATE note SET title = 'same'")
    try devices[1].run("UPDATE note SET title = 'same'")
    try devices[2].run("UPDATE note SET title = 'other'")
    _ = try devices[1].store.seal()
    try devices[1].setClock(offset: 5)
    try devices[1].run("UPDATE note SET title = 'next'")
    var pairs = [(0, 1), (3, 2), (1, 2), (2, 0)]
    var rest = order
    for index in pairs.indices {
      let other = index + rest % (pairs.count - index)
      rest /= pairs.count - index
      pairs.swapAt(index, other)
    }
    for (receiver, sender) in pairs { try devices[receiver].receive(from: devices[sender]) }
    try converge(devices)
    let titles = Set(try devices[3].rows("SELECT title FROM note"))
    #expect(titles.isSuperset(of: ["next", "other"]), "order \(order)")
    #expect(titles.isSubset(of: ["next", "other", "same"]), "order \(order)")
    #expect(try devices.allSatisfy { try $0.sealsNothing() })
  }

  @Test(arguments: schemas, [true, false])
  func aDeletionBetweenTwoVersionsMakesNoDifference(schema: String, isLast: Bool) throws {
    let devices = try scratch.devices(
      4, schema, configuration: Self.configuration(.keepBoth))
    let base = Date()
    for (number, device) in devices.enumerated() {
      try device.setClock(
        offset: isLast ? [1, 2, 3, 0][number] : [1, 3, 2, 0][number], from: base)
    }
    try devices[0].run("UPDATE note SET title = 'one'")
    try devices[1].run("UPDATE note SET title = 'two'")
    try devices[2].run("DELETE FROM note")
    try devices[0].receive(from: devices[2])
    try devices[3].receive(from: devices[0])
    try devices[3].receive(from: devices[1])
    try devices[1].receive(from: devices[0])
    try converge(devices)
  }

  /// An edit of a copy is later than the copy, also for a device that finds the
  /// versions when the edit has been made already.
  @Test(arguments: schemas)
  func anEditOfACopyOutlivesItsInsertionByOthers(schema: String) throws {
    let devices = try scratch.devices(
      3, schema, configuration: Self.configuration(.keepBoth))
    let base = Date()
    for (number, device) in devices.enumerated() {
      try device.setClock(offset: Double(number), from: base)
    }
    try devices[0].run("UPDATE note SET title = 'one'")
    try devices[1].run("UPDATE note SET title = 'two'")
    let first = try devices[0].outgoing()
    try devices[0].receive(from: devices[1])
    try devices[0].setClock(offset: 10)
    try devices[0].run("UPDATE note SET body = 'edited' WHERE title = 'one'")
    _ = try devices[0].store.seal()
    // It finds the same two later, and has not heard of the copy.
    try devices[2].setClock(offset: 60)
    _ = try devices[2].store.apply(first)
    try devices[2].receive(from: devices[1])
    #expect(try devices[2].rows("SELECT count(*) FROM note") == ["2"])
    try converge(
      devices, "SELECT title, body FROM note ORDER BY title", ["one|edited", "two|b"])
  }

  @Test(arguments: schemas)
  func aCopyIsDeletedLikeAnyRow(schema: String) throws {
    let devices = try scratch.devices(
      3, schema, configuration: Self.configuration(.keepBoth))
    let base = Date()
    for (number, device) in devices.enumerated() {
      try device.setClock(offset: Double(number), from: base)
    }
    try devices[0].run("UPDATE note SET title = 'one'")
    try devices[1].run("UPDATE note SET title = 'two'")
    try converge(devices, "SELECT title FROM note ORDER BY title", ["one", "two"])
    try devices[2].setClock(offset: 10)
    try devices[2].run("DELETE FROM note WHERE title = 'one'")
    try converge(devices, "SELECT title FROM note", ["two"])
  }

  // MARK: - counter

  private func counters(_ count: Int) throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.columnMergeTypes = ["article": ["stock": .counter]]
    return try scratch.devices(
      count,
      """
      CREATE TABLE article (id INTEGER PRIMARY KEY, name TEXT, stock INTEGER DEFAULT 0);
      INSERT INTO article VALUES (1, 'a', 10), (2, 'b', NULL);
      """, configuration: configuration)
  }

  @Test func whatIsAddedOnEveryDeviceAddsUp() throws {
    let devices = try counters(3)
    for round in 1...3 {
      for (number, device) in devices.enumerated() {
        try device.run("UPDATE article SET stock = stock + \(number + 1) WHERE id = 1")
        try device.run("UPDATE article SET stock = stock - 1, name = 'n' WHERE id = 1")
      }
      try converge(
        devices, "SELECT stock FROM article WHERE id = 1", ["\(10 + 3 * round)"])
      #expect(try devices.allSatisfy { try $0.sealsNothing() })
    }
  }

  @Test func whatIsAddedAfterAClockWentBackCountsAsWell() throws {
    let devices = try counters(2)
    try devices[0].setClock(offset: 60)
    try devices[0].run("UPDATE article SET stock = stock + 1 WHERE id = 1")
    try converge(devices, "SELECT stock FROM article WHERE id = 1", ["11"])
    try devices[0].setClock(offset: -60)
    try devices[0].run("UPDATE article SET stock = stock + 1, name = 'n' WHERE id = 1")
    try converge(devices, "SELECT stock FROM article WHERE id = 1", ["12"])
    #expect(try devices.allSatisfy { try $0.sealsNothing() })
  }

  @Test func whatOthersRewriteCountsOnceInEveryOrder() throws {
    let devices = try counters(4)
    try devices[0].run("UPDATE article SET stock = stock + 1 WHERE id = 1")
    _ = try devices[0].store.seal()
    try devices[0].run("UPDATE article SET stock = stock + 2 WHERE id = 1")
    _ = try devices[0].store.seal()
    let sealed = try devices[0].store.sealedChangeSets()
    let sets = try sealed.map {
      let bytes = try devices[0].store.sealedBytes($0.number)
      return ReceivedChangeSet(
        changeSet: try ChangeSetCodec.decode(bytes), hash: $0.hash, bytes: bytes)
    }
    // One has found only the first of them, the other both.
    #expect(try devices[1].store.rewrite(Array(sets.prefix(1))) == .taken(writtenCount: 1))
    #expect(try devices[2].store.rewrite(sets) == .taken(writtenCount: 2))
    try devices[3].receive(from: devices[2])
    try devices[3].receive(from: devices[1])
    #expect(try devices[3].store.rewrite(sets) == .taken(writtenCount: 0))
    #expect(
      try devices[3].rows("SELECT stock FROM article WHERE id = 1") == ["13"])
    try converge(devices, "SELECT stock FROM article WHERE id = 1", ["13"])
  }

  /// Change sets that are published again do not list what their author had seen.
  @Test func whatIsAddedCountsAlsoIfItComesBeforeTheValue() throws {
    let devices = try counters(4)
    try devices[0].run("INSERT INTO article (id, stock) VALUES (7, 10)")
    try devices[1].receive(from: devices[0])
    try devices[1].run("UPDATE article SET stock = stock + 2 WHERE id = 7")
    let additions = try devices[1].outgoing()
    #expect(try devices[2].store.rewrite(additions) == .taken(writtenCount: 1))
    #expect(try devices[2].store.rewrite(additions) == .taken(writtenCount: 0))
    try devices[3].receive(from: devices[2])
    #expect(try devices[3].rows("SELECT stock FROM article WHERE id = 7") == [])
    try devices[3].receive(from: devices[0])
    #expect(try devices[3].rows("SELECT stock FROM article WHERE id = 7") == ["12"])
    #expect(try devices[3].rows("SELECT * FROM docsync_early") == [])
    try converge(devices, "SELECT stock FROM article WHERE id = 7", ["12"])
    #expect(try devices.allSatisfy { try $0.sealsNothing() })
    // Who sets it says how much it is.
    try devices[0].run("UPDATE article SET stock = NULL WHERE id = 7")
    try devices[0].run("UPDATE article SET stock = 5 WHERE id = 7")
    try converge(devices, "SELECT stock FROM article WHERE id = 7", ["5"])
  }

  @Test func aCounterThatIsSetAgainForgetsWhatWasAddedBefore() throws {
    let devices = try counters(2)
    try devices[0].run("UPDATE article SET stock = 5 WHERE id = 2")
    try converge(devices, "SELECT stock FROM article WHERE id = 2", ["5"])
    try devices[0].run("UPDATE article SET stock = NULL WHERE id = 2")
    try devices[0].run("UPDATE article SET stock = 100 WHERE id = 2")
    try devices[1].run("UPDATE article SET stock = stock + 1 WHERE id = 2")
    try converge(devices)
    try devices[0].run("UPDATE article SET stock = 2.5 WHERE id = 1")
    try converge(devices, "SELECT stock FROM article WHERE id = 1", ["2.5"])
  }

  @Test func countersStopAtTheLimits() throws {
    let devices = try counters(2)
    for device in devices {
      try device.run("UPDATE article SET stock = 9223372036854775800 WHERE id = 1")
    }
    try converge(devices, "SELECT stock FROM article WHERE id = 1", ["9223372036854775807"])
  }

  @Test(arguments: [
    ("9223372036854775807", "-9223372036854775808"), ("-2", "9223372036854775807"),
    ("1e308", "-1.5e+308"),
  ])
  func whatIsBeyond64BitsFromTheNumberBeforeSetsTheCounter(before: String, after: String) throws {
    let devices = try counters(2)
    try devices[0].run("UPDATE article SET stock = \(before) WHERE id = 1")
    try converge(devices)
    try devices[1].run("UPDATE article SET stock = \(after) WHERE id = 1")
    try converge(devices, "SELECT stock FROM article WHERE id = 1", [after])
  }

  @Test func aSumOfRealsThatIsAnIntegerIsShownAsTheColumnKeepsIt() throws {
    let devices = try counters(2)
    try devices[0].run("UPDATE article SET stock = stock + 0.5 WHERE id = 1")
    try devices[1].run("UPDATE article SET stock = stock - 0.5 WHERE id = 1")
    try converge(devices, "SELECT stock, typeof(stock) FROM article WHERE id = 1", ["10|integer"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  @Test func aCounterInARowThatIsInsertedBeginsAgain() throws {
    let devices = try counters(2)
    try devices[0].run("INSERT INTO article VALUES (7, 'c', 3)")
    try converge(devices)
    for device in devices {
      try device.run("UPDATE article SET stock = stock + 1 WHERE name = 'c'")
    }
    try converge(devices, "SELECT stock FROM article WHERE name = 'c'", ["5"])
    try devices[0].run("DELETE FROM article WHERE name = 'c'")
    try devices[1].run("UPDATE article SET stock = stock + 1 WHERE name = 'c'")
    try converge(devices, "SELECT count(*) FROM article WHERE name = 'c'", ["0"])
  }

  @Test func columnsThatCannotCountAreRefused() throws {
    for column in ["id", "name", "none"] as [SQLName] {
      var configuration = StoreConfiguration()
      configuration.columnMergeTypes = ["article": [column: .counter]]
      #expect(throws: StoreError.self) {
        try Scratch().devices(
          1, "CREATE TABLE article (id INTEGER PRIMARY KEY, name TEXT, stock INTEGER)",
          configuration: configuration)
      }
    }
  }
}
