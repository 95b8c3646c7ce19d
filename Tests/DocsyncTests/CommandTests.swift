import Foundation
import Testing

@testable import docsync

/// What the verbs do, and the shape of their JSON.
@Suite struct CommandTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func digest(_ store: String) throws -> String {
    try #require(scratch.succeed("digest", store, "--json").json()["visible"] as? String)
  }

  /// A user keeps other files in the shared folder.
  @Test func filesOfOtherProgramsAreNothingToLookAfter() throws {
    try scratch.sql("a.db", "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)")
    try scratch.succeed("init", "a.db", "--directory", "shared")
    for name in ["mine.db", ".stfolder", "desktop.ini", "letter.txt~"] {
      try Data("mine".utf8).write(to: URL(filePath: scratch.path + "/shared/" + name))
    }
    let verified = try scratch.succeed("verify", "a.db").output
    #expect(verified.contains("This is not a file of DocumentSync."))
    #expect(!verified.contains("may be removed"))
  }

  @Test func twoDevicesEditAndAgree() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('from a')")
    try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('from b')")
    try scratch.sql("b.db", "DELETE FROM notes WHERE title = 'two'")
    #expect(try digest("a.db") != digest("b.db"))
    try scratch.succeed("sync", "a.db", "b.db", "a.db")
    #expect(try digest("a.db") == digest("b.db"))
    for store in ["a.db", "b.db"] {
      #expect(
        try scratch.column(store, "SELECT title FROM notes ORDER BY title")
          == ["\"from a\"", "\"from b\"", "\"one\""])
    }
    #expect(try scratch.succeed("sync", "a.db").output.contains("up to date"))
  }

  @Test func everySyncCountsTheHiddenRows() throws {
    try scratch.sql(
      "a.db", "CREATE TABLE people (id INTEGER PRIMARY KEY, mail TEXT UNIQUE, device TEXT)")
    try scratch.succeed("init", "a.db", "--directory", "shared")
    try scratch.succeed("join", "b.db", "--directory", "shared")
    for store in ["a.db", "b.db"] {
      try scratch.sql(store, "INSERT INTO people (mail, device) VALUES ('one@both', '\(store)')")
    }
    try scratch.succeed("sync", "a.db")
    // The first one applies and seals; the second one does nothing.
    for _ in 0..<2 {
      let synced = try scratch.docsync("sync", "b.db", "--json")
      let store = try #require((try synced.json()["stores"] as? [[String: Any]])?.first)
      let report = try #require(store["report"] as? [String: Any])
      #expect(synced.status == 3 && (store["parked"] as? [Any])?.count == 1)
      #expect(report["parkedCount"] as? Int == 1, "\(synced.output)")
    }
    let said = try scratch.docsync("sync", "b.db").output
    #expect(said.contains("1 row hidden. See them: docsync conflicts b.db\n"), "\(said)")
    #expect(said.contains("1 row  people  another row has the same unique value\n"), "\(said)")
  }

  /// Two devices make a tag of one name, or the same row twice: the second row needs no decision.
  @Test(arguments: [true, false])
  func aHiddenRowThatAnotherStandsForWaitsForNothing(isReferred: Bool) throws {
    try scratch.sql(
      "a.db",
      """
      CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT UNIQUE, device TEXT);
      CREATE TABLE note (id INTEGER PRIMARY KEY, \(isReferred ? "tag REFERENCES tag" : "body TEXT"))
      """)
    try scratch.succeed("init", "a.db", "--directory", "shared")
    try scratch.succeed("join", "b.db", "--directory", "shared")
    for store in ["a.db", "b.db"] {
      try scratch.sql(
        store, "INSERT INTO tag (name, device) VALUES ('red', '\(isReferred ? store : "one")')")
    }
    try scratch.succeed("sync", "a.db")
    let first = try scratch.succeed("sync", "b.db").output
    #expect(
      first.contains("warning: rows of tag are hidden: another row has the same unique value"))
    #expect(try !scratch.succeed("sync", "b.db").output.contains("hidden"))
    let status = try scratch.succeed("status", "b.db").output
    #expect(status.contains("another row has the same unique value, and stands for it"))
    let parked = try scratch.succeed("status", "b.db", "--json").json()["parked"]
    #expect((parked as? [[String: Any]])?.first?["hasStandIn"] as? Bool == true)
    // Other values in a row that no row refers to are to be looked at.
    guard !isReferred else { return }
    try scratch.sql("b.db", "UPDATE tag SET device = 'b'")
    #expect(try scratch.docsync("sync", "b.db").status == 3)
  }

  @Test func aTableThatCannotBeSynchronizedStopsNothing() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("a.db", "CREATE TABLE runs AS SELECT 1 AS number")
    try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('from a')")
    let reason = "The table \"runs\" has no primary key, so its rows cannot be told apart. To "
    let synced = try scratch.succeed("sync", "a.db").output
    #expect(synced.contains("sent 1 change set (1 row)"))
    #expect(synced.contains("warning: a table stays on this device. \(reason)"))
    #expect(try scratch.succeed("sync", "b.db").output.contains("applied 1 change set"))
    let status = try scratch.succeed("status", "a.db", "--tables").output
    #expect(status.contains("\n  runs  no primary key"))
    #expect(status.contains("stay on this device:\n  \(reason)"))
    let verified = try scratch.docsync("verify", "a.db")
    #expect(
      verified.status == 0 && verified.output.contains("next: To synchronize it, give it one"))
    for verb in ["log", "digest", "clients", "conflicts", "vacuum", "upload"] {
      try scratch.succeed(verb, "a.db")
    }
    // If the table was synchronized, its device stops, and nothing is deleted elsewhere.
    try scratch.sql("a.db", "CREATE TABLE n AS SELECT * FROM notes")
    try scratch.sql("a.db", "DROP TABLE notes; ALTER TABLE n RENAME TO notes")
    for verb in [["sync"], ["upload"], ["digest"], ["vacuum"], ["reset", "--yes"]] {
      let refused = try Executable.run([verb[0], "a.db"] + verb.dropFirst(), in: scratch.path)
      #expect(refused.status == 1, "\(verb)")
      #expect(
        refused.errors.contains("\"notes\" has no primary key")
          && refused.errors.contains("so the database is not synchronized until")
          && refused.errors.contains("next: To synchronize it, give it one"), "\(refused.errors)")
    }
    try scratch.succeed("sync", "b.db")
    #expect(
      try scratch.column("b.db", "SELECT title FROM notes ORDER BY title")
        == ["\"from a\"", "\"one\"", "\"two\""])
    for verb in ["log", "clients", "conflicts"] { try scratch.succeed(verb, "a.db") }
    #expect(try scratch.succeed("status", "a.db").output.contains("is not synchronized until"))
    #expect(try scratch.docsync("verify", "a.db").status == 1)
    let refused = try scratch.docsync("leave", "a.db", "--yes")
    #expect(refused.status == 1 && refused.errors.contains("\"notes\" has no primary key"))
    try scratch.succeed("leave", "a.db", "--abandon", "--yes")
    #expect(try scratch.column("a.db", "SELECT number FROM runs") == ["1"])
  }

  @Test func tablesThatCannotBeSynchronizedAreNamedAtOnce() throws {
    try scratch.sql("a.db", "CREATE TABLE a1 (x); CREATE TABLE a2 (x); CREATE TABLE a3 (x)")
    let refused = try scratch.docsync("init", "a.db", "--directory", "shared")
    #expect(refused.status == 1)
    #expect(refused.errors.contains("3 tables have no primary key"))
    #expect(refused.errors.contains("with --exclude a1 --exclude a2 --exclude a3."))
    try scratch.succeed(
      "init", "a.db", "--directory", "shared", "--exclude", "a1", "--exclude", "a2", "--exclude",
      "a3")
  }

  /// In the folder of the command, where its path is one character.
  @Test func aStoreMayHaveANameOfOneLetter() throws {
    try scratch.sql("a", "CREATE TABLE t (id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, 2)")
    try scratch.succeed("init", "a", "--directory", "shared")
    try scratch.succeed("join", "b", "--directory", "shared")
    try scratch.succeed("sync", "a", "b")
    #expect(try digest("a") == digest("b"))
  }

  @Test func mergeTypesAreChosenWhenTheDocumentIsMade() throws {
    try scratch.sql(
      "a.db", "CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT, reads INTEGER DEFAULT 0)")
    try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('one')")
    let wrong = try scratch.docsync(
      "init", "a.db", "--directory", "shared", "--merge", "notes.title=counter")
    #expect(wrong.status != 0 && wrong.errors.contains("cannot be a counter"))
    try scratch.succeed(
      "init", "a.db", "--directory", "shared", "--merge", "notes=editWins", "--merge",
      "notes.reads=counter")
    try scratch.succeed("join", "b.db", "--directory", "shared")
    for store in ["a.db", "b.db"] {
      try scratch.sql(store, "UPDATE notes SET reads = reads + 1")
    }
    try scratch.sql("b.db", "DELETE FROM notes")
    try scratch.sql("a.db", "UPDATE notes SET title = 'kept'")
    try scratch.succeed("sync", "a.db", "b.db", "a.db")
    #expect(try digest("a.db") == digest("b.db"))
    #expect(try scratch.column("b.db", "SELECT title FROM notes") == ["\"kept\""])
  }

  @Test func aSyncReportsWhatItDid() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("a.db", "UPDATE notes SET title = 'new' WHERE id = 1")
    try scratch.succeed("sync", "a.db")
    let result = try scratch.succeed("sync", "b.db", "--json").json()
    let stores = try #require(result["stores"] as? [[String: Any]])
    #expect(stores.count == 1)
    #expect(stores[0]["store"] as? String == "b.db")
    #expect(stores[0]["document"] as? String == "notes")
    let report = try #require(stores[0]["report"] as? [String: Any])
    #expect((report["applied"] as? [Any])?.count == 1)
    #expect(report["updatedRows"] as? Int == 1)
    #expect((report["waiting"] as? [Any])?.isEmpty == true)
  }

  @Test func oneStoreThatFailsDoesNotKeepTheOthersFromSyncing() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("a.db", "UPDATE notes SET title = 'new' WHERE id = 1")
    let result = try scratch.docsync("sync", "none.db", "a.db", "b.db", "--json")
    #expect(result.status == 1)
    let json = try result.json()
    #expect((json["error"] as? [String: Any])?["code"] as? String == "storeMissing")
    let stores = try #require(json["stores"] as? [[String: Any]])
    #expect(stores.count == 3 && stores[0]["error"] != nil && stores[2]["report"] != nil)
    #expect(try digest("a.db") == digest("b.db"))
  }

  @Test func aChangeSetThatHasNotArrivedExitsWithThree() throws {
    try scratch.makeTwoDevices()
    for title in ["x", "y"] {
      try scratch.sql("a.db", "UPDATE notes SET title = '\(title)' WHERE id = 1")
      try scratch.succeed("sync", "a.db")
    }
    let file = try #require(
      try scratch.contents().keys.first {
        $0.hasSuffix(".syncchg") && ($0 as NSString).lastPathComponent.hasPrefix("1.")
      })
    try FileManager.default.removeItem(atPath: scratch.path + "/" + file)
    let text = try scratch.docsync("sync", "b.db")
    #expect(text.status == 3)
    #expect(text.output.contains("waiting: change set 1 of A ("))
    for output in [text.output, try scratch.docsync("status", "b.db").output] {
      #expect(output.contains("next: Wait until the file has arrived completely."))
      #expect(output.contains("run “docsync sync STORE --thorough” on A ("), "\(output)")
    }
    let json = try scratch.docsync("sync", "b.db", "--json")
    #expect(json.status == 3)
  }

  @Test func initTellsWhatItWillDo() throws {
    try scratch.makeNotes("a.db")
    try scratch.sql(
      "a.db",
      """
      CREATE TABLE "odd.table" (a TEXT, "b c" INT, d, PRIMARY KEY (a, "b c"));
      ALTER TABLE tags ADD COLUMN note_id INTEGER;
      CREATE TABLE private (id INTEGER PRIMARY KEY);
      CREATE VIRTUAL TABLE search USING fts5(title);
      """)
    let before = try scratch.contents()
    let options = [
      "init", "a.db", "--directory", "shared", "--exclude", "private", "--exclude",
      "\"odd.table\".d", "--json",
    ]
    let plan = try Executable.run(options + ["--dry-run"], in: scratch.path).json()
    #expect(try scratch.contents() == before)
    let done = try Executable.run(
      options + ["--no-reference", "tags.note_id"], in: scratch.path
    ).json()
    for result in [plan, done] {
      let tables = try #require(result["tables"] as? [[String: Any]])
      let identities = tables.map { "\($0["table"] ?? "") \($0["identity"] ?? "")" }
      #expect(
        identities.sorted() == ["notes surrogate", "odd.table primaryKey", "tags primaryKey"])
      let odd = tables.first { $0["table"] as? String == "odd.table" }
      #expect(odd?["excludedColumns"] as? [String] == ["d"])
      let leftOut = try #require(result["leftOut"] as? [String: String])
      #expect(leftOut["private"] != nil && leftOut["search"] != nil)
    }
    let likely = try #require(plan["likelyReferences"] as? [[String: Any]])
    #expect(likely.map { "\($0["table"] ?? "").\($0["column"] ?? "")" } == ["tags.note_id"])
    #expect(likely.first?["parent"] as? String == "notes")
    #expect((done["likelyReferences"] as? [Any])?.isEmpty == true)
    #expect(plan["isDryRun"] as? Bool == true && done["isDryRun"] as? Bool == false)
  }

  @Test func identitiesAndReferencesAreTakenFromTheOptions() throws {
    try scratch.makeNotes("a.db")
    try scratch.sql(
      "a.db",
      "CREATE UNIQUE INDEX title ON notes (title); ALTER TABLE tags ADD COLUMN note_id INTEGER")
    let result = try scratch.succeed(
      "init", "a.db", "--directory", "shared", "--identity", "notes=title", "--reference",
      "tags.note_id=notes", "--json"
    ).json()
    let tables = try #require(result["tables"] as? [[String: Any]])
    let notes = try #require(tables.first { $0["table"] as? String == "notes" })
    #expect(notes["identity"] as? String == "columns")
    #expect(notes["identityColumns"] as? [String] == ["title"])
    #expect((result["likelyReferences"] as? [Any])?.isEmpty == true)
  }

  @Test func logAndShowTellOfOwnAndOfOthersChangeSets() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("a.db", "UPDATE notes SET title = 'shown ' || id")
    try scratch.succeed("sync", "a.db", "b.db")
    let own = try scratch.succeed("show", "a.db", "1")
    #expect(own.output.contains("of A (") && own.output.contains("title = 'shown 2'"))

    let log = try scratch.succeed("log", "b.db", "--json").json()
    let sets = try #require(log["changeSets"] as? [[String: Any]])
    let client = try #require(sets.first?["client"] as? String)
    #expect(sets.count == 1 && sets[0]["clientName"] as? String == "A")
    #expect(sets[0]["isOwn"] as? Bool == false)
    let reference = client.prefix(6) + "/1"
    #expect(try scratch.succeed("log", "b.db").output.contains(reference))
    #expect(try scratch.succeed("show", "b.db", String(reference)).output == own.output)

    let json = try scratch.succeed("show", "b.db", String(reference), "--json").json()
    #expect(json["hash"] as? String == sets[0]["hash"] as? String)
    let tables = try #require(json["tables"] as? [[String: Any]])
    let rows = try #require(tables.first?["rows"] as? [[String: Any]])
    #expect(rows.count == 2 && rows.allSatisfy { $0["action"] as? String == "update" })
    for row in rows {
      let id = try #require((row["key"] as? [String: Int])?["id"])
      #expect(row["values"] as? [String: String] == ["title": "shown \(id)"])
    }
  }

  @Test func aChangeSetIsUndone() throws {
    try scratch.makeTwoDevices()
    let before = try scratch.column("a.db", "SELECT title FROM notes")
    try scratch.sql(
      "a.db", "UPDATE notes SET title = 'wrong'; INSERT INTO notes(title) VALUES ('more')")
    try scratch.succeed("sync", "a.db", "b.db")
    let wrong = try scratch.column("b.db", "SELECT title FROM notes")
    #expect(wrong == ["\"wrong\"", "\"wrong\"", "\"more\""])

    // Without a terminal it lists what it would do, and asks for --yes.
    let refused = try scratch.docsync("undo", "a.db", "1")
    #expect(
      refused.status == 5
        && refused.errors.contains("notes: 2 rows will be set back, 1 row will be deleted"))
    let preview = try scratch.succeed("undo", "a.db", "1", "--dry-run").output
    #expect(preview.contains("This would undo change set 1 of this device:"))
    #expect(try scratch.column("a.db", "SELECT title FROM notes") == wrong)
    #expect(try scratch.succeed("status", "a.db").output.contains("to send      nothing"))

    let author = try #require(
      (try scratch.succeed("log", "b.db", "--json").json()["changeSets"] as? [[String: Any]])?
        .first?["client"] as? String)
    try scratch.sql("b.db", "UPDATE notes SET title = 'later' WHERE id = 1")
    let undone = try scratch.docsync("undo", "b.db", author.prefix(6) + "/1", "--yes")
    #expect(undone.status == 3 && undone.errors == "")
    for line in [
      "Undone: change set 1 of A (", "notes: 1 row set back, 1 row deleted", "1 row stays as now:",
      "notes id 1 (title): It was changed since.", "“docsync sync b.db” sends this",
    ] {
      #expect(undone.output.contains(line), "\(undone.output)")
    }
    try scratch.succeed("sync", "b.db", "a.db")
    #expect(try scratch.column("a.db", "SELECT title FROM notes") == ["\"later\"", before[1]])
    let again = try scratch.docsync("undo", "a.db", "1")
    #expect(
      again.status == 3
        && again.output.hasPrefix("Nothing of change set 1 of this device can be undone."))
  }

  @Test func statusTellsWhatIsToBeSent() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('x'), ('y')")
    let status = try scratch.succeed("status", "a.db", "--json").json()
    #expect(status["unsentEdits"] as? Int == 2)
    #expect(status["isDirectoryThere"] as? Bool == true)
    #expect(status["clientName"] as? String == "A")
    #expect(try scratch.succeed("status", "a.db").output.contains("2 edits"))
  }

  @Test func statusTellsWhatIsToBeReceivedAndWhenItWasLastSynchronized() throws {
    try scratch.makeTwoDevices()
    try scratch.succeed("sync", "b.db")
    let lock = URL(fileURLWithPath: scratch.path + "/b.db-docsync-lock")
    let time = Data("1000000000000\n".utf8)
    try time.write(to: lock)
    for number in 1...2 {
      try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('\(number)')")
      try scratch.succeed("sync", "a.db")
    }
    let status = try scratch.succeed("status", "b.db", "--json").json()
    #expect(status["unreceivedChangeSets"] as? Int == 2)
    #expect(status["syncedMilliseconds"] as? Int == 1_000_000_000_000)
    let text = try scratch.succeed("status", "b.db").output
    #expect(text.contains("to receive   2 change sets\n"), "\(text)")
    #expect(!text.contains("Synchronized:"))
    let before = Date()
    try scratch.succeed("sync", "b.db")
    let synced = try scratch.succeed("status", "b.db", "--json").json()
    #expect(synced["unreceivedChangeSets"] as? Int == 0)
    let milliseconds = try #require(synced["syncedMilliseconds"] as? Int)
    #expect(milliseconds > Int(before.timeIntervalSince1970 * 1000) - 100)
    // A synchronization that fails is none.
    try time.write(to: lock)
    let shared = scratch.path + "/shared"
    try FileManager.default.moveItem(atPath: shared, toPath: shared + "-away")
    #expect(try scratch.docsync("sync", "b.db").status == 4)
    let away = try scratch.succeed("status", "b.db", "--json").json()
    #expect(away["syncedMilliseconds"] as? Int == 1_000_000_000_000)
    #expect(away["unreceivedChangeSets"] == nil)
    // A copy has a lock of its own.
    try FileManager.default.copyItem(
      atPath: scratch.path + "/b.db", toPath: scratch.path + "/c.db")
    #expect(try scratch.docsync("sync", "c.db").status == 4)
    let copy = try scratch.succeed("status", "c.db")
    #expect(copy.output.contains("last sync    not known\n"), "\(copy.output)")
  }

  @Test func statusOfSeveralDatabasesHasALineForEach() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('x')")
    try scratch.succeed("sync", "a.db")
    try scratch.sql("a.db", "INSERT INTO notes (title) VALUES ('y')")
    let status = try scratch.docsync("status", "a.db", "none.db", "b.db")
    #expect(status.status == 1)
    let lines = status.output.split(separator: "\n")
    #expect(lines.count == 2, "\(status.output)")
    #expect(lines[0].hasPrefix("a.db  synchronized 2"), "\(lines[0])")
    #expect(lines[0].contains("to send: 1 edit"))
    #expect(lines[1].hasSuffix("to send: nothing  to receive: 1 change set"), "\(lines[1])")
    #expect(status.errors.contains("There is no such file.\n  path: none.db"), "\(status.errors)")
  }

  /// A document that was deleted tells nothing more.
  @Test func statusSaysWhyItDoesNotKnowWhatIsToBeReceived() throws {
    try scratch.makeTwoDevices()
    try scratch.succeed(
      "delete-document", "notes", "--directory", "shared", "--yes")
    let status = try scratch.succeed("status", "b.db", "--json").json()
    #expect(status["unreceivedChangeSets"] == nil)
    #expect((status["directoryError"] as? [String: Any])?["code"] as? String == "documentDeleted")
    #expect(try scratch.succeed("status", "b.db").output.contains("to receive   not known. "))
  }

  @Test func documentsAndClientsAreListed() throws {
    try scratch.makeTwoDevices()
    let documents = try scratch.succeed("documents", "--directory", "shared", "--json").json()
    let found = try #require(documents["documents"] as? [[String: Any]])
    #expect(found.count == 1 && found[0]["document"] as? String == "notes")
    for arguments in [["a.db"], ["--directory", "shared"]] {
      let result = try Executable.run(["clients"] + arguments + ["--json"], in: scratch.path)
      let clients = try #require(try result.json()["clients"] as? [[String: Any]])
      #expect(Set(clients.compactMap { $0["clientName"] as? String }) == ["A", "B"])
      #expect(clients.allSatisfy { ($0["state"] != nil) == (arguments.count == 1) })
    }
  }

  @Test func anUploadIsWhatTheNextOneJoinsFrom() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("b.db", "INSERT INTO notes (title) VALUES ('late')")
    let result = try scratch.succeed("upload", "b.db", "--json").json()
    let store = try #require(result["wholeStore"] as? [String: Any])
    #expect(store["number"] as? Int == 1)
    try scratch.succeed("join", "c.db", "--directory", "shared")
    #expect(try digest("c.db") == digest("b.db"))
    #expect(try scratch.succeed("log", "c.db").output == "No change sets yet.\n")
  }

  @Test func aDirectoryThatMovedIsFoundByItsNewName() throws {
    try scratch.makeTwoDevices()
    try FileManager.default.moveItem(
      atPath: scratch.path + "/shared", toPath: scratch.path + "/elsewhere")
    try scratch.succeed("sync", "a.db", "--directory", "elsewhere")
    try scratch.succeed("sync", "a.db")
  }

  @Test func anIndexedTableIsAppliedAndItsIndexFollows() throws {
    try scratch.sql(
      "a.db",
      """
      CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT, secret TEXT);
      CREATE VIRTUAL TABLE search USING fts5(body, content = 'notes', content_rowid = 'id');
      CREATE TRIGGER inserted AFTER INSERT ON notes BEGIN
        INSERT INTO search (rowid, body) VALUES (new.id, new.body); END;
      CREATE TRIGGER updated AFTER UPDATE ON notes BEGIN
        INSERT INTO search (search, rowid, body) VALUES ('delete', old.id, old.body);
        INSERT INTO search (rowid, body) VALUES (new.id, new.body); END;
      CREATE TRIGGER deleted AFTER DELETE ON notes BEGIN
        INSERT INTO search (search, rowid, body) VALUES ('delete', old.id, old.body); END;
      INSERT INTO notes (body, secret) VALUES ('apple', 's'), ('pear', 's');
      """)
    try scratch.succeed(
      "init", "a.db", "--directory", "shared", "--exclude", "notes.secret")
    try scratch.succeed("join", "b.db", "--directory", "shared")
    try scratch.sql("a.db", "UPDATE notes SET body = 'quince' WHERE body = 'apple'")
    try scratch.sql("a.db", "DELETE FROM notes WHERE body = 'pear'")
    try scratch.succeed("sync", "a.db", "b.db")
    try scratch.sql("b.db", "INSERT INTO search (search) VALUES ('integrity-check')")
    for (word, count) in [("quince", "1"), ("apple", "0"), ("pear", "0")] {
      #expect(
        try scratch.column(
          "b.db", "SELECT count(*) FROM search WHERE search MATCH '\(word)'") == [count])
    }
    #expect(try scratch.column("a.db", "SELECT secret FROM notes") == ["\"s\""])
    #expect(try scratch.column("b.db", "SELECT secret FROM notes") == ["NULL"])
  }

  @Test func theDemoEndsInEqualDigests() throws {
    let text = try scratch.succeed("demo")
    #expect(text.output.contains("Equal."))
    #expect(text.output.contains("docsync conflicts laptop/notes.db show 1"))
    #expect(text.output.contains("local     'Groceries, Sat'"))
    #expect(text.output.contains("docsync conflicts laptop/notes.db restore 1"))
    #expect(text.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
    let json = try scratch.succeed("demo", "--keep", "--json").json()
    #expect(json["isConverged"] as? Bool == true)
    let devices = try #require(json["devices"] as? [[String: Any]])
    #expect(devices.count == 3)
    #expect(Set(devices.compactMap { $0["visible"] as? String }).count == 1)
    let folder = try #require(json["directory"] as? String)
    #expect(FileManager.default.fileExists(atPath: folder + "/shared"))
    try FileManager.default.removeItem(atPath: folder)
  }

  @Test func helpOfEveryVerbAndTheTableOfExitCodesArePrinted() throws {
    let help = try scratch.succeed("--help").output
    for line in ["0  done", "2  wrong usage", "4  the shared directory is away"] {
      #expect(help.contains(line))
    }
    for verb in try Self.verbs(scratch) {
      #expect(help.contains("  \(verb) "))
      let text = try scratch.succeed(verb, "--help").output
      #expect(text.contains("--json") && text.contains("USAGE: docsync \(verb) "), "\(verb)")
    }
  }

  /// A user types them as they stand.
  @Test func theExamplesOfEveryHelpAreValid() throws {
    for verb in try Self.verbs(scratch) where verb != "demo" {
      let help = try scratch.succeed(verb, "--help").output
      let section = try #require(help.range(of: "EXAMPLES\n"), "\(verb)")
      let examples = help[section.upperBound...].split(
        separator: "\n", omittingEmptySubsequences: false
      )
      .prefix { $0.hasPrefix("  ") }
      #expect(!examples.isEmpty, "\(verb)")
      for example in examples {
        let words = example.split(separator: " ").map(String.init)
        #expect(words.prefix(2) == ["docsync", verb])
        _ = try Docsync.parseAsRoot(Array(words.dropFirst()))
      }
    }
  }

  @Test func withoutACommandAShortHelpIsPrinted() throws {
    let text = try scratch.succeed().output
    #expect(text.split(separator: "\n", omittingEmptySubsequences: false).count < 20)
    for verb in try Self.verbs(scratch) { #expect(text.contains(verb), "\(verb)") }
    for line in text.split(separator: "\n") where line.hasPrefix("  docsync ") {
      _ = try Docsync.parseAsRoot(line.split(separator: " ").dropFirst().map(String.init))
    }
  }

  @Test func everyVerbIsOnThePages() throws {
    let lines = try Self.page("Documentation/CommandLine.md").split(separator: "\n")
    let readme = try Self.page("README.md").split(separator: "\n")
    for verb in try Self.verbs(scratch) {
      let isInSynopsis = lines.contains { $0.hasPrefix("docsync \(verb) ") }
      let hasSection = lines.contains { line in
        line.hasPrefix("### ") && line.dropFirst(4).components(separatedBy: ", ").contains(verb)
      }
      let hasObject = lines.contains { line in
        line.hasPrefix("| `") && line.contains(" | *")
          && line.dropFirst(2).prefix { $0 != "|" }.contains("`\(verb)`")
      }
      let isInReadme = readme.contains { $0.hasPrefix("| `docsync \(verb)") }
      #expect(isInSynopsis && hasSection && hasObject && isInReadme, "\(verb)")
    }
  }

  /// Command lines that people are told to type: the verb is one, and has the
  /// options.
  @Test(arguments: [
    "README.md", "Documentation/CommandLine.md", "Documentation/Lifecycle.md",
    "Documentation/WhatHappensWhen.md", "Documentation/SharedDirectory.md",
    "Documentation/Merging.md",
  ])
  func commandsOnThePagesArePossible(page: String) throws {
    var options: [String: Set<String>] = [:]
    for command in try Self.commands(scratch) {
      let verb = try #require(command["commandName"] as? String)
      let arguments = command["arguments"] as? [[String: Any]] ?? []
      let names = arguments.flatMap { $0["names"] as? [[String: Any]] ?? [] }
      options[verb] = Set(names.compactMap { $0["name"] as? String })
    }
    var count = 0
    for match in try Self.page(page).matches(of: /`docsync ([^`]+)`/) {
      let words = match.1.split(whereSeparator: \.isWhitespace)
      guard let verb = words.first, !verb.hasPrefix("-") else { continue }
      count += 1
      let known = try #require(options[String(verb)], "\(match.0) on \(page)")
      for word in words where word.hasPrefix("--") {
        let option = word.dropFirst(2).prefix { $0.isLetter || $0 == "-" }
        #expect(known.contains(String(option)), "\(match.0) on \(page)")
      }
    }
    #expect(count > 0)
  }

  /// The verbs by what the command says of itself.
  private static func verbs(_ scratch: Scratch) throws -> [String] {
    let verbs = try commands(scratch).compactMap { $0["commandName"] as? String }
      .filter { $0 != "help" }
    #expect(verbs.count >= 20 && verbs.contains("vacuum"))
    return verbs
  }

  private static func commands(_ scratch: Scratch) throws -> [[String: Any]] {
    let dump = try scratch.succeed("--experimental-dump-help").json()
    let command = try #require(dump["command"] as? [String: Any])
    return try #require(command["subcommands"] as? [[String: Any]])
  }

  private static func page(_ path: String) throws -> String {
    try String(
      contentsOf: URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../" + path), encoding: .utf8)
  }

  @Test func quietSyncPrintsOnlyWhatNeedsAttention() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("a.db", "UPDATE notes SET title = 'x' WHERE id = 1")
    #expect(try scratch.succeed("sync", "-q", "a.db").output == "")
    #expect(try scratch.succeed("sync", "--quiet", "b.db").output == "")
    #expect(try scratch.column("b.db", "SELECT title FROM notes WHERE id = 1") == ["\"x\""])
    let failed = try scratch.docsync("sync", "-q", "none.db", "a.db")
    #expect(failed.status == 1 && failed.output == "" && failed.errors.contains("none.db"))
  }

  @Test func conflictIsShownWithItsWholeValues() throws {
    try scratch.makeTwoDevices()
    let (first, second) = (
      String(repeating: "long ", count: 60), String(repeating: "more ", count: 60)
    )
    try scratch.sql("a.db", "UPDATE notes SET title = '\(first)' WHERE id = 1")
    try scratch.sql("b.db", "UPDATE notes SET title = '\(second)' WHERE id = 1")
    for store in ["a.db", "b.db", "a.db"] { try scratch.succeed("sync", store) }
    let shown = try scratch.docsync("conflicts", "b.db", "show", "1").output
    #expect(shown.contains("'\(first)'") && shown.contains("'\(second)'"), "\(shown)")
    #expect(!(try scratch.docsync("conflicts", "b.db").output.contains(first)))
  }

  @Test func deviceIsRetiredByItsName() throws {
    try scratch.makeTwoDevices()
    try scratch.succeed("join", "c.db", "--directory", "shared", "--client", "Old phone")
    let retired = try scratch.succeed("retire", "a.db", "--client", "Old phone")
    #expect(retired.output.contains("Old phone"), "\(retired.output)")
  }

  @Test func printedJoinWorksBesideAnotherDocument() throws {
    try scratch.makeTwoDevices()
    try scratch.makeNotes("other.db")
    let lines = try scratch.succeed("init", "other.db", "--directory", "shared").output
      .split(separator: "\n")
    let line = try #require(lines.first { $0.hasPrefix("  docsync join ") }, "\(lines)")
    let words = line.split(separator: " ").map(String.init)
    #expect(words.suffix(2) == ["--document", "other"], "\(line)")
    // The words after “docsync join other.db”.
    let joined = try Executable.run(["join", "joined.db"] + words.dropFirst(3), in: scratch.path)
    #expect(joined.status == 0, "\(joined.errors)")
  }
}
