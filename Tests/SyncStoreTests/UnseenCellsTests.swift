import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Edits of a column that a migration has added by making its table again, on a device that has
/// the values of another one already.
@Suite struct UnseenCellsTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// The migration, with what it fills in.
  private static func migration(_ filling: String) -> String {
    """
    BEGIN; CREATE TABLE new (id INTEGER PRIMARY KEY, title TEXT, status TEXT NOT NULL);
    INSERT INTO new SELECT id, title, \(filling) FROM book; DROP TABLE book;
    ALTER TABLE new RENAME TO book; COMMIT;
    """
  }

  /// The first device has migrated, and the second one has received that.
  private func devices(_ filling: String, _ edit: String = "") throws -> [Device] {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT);
      INSERT INTO book VALUES (1, 'a'), (2, 'b'), (3, 'c');
      """)
    try converge(devices)
    try devices[0].run(Self.migration(filling))
    _ = try devices[0].outgoing()
    if !edit.isEmpty { try devices[0].run(edit) }
    try devices[1].receive(from: devices[0])
    return devices
  }

  private static let statuses = "SELECT status FROM book ORDER BY title"

  /// Whichever client comes first.
  @Test(arguments: 1...4) func anEditAfterTheMigrationStays(run: Int) throws {
    let devices = try devices("'new'")
    try devices[1].run(Self.migration("'new'") + "UPDATE book SET status = 'done' WHERE id = 2;")
    try converge(devices, Self.statuses, ["new", "done", "new"])
    #expect(try devices.allSatisfy { try $0.store.conflicts().isEmpty })
    try expectSound(devices)
  }

  /// What the other device has typed is later than what the migration has filled in.
  @Test func anEditOfTheOtherDeviceWins() throws {
    let devices = try devices("'new'", "UPDATE book SET status = 'theirs' WHERE id < 3")
    try devices[1].run(Self.migration("'new'") + "UPDATE book SET status = 'done' WHERE id = 2;")
    try converge(devices, Self.statuses, ["theirs", "theirs", "new"])
    // Only what a user may have typed is in the journal.
    let lost = try devices[1].store.conflicts()
    #expect(lost.map(\.local.cells?.first?.value) == [.text(Array("done".utf8))])
    #expect(lost.first?.key.first?.value == .integer(2))
    try expectSound(devices)
  }

  /// Migrations that fill in values of their own on each device, such as the present time.
  @Test func valuesOfTheDeviceGiveWay() throws {
    let devices = try devices("'of one ' || id")
    try devices[1].run(Self.migration("'of two ' || id"))
    try converge(devices, Self.statuses, ["of one 1", "of one 2", "of one 3"])
    #expect(try devices[0].store.conflicts().isEmpty)
    try expectSound(devices)
  }

  /// No other row shows whether the value is the migration's.
  @Test func aValueThatGivesWayIsInTheJournal() throws {
    let devices = try devices("'new'")
    try devices[0].run("DELETE FROM book WHERE id > 1")
    try exchange(devices)
    try devices[1].run(Self.migration("'new'") + "UPDATE book SET status = 'done'")
    try exchange(devices)
    let status = try devices[0].rows(Self.statuses)
    try converge(devices, Self.statuses, status)
    if status != ["done"] {
      #expect(
        try devices[1].store.conflicts().contains {
          $0.local.cells?.first?.value == .text(Array("done".utf8))
        })
    }
    try expectSound(devices)
  }

  /// References are compared as the rows to which they lead.
  @Test func aReferenceThatWasChosenAfterTheMigrationStays() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE shelf (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT);
      INSERT INTO shelf VALUES (1, 'A'), (2, 'B'); INSERT INTO book VALUES (1, 'a'), (2, 'b');
      """)
    let migration = """
      PRAGMA foreign_keys = OFF; BEGIN;
      CREATE TABLE new (
        id INTEGER PRIMARY KEY, title TEXT, shelf INTEGER REFERENCES shelf ON DELETE SET NULL);
      INSERT INTO new SELECT id, title, 1 FROM book; DROP TABLE book;
      ALTER TABLE new RENAME TO book; COMMIT;
      """
    try converge(devices)
    try devices[0].run(migration)
    try devices[1].receive(from: devices[0])
    try devices[1].run(migration + "UPDATE book SET shelf = 2 WHERE title = 'b'")
    try converge(
      devices, "SELECT title, shelf.name FROM book JOIN shelf ON shelf.id = shelf",
      ["a|A", "b|B"])
    try expectSound(devices)
  }

  /// Conditions may concern several columns; of one that fails, each order of the columns is tried
  /// by SQLite as well.
  @Test(arguments: [
    ("CHECK (first <= last)", "1, 9", "first = 20, last = 30", "20|30"),
    (
      "CHECK (first = 'text' OR json_extract(last, '$.v') > 0)", "'json', '{\"v\":1}'",
      "first = 'text', last = 'hello'", "text|hello"
    ),
  ])
  func valuesThatBelongTogetherAreSetTogether(
    check: String, filling: String, edit: String, row: String
  ) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT);
      INSERT INTO book VALUES (1, 'a'), (2, 'b'), (3, 'c');
      """)
    func migration(_ check: String) -> String {
      """
      BEGIN; CREATE TABLE new (id INTEGER PRIMARY KEY, title TEXT, first, last \(check));
      INSERT INTO new SELECT id, title, \(filling) FROM book; DROP TABLE book;
      ALTER TABLE new RENAME TO book; COMMIT;
      """
    }
    try converge(devices)
    try devices[0].run(migration(check))
    try devices[1].receive(from: devices[0])
    try devices[1].run(
      migration(check)
        + "UPDATE book SET \(edit) WHERE id = 2;")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT first, last FROM book WHERE id = 2") == [row])
    try converge(devices, "SELECT first, last FROM book WHERE id = 2", [row])
    try expectSound(devices)
  }

  /// An edit may give a row the value that most rows have.
  @Test func anEditToTheMostFrequentValueStays() throws {
    let filling = "CASE WHEN id < 2 THEN 'open' ELSE 'closed' END"
    let devices = try devices(filling)
    try devices[1].run(
      Self.migration(filling) + "UPDATE book SET status = 'open' WHERE id = 3;")
    try converge(devices, Self.statuses, ["open", "closed", "open"])
    #expect(try devices[1].store.conflicts().isEmpty)
    try expectSound(devices)
  }

  /// The first device may have typed its only value; the one here is in the journal.
  @Test func anEditToTheMostFrequentValueGivesWayToASingleOne() throws {
    let filling = "CASE WHEN id < 3 THEN 'open' ELSE 'closed' END"
    let devices = try devices(filling)
    try devices[1].run(
      Self.migration(filling) + "UPDATE book SET status = 'open' WHERE id = 3;")
    try converge(devices, Self.statuses, ["open", "open", "closed"])
    let lost = try devices[1].store.conflicts()
    #expect(lost.map(\.local.cells?.first?.value) == [.text(Array("open".utf8))])
    try expectSound(devices)
  }

  /// The first device has edited the column before it noticed the migration.
  ///
  /// - Parameter other: What the second device sets.
  @Test(arguments: [nil, "other"]) func anEditBeforeTheMigrationWasNoticedStays(
    other: String?
  ) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT);
      INSERT INTO book VALUES (1, 'a'), (2, 'b'), (3, 'c');
      """)
    try converge(devices)
    try devices[0].run(Self.migration("'new'") + "UPDATE book SET status = 'mine' WHERE id = 1;")
    try devices[1].receive(from: devices[0])
    try devices[1].run(
      Self.migration("'new'")
        + (other.map { "UPDATE book SET status = '\($0)' WHERE id = 1;" } ?? ""))
    try converge(devices, Self.statuses, [other ?? "mine", "new", "new"])
    // Nothing tells which of the two is an edit, or the later one.
    let conflicts = try devices[1].store.conflicts()
    #expect(
      conflicts.map(\.remote.cells?.first?.value) == [.text(Array("mine".utf8))]
        && conflicts.map(\.outcome) == [other == nil ? .remote : .local])
    try expectSound(devices)
  }

  /// Two devices with books that refer to their authors by codes.
  private func devicesWithCodes() throws -> [Device] {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE author (id INTEGER PRIMARY KEY, code TEXT UNIQUE NOT NULL);
      CREATE TABLE book (id INTEGER PRIMARY KEY, author TEXT REFERENCES author (code), title TEXT);
      INSERT INTO author (code) VALUES ('AA'), ('BB');
      INSERT INTO book (author, title) VALUES ('AA', 'a'), ('BB', 'b'), ('BB', 'c');
      """)
    try converge(devices)
    return devices
  }

  /// Makes the books refer to their authors by integer keys.
  private static let toNumbers = """
    PRAGMA foreign_keys = OFF; BEGIN;
    CREATE TABLE new (id INTEGER PRIMARY KEY, author INTEGER REFERENCES author, title TEXT);
    INSERT INTO new SELECT book.id, author.id, title FROM book
      JOIN author ON author.code = book.author;
    DROP TABLE book; ALTER TABLE new RENAME TO book; COMMIT;
    """

  /// A reference by a code becomes one by integer keys, which differ between devices.
  @Test(arguments: [false, true])
  func aReferenceThatRefersToRowsNowStays(isStamped: Bool) throws {
    let devices = try devicesWithCodes()
    if isStamped {
      for code in ["AA", "BB"] {
        try devices[0].run("UPDATE book SET author = '\(code)' WHERE title = 'b'")
        try converge(devices)
      }
    }
    try devices[0].run(Self.toNumbers)
    try devices[1].receive(from: devices[0])
    try devices[1].run(Self.toNumbers + "UPDATE book SET author = 1 WHERE title = 'b'")
    try converge(
      devices, "SELECT title, code FROM book JOIN author ON author.id = author ORDER BY title",
      ["a|AA", "b|AA", "c|BB"])
    try expectSound(devices)
  }

  /// A later edit with triggers, before the migration, stands: nothing gives way.
  @Test func whatIsNewerThanTheOtherDevicesValueIsNotLost() throws {
    let devices = try devicesWithCodes()
    try devices[0].run(Self.toNumbers)
    _ = try devices[0].outgoing()
    usleep(2_000)
    try devices[1].run("UPDATE book SET author = 'AA' WHERE title = 'b'")
    try devices[1].receive(from: devices[0])
    try devices[1].run(Self.toNumbers)
    try exchange(devices)
    #expect(try devices[1].store.conflicts().allSatisfy { $0.outcome != .remote })
    let rows = try devices[0].rows("SELECT title, author FROM book ORDER BY title")
    try converge(devices, "SELECT title, author FROM book ORDER BY title", rows)
    try expectSound(devices)
  }
}
