import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// The list of edits that no other device can have.
@Suite struct PendingChangesTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func device(
    _ schema: String, configuration: StoreConfiguration = StoreConfiguration(),
    options: StoreOptions = .patient
  ) throws -> Device {
    try scratch.devices(1, schema, configuration: configuration, options: options)[0]
  }

  private func text(_ value: Value) -> String {
    switch value {
    case .text(let bytes): String(decoding: bytes, as: UTF8.self)
    case .integer(let number): "\(number)"
    case .real(let number): "\(number)"
    default: "\(value)"
    }
  }

  private func line(_ change: StoreStatus.PendingChanges.Change) -> String {
    let key = change.key.map { $0.map(text).joined(separator: ",") } ?? "?"
    let columns = change.columns.map(\.text).joined(separator: ",")
    return "\(change.stage) \(change.kind) \(change.table) \(key)"
      + (columns.isEmpty ? "" : " (\(columns))")
  }

  private func lines(_ device: Device, limit: Int = 100) throws -> [String] {
    try device.store.pendingChanges(limit: limit).changes.map(line)
  }

  private static let notes = """
    CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, body TEXT);
    INSERT INTO note VALUES (1, 'a', 'A'), (2, 'b', 'B'), (3, 'c', 'C'), (4, 'd', 'D');
    """

  @Test func editsAreListedByRowFromTheLogAndThenFromTheChangeSet() throws {
    let device = try device(Self.notes)
    #expect(try device.store.pendingChanges(limit: 10) == StoreStatus.PendingChanges())
    #expect(try device.store.pendingCount().total == 0)
    let before = Date().addingTimeInterval(-0.01)
    try device.run(
      """
      UPDATE note SET title = 'x' WHERE id = 1; INSERT INTO note VALUES (9, 'n', 'N');
      DELETE FROM note WHERE id = 2; UPDATE note SET body = 'y' WHERE id = 1;
      UPDATE note SET title = 'x' WHERE id = 1; UPDATE note SET id = 30 WHERE id = 3;
      INSERT INTO note VALUES (50, '', ''); DELETE FROM note WHERE id = 50;
      INSERT OR REPLACE INTO note VALUES (4, 'r', 'R'); UPDATE note SET title = 'm' WHERE id = 9
      """)
    let rows = [
      "updated note 1 (title,body)", "inserted note 9", "deleted note 2", "deleted note 3",
      "inserted note 30",
    ]
    #expect(
      try lines(device) == rows.map { "unsealed \($0)" } + ["unsealed updated note 4 (title,body)"])
    let unsealed = try device.store.pendingChanges(limit: 10).changes
    #expect(unsealed.allSatisfy { (before...Date()).contains($0.since) })
    #expect(unsealed.allSatisfy { $0.keyColumns == ["id"] && $0.identity?.bytes.count == 16 })
    #expect(try device.store.pendingCount().unsealed >= 6)
    // The change set has the rows in order of key.
    let set = try #require(try device.store.seal().changeSets.first)
    #expect(
      try Set(lines(device))
        == Set((rows + ["inserted note 4"]).map { "unpublished \($0)" }))
    let sealed = try device.store.pendingChanges(limit: 10).changes
    #expect(Set(sealed.map(\.identity)) == Set(unsealed.map(\.identity)))
    #expect(
      try device.store.pendingCount()
        == StoreStatus.PendingCount(unsealed: 0, unpublished: 6, tooLarge: 0))
    // A row can wait in two places.
    try device.run("UPDATE note SET body = 'z' WHERE id = 1")
    #expect(try lines(device).last == "unsealed updated note 1 (body)")
    try device.store.markPublished(set.number)
    #expect(try lines(device) == ["unsealed updated note 1 (body)"])
    #expect(try device.store.pendingCount().total == 1)
  }

  @Test func aListIsBounded() throws {
    let device = try device(Self.notes)
    try device.run(
      """
      WITH RECURSIVE i(n) AS (SELECT 100 UNION ALL SELECT n + 1 FROM i WHERE n < 399)
      INSERT INTO note SELECT n, 't', 'b' FROM i;
      DELETE FROM note WHERE id BETWEEN 100 AND 350
      """)
    var pending = try device.store.pendingChanges(limit: 2)
    #expect(pending.changes.map { $0.key } == [[.integer(351)], [.integer(352)]])
    #expect(pending.hasMore)
    pending = try device.store.pendingChanges(limit: 49)
    #expect(pending.changes.count == 49 && !pending.hasMore)
    pending = try device.store.pendingChanges(limit: 48)
    #expect(pending.changes.count == 48 && pending.hasMore)
    #expect(try device.store.pendingChanges(limit: 0).hasMore)
    // What the log has too much shows no more.
    try device.run("DELETE FROM note WHERE id > 350")
    #expect(try device.store.pendingChanges(limit: 0) == StoreStatus.PendingChanges())
    try device.run("UPDATE note SET title = 'x'")
    _ = try device.store.seal()
    try device.run("INSERT INTO note VALUES (7, '', '')")
    pending = try device.store.pendingChanges(limit: 3)
    #expect(pending.changes.allSatisfy { $0.stage == .unpublished } && pending.hasMore)
    pending = try device.store.pendingChanges(limit: 4)
    #expect(pending.changes.count == 4 && pending.hasMore)
    pending = try device.store.pendingChanges(limit: .max)
    #expect(pending.changes.count == 5 && !pending.hasMore)
  }

  @Test func keysOfAllKindsAreThoseOfThisDevice() throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["person": .columns(["mail"])]
    let device = try device(
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, mail TEXT UNIQUE NOT NULL COLLATE NOCASE, name);
      CREATE TABLE place (a TEXT, b REAL, label, PRIMARY KEY (a, b)) WITHOUT ROWID;
      CREATE TABLE stay (person INTEGER REFERENCES person, day TEXT, n, PRIMARY KEY (person, day));
      INSERT INTO person VALUES (7, 'Ann@x', 'Ann'), (8, 'bob@x', 'Bob');
      INSERT INTO place VALUES ('p', 1, 'one'), ('q', 2.5, 'two');
      INSERT INTO stay VALUES (7, 'mon', 1), (8, 'tue', 2);
      """, configuration: configuration)
    try device.run(
      """
      UPDATE person SET name = 'Anna' WHERE id = 7;
      UPDATE place SET label = 'eins' WHERE a = 'p'; UPDATE place SET b = 3 WHERE a = 'q';
      UPDATE stay SET n = 5 WHERE person = 7; DELETE FROM stay WHERE person = 8;
      DELETE FROM person WHERE id = 8; INSERT INTO person VALUES (9, 'Cid@x', 'Cid');
      INSERT INTO stay VALUES (9, 'wed', 0)
      """)
    let rows = [
      "updated person Ann@x (name)", "deleted person bob@x", "inserted person Cid@x",
      "updated place p,1.0 (label)", "deleted place q,2.5", "inserted place q,3.0",
      "updated stay 7,mon (n)", "inserted stay 9,wed",
    ]
    // The number of a row that is gone is what the log has, and what no change set has.
    let gone = "deleted stay 8,tue"
    #expect(try Set(lines(device)) == Set((rows + [gone]).map { "unsealed \($0)" }))
    #expect(try device.store.pendingChanges(limit: 10).changes.allSatisfy { $0.identity == nil })
    _ = try device.store.seal()
    #expect(try Set(lines(device)) == Set((rows + ["deleted stay ?"]).map { "unpublished \($0)" }))
  }

  /// Other devices know such a row by the columns that were declared, which have not changed.
  @Test func aRowWhoseNumberAloneChangesIsTheSameRow() throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["person": .columns(["mail"])]
    let device = try device(
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, mail TEXT UNIQUE NOT NULL);
      CREATE TABLE stay (person INTEGER REFERENCES person ON UPDATE CASCADE, day, n,
        PRIMARY KEY (person, day));
      INSERT INTO person VALUES (7, 'ann'); INSERT INTO stay VALUES (7, 'mon', 1);
      """, configuration: configuration)
    try device.run("UPDATE person SET id = 70 WHERE id = 7")
    #expect(try !lines(device).contains { $0.contains("deleted") })
    _ = try device.store.seal()
    #expect(try !lines(device).contains { $0.contains("deleted") })
  }

  @Test func aRowThatHadTwoKeysIsDeletedOnce() throws {
    var configuration = StoreConfiguration()
    configuration.identities["person"] = .columns(["mail"])
    let device = try device(
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, mail TEXT NOT NULL UNIQUE);
      CREATE TABLE stay (person INTEGER REFERENCES person ON UPDATE CASCADE, day, PRIMARY KEY (person, day));
      INSERT INTO person VALUES (7, 'a@b'); INSERT INTO stay VALUES (7, 'mon');
      """, configuration: configuration)
    try device.run("UPDATE stay SET day = 'tue'")
    let set = try #require(try device.store.seal().changeSets.first)
    try device.store.markPublished(set.number)
    try device.run("UPDATE person SET id = 70 WHERE id = 7; DELETE FROM stay")
    let changes = try device.store.pendingChanges(limit: 10).changes
    #expect(changes.map(\.kind) == [.deleted])
    #expect(changes.map(\.table) == ["stay"])
    _ = try device.store.seal()
    #expect(try device.store.pendingChanges(limit: 10).changes.map(\.kind) == [.deleted])
  }

  @Test func aSpellingOfAKeyIsNoOtherRow() throws {
    let device = try device(
      """
      CREATE TABLE tag (name TEXT COLLATE NOCASE PRIMARY KEY, n); INSERT INTO tag VALUES ('red', 1)
      """)
    try device.run("UPDATE tag SET name = 'RED' WHERE name = 'red'")
    #expect(try lines(device).count == 1)
    #expect(try lines(device)[0].hasPrefix("unsealed updated tag"))
  }

  @Test func anEditThatIsTooLargeIsListedAsSuch() throws {
    var options = StoreOptions.patient
    options.limits.memoryBytes = 64 << 10
    let device = try device(
      """
      CREATE TABLE photo (k TEXT PRIMARY KEY, name TEXT, data BLOB);
      INSERT INTO photo VALUES ('a', 'Ann', x'01');
      """, options: options)
    try device.run(
      """
      UPDATE photo SET data = randomblob(40000), name = 'Anna' WHERE k = 'a';
      INSERT INTO photo VALUES ('b', 'Bob', randomblob(40000))
      """)
    for set in try device.store.seal().changeSets { try device.store.markPublished(set.number) }
    let held = ["tooLarge updated photo a (data)", "tooLarge inserted photo b"]
    #expect(try lines(device) == held)
    #expect(try device.store.pendingChanges(limit: 1).hasMore)
    #expect(
      try device.store.pendingCount()
        == StoreStatus.PendingCount(unsealed: 0, unpublished: 0, tooLarge: 2))
    // No other device knows the row, so an edit of it inserts it.
    try device.run("UPDATE photo SET data = x'02' WHERE k = 'b'")
    #expect(try lines(device) == held + ["unsealed inserted photo b"])
    // …and no device has to be told of its deletion.
    try device.run("DELETE FROM photo WHERE k = 'b'")
    #expect(try lines(device) == held)
  }

  @Test func tablesOfWhichMoreMayBeSentAreNamed() throws {
    let device = try device(
      """
      CREATE TABLE tag (name TEXT PRIMARY KEY, n); INSERT INTO tag VALUES ('red', 1), ('blue', 2);
      CREATE TABLE word (w TEXT PRIMARY KEY);
      """)
    try device.run("UPDATE tag SET name = NULL WHERE name = 'red'")
    var pending = try device.store.pendingChanges(limit: 10)
    #expect(pending.changes.isEmpty && pending.incompleteTables == ["tag"])
    _ = try device.store.seal()
    #expect(try device.rows("SELECT name FROM tag ORDER BY 1") == ["blue", "red"])
    try device.run(
      """
      CREATE TABLE copy (name TEXT PRIMARY KEY, n); INSERT INTO copy SELECT name, n + 1 FROM tag;
      DROP TABLE tag; ALTER TABLE copy RENAME TO tag; INSERT INTO word VALUES ('w');
      """)
    pending = try device.store.pendingChanges(limit: 10)
    // The edits of other tables are sealed when the new schema is noticed.
    #expect(pending.changes.map(line) == ["unpublished inserted word w"])
    #expect(pending.incompleteTables == ["tag"])
  }

  /// A damaged change set is an error, not an empty list.
  @Test func aDamagedChangeSetIsAnError() throws {
    let device = try device(Self.notes)
    try device.run("UPDATE note SET title = 'x'")
    _ = try device.store.seal()
    try device.run("UPDATE docsync_outbox SET bytes = x'00'")
    #expect(throws: StoreError.self) { try device.store.pendingChanges(limit: 10) }
    #expect(try device.store.pendingCount().unpublished == 4)
  }

  // MARK: - Random edits

  /// What the log is said to contain is what sealing makes of it.
  @Test(arguments: 1...40)
  func theListIsWhatIsSealed(_ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var configuration = StoreConfiguration()
    configuration.identities = ["person": .columns(["mail"])]
    let device = try device(
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, a, b, u UNIQUE);
      CREATE TABLE tag (k TEXT COLLATE NOCASE, l INTEGER, a, b, PRIMARY KEY (k, l)) WITHOUT ROWID;
      CREATE TABLE person (id INTEGER PRIMARY KEY, mail TEXT UNIQUE NOT NULL, a, b);
      CREATE TABLE child (note INTEGER REFERENCES note ON DELETE CASCADE ON UPDATE CASCADE, n, a, b,
        PRIMARY KEY (note, n));
      INSERT INTO note VALUES (1, 0, 0, 1), (2, 0, 0, 2), (3, 0, 0, 3);
      INSERT INTO tag VALUES ('a', 1, 0, 0), ('b', 2, 0, 0);
      INSERT INTO person VALUES (1, 'a', 0, 0), (2, 'b', 0, 0);
      INSERT INTO child VALUES (1, 1, 0, 0), (2, 1, 0, 0);
      """, configuration: configuration)
    for _ in 0..<6 {
      for _ in 0..<Int.random(in: 0...12, using: &random) { try edit(device, &random) }
      let unsealed = try device.store.pendingChanges(limit: 1_000)
      #expect(!unsealed.hasMore && unsealed.incompleteTables.isEmpty)
      let limit = Int.random(in: 0...5, using: &random)
      let first = try device.store.pendingChanges(limit: limit)
      #expect(first.changes == Array(unsealed.changes.prefix(limit)))
      #expect(first.hasMore == (unsealed.changes.count > limit))
      let sets = try device.store.seal().changeSets
      let sealed = try device.store.pendingChanges(limit: 1_000)
      let listed = try Set(unsealed.changes.map(comparable))
      let found = try Set(sealed.changes.map(comparable))
      #expect(listed.subtracting(found).sorted() == [], "not sealed")
      #expect(found.subtracting(listed).sorted() == [], "not listed")
      #expect(unsealed.changes.count == sealed.changes.count)
      #expect(try device.store.pendingCount().unpublished == sealed.changes.count)
      if Bool.random(using: &random) {
        for set in sets { try device.store.markPublished(set.number) }
      }
      for set in try device.store.sealedChangeSets() where !set.isPublished {
        try device.store.markPublished(set.number)
      }
    }
  }

  /// A row that was deleted and inserted again counts as updated in the log, and as inserted in a change set.
  /// The number of a row that is gone is not in the key of a row of a change set.
  private func comparable(_ change: StoreStatus.PendingChanges.Change) throws -> String {
    // Keys that can be spelled in several ways are among the columns.
    let cellCount = change.table == "person" ? 2 : 3
    let isWhole = change.kind == .updated && change.columns.count == cellCount
    let kind = isWhole || change.kind == .inserted ? "written" : "\(change.kind)"
    let isNameless = change.table == "child" && change.kind == .deleted
    let key = isNameless ? "" : change.key.map { $0.map(text).joined(separator: ",") } ?? "?"
    let columns = kind == "written" ? [] : change.columns.map(\.text)
    return "\(change.table) \(key) \(kind) \(columns) \(change.identity?.hexadecimal ?? "")"
  }

  private func edit(_ device: Device, _ random: inout SeededGenerator) throws {
    let table = ["note", "tag", "person", "child"].randomElement(using: &random) ?? "note"
    let number = Int.random(in: 1...5, using: &random)
    let other = Int.random(in: 1...5, using: &random)
    let letter = ["a", "b", "c", "A", "B"].randomElement(using: &random) ?? "a"
    let column = Bool.random(using: &random) ? "a" : "b"
    let value = Int.random(in: 0...9, using: &random)
    let (row, values) =
      switch table {
      case "note": ("id = \(number)", "\(number), \(value), 0, \(other)")
      case "tag": ("l = \(number % 3)", "'\(letter)', \(number % 3), \(value), 0")
      case "person": ("id = \(number)", "\(number), '\(letter)', \(value), 0")
      default: ("note = \(number)", "\(number), \(other % 2), \(value), 0")
      }
    let sql =
      switch Int.random(in: 0..<10, using: &random) {
      case 0...1: "INSERT OR IGNORE INTO \(table) VALUES (\(values))"
      case 2: "INSERT OR REPLACE INTO \(table) VALUES (\(values))"
      case 3...4: "DELETE FROM \(table) WHERE \(row)"
      case 5 where table == "note": "UPDATE OR IGNORE note SET id = \(other) WHERE \(row)"
      case 5 where table == "tag": "UPDATE OR IGNORE tag SET k = '\(letter)' WHERE \(row)"
      default: "UPDATE \(table) SET \(column) = \(value) WHERE \(row)"
      }
    do {
      try device.run(sql)
    } catch let failure as Program.Failure {
      // A constraint refuses it.
      #expect(failure.description.contains("FOREIGN KEY"), "\(failure)")
    }
  }
}
