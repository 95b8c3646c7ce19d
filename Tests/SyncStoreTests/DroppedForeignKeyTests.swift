import SyncModel
import Testing

@testable import SyncStore

/// Columns that lose their foreign key, on one device after another. They refer to the same rows as
/// before: the keys are other numbers on every device.
@Suite struct DroppedForeignKeyTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT,
      author INTEGER REFERENCES author ON DELETE CASCADE);
    CREATE TABLE label (author INTEGER REFERENCES author ON DELETE CASCADE, tag TEXT, note TEXT,
      PRIMARY KEY (author, tag));
    """

  private static let migration = """
    PRAGMA foreign_keys = OFF; BEGIN;
    CREATE TABLE new_book (id INTEGER PRIMARY KEY, title TEXT, author INTEGER);
    INSERT INTO new_book SELECT * FROM book; DROP TABLE book;
    ALTER TABLE new_book RENAME TO book;
    CREATE TABLE new_label (author INTEGER, tag TEXT, note TEXT, PRIMARY KEY (author, tag));
    INSERT INTO new_label SELECT * FROM label; DROP TABLE label;
    ALTER TABLE new_label RENAME TO label;
    COMMIT; PRAGMA foreign_keys = ON;
    """

  private static let books = """
    SELECT title, name FROM book LEFT JOIN author ON author.id = book.author ORDER BY title
    """
  private static let labels = """
    SELECT name, tag, note FROM label LEFT JOIN author ON author.id = label.author ORDER BY name
    """

  /// Two devices on which each row has another number.
  private func devices() throws -> [Device] {
    let devices = try scratch.devices(2, Self.schema)
    for (device, name) in zip(devices, ["Ann", "Bob"]) {
      try device.run(
        """
        INSERT INTO author VALUES (1, '\(name)'); INSERT INTO book VALUES (1, 'of \(name)', 1);
        INSERT INTO label VALUES (1, 'red', 'a')
        """)
    }
    try converge(devices)
    #expect(
      try devices[0].rows("SELECT id FROM author ORDER BY name")
        != devices[1].rows("SELECT id FROM author ORDER BY name"))
    return devices
  }

  @Test(arguments: [true, false])
  func theyStillReferToTheSameRows(isOpen: Bool) throws {
    var devices = try devices()
    devices[0] = try devices[0].changed(isOpen: isOpen) { try $0.run(Self.migration) }
    try converge(devices, Self.books, ["of Ann|Ann", "of Bob|Bob"])
    // The device that has not migrated edits references; the other one does, too.
    try devices[1].run(
      """
      UPDATE book SET author = (SELECT id FROM author WHERE name = 'Ann') WHERE title = 'of Bob';
      INSERT INTO author VALUES (7, 'Cid'); INSERT INTO book VALUES (7, 'of Cid', 7);
      INSERT INTO label VALUES (7, 'blue', 'c'); UPDATE label SET note = 'b' WHERE author = 1
      """)
    try devices[0].run(
      """
      INSERT INTO author VALUES (7, 'Dan'); INSERT INTO book VALUES (7, 'of Dan', 7);
      UPDATE label SET note = 'A' WHERE author = 1
      """)
    let books = ["of Ann|Ann", "of Bob|Ann", "of Cid|Cid", "of Dan|Dan"]
    let labels = ["Ann|red|A", "Bob|red|b", "Cid|blue|c"]
    try converge(devices, Self.books, books)
    try converge(devices, Self.labels, labels)
    devices[1] = try devices[1].changed(isOpen: isOpen) { try $0.run(Self.migration) }
    try converge(devices, Self.books, books)
    try converge(devices, Self.labels, labels)
    try expectSound(devices)
    // A number that no row has stays as it is.
    try devices[1].run("UPDATE book SET author = 0 WHERE title = 'of Dan'")
    try converge(devices, "SELECT author FROM book WHERE title = 'of Dan'", ["0"])
    try expectSound(devices)
    // The rows stay when the row is deleted to which they refer, and refer to none.
    try devices[1].run("DELETE FROM author WHERE name = 'Cid'")
    try converge(devices, "SELECT author FROM book WHERE title = 'of Cid'", ["NULL"])
    try expectSound(devices)
  }

  @Test func aDeviceThatJoinsKnowsThem() throws {
    var devices = try devices()
    for device in devices { try device.run(Self.migration) }
    try converge(devices)
    let whole = scratch.path + "/whole.db"
    _ = try devices[0].store.snapshot(to: whole)
    devices.append(
      try Device(
        store: LocalStore.adopt(snapshotAt: whole, binding: scratch.binding("third")), path: whole))
    try devices[2].run("INSERT INTO author VALUES (9, 'Eve'); INSERT INTO book VALUES (9, 'x', 9)")
    try devices[1].run("INSERT INTO author VALUES (9, 'Fay'); INSERT INTO book VALUES (9, 'y', 9)")
    try converge(devices, Self.books, ["of Ann|Ann", "of Bob|Bob", "x|Eve", "y|Fay"])
    try expectSound(devices)
  }
}
