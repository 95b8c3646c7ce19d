import Foundation
import Testing

/// The output of every command with `--json`, held against the files of `Fixtures/JSON`.
@Suite struct JSONFixtureTests {
  private let scratch: Scratch
  private let golden: Golden

  init() throws {
    scratch = try Scratch()
    golden = Golden(scratch)
  }

  /// Waits until an edit has a later time than the one before.
  private func pause() {
    let begin = Date()
    while Date().timeIntervalSince(begin) < 0.003 {}
  }

  private func devices() throws {
    try scratch.makeTwoDevices()
    try golden.nameClients(of: "a.db")
  }

  private func file(endingIn suffix: String, in folder: String = "/shared") throws -> String {
    let names = try #require(FileManager.default.enumerator(atPath: scratch.path + folder))
    let name = try #require(
      names.compactMap { $0 as? String }.sorted().first { $0.hasSuffix(suffix) }, "\(suffix)")
    return scratch.path + folder + "/" + name
  }

  private func exists(_ name: String) -> Bool {
    FileManager.default.fileExists(atPath: scratch.path + "/shared/" + name)
  }

  private func damage(_ path: String) throws {
    try Data("hello".utf8).write(to: URL(filePath: path))
  }

  @Test func setUp() throws {
    try scratch.sql(
      "a.db",
      """
      CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT, secret TEXT);
      CREATE TABLE tags (name TEXT PRIMARY KEY, note_id INTEGER);
      CREATE TABLE codes (number BIGINT PRIMARY KEY, text TEXT);
      CREATE TABLE counters (name TEXT PRIMARY KEY, Z_MAX INTEGER);
      CREATE TABLE people (id INTEGER PRIMARY KEY, mail TEXT UNIQUE NOT NULL);
      CREATE VIRTUAL TABLE search USING fts5(title);
      INSERT INTO notes (title) VALUES ('one'), ('two');
      INSERT INTO tags VALUES ('red', 1), ('blue', 2);
      INSERT INTO counters VALUES ('notes', 2);
      """)
    try golden.expect(
      "init-dry-run", "init", "a.db", "--directory", "shared", "--dry-run", "--exclude",
      "notes.secret", "--identity", "people=mail")
    try golden.expect(
      "error-referencesUndeclared", "init", "a.db", "--directory", "shared", status: 5)
    let done = try golden.expect(
      "init", "init", "a.db", "--directory", "shared", "--client", "A", "--exclude",
      "notes.secret", "--identity", "people=mail", "--reference", "tags.note_id=notes")
    golden.name(done["client"] as? String, "A")
    try golden.expect("join", "join", "b.db", "--directory", "shared", "--client", "B")
    try golden.nameClients(of: "a.db")
    try golden.expect(
      "error-alreadyUnderSync", "init", "a.db", "--directory", "shared", status: 5)
    try golden.expect("error-fileExists", "join", "b.db", "--directory", "shared", status: 5)
    try golden.expect("sync-none", "sync", "a.db")
  }

  @Test func setUpWithATriggerThatNeedsAFunction() throws {
    try scratch.sql(
      "a.db",
      """
      CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT);
      CREATE TABLE words (word TEXT PRIMARY KEY);
      CREATE TRIGGER hear AFTER INSERT ON notes
      BEGIN INSERT INTO words VALUES (metaphone(new.title)); END;
      """)
    try golden.expect(
      "init-dry-run-trigger", "init", "a.db", "--directory", "shared", "--dry-run")
  }

  @Test func joinWithRowsThatHaveNullInTheirKey() throws {
    let table = "CREATE TABLE tags (name TEXT PRIMARY KEY, color TEXT)"
    try scratch.sql("a.db", "\(table); INSERT INTO tags VALUES ('red', 'r')")
    try scratch.succeed(
      "init", "a.db", "--directory", "shared", "--document", "tags", "--client", "A")
    try golden.nameClients(of: "a.db")
    try scratch.sql("b.db", "\(table); INSERT INTO tags VALUES (NULL, 'n'), (NULL, 'n')")
    try golden.expect(
      "join-merge-without-keys", "join", "b.db", "--directory", "shared", "--client", "B",
      "--merge")
  }

  @Test func aTableThatCannotBeSynchronized() throws {
    try devices()
    try scratch.sql("a.db", "CREATE TABLE runs AS SELECT 1 AS number")
    try golden.expect("status-unsuitable", "status", "a.db")
  }

  @Test func anEditThatIsTooLargeToBeSent() throws {
    try devices()
    try scratch.sql(
      "a.db", "UPDATE notes SET title = printf('%.*c', 68000000, 'x') WHERE id = 1")
    try golden.expect("sync-held", "sync", "a.db")
    try golden.expect("status-held", "status", "a.db")
    try golden.expect("pending-held", "pending", "a.db")
  }

  @Test func whatOnlyOtherDevicesHave() throws {
    try devices()
    try scratch.sql(
      "a.db",
      """
      ALTER TABLE notes ADD COLUMN code TEXT DEFAULT '';
      CREATE TABLE codes (name TEXT PRIMARY KEY);
      """)
    try scratch.succeed("upload", "a.db")
    try scratch.sql(
      "a.db", "ALTER TABLE notes ADD COLUMN later TEXT; UPDATE notes SET later = 'x'")
    try scratch.succeed("sync", "a.db")
    try scratch.succeed("sync", "b.db")
    try golden.expect("schema", "schema", "b.db")
  }

  @Test func joinWithAFileThatIsThere() throws {
    try devices()
    try scratch.makeNotes("c.db")
    try golden.expect(
      "join-merge", "join", "c.db", "--directory", "shared", "--client", "C", "--merge")
    try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('not sent')")
    try golden.expect(
      "join-replace", "join", "b.db", "--directory", "shared", "--client", "B", "--replace")
    try Data("no database".utf8).write(to: URL(filePath: scratch.path + "/d.db"))
    try golden.expect(
      "join-replace-unreadable", "join", "d.db", "--directory", "shared", "--replace")
  }

  @Test func editsArriveAndAreListed() throws {
    try devices()
    try scratch.sql(
      "a.db",
      """
      UPDATE notes SET title = 'new' WHERE id = 1; DELETE FROM notes WHERE id = 2;
      INSERT INTO tags VALUES ('red', 1), ('blue', 9e999), (x'00ff', NULL), ('gone', 0);
      """)
    try golden.expect("status-unsent", "status", "a.db")
    try golden.expect("pending", "pending", "a.db", "--limit", "5")
    try golden.expect("sync-sent", "sync", "a.db")
    try golden.expect("sync-applied", "sync", "b.db")
    try scratch.sql(
      "a.db",
      "UPDATE tags SET name = 'green' WHERE name = 'red'; DELETE FROM tags WHERE name = 'gone'")
    try scratch.succeed("sync", "a.db")
    try golden.expect("status", "status", "a.db")
    try golden.expect("log", "log", "b.db")
    try golden.expect("show", "show", "a.db", "1")
    try golden.expect("show-moved", "show", "a.db", "2")
    try golden.expect("digest", "digest", "a.db")
    try golden.expect("documents", "documents", "--directory", "shared")
    try golden.expect("clients", "clients", "a.db")
    try golden.expect("clients-directory", "clients", "--directory", "shared")
    try golden.expect("upload", "upload", "a.db")
    try golden.expect("vacuum", "vacuum", "a.db")
    try golden.expect("verify", "verify", "a.db")
    try golden.expect("error-noSuchChangeSet", "show", "a.db", "9", status: 1)
    try golden.expect("error-noSuchClient", "show", "a.db", "zzzzzz/9", status: 1)
    try golden.expect("error-usage", "show", "a.db", status: 2)
    try golden.expect("sync-several", "sync", "none.db", "b.db", status: 1)
    try golden.expect("status-several", "status", "none.db", "b.db", status: 1)
    try golden.expect("error-storeMissing", "sync", "none.db", status: 1)
  }

  @Test func undoing() throws {
    try devices()
    try scratch.sql(
      "a.db",
      """
      UPDATE notes SET title = 'new' WHERE id = 1; DELETE FROM notes WHERE id = 2;
      INSERT INTO tags VALUES ('red', 1)
      """)
    try scratch.succeed("sync", "a.db")
    try scratch.sql("a.db", "UPDATE notes SET title = 'newer' WHERE id = 1")
    try golden.expect("undo-dry-run", "undo", "a.db", "1", "--dry-run", status: 3)
    try golden.expect("undo", "undo", "a.db", "1", "--yes", status: 3)
    try golden.expect("error-changeSetUnavailable", "undo", "a.db", "9", status: 1)
  }

  @Test func conflicts() throws {
    try devices()
    try golden.expect("conflicts-none", "conflicts", "b.db")
    for number in [1, 2] {
      if number == 2 {
        try golden.expect("conflicts-policy", "conflicts", "b.db", "policy", "notes.title=ask")
        try scratch.succeed("conflicts", "b.db", "policy", "tags=localWins")
      }
      try scratch.sql("b.db", "UPDATE notes SET title = 'b\(number)' WHERE id = \(number)")
      pause()
      try scratch.sql("a.db", "UPDATE notes SET title = 'a\(number)' WHERE id = \(number)")
      try scratch.succeed("sync", "a.db")
      if number == 1 { try golden.expect("sync-conflict", "sync", "b.db") }
    }
    try golden.expect("sync-question", "sync", "b.db", status: 3)
    try golden.expect("status-question", "status", "b.db", status: 3)
    try golden.expect("conflicts", "conflicts", "b.db", status: 3)
    try golden.expect("conflicts-show", "conflicts", "b.db", "show", "2", status: 3)
    try golden.expect("conflicts-restore", "conflicts", "b.db", "restore", "1", status: 3)
    try golden.expect("conflicts-resolve", "conflicts", "b.db", "resolve", "2", "--local")
    try golden.expect("conflicts-policies", "conflicts", "b.db", "policy")
    try golden.expect("error-noSuchConflict", "conflicts", "b.db", "show", "9", status: 1)
  }

  @Test func aRowComesBackOnTheDeviceThatHasErasedIt() throws {
    try devices()
    for store in ["a.db", "b.db"] { try scratch.sql(store, "ALTER TABLE tags ADD COLUMN color") }
    try scratch.sql("b.db", "INSERT INTO tags VALUES ('red', 1, 'red')")
    try scratch.succeed("sync", "b.db", "a.db")
    try scratch.sql("a.db", "DELETE FROM tags")
    try scratch.sql("b.db", "UPDATE tags SET weight = 2")
    try scratch.succeed("sync", "b.db", "a.db")
    try golden.expect("conflicts-restore-defaults", "conflicts", "a.db", "restore", "1")
  }

  /// A unique value that two rows have, and a row that was edited here and deleted elsewhere.
  @Test func rowsThatAreNotShownAndWarnings() throws {
    try scratch.sql(
      "a.db",
      """
      CREATE TABLE people (id INTEGER PRIMARY KEY, mail TEXT UNIQUE, name TEXT);
      INSERT INTO people (mail) VALUES ('x@y'), ('z@y');
      """)
    try scratch.succeed("init", "a.db", "--directory", "shared", "--client", "A")
    try scratch.succeed("join", "b.db", "--directory", "shared", "--client", "B")
    try golden.nameClients(of: "a.db")
    try scratch.sql(
      "b.db",
      """
      ALTER TABLE people ADD COLUMN later TEXT; CREATE TABLE extra (id INTEGER PRIMARY KEY);
      """)
    try scratch.sql("b.db", "INSERT INTO people (mail, later) VALUES ('new@y', 'b')")
    try scratch.sql("b.db", "INSERT INTO extra VALUES (1); DELETE FROM people WHERE id = 2")
    pause()
    try scratch.sql("a.db", "INSERT INTO people (mail) VALUES ('new@y')")
    try scratch.sql("a.db", "UPDATE people SET name = 'edited' WHERE id = 2")
    try scratch.succeed("sync", "b.db")
    try golden.expect("sync-parked", "sync", "a.db")
    try golden.expect("status-parked", "status", "a.db")
    try golden.expect("conflicts-rows", "conflicts", "a.db")
    try scratch.sql("a.db", "INSERT INTO people (mail) VALUES ('not sent')")
    try golden.expect("error-confirmationNeeded", "leave", "a.db", status: 5)
    try golden.expect("leave", "leave", "a.db", "--yes")
    try golden.expect("leave-none", "leave", "a.db")
  }

  @Test func changeSetsThatWait() throws {
    try devices()
    try scratch.succeed("join", "c.db", "--directory", "shared", "--client", "C")
    try golden.nameClients(of: "a.db")
    for title in ["x", "y"] {
      try scratch.sql("a.db", "UPDATE notes SET title = '\(title)' WHERE id = 1")
      try scratch.succeed("sync", "a.db")
    }
    let first = try file(endingIn: ".syncchg")
    try damage(first)
    try golden.expect("sync-waiting", "sync", "b.db", status: 3)
    try golden.expect("status-waiting", "status", "b.db", status: 3)
    let joined = try golden.expect(
      "join-waiting", "join", "d.db", "--directory", "shared", "--client", "D", status: 3)
    golden.name(joined["client"] as? String, "D")
    try golden.expect("verify-damaged", "verify", "b.db", status: 1)
    try golden.expect("verify-directory", "verify", "--directory", "shared", status: 1)
    try golden.expect("sync-thorough", "sync", "a.db", "--thorough")
    try golden.expect("clients-lacking", "clients", "a.db")
  }

  @Test func aDependencyThatIsNotThereYet() throws {
    try devices()
    try scratch.succeed("join", "c.db", "--directory", "shared", "--client", "C")
    try golden.nameClients(of: "a.db")
    try scratch.sql("a.db", "UPDATE notes SET title = 'x' WHERE id = 1")
    try scratch.succeed("sync", "a.db", "b.db")
    try scratch.sql("b.db", "UPDATE notes SET title = 'y' WHERE id = 1")
    try scratch.succeed("sync", "b.db")
    let a = try #require(
      try scratch.succeed("status", "a.db", "--json").json()["client"] as? String)
    let path = try #require(
      try scratch.contents().keys.first { $0.contains("SyncChanges/\(a)/1.") })
    try FileManager.default.moveItem(
      atPath: scratch.path + "/" + path, toPath: scratch.path + "/aside")
    try golden.expect("sync-dependency", "sync", "c.db", status: 3)
    try golden.expect("status-dependency", "status", "c.db", status: 3)
  }

  @Test func newIncarnationsAndResets() throws {
    try devices()
    try scratch.sql("a.db", "UPDATE notes SET title = 'x' WHERE id = 1")
    try scratch.succeed("sync", "a.db", "b.db")
    try FileManager.default.copyItem(
      atPath: scratch.path + "/b.db", toPath: scratch.path + "/copy.db")
    try golden.expect("sync-copied", "sync", "copy.db")
    try golden.nameClients(of: "a.db")
    try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('of b')")
    try golden.expect("reset", "reset", "a.db", "--yes")
    try golden.nameClients(of: "a.db")
    try golden.expect("sync-reset", "sync", "b.db")
    try golden.nameClients(of: "a.db")
    try golden.expect("clients-incarnations", "clients", "a.db")
  }

  @Test func devicesThatGo() throws {
    try devices()
    for name in ["c", "d"] {
      try scratch.succeed(
        "join", "\(name).db", "--directory", "shared", "--client", name.uppercased())
    }
    try golden.nameClients(of: "a.db")
    try golden.expect("retire-none", "retire", "a.db", "--not-seen", "30")
    let clients = try #require(
      try scratch.succeed("clients", "a.db", "--json").json()["clients"] as? [[String: Any]])
    let b = try #require(
      clients.first { $0.values.contains { $0 as? String == "B" } }?["client"] as? String)
    try golden.expect("retire", "retire", "a.db", "--client", b)
    try golden.expect("remove-client", "remove-client", "a.db", "C", "--yes")
    try scratch.succeed("leave", "d.db", "--yes")
    try golden.expect("clients-gone", "clients", "a.db")
    try golden.expect("error-clientRemoved", "sync", "c.db", status: 5)
    try golden.expect("sync-rejoin", "sync", "c.db", "--rejoin")
    try golden.expect(
      "error-noSuchDevice", "remove-client", "a.db", "zzzzzz", "--yes", status: 1)
  }

  @Test func documentsThatGo() throws {
    try devices()
    try scratch.sql("e.db", "CREATE TABLE notes (id INTEGER PRIMARY KEY)")
    try scratch.succeed("init", "e.db", "--directory", "shared", "--client", "E")
    try Data("mine".utf8).write(to: URL(filePath: scratch.path + "/shared/mine.txt"))
    try golden.expect(
      "error-documentAmbiguous", "join", "f.db", "--directory", "shared", status: 1)
    try golden.expect(
      "delete-document", "delete-document", "notes", "--directory", "shared", "--client", "A",
      "--yes")
    try golden.expect("documents-deleted", "documents", "--directory", "shared")
    try golden.expect("error-documentDeleted", "sync", "b.db", status: 5)
    try golden.expect("status-deleted", "status", "b.db")
    try golden.expect("sync-recreate", "sync", "b.db", "--recreate")
    let list = try #require(
      try scratch.succeed("documents", "--directory", "shared", "--json").json()["documents"]
        as? [[String: Any]])
    let other = try #require(list.first { $0.values.contains { $0 as? String == "e" } })
    let folder = try #require(
      other.values.compactMap { $0 as? String }.first {
        $0.count == 26 && exists("Documents/\($0)")
      })
    try damage(try file(endingIn: ".json", in: "/shared/Documents/" + folder))
    try golden.expect("documents-unreadable", "documents", "--directory", "shared", status: 3)
    try golden.expect(
      "remove-all", "remove-all", "--directory", "shared", "--client", "A", "--yes")
  }

  @Test func directoryThatIsAway() throws {
    try devices()
    try FileManager.default.moveItem(
      atPath: scratch.path + "/shared", toPath: scratch.path + "/elsewhere")
    try golden.expect("error-directoryAway", "sync", "a.db", status: 4)
    try golden.expect("status-directoryAway", "status", "a.db")
    try golden.expect("verify-directoryAway", "verify", "a.db", status: 4)
    try golden.expect("leave-abandon", "leave", "a.db", "--abandon", "--yes")
  }

  @Test func demo() throws {
    try golden.expect("demo", "demo")
    let kept = try golden.expect("demo-kept", "demo", "--keep")
    try FileManager.default.removeItem(atPath: #require(kept["directory"] as? String))
  }

  /// A file that no test compares says nothing.
  @Test(.disabled(if: Golden.isWriting)) func everyFileIsComparedByATest() throws {
    let source = try String(contentsOf: URL(filePath: #filePath), encoding: .utf8)
    let named = Set(source.matches(of: /"([A-Za-z]+(?:-[A-Za-z]+)*)",/).map { String($0.1) })
    let files = try FileManager.default.contentsOfDirectory(atPath: Golden.folder.path)
      .filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }
    #expect(files.count > 50)
    // JSONPageTests compares objects that are parts of others.
    #expect(Set(files).subtracting(named).filter { !$0.hasPrefix("object-") } == [])
  }
}
