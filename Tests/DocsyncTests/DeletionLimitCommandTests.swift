import Foundation
import Testing

/// A change set that would delete most of a table waits until it is allowed.
@Suite struct DeletionLimitCommandTests {
  let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    try scratch.makeTwoDevices()
    try scratch.sql(
      "a.db",
      """
      WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 200)
      INSERT INTO notes (title) SELECT 'note ' || n FROM i
      """)
    try scratch.succeed("sync", "a.db")
    try scratch.succeed("sync", "b.db")
    try scratch.sql("a.db", "DELETE FROM notes")
    try scratch.succeed("sync", "a.db")
  }

  private func count() throws -> Int {
    try #require(try Int(scratch.column("b.db", "SELECT count(*) FROM notes")[0]))
  }

  @Test func itWaitsAndIsAppliedOnRequest() throws {
    let before = try count()
    let sync = try scratch.docsync("sync", "b.db")
    #expect(sync.status == 3 && sync.errors == "")
    #expect(
      sync.output.contains("deletes \(before) of \(before) rows of “notes”"), "\(sync.output)")
    #expect(sync.output.contains("docsync sync b.db --allow-deletions"), "\(sync.output)")
    let quiet = try scratch.docsync("sync", "b.db", "--quiet")
    #expect(quiet.status == 3 && quiet.output.contains("--allow-deletions"))
    let status = try scratch.docsync("status", "b.db")
    #expect(status.status == 3 && status.output.contains("docsync sync b.db --allow-deletions"))
    let watched = try scratch.docsync("watch", "b.db", "--once-idle")
    #expect(watched.status == 3 && watched.output.contains("--allow-deletions"))
    let json = try scratch.docsync("sync", "b.db", "--json").json()
    let report = try #require(
      (json["stores"] as? [[String: Any]])?.first?["report"] as? [String: Any])
    let waiting = try #require(report["waiting"] as? [[String: Any]])
    #expect(waiting.map { $0["reason"] as? String } == ["manyDeletions"])
    for verb in ["upload", "vacuum"] { _ = try scratch.docsync(verb, "b.db") }
    #expect(try count() == before)

    let allowed = try scratch.succeed("sync", "b.db", "--allow-deletions")
    #expect(allowed.output.contains("\(before) deleted"))
    #expect(try count() == 0)
    try scratch.succeed("status", "b.db")
  }

  @Test func onATerminalItIsAsked() throws {
    let before = try count()
    let refused = try Terminal.run(["sync", "b.db"], answer: "no\n", in: scratch.path)
    #expect(refused.status == 3 && refused.output.contains("waiting"))
    #expect(refused.errors.contains("deletes \(before) of \(before) rows of “notes”"))
    #expect(try count() == before)
    let allowed = try Terminal.run(["sync", "b.db"], answer: "yes\n", in: scratch.path)
    #expect(allowed.status == 0 && allowed.output.contains("\(before) deleted"))
    #expect(try count() == 0)
  }

  /// The way back that the documentation names.
  @Test func aDeviceThatStillHasTheRowsBringsThemBack() throws {
    let before = try scratch.column("b.db", "SELECT title FROM notes ORDER BY title")
    #expect(try scratch.docsync("sync", "b.db").status == 3)
    try scratch.succeed("leave", "b.db", "--yes")
    #expect(try scratch.column("b.db", "SELECT title FROM notes ORDER BY title") == before)
    try scratch.succeed("join", "b.db", "--directory", "shared", "--merge", "--client", "B2")
    try scratch.succeed("sync", "b.db")
    try scratch.succeed("sync", "a.db")
    for store in ["a.db", "b.db"] {
      #expect(try scratch.column(store, "SELECT title FROM notes ORDER BY title") == before)
    }
  }

  @Test func watchingMayAllowIt() throws {
    try scratch.succeed("watch", "b.db", "--once-idle", "--allow-deletions")
    #expect(try count() == 0)
  }
}
