import Foundation
import Testing

/// `docsync conflicts`
@Suite struct ConflictsCommandTests {
  let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    try scratch.makeTwoDevices()
  }

  /// Both devices change one title; the first one sends it, the second one
  /// gets it.
  @discardableResult
  private func disagree(_ status: Int32) throws -> Executable.Result {
    try scratch.sql("b.db", "UPDATE notes SET title = 'from b' WHERE id = 1")
    // Of two edits in one millisecond either may count as the later one.
    let begin = Date()
    while Date().timeIntervalSince(begin) < 0.002 {}
    try scratch.sql("a.db", "UPDATE notes SET title = 'from a' WHERE id = 1")
    try scratch.succeed("sync", "a.db")
    let result = try scratch.docsync("sync", "b.db")
    #expect(result.status == status, "\(result.errors)")
    return result
  }

  private func title(_ store: String) throws -> [String] {
    try scratch.column(store, "SELECT title FROM notes WHERE id = 1")
  }

  @Test func whatLostIsListedShownAndPutBack() throws {
    let empty = try scratch.succeed("conflicts", "b.db")
    #expect(empty.output.contains("No conflicts."))
    let sync = try disagree(0)
    #expect(sync.output.contains("1 conflict. Show them: docsync conflicts"))
    let list = try scratch.succeed("conflicts", "b.db")
    #expect(list.output.contains("notes 1 title"))
    #expect(list.output.contains("'from b'") && list.output.contains("'from a'"))
    #expect(list.output.contains("latestWins  now 'from a' (the remote value)"))
    let show = try scratch.succeed("conflicts", "b.db", "show", "1", "--json").json()
    let conflict = try #require(show["conflict"] as? [String: Any])
    #expect(conflict["kind"] as? String == "cell" && conflict["status"] as? String == "settled")
    #expect(conflict["column"] as? String == "title")
    #expect((conflict["key"] as? [String: Any])?["id"] as? Int == 1)
    let local = try #require(conflict["local"] as? [String: Any])
    #expect((local["values"] as? [String: Any])?["title"] as? String == "from b")
    #expect(local["clientName"] as? String == "B")
    #expect((conflict["now"] as? [String: Any])?["value"] as? String == "from a")
    try scratch.succeed("conflicts", "b.db", "restore", "1")
    try scratch.succeed("sync", "b.db", "a.db")
    #expect(try title("a.db") == ["\"from b\""])
    let shown = try scratch.succeed("conflicts", "b.db", "show", "1")
    #expect(shown.output.contains("now       'from b' (the local value)"))
    try scratch.sql("b.db", "UPDATE notes SET title = 'later' WHERE id = 1")
    let later = try scratch.succeed("conflicts", "b.db")
    #expect(later.output.contains("now 'later' (another value)"))
    try scratch.expectFailure(
      "conflicts", "b.db", "restore", "1", status: 5, code: "conflictNotOpen", path: "b.db")
    try scratch.expectFailure(
      "conflicts", "b.db", "show", "9", status: 1, code: "noSuchConflict", path: "b.db")
  }

  @Test(arguments: [
    (["--local"], "\"from b\""), (["--remote"], "\"from a\""),
    (["--value", "'three words'"], "\"three words\""),
  ])
  func aQuestionIsOpenUntilItIsAnswered(answer: [String], title expected: String) throws {
    try scratch.succeed("conflicts", "b.db", "policy", "notes.title=ask")
    let sync = try disagree(3)
    #expect(sync.output.contains("1 question open. Show them: docsync conflicts b.db --open"))
    let open = try scratch.docsync("conflicts", "b.db", "--open", "--json")
    #expect(open.status == 3)
    #expect(try open.json()["openConflicts"] as? Int == 1)
    let arguments = ["conflicts", "b.db", "resolve", "1"] + answer
    let resolved = try Executable.run(arguments, in: scratch.path)
    #expect(resolved.status == 0, "\(resolved.errors)")
    #expect(resolved.output.contains("1, answered"))
    try scratch.expectFailure(arguments, status: 5, code: "conflictNotOpen", path: "b.db")
    try scratch.succeed("sync", "b.db", "a.db")
    #expect(try title("a.db") == [expected])
  }

  @Test func policiesAreSetListedAndRemoved() throws {
    try scratch.succeed("conflicts", "b.db", "policy", "localWins")
    try scratch.succeed("conflicts", "b.db", "policy", "notes=ask")
    try scratch.succeed("conflicts", "b.db", "policy", "notes=default")
    let text = try scratch.succeed("conflicts", "b.db", "policy", "\"notes\".title=remoteWins")
    #expect(text.output.contains("document     localWins"))
    #expect(text.output.contains("notes.title  remoteWins"))
    #expect(!text.output.contains("ask"))
    try disagree(0)
    #expect(try title("b.db") == ["\"from a\""])
    try scratch.expectFailure(
      "conflicts", "b.db", "policy", "nothing=ask", status: 1, code: "policyUnsuitable",
      path: "b.db")
  }

  @Test(arguments: [
    ["resolve", "1"], ["resolve", "1", "--local", "--remote"], ["show"], ["list", "3"],
    ["show", "zero"], ["policy", "notes="], ["policy", "=ask"], ["restore", "1", "--value", "x"],
    ["show", "1", "--open"], ["show", "1", "--all"], ["--all", "--open"], ["--before", "3"],
    ["--all", "--limit", "0"], ["delete"],
  ])
  func aWrongCommandLineIsRefused(words: [String]) throws {
    let result = try Executable.run(["conflicts", "b.db"] + words, in: scratch.path)
    #expect(result.status == 2)
  }

  /// More than the database keeps.
  @Test func olderConflictsAreInAFileBesideTheDatabase() throws {
    try scratch.sql(
      "b.db",
      "WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10200) "
        + "INSERT INTO notes (title) SELECT 'n' FROM n WHERE i > (SELECT count(*) FROM notes)")
    try scratch.succeed("sync", "b.db", "a.db")
    try scratch.sql("b.db", "UPDATE notes SET title = 'from b'")
    try scratch.sql("a.db", "UPDATE notes SET title = 'from a'")
    try scratch.succeed("sync", "a.db")
    let sentence = "10200 conflicts: 10000 in the journal, 200 in b.db-docsync-conflicts"
    let sync = try scratch.succeed("sync", "b.db")
    #expect(sync.output.contains("In all \(sentence)."))
    let file = scratch.path + "/b.db-docsync-conflicts"
    #expect(FileManager.default.fileExists(atPath: file))
    let list = try scratch.succeed("conflicts", "b.db")
    #expect(list.output.contains("\(sentence); --all lists these, too"))
    #expect(list.output.split(separator: "\n").count == 10_001)
    let all = try scratch.succeed("conflicts", "b.db", "--all", "--json").json()
    #expect((all["conflicts"] as? [Any])?.count == 10_000)
    #expect(all["next"] as? Int == 201)
    let rest = try scratch.succeed("conflicts", "b.db", "--all", "--before", "201", "--json").json()
    #expect((rest["conflicts"] as? [Any])?.count == 200 && rest["next"] == nil)
    let some = try scratch.succeed("conflicts", "b.db", "--all", "--limit", "2")
    #expect(some.output.contains("More: docsync conflicts b.db --all --before 10199"))
    #expect((all["places"] as? [String: Any])?["inArchiveCount"] as? Int == 200)
    let shown = try scratch.succeed("conflicts", "b.db", "show", "1")
    #expect(shown.output.contains("1, settled, archived"))
    try scratch.succeed("conflicts", "b.db", "restore", "1", "--local")
    #expect(
      try scratch.succeed("conflicts", "b.db", "show", "1").output
        .contains("now       'from b' (the local value)"))
    try scratch.succeed("verify", "b.db")
    try scratch.succeed("sync", "b.db")
    try scratch.succeed("leave", "b.db", "--yes")
    #expect(!FileManager.default.fileExists(atPath: file))
  }

  @Test func aDatabaseThatIsReplacedTakesTheFileAlong() throws {
    let file = scratch.path + "/b.db-docsync-conflicts"
    try "older".write(toFile: file, atomically: false, encoding: .utf8)
    try scratch.succeed("join", "b.db", "--directory", "shared", "--replace")
    #expect(!FileManager.default.fileExists(atPath: file))
    let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
    #expect(
      names.contains { $0.hasPrefix("b.db.backup-") && $0.hasSuffix("-docsync-conflicts") })
  }

  @Test func aDeletionAgainstAnEditIsWarnedOf() throws {
    try scratch.sql("b.db", "DELETE FROM notes WHERE id = 1")
    try scratch.sql("a.db", "UPDATE notes SET title = 'from a' WHERE id = 1")
    try scratch.succeed("sync", "a.db")
    let result = try scratch.succeed("sync", "b.db")
    #expect(
      result.output.contains(
        "warning: deleted rows of notes were edited on another device and stay deleted "
          + "(column title)\n"), "\(result.output)")
    let json = try scratch.succeed("conflicts", "b.db", "--json").json()
    let conflicts = try #require(json["conflicts"] as? [[String: Any]])
    #expect(conflicts.count == 1 && conflicts[0]["kind"] as? String == "existence")
    #expect((conflicts[0]["local"] as? [String: Any])?["values"] == nil)
  }
}
