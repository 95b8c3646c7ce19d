import Dispatch
import Foundation
import SyncModel
import Synchronization
import Testing

@testable import SyncStore

/// Tables that a program makes again without a transaction, while the store is synchronized all the
/// time.
@Suite struct RemakeInStepsTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT, pages INTEGER NOT NULL DEFAULT 0,
      author INTEGER REFERENCES author ON DELETE SET NULL);
    CREATE TABLE label (book INTEGER REFERENCES book ON DELETE CASCADE, tag TEXT, note TEXT,
      PRIMARY KEY (book, tag));
    INSERT INTO author VALUES (1, 'Ann'), (2, 'Bob');
    INSERT INTO book VALUES (1, 'one', 10, 1), (2, 'two', 20, 1), (3, 'three', 30, 2),
      (4, 'four', 40, 2);
    INSERT INTO label VALUES (1, 'red', 'a'), (2, 'blue', 'b'), (4, 'red', 'd');
    """

  /// The ways in which programs make a table again.
  enum Migration: String, CaseIterable {
    case underAnotherName, withABackup, renamedFirst

    var statements: [String] {
      let columns = """
        (id INTEGER PRIMARY KEY, title TEXT, pages INTEGER NOT NULL DEFAULT 0,
        author INTEGER REFERENCES author ON DELETE SET NULL, language TEXT DEFAULT 'en')
        """
      let names = "id, title, pages, author"
      func fill(_ table: String, from other: String) -> String {
        "INSERT INTO \(table) (\(names)) SELECT \(names) FROM \(other)"
      }
      switch self {
      case .underAnotherName:
        return [
          "CREATE TABLE new_book \(columns)", fill("new_book", from: "book"), "DROP TABLE book",
          "ALTER TABLE new_book RENAME TO book", "CREATE INDEX book_title ON book (title)",
        ]
      case .withABackup:
        return [
          "CREATE TABLE book_backup \(columns)", fill("book_backup", from: "book"),
          "DROP TABLE book", "CREATE TABLE book \(columns)", fill("book", from: "book_backup"),
          "DROP TABLE book_backup",
        ]
      case .renamedFirst:
        return [
          "PRAGMA legacy_alter_table = ON; ALTER TABLE book RENAME TO book_old",
          "CREATE TABLE book \(columns)", fill("book", from: "book_old"), "DROP TABLE book_old",
        ]
      }
    }
  }

  @Test(arguments: Migration.allCases)
  func aSynchronizationBetweenItsStatementsDoesNoHarm(_ migration: Migration) throws {
    var options = StoreOptions.patient
    options.schemaPause = .seconds(1)
    let devices = try scratch.devices(2, Self.schema, options: options)
    try converge(devices)
    try devices[0].run("UPDATE book SET pages = 11 WHERE id = 1; DELETE FROM book WHERE id = 4")
    try devices[1].run("UPDATE book SET title = 'II' WHERE id = 2")
    try converge(devices)
    let first = devices[0]
    let isDone = Atomic(false)
    let program = try Program(first.path, foreignKeys: false)
    let group = DispatchGroup()
    nonisolated(unsafe) let running = program
    let failures = Mutex<[String]>([])
    DispatchQueue.global().async(group: group) {
      do {
        for statement in migration.statements {
          try running.run(statement)
          Thread.sleep(forTimeInterval: 0.1)
        }
      } catch {
        failures.withLock { $0.append("\(error)") }
      }
      isDone.store(true, ordering: .releasing)
    }
    var count = 0
    while !isDone.load(ordering: .acquiring) {
      _ = try first.store.seal()
      count += 1
    }
    group.wait()
    #expect(failures.withLock(\.self) == [])
    #expect(count > 0)
    try first.run(
      "UPDATE book SET title = 'ONE', language = 'de' WHERE id = 1; "
        + "INSERT INTO book (id, title) VALUES (5, 'five')")
    try devices[1].run("UPDATE book SET pages = 33 WHERE id = 3")
    try exchange([first, devices[1]])
    let other = try Program(devices[1].path, foreignKeys: false)
    try other.run("BEGIN; \(migration.statements.joined(separator: "; ")); COMMIT")
    try converge(
      [first, devices[1]], "SELECT title, pages, author, language FROM book ORDER BY title",
      ["II|20|1|en", "ONE|11|1|de", "five|0|NULL|en", "three|33|2|en"])
    for device in [first, devices[1]] {
      #expect(
        try device.rows(
          "SELECT title, tag, note FROM label JOIN book ON book.id = book ORDER BY 1")
          == ["II|blue|b", "ONE|red|a"])
      #expect(try device.store.status().unknownNames == [])
    }
    try expectSound([first, devices[1]])
  }

  @Test func aTableThatStaysCountsAfterAPause() throws {
    var options = StoreOptions()
    options.schemaPause = .milliseconds(100)
    let devices = try scratch.devices(2, Self.schema, options: options)
    for device in devices {
      try device.run("CREATE TABLE tag (name TEXT PRIMARY KEY, colour TEXT); DROP TABLE label")
    }
    try devices[0].run("INSERT INTO tag VALUES ('red', '#f00')")
    try converge(devices, "SELECT * FROM tag", ["red|#f00"])
    // A program that writes all the time does not keep the table out for ever.
    try devices[0].run("CREATE TABLE later (name TEXT PRIMARY KEY)")
    let isDone = Atomic(false)
    let program = try Program(devices[0].path)
    nonisolated(unsafe) let running = program
    let group = DispatchGroup()
    DispatchQueue.global().async(group: group) {
      var number = 0
      while !isDone.load(ordering: .acquiring) {
        number += 1
        do { try running.run("INSERT INTO later VALUES ('\(number)')") } catch { return }
        Thread.sleep(forTimeInterval: 0.02)
      }
    }
    _ = try devices[0].store.seal()
    isDone.store(true, ordering: .releasing)
    group.wait()
    #expect(try devices[0].store.status().tables.contains { $0.name == "later" })
  }
}
