import Foundation
import GRDB
import Testing

/// Set-ups that `init` refuses or takes back, and what it says.
struct SetUpRefusalTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func tables(_ store: String = "a.db") throws -> [String] {
    try scratch.column(store, "SELECT name FROM sqlite_schema WHERE name LIKE 'docsync%'")
  }

  private func expectUntouched(_ sourceLocation: SourceLocation = #_sourceLocation) throws {
    #expect(try tables() == [], sourceLocation: sourceLocation)
    let files = try FileManager.default.contentsOfDirectory(atPath: scratch.path + "/shared")
    #expect(files == [], sourceLocation: sourceLocation)
  }

  /// Makes a database as an application does that has a function and a collation of its own.
  private func make(_ statements: String) throws {
    var configuration = Configuration()
    configuration.prepareDatabase { database in
      database.add(function: DatabaseFunction("soundex2", argumentCount: 1, pure: true) { $0[0] })
      database.add(
        collation: DatabaseCollation("german") { ($0 as String).compare($1) })
    }
    let queue = try DatabaseQueue(path: scratch.path + "/a.db", configuration: configuration)
    try queue.write { try $0.execute(sql: statements) }
    try queue.close()
  }

  @Test(arguments: [
    (
      "CREATE TABLE n (id INTEGER PRIMARY KEY, t TEXT CHECK (soundex2(t) <> ''))",
      "The table \"n\" needs “soundex2”, which only its own program defines."
    ),
    (
      "CREATE TABLE n (id INTEGER PRIMARY KEY, t TEXT, s TEXT AS (soundex2(t)) STORED)",
      "The table \"n\" needs “soundex2”, which only its own program defines."
    ),
    (
      "CREATE TABLE n (id INTEGER PRIMARY KEY, t TEXT, s TEXT AS (soundex2(t)))",
      "The table \"n\" needs “soundex2”, which only its own program defines."
    ),
    (
      "CREATE TABLE n (id INTEGER PRIMARY KEY, t TEXT); CREATE INDEX sounds ON n (soundex2(t))",
      "The table \"n\" needs “soundex2”, which only its own program defines."
    ),
    (
      "CREATE TABLE n (id INTEGER PRIMARY KEY, t TEXT); "
        + "CREATE INDEX some ON n (t) WHERE soundex2(t) = 'a'",
      "The table \"n\" needs “soundex2”, which only its own program defines."
    ),
    (
      "CREATE TABLE n (id INTEGER PRIMARY KEY, t TEXT); CREATE INDEX sorted ON n (t COLLATE german)",
      "The table \"n\" needs “german”, which only its own program defines."
    ),
  ])
  func aFunctionOfTheApplicationThatATableNeedsIsNamed(sql: String, sentence: String) throws {
    try make(sql + "; INSERT INTO n (t) VALUES ('a')")
    for more in [[], ["--dry-run"]] {
      let refused = try Executable.run(
        ["init", "a.db", "--directory", "shared"] + more, in: scratch.path)
      #expect(refused.status == 1)
      #expect(refused.errors.contains(sentence), "\(refused.errors)")
      #expect(refused.errors.contains("--exclude n"), "\(refused.errors)")
    }
    try expectUntouched()
  }

  @Test func aTableThatIsExcludedMayNeedAFunctionOfTheApplication() throws {
    try make(
      """
      CREATE TABLE n (id INTEGER PRIMARY KEY, t TEXT); INSERT INTO n (t) VALUES ('x');
      CREATE TABLE words (w TEXT CHECK (soundex2(w) <> '')); INSERT INTO words VALUES ('a')
      """)
    try scratch.succeed("init", "a.db", "--directory", "shared", "--exclude", "words")
    try scratch.succeed("join", "b.db", "--directory", "shared")
    #expect(try scratch.column("b.db", "SELECT t FROM n") == ["\"x\""])
    #expect(try scratch.column("b.db", "SELECT w FROM words") == [])
  }

  @Test func aTriggerThatNeedsAFunctionOfTheApplicationIsNamedAndDoesNotHinder() throws {
    try make(
      """
      CREATE TABLE n (id INTEGER PRIMARY KEY, t TEXT); CREATE TABLE words (w TEXT);
      CREATE TRIGGER plain AFTER INSERT ON n BEGIN INSERT INTO words VALUES (new.t); END;
      CREATE TRIGGER hear AFTER INSERT ON n BEGIN INSERT INTO words VALUES (soundex2(new.t)); END
      """)
    let plan = try scratch.succeed(
      "init", "a.db", "--directory", "shared", "--exclude", "words", "--dry-run", "--json"
    ).json()
    let hints = try #require(plan["hints"] as? [[String: String]])
    #expect(
      hints == [
        ["kind": "triggerNeedsFunction", "table": "n", "trigger": "hear", "needed": "soundex2"]
      ])
    let begun = try scratch.succeed("init", "a.db", "--directory", "shared", "--exclude", "words")
    #expect(begun.output.contains("The trigger hear of n needs soundex2"))
  }

  @Test func anExcludedColumnOfTheKeyIsRefusedByName() throws {
    try scratch.makeNotes("a.db")
    let refused = try scratch.docsync(
      "init", "a.db", "--directory", "shared", "--exclude", "notes.id")
    #expect(refused.status == 1)
    #expect(
      refused.errors.contains("\"notes\".\"id\" identifies the rows and cannot be excluded."))
    try expectUntouched()
  }

  /// It fails only when the copy for other devices is made.
  @Test func aSetUpThatFailsLateIsTakenBack() throws {
    try scratch.sql(
      "a.db",
      """
      CREATE TABLE n (id INTEGER PRIMARY KEY, t TEXT, u TEXT CHECK (u IS NOT NULL));
      INSERT INTO n VALUES (1, 'a', 'b')
      """)
    let refused = try scratch.docsync("init", "a.db", "--directory", "shared", "--exclude", "n.u")
    #expect(refused.status == 1)
    #expect(refused.errors.contains("does not accept rows without its excluded columns"))
    #expect(refused.errors.contains("The set-up was taken back"))
    try expectUntouched()
    try scratch.succeed("init", "a.db", "--directory", "shared")
    try scratch.succeed("join", "b.db", "--directory", "shared")
  }

  @Test func aDatabaseInTheSharedDirectoryIsRefused() throws {
    try scratch.makeNotes("shared/a.db")
    try scratch.expectFailure(
      "init", "shared/a.db", "--directory", "shared", "--yes", status: 5,
      code: "storeInDirectory", path: "shared/a.db")
    try scratch.makeNotes("b.db")
    try scratch.succeed("init", "b.db", "--directory", "shared", "--yes")
    try scratch.expectFailure(
      "join", "shared/c.db", "--directory", "shared", status: 5, code: "storeInDirectory",
      path: "shared/c.db")
  }

  @Test func aDirectoryThatIsNotEmptyIsUsedOnlyOnConfirmation() throws {
    try scratch.makeNotes("a.db")
    for name in ["Documents", "Photos"] {
      try FileManager.default.createDirectory(
        atPath: scratch.path + "/shared/" + name, withIntermediateDirectories: false)
    }
    try Data().write(to: URL(filePath: scratch.path + "/shared/Documents/thesis.txt"))
    let before = try scratch.contents()
    let refused = try scratch.docsync("init", "a.db", "--directory", "shared")
    #expect(refused.status == 5)
    #expect(refused.errors.contains("It contains Documents, Photos."), "\(refused.errors)")
    let proposed = scratch.path + "/shared/DocumentSync"
    #expect(
      refused.errors.contains("mkdir \(proposed), then use --directory \(proposed)"),
      "\(refused.errors)")
    #expect(try scratch.contents() == before)
    #expect(
      try scratch.docsync("init", "a.db", "--directory", "shared", "--json").json()["error"]
        != nil)
    // What it proposes works.
    try FileManager.default.createDirectory(
      atPath: scratch.path + "/shared/DocumentSync", withIntermediateDirectories: false)
    try scratch.succeed("init", "a.db", "--directory", "shared/DocumentSync")
    // So does the confirmation; afterwards the directory is known.
    try scratch.makeNotes("b.db")
    try scratch.succeed("init", "b.db", "--directory", "shared", "--yes")
    try scratch.makeNotes("c.db")
    try scratch.succeed("init", "c.db", "--directory", "shared")
  }

  @Test func filesOfSynchronizersAreNoContent() throws {
    for name in [".stfolder", ".stignore", ".dropbox.cache", "desktop.ini", ".DS_Store"] {
      try Data().write(to: URL(filePath: scratch.path + "/shared/" + name))
    }
    try FileManager.default.createDirectory(
      atPath: scratch.path + "/shared/lost+found", withIntermediateDirectories: false)
    try scratch.makeNotes("a.db")
    try scratch.succeed("init", "a.db", "--directory", "shared")
  }

  @Test func aDatabaseWithDamagedBookkeepingCanBeAbandoned() throws {
    try scratch.makeTwoDevices()
    try scratch.sql("b.db", "DROP TABLE docsync_meta")
    let asked = try scratch.docsync("leave", "b.db", "--abandon")
    #expect(asked.status == 5 && asked.errors.contains("add --yes"))
    try scratch.succeed("leave", "b.db", "--abandon", "--yes")
    #expect(try tables("b.db") == [])
  }
}
